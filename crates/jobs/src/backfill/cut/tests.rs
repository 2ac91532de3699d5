//! What leaves is what was there without what is secret: by examples, and against a slow way that makes trees.

mod places;
#[path = "../../../tests/all/backfill/plant.rs"]
mod plant;
mod slow;

use super::*;
use crate::backfill::filter::{Names, Patterns};
use proptest::prelude::*;
use serde_json::{Value, json};

fn kind(group: &str, kind: &str) -> Kind {
    Kind {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced: true,
    }
}

fn cut(kind: &Kind, filters: &Filters, object: &str) -> Option<Value> {
    let mut out = b"before\n".to_vec();
    let fate = Cutter::new(kind, filters, false).cut(object.as_bytes(), &mut out).unwrap();
    let line = out.strip_prefix(b"before\n").unwrap();
    if fate == Fate::Skipped {
        assert!(line.is_empty());
        return None;
    }
    let line = line.strip_suffix(b"\n").unwrap();
    assert!(!line.contains(&b'\n'), "a line is one line");
    Some(serde_json::from_slice(line).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(line))))
}

fn plain(group: &str, name: &str, object: &Value) -> Value {
    cut(&kind(group, name), &Filters::default(), &object.to_string()).unwrap()
}

#[test]
fn a_line_is_the_object_with_its_kind_and_without_managed_fields() {
    for (object, expected) in [
        (
            r#"{"metadata":{"name":"a","managedFields":[{"manager":"x"}]},"spec":{}}"#,
            json!({"metadata": {"name": "a"}, "spec": {}}),
        ),
        (r#"{"metadata":{"managedFields":[],"name":"a"}}"#, json!({"metadata": {"name": "a"}})),
        (r#"{"metadata":{"managedFields":[]}}"#, json!({"metadata": {}})),
        (
            r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a"}}"#,
            json!({"metadata": {"name": "a"}}),
        ),
        (r#"{"metadata":{"name":"a"},"kind":"x","apiVersion":"y"}"#, json!({"metadata": {"name": "a"}})),
        ("{\n  \"metadata\": {\r\n    \"name\": \"a\\n\"\n  }\n}", json!({"metadata": {"name": "a\n"}})),
        ("{}", json!({})),
        (r#" { "kind" : "x" } "#, json!({})),
    ] {
        let mut expected = expected;
        expected["apiVersion"] = json!("apps/v1");
        expected["kind"] = json!("Thing");
        assert_eq!(cut(&kind("apps", "Thing"), &Filters::default(), object).unwrap(), expected, "{object}");
    }
}

#[test]
fn what_stays_is_copied_to_the_byte() {
    let object =
        r#"{"metadata":{"name":"\u00e9"},"spec":{"number":1e400,"long":0.10000000000000000000000001,"a":"\/","a":1}}"#;
    let mut out = Vec::new();
    let thing = kind("example.com", "Thing");
    let filters = Filters::default();
    Cutter::new(&thing, &filters, false).cut(object.as_bytes(), &mut out).unwrap();
    let expected = format!("{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",{}\n", &object[1..]);
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn secrets_lose_their_data() {
    let secret = json!({"metadata": {"name": "a", "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": "{\"data\":\"eA==\"}", "note": "n"}},
        "data": {"a": "eA=="}, "stringData": {"b": "x"}, "type": "Opaque", "immutable": true});
    let expected = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "annotations": {"note": "n"}},
        "type": "Opaque", "immutable": true});
    assert_eq!(plain("", "Secret", &secret), expected);
    let escaped = r#"{"metadata":{"name":"a"},"d\u0061ta":{"a":"eA=="},"string\u0044ata":{"a":"x"}}"#;
    let cut = cut(&kind("", "Secret"), &Filters::default(), escaped).unwrap();
    assert_eq!(cut, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}));
}

#[test]
fn a_secret_inside_of_another_object_loses_its_data_too() {
    let object = json!({"spec": {"manifests": [{"data": {"a": "eA=="}, "kind": "Secret", "stringData": {"b": "x"}}, {"kind": "ConfigMap", "data": {"a": "b"}}]}});
    let cut = plain("example.com", "Bundle", &object);
    assert_eq!(cut["spec"], json!({"manifests": [{"kind": "Secret"}, {"kind": "ConfigMap", "data": {"a": "b"}}]}));
}

