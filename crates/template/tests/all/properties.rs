//! What holds for every template.

use crate::context::render_simply;
use proptest::prelude::*;

proptest! {
    #[test]
    fn no_template_makes_the_renderer_panic(words in proptest::collection::vec(
        prop_oneof![
            Just("{{ "), Just(" }}"), Just("{{ end }}"), Just("{{ else }}"), Just("{{ if .Values.a }}"),
            Just("{{ range $k, $v := .Values.a }}"), Just("{{ with .Values.a.c }}"), Just("{{ define \"d\" }}"),
            Just("{{ include \"d\" . }}"), Just("{{ $x := "), Just("$x"), Just(".Values"), Just(".a"), Just(".b"),
            Just(".c"), Just("(dict \"k\" 1)"), Just("(list 1 \"a\" nil)"), Just(" | "), Just("index "), Just("len "),
            Just("printf \"%[2]*.[1]*f %v\" "), Just("toYaml "), Just("set "), Just("trunc -1 "), Just("substr 2 1 "),
            Just("join \",\" "), Just("until 3"), Just("regexFind \"[\" "), Just("tpl "), Just("\"{{ . }}\" "),
            Just("1.5 "), Just("nil "), Just("\"x\" "), Just("true "), Just(". "), Just("$ "), Just("merge "), Just("dig "),
        ], 0..16)) {
        let _ = render_simply(&words.concat());
    }
}
