use super::*;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn values_print_as_go_yaml_v2_prints_them() {
    for (value, expected) in [
        (json!({"a": 1, "a10": 2, "a2": 3, "b": [1, "x"], "_": null}), "_: null\na: 1\na2: 3\na10: 2\nb:\n- 1\n- x\n"),
        (
            json!(["yes", "1", "0755", "1e3", "12:30", "null", "~", "", "2026-01-01", "y"]),
            "- \"yes\"\n- \"1\"\n- \"0755\"\n- \"1e3\"\n- \"12:30\"\n- \"null\"\n- \"~\"\n- \"\"\n- \"2026-01-01\"\n- \"y\"\n",
        ),
        (
            json!(["a: b", "- x", "#a", "a #b", "a:b", "@x", " a", "a ", "'a'", "?", "? a"]),
            "- 'a: b'\n- '- x'\n- '#a'\n- 'a #b'\n- a:b\n- '@x'\n- ' a'\n- 'a '\n- '''a'''\n- '?'\n- '? a'\n",
        ),
        (
            json!({"a": {}, "b": [], "c": {"d": [[1, 2], {"e": 1, "f": 2}]}}),
            "a: {}\nb: []\nc:\n  d:\n  - - 1\n    - 2\n  - e: 1\n    f: 2\n",
        ),
        (
            json!({"a": "x\ny", "b": "x\n", "c": "x\n\n", "d": " x\ny\n", "e": "\n", "f": "a \nb"}),
            "a: |-\n  x\n  y\nb: |\n  x\nc: |+\n  x\n\nd: |2\n   x\n  y\ne: |2+\n\nf: \"a \\nb\"\n",
        ),
        (
            json!(["\t", "é", "😀", "a\u{a0}b", "\u{7}\"\\"]),
            "- \"\\t\"\n- é\n- \"\\U0001F600\"\n- a\u{a0}b\n- \"\\a\\\"\\\\\"\n",
        ),
        (
            json!([1.5, 1e6, 1e21, 0.1, 1_234_567.5, u64::MAX, -0.00001]),
            "- 1.5\n- 1000000\n- 1e+21\n- 0.1\n- 1.2345675e+06\n- 18446744073709551615\n- -1e-05\n",
        ),
        (json!("text"), "text\n"),
        (json!("a\nb\n"), "|\n  a\n  b\n"),
        (json!({}), "{}\n"),
    ] {
        assert_eq!(emit_json(&value), expected, "{value}");
    }
}

#[test]
fn long_lines_are_folded_after_80_columns() {
    let words = "word ".repeat(20);
    let text = words.trim_end();
    let expected =
        "a: word word word word word word word word word word word word word word word word\n  word word word word\n";
    assert_eq!(emit_json(&json!({"a": text})), expected);
    let quoted = format!("x: {words}");
    let expected = "a: 'x: word word word word word word word word word word word word word word word\n  word word word word word '\n";
    assert_eq!(emit_json(&json!({"a": quoted})), expected);
}

#[test]
fn long_keys_and_keys_of_several_lines_are_explicit() {
    let long = "k".repeat(129);
    assert_eq!(emit_json(&json!({long.clone(): 1})), format!("? {long}\n: 1\n"));
    assert_eq!(emit_json(&json!({"a\nb": [1]})), "? |-\n  a\n  b\n: - 1\n");
}

#[test]
fn version_3_indents_lists_and_folds_nothing() {
    let text = "word ".repeat(30) + "end";
    let value = json!({"a": [{"b": [1], "c": {"d": 1}}, [2]], "t": text});
    let expected = format!("a:\n  - b:\n      - 1\n    c:\n      d: 1\n  - - 2\nt: {text}\n");
    assert_eq!(emit(&Data::from(&value), Flavor::V3), expected);
    assert_eq!(emit(&Data::Float(1e6), Flavor::V3), "1e+06\n");
    assert_eq!(emit(&Data::Bytes(b"\xff\xfe".as_slice().into()), Flavor::V3), "!!binary //4=\n");
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let text = prop_oneof![
        "[ -~]{0,12}",
        "[a-z :#'\"\\-?,\\[\\]{}&*!|>%@`\n\t]{0,10}",
        "(yes|no|on|null|~|0x1F|1_000|0b1|\\.5|1e3|12:30|2026-1-2|-|\\?|:|---|\\.\\.\\.)",
        "\\PC{0,6}",
        "([a-z]{1,9} ){8,30}[a-z]?",
    ];
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        (-1e9..1e9).prop_map(|value: f64| json!(value)),
        text.clone().prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            proptest::collection::btree_map(text.clone(), inner, 0..5)
                .prop_map(|entries| serde_json::Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Numbers through JSON: what is whole has no fraction.
fn normalised(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && number.as_i64().is_none() => {
                format!("{float}").parse().unwrap_or(json!(null))
            }
            _ => serde_json::Value::Number(number),
        },
        serde_json::Value::Array(items) => items.into_iter().map(normalised).collect(),
        serde_json::Value::Object(entries) => entries.into_iter().map(|(key, item)| (key, normalised(item))).collect(),
        other => other,
    }
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_it_was(value in any_value()) {
        for flavor in [Flavor::V2, Flavor::V3] {
            let text = emit(&Data::from(&value), flavor);
            let documents = crate::parse(&text);
            let read = documents.as_ref().map(|documents| documents.first().map(|document| document.root.to_json()));
            let expected = normalised(value.clone());
            prop_assert_eq!(read.as_ref().ok().cloned().flatten().map(normalised), Some(expected), "{}: {:?}", text, documents.as_ref().err());
        }
    }
}