#[test]
fn variables_and_arguments_lose_their_secrets() {
    let object = json!({"spec": {"template": {"spec": {"containers": [{
        "env": [
            {"name": "DB_PASSWORD", "value": "p4ss"},
            {"value": "t0k", "name": "API_TOKEN"},
            {"name": "LEVEL", "value": "3"},
            {"name": "DATABASE_URL", "value": "postgres://u:p4ss@h/d"},
            {"name": "SECRET_FROM", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "args": ["--password", "p4ss", "--token=t0k", "--level", "3", "--key-file=/etc/k"],
        "command": ["sh", "-c", "PASSWORD=p4ss run"],
    }]}}, "env": {"SECRET": "s", "PLAIN": "p", "KEY": 7}, "password": "p4ss", "clientSecret": {"name": "s"}}});
    let cut = plain("apps", "Deployment", &object);
    let container = &cut["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        container["env"],
        json!([
            {"name": "DB_PASSWORD", "value": REMOVED},
            {"value": REMOVED, "name": "API_TOKEN"},
            {"name": "LEVEL", "value": "3"},
            {"name": "DATABASE_URL", "value": "postgres://u:(removed)@h/d"},
            {"name": "SECRET_FROM", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ])
    );
    assert_eq!(
        container["args"],
        json!(["--password", REMOVED, "--token=(removed)", "--level", "3", "--key-file=/etc/k"])
    );
    assert_eq!(container["command"], json!(["sh", "-c", "PASSWORD=(removed) run"]));
    assert_eq!(cut["spec"]["env"], json!({"SECRET": REMOVED, "PLAIN": "p", "KEY": REMOVED}));
    assert_eq!((&cut["spec"]["password"], &cut["spec"]["clientSecret"]), (&json!(REMOVED), &json!({"name": "s"})));
}

#[test]
fn ledgers_lose_their_logs_and_releases_their_values() {
    let map = |labels: Value, data: Value| json!({"data": data, "metadata": {"name": "a", "labels": labels}});
    let ledger = map(json!({"jobwright.io/ledger": "1"}), json!({"head": "{}", "logs": "{\"7\":\"p4ss\"}"}));
    assert_eq!(plain("", "ConfigMap", &ledger)["data"], json!({"head": "{}"}));
    let release = map(json!({"owner": "helm"}), json!({"release": "H4sI"}));
    assert_eq!(plain("", "ConfigMap", &release).get("data"), None);
    let settings =
        map(json!({}), json!({"logs": "l", "DB_PASSWORD": "p", "keys.conf": "k", "password": "p", "LEVEL": "3"}));
    let expected = json!({"logs": "l", "DB_PASSWORD": REMOVED, "keys.conf": "k", "password": REMOVED, "LEVEL": "3"});
    assert_eq!(plain("", "ConfigMap", &settings)["data"], expected);
}

#[test]
fn labels_annotations_and_names_are_chosen() {
    let patterns = |only: &str, without: &str| Patterns {
        only: vec![only.parse().unwrap()],
        without: vec![without.parse().unwrap()],
    };
    let names = Names { only: vec!["^web".parse().unwrap()], without: vec!["old$".parse().unwrap()] };
    let filters = Filters { names, labels: patterns("^app", "=^x$"), annotations: patterns("note", "secret") };
    let object = |name: &str| {
        json!({"metadata": {"name": name, "labels": {"app": "a", "app2": "x", "tier": "t"},
            "annotations": {"note": "n", "secret-note": "s", "other": "o"}}, "spec": {"labels": {"tier": "t"}}})
        .to_string()
    };
    let cut = |name: &str| cut(&kind("apps", "Thing"), &filters, &object(name));
    let metadata = json!({"name": "web", "labels": {"app": "a"}, "annotations": {"note": "n"}});
    assert_eq!(cut("web").unwrap()["metadata"], metadata);
    assert_eq!(cut("web").unwrap()["spec"], json!({"labels": {"tier": "t"}}));
    assert!(cut("db").is_none() && cut("web-old").is_none());
}

#[test]
fn what_cannot_be_read_is_told_and_nothing_of_it_is_written_as_a_whole_line() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    for object in ["", "[]", "{", "{\"a\"", "{\"a\":}", "{\"a\":1", &deep] {
        let mut out = Vec::new();
        let thing = kind("", "Pod");
        let filters = Filters::default();
        assert_eq!(
            Cutter::new(&thing, &filters, false).cut(object.as_bytes(), &mut out),
            Err(Unreadable),
            "{object:.20}"
        );
        assert!(out.is_empty());
    }
}

/// Keys that mean something, and keys that do not.
const KEYS: &[&str] = &[
    "metadata",
    "name",
    "labels",
    "annotations",
    "managedFields",
    "data",
    "stringData",
    "kind",
    "env",
    "value",
    "args",
    "command",
    "password",
    "apiToken",
    "githubToken",
    "apiKeys",
    "header",
    "key",
    "default",
    "db.password",
    "secretName",
    "credentials",
    "checksum/secret",
    "spec",
    "items",
    "logs",
    "DB_PASSWORD",
    "LEVEL",
    "owner",
    "jobwright.io/ledger",
    "kubectl.kubernetes.io/last-applied-configuration",
    "é\"\\\n",
    "",
];
const TEXTS: &[&str] = &[
    "Secret",
    "ConfigMap",
    "helm",
    "1",
    "API_KEY",
    "--token",
    "--token=p",
    "a://u:p@h",
    "https://x@h",
    "plain",
    "/etc/key",
    "PASSWORD='a b' x",
    "db.password",
    "Authorization",
    "--password",
    "-x",
    "--sort-key",
    "user: u\npassword: p\n",
    "{\"token\":\"t\",\"a\":1}",
    "https://h/?sig=x&Token=y",
    "hunter-two",
    "a hunter-two \n b",
    "aHVudGVyLXR3bw==",
    "\u{1F980} \"quoted\" \\ \n",
    "",
];

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::sample::select(TEXTS).prop_map(|text| json!(text)),
        any::<i64>().prop_map(|number| json!(number)),
        Just(Value::Null),
        any::<bool>().prop_map(|truth| json!(truth)),
        ".{0,12}".prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array), any_object(inner),]
    })
}

