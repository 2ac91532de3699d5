use super::*;
use proptest::prelude::*;

fn parse_text(text: &str) -> Result<File, ParseError> {
    let has_function = |name: &str| matches!(name, "printf" | "eq" | "f");
    parse("t", text.as_bytes(), Dialect { else_with: true }, &has_function)
}

fn shown(text: &str) -> String {
    let file = parse_text(text).unwrap_or_else(|error| panic!("{error}"));
    let mut output = String::new();
    file.show(file.templates["t"], &mut output);
    output
}

#[test]
fn trees_print_as_in_go() {
    for (text, expected) in [
        ("{{ .A.b | printf  `x` 'c' }}", "{{.A.b | printf `x` 'c'}}"),
        ("{{$x := (f 1).y}}{{ $x.z }}", "{{$x := (f 1).y}}{{$x.z}}"),
        (
            "{{range $i,$e := .}}{{if eq $i 0}}{{continue}}{{else if $e}}a{{end}}{{else}}b{{end}}",
            "{{range $i, $e := .}}{{if eq $i 0}}{{continue}}{{else}}{{if $e}}a{{end}}{{end}}{{else}}b{{end}}",
        ),
        ("{{with .x}}a{{else with .y}}b{{end}}", "{{with .x}}a{{else}}{{with .y}}b{{end}}{{end}}"),
        ("{{block \"b\" .}}x{{end}}{{template \"b\"}}", "{{template \"b\" .}}{{template \"b\"}}"),
        ("a{{define \"d\"}}x{{end}}b", "ab"),
        ("{{ nil | f }}{{ . }}", "{{nil | f}}{{.}}"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_in_the_words_of_go() {
    for (text, message) in [
        ("{{ nofunc 1 }}", "template: t:1: function \"nofunc\" not defined"),
        ("{{ if true }}", "template: t:1: unexpected EOF"),
        ("\n{{ end }}", "template: t:2: unexpected {{end}}"),
        ("{{ else }}", "template: t:1: unexpected {{else}}"),
        ("{{ $x }}", "template: t:1: undefined variable \"$x\""),
        ("{{ if . }}{{ $x := 1 }}{{ end }}{{ $x }}", "template: t:1: undefined variable \"$x\""),
        ("{{ 1.a }}", "template: t:1: bad number syntax: \"1.a\""),
        ("{{ true.a }}", "template: t:1: unexpected . after term \"true\""),
        ("{{ . | 1 }}", "template: t:1: non executable command in pipeline stage 2"),
        ("{{ break }}", "template: t:1: {{break}} outside {{range}}"),
        ("{{ }}", "template: t:1: missing value for command"),
        ("{{ f () }}", "template: t:1: missing value for parenthesized pipeline"),
        ("{{ if }}{{ end }}", "template: t:1: missing value for if"),
        ("{{ range $a, $b, $c := . }}{{ end }}", "template: t:1: too many declarations in range"),
        ("{{ range $a, 1 := . }}{{ end }}", "template: t:1: range can only initialize variables"),
        ("{{ $a, $b := . }}", "template: t:1: too many declarations in command"),
        ("{{ template .x }}", "template: t:1: unexpected \".x\" in template clause"),
        ("{{ define x }}", "template: t:1: unexpected \"x\" in define clause"),
        ("{{ . if }}", "template: t:1: unexpected <if> in operand"),
        ("{{ , }}", "template: t:1: unexpected \",\" in command"),
        ("{{ .a.b.c.d.e.f \"0123456789abc }}", "template: t:1: unterminated quoted string"),
        (
            "{{ define `a` }}x{{ end }}{{ define `a` }}y{{ end }}",
            "template: t:1: template: multiple definition of template \"a\"",
        ),
        ("{{ f\n\n1 ", "template: t:3: unclosed action started at t:1"),
        ("{{ f\n`a", "template: t:2: unterminated raw quoted string in action started at t:1"),
        ("{{ 99999999999999999999 }}", "template: t:1: integer overflow: \"99999999999999999999\""),
        ("{{ if . }}{{ else }}{{ else }}{{ end }}", "template: t:1: expected end; found {{else}}"),
        ("{{ \"\\z\" }}", "template: t:1: invalid syntax"),
        ("{{ \"a\" . \"b\"c }}", "template: t:1: unexpected \"c\" in operand"),
    ] {
        let error = parse_text(text).expect_err(text);
        assert_eq!(error.to_string(), message, "{text}");
    }
}

#[test]
fn positions_are_those_that_go_reports() {
    let file = parse_text("ab\n{{ .Values.a.b }}").unwrap_or_else(|error| panic!("{error}"));
    let field = file.nodes.iter().position(|node| matches!(node.kind, Kind::Field(_))).expect("a field");
    assert_eq!(file.context(NodeId(field as u32)), ("t:2:10".to_owned(), ".Values.a.b".to_owned()));
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let text = format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(parse_text(&text).is_err());
    let text = "{{ if 1 }}".repeat(100_000);
    assert!(parse_text(&text).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic_and_what_it_prints_it_reads_again(words in proptest::collection::vec(
        prop_oneof![
            Just("{{"), Just("}}"), Just("{{- "), Just(" -}}"), Just("if "), Just("else "), Just("end"), Just("range "),
            Just("with "), Just("define \"a\""), Just("block \"b\" ."), Just("template \"a\""), Just("$x"), Just(":="),
            Just("="), Just(","), Just(".y"), Just("("), Just(")"), Just("|"), Just("f "), Just("1.5"), Just("\"s\""),
            Just("`r`"), Just("'c'"), Just("nil"), Just("true"), Just(" "), Just("\n"), Just("text"), Just("/* c */"),
            Just("break"), Just("continue"), Just("{{ end }}"), Just("{{ if . }}"), Just("{{ $x := 1 }}"),
        ], 0..24)) {
        let text = words.concat();
        if let Ok(file) = parse_text(&text) {
            let mut output = String::new();
            file.show(file.templates["t"], &mut output);
            // Trimming is done once only: text beside an action may end in what looks like a marker.
            if file.templates.len() == 1 && !text.contains("- ") && !text.contains(" -") && !text.contains("/*") {
                let again = parse_text(&output);
                prop_assert!(again.is_ok(), "{text:?} became {output:?}: {again:?}");
            }
        }
    }
}
