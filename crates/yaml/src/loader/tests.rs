use super::*;
use crate::position;
use proptest::prelude::*;
use serde_json::json;

fn one(text: &str) -> Node {
    parse(text).unwrap().remove(0).root
}

#[test]
fn every_value_knows_where_it_came_from() {
    let text = "a: {b: [1, 'two']}\nc: |\n  three\n  four\nd: five # said\n";
    let documents = parse(text).unwrap();
    let root = &documents[0].root;
    let source = |path: &[&str]| &text[root.at(path).unwrap().span.clone()];
    assert_eq!(source(&["a", "b", "0"]), "1");
    assert_eq!(source(&["a", "b", "1"]), "'two'");
    assert_eq!(source(&["a"]), "{b: [1, 'two']}");
    assert_eq!(source(&["d"]), "five");
    assert_eq!(root.at(&["c"]).unwrap().as_str(), Some("three\nfour\n"));
    assert_eq!(&text[root.entry("c").unwrap().key_span.clone()], "c");
    assert_eq!((documents[0].comments[0].text.as_str(), documents[0].comments.len()), (" said", 1));
    let place = position(text, root.at(&["d"]).unwrap().span.start);
    assert_eq!((place.line, place.column), (5, 4));
}

#[test]
fn documents_are_told_apart() {
    let documents = parse("a: 1\n---\n---\nb: 2\n").unwrap();
    let json: Vec<_> = documents.iter().map(|document| document.root.to_json()).collect();
    assert_eq!(json, [json!({"a": 1}), json!(null), json!({"b": 2})]);
    assert_eq!(parse("").unwrap(), []);
    assert_eq!(parse("# nothing\n").unwrap(), []);
}

#[test]
fn keys_become_texts_and_the_last_of_two_counts() {
    assert_eq!(one("on: 1\n2: b\n~: c\n'x': d\n").to_json(), json!({"true": 1, "2": "b", "null": "c", "x": "d"}));
    let twice = one("a: 1\nb: {c: 1, c: 2}\na: 3\n");
    assert_eq!(twice.to_json(), json!({"a": 3, "b": {"c": 2}}));
    let names: Vec<_> = twice.duplicates().iter().map(|entry| (entry.key.clone(), entry.key_span.start)).collect();
    assert_eq!(names, [("c".to_owned(), 15), ("a".to_owned(), 21)]);
}

#[test]
fn keys_may_be_taken_as_they_are_written() {
    let documents = parse_with("on: [install]\n1: yes\n\"y\": 2\n", Keys::AsWritten, LIMITS).unwrap();
    assert_eq!(documents[0].root.to_json(), json!({"on": ["install"], "1": true, "y": 2}));
}

#[test]
fn aliases_stand_for_what_they_name_and_merges_give_way() {
    let text = "base: &b {x: 1, z: 2}\nuse: {<<: *b, z: 3}\nfirst: {z: 3, <<: *b}\nboth: {<<: [{x: 7}, *b]}\nquoted: {'<<': 1}\n";
    let root = one(text);
    assert_eq!(root.at(&["use"]).unwrap().to_json(), json!({"x": 1, "z": 3}));
    assert_eq!(root.at(&["first"]).unwrap().to_json(), json!({"x": 1, "z": 3}));
    assert_eq!(root.at(&["both"]).unwrap().to_json(), json!({"x": 7, "z": 2}));
    assert_eq!(root.at(&["quoted"]).unwrap().to_json(), json!({"<<": 1}));
    assert_eq!(root.duplicates(), [] as [&Entry; 0]);
}

#[test]
fn tags_decide_where_they_are_yamls_own() {
    assert_eq!(one("[!!str 1, !!int '7', !mine 5, 'yes', yes]").to_json(), json!(["1", 7, "5", "yes", true]));
}

#[test]
fn errors_say_where() {
    let error = parse("a: 1\nb: [1, 2\nc: 3\n").unwrap_err();
    assert!(position("a: 1\nb: [1, 2\nc: 3\n", error.offset).line >= 2, "{error:?}");
    assert!(parse("a: *nobody\n").is_err());
    assert!(parse("a: &a [*a]\n").is_err());
}

#[test]
fn what_would_eat_memory_is_refused() {
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 0..9_u8 {
        let (name, before) = (char::from(b'b' + level), char::from(b'a' + level));
        bomb.push_str(&format!("{name}: &{name} [{}]\n", vec![format!("*{before}"); 10].join(",")));
    }
    assert_eq!(parse(&bomb).unwrap_err().message, "its aliases unfold to more than is taken");
    let deep = "[".repeat(5000);
    assert!(parse(&deep).is_err());
    let mut nested = format!("a: &a {}1{}\n", "[".repeat(150), "]".repeat(150));
    nested.push_str(&format!("b: {}*a{}\n", "[".repeat(150), "]".repeat(150)));
    assert!(parse(&nested).is_err());
    let small = Limits { bytes: 10, ..LIMITS };
    assert!(parse_with("a: 12345678\n", Keys::AsMeant, small).unwrap_err().message.contains("10 are taken at most"));
}

proptest! {
    #[test]
    fn nothing_panics_and_spans_are_in_the_text(text in "[a-c0-9:\\-\\[\\]{},&*!|>'\"# \n~<]{0,80}") {
        if let Ok(documents) = parse(&text) {
            let mut queue: Vec<&Node> = documents.iter().map(|document| &document.root).collect();
            while let Some(node) = queue.pop() {
                prop_assert!(text.get(node.span.clone()).is_some(), "{:?}", node);
                queue.extend(node.items());
                queue.extend(node.entries().iter().map(|entry| &entry.value));
            }
        }
    }

    #[test]
    fn what_json_says_is_read_as_json(value in proptest::collection::btree_map("[a-z]{1,5}", -1000_i64..1000, 0..5)) {
        let value = json!(value);
        prop_assert_eq!(one(&value.to_string()).to_json(), value);
    }
}