fn any_object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec((prop::sample::select(KEYS), inner), 0..7)
        .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        .prop_map(Value::Object)
}

/// Writes a value with blanks, and with letters escaped that need not be.
fn write(value: &Value, random: &mut impl FnMut() -> bool, out: &mut String) {
    let blank = |random: &mut dyn FnMut() -> bool| if random() { " \n" } else { "" };
    let text = |text: &str, random: &mut dyn FnMut() -> bool| {
        let mut written = "\"".to_owned();
        for character in text.chars() {
            let mut units = [0; 2];
            match character {
                _ if random() && random() => {
                    for unit in character.encode_utf16(&mut units) {
                        written.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                '/' if random() => written.push_str("\\/"),
                _ => {
                    let quoted = serde_json::to_string(&character).unwrap();
                    written.push_str(&quoted[1..quoted.len() - 1]);
                }
            }
        }
        written + "\""
    };
    match value {
        Value::Object(members) => {
            out.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(blank(random));
                out.push_str(&text(key, random));
                out.push_str(blank(random));
                out.push(':');
                write(value, random, out);
            }
            out.push_str(blank(random));
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write(item, random, out);
            }
            out.push(']');
        }
        Value::String(string) => out.push_str(&text(string, random)),
        other => out.push_str(&format!("{}{other}", blank(random))),
    }
}

proptest! {
    #[test]
    fn the_quick_way_does_what_the_slow_way_does(
        object in any_object(any_value()),
        name in prop::sample::select(&[("", "Secret"), ("", "ConfigMap"), ("", "Pod"), ("example.com", "Secret")][..]),
        seed in any::<u64>(),
    ) {
        let mut bits = fastrand::Rng::with_seed(seed);
        let mut text = String::new();
        write(&object, &mut || bits.bool(), &mut text);
        let object: Value = serde_json::from_str(&text).unwrap();
        let kind = kind(name.0, name.1);
        for known in [&[][..], &["hunter-two"]] {
            let mut collector = values::Collector::default();
            for value in known {
                collector.add("foo", value.as_bytes());
            }
            let values = Arc::new(collector.finish());
            let mut out = Vec::new();
            let filters = Filters::default();
            Cutter::new(&kind, &filters, false).without(Arc::clone(&values)).cut(text.as_bytes(), &mut out).unwrap();
            let quick: Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(quick, slow::cut(&kind, &object, &values), "{}", text);
        }
    }

    #[test]
    fn no_planted_value_survives(
        filling in prop::collection::vec(any_value(), 4),
        depth in 0..6_usize,
        seed in any::<u64>(),
    ) {
        const PLANTED: &str = "pl4nted/value";
        let [one, two, three, four] = <[Value; 4]>::try_from(filling).unwrap();
        let container = json!({"image": one, "env": [{"name": "X_PASSWORD", "value": PLANTED}, two],
            "args": ["--api-key", PLANTED, format!("--token={PLANTED}"), format!("postgres://u:{PLANTED}@host/db")],
            "command": ["sh", "-c", format!("SECRET={PLANTED} x")]});
        let secret = json!({"kind": "Secret", "data": {"a": PLANTED}, "stringData": {"b": PLANTED}});
        let mut inner = json!({"containers": [container, three], "objects": [secret], "password": PLANTED});
        for level in 0..depth {
            inner = if level % 2 == 0 { json!({"template": inner}) } else { json!([inner, 1]) };
        }
        let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": PLANTED});
        let object = json!({"metadata": {"annotations": annotations, "managedFields": [PLANTED], "other": four}, "spec": inner});
        let mut bits = fastrand::Rng::with_seed(seed);
        let mut text = String::new();
        write(&object, &mut || bits.bool(), &mut text);
        prop_assert!(text.len() > PLANTED.len());
        let left = cut(&kind("apps", "Deployment"), &Filters::default(), &text).unwrap().to_string();
        prop_assert!(!left.contains(PLANTED), "{}", left);
    }

    #[test]
    fn any_text_is_taken_or_refused(text in r#"[\{\}\[\]",:\\a-z0-9 ]{0,80}"#) {
        let mut out = Vec::new();
        let pod = kind("", "Pod");
        let filters = Filters::default();
        let _ = Cutter::new(&pod, &filters, false).cut(text.as_bytes(), &mut out);
    }
}
