//! A secret under a generated name, in every kind of place where people leave one: it never leaves. What is ordinary does.

use super::super::values::Collector;
use super::plant::{NAMED, UNNAMED};
use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// How the words of a name are joined.
const JOINS: [fn(&[&str]) -> String; 5] = [
    |words| {
        let capital = |word: &&str| format!("{}{}", word[..1].to_uppercase(), &word[1..]);
        format!("{}{}", words[0], words[1..].iter().map(capital).collect::<String>())
    },
    |words| words.join("_"),
    |words| words.join("-"),
    |words| words.join("."),
    |words| words.join("_").to_uppercase(),
];

/// The words of names that announce a secret: before, the announcement, and behind.
const BEFORE: &[&str] = &["admin", "db", "github", "replication", "x", "postgres", "my", "root", "oidc", "http"];
const ANNOUNCING: &[&[&str]] = &[
    &["password"],
    &["token"],
    &["client", "secret"],
    &["api", "key"],
    &["private", "key"],
    &["passphrase"],
    &["pwd"],
    &["secret", "access", "key"],
    &["connection", "string"],
    &["access", "token"],
    &["credential"],
    &["encryption", "key"],
];
const BEHIND: &[&[&str]] = &[&[], &[], &["value"], &["base64"]];

/// A name that announces a secret.
fn any_name() -> impl Strategy<Value = String> {
    let words = (prop::sample::select(BEFORE), prop::sample::select(ANNOUNCING), prop::sample::select(BEHIND));
    (words, prop::sample::select(&JOINS[..]))
        .prop_map(|((before, announcing, behind), join)| join(&[&[before], announcing, behind].concat()))
}

/// What says nothing secret, though it has the words.
const ORDINARY: &[&str] = &[
    "passwordPolicy",
    "tokenReviewURL",
    "secretName",
    "passwordSecretRef",
    "tokenPath",
    "secretNamespace",
    "credentialName",
    "tokenTTL",
    "existingSecret",
    "publicKey",
    "topologyKey",
    "key",
    "author",
    "image",
    "level",
];

fn kind_of(object: &Value) -> Kind {
    kind("", if object.get("data").is_some() { "ConfigMap" } else { "Thing" })
}

fn left_of(object: &Value, values: &Arc<Values>, seed: u64) -> String {
    let mut bits = fastrand::Rng::with_seed(seed);
    let mut text = String::new();
    write(object, &mut || bits.u8(..) < 32, &mut text);
    let kind = kind_of(object);
    let filters = Filters::default();
    let mut out = Vec::new();
    let mut cutter = Cutter::new(&kind, &filters, false).without(Arc::clone(values));
    cutter.cut(text.as_bytes(), &mut out).unwrap();
    let left: Value = serde_json::from_slice(&out).unwrap();
    let object: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(left, slow::cut(&kind, &object, values), "{text}");
    left.to_string()
}

#[test]
fn there_are_enough_places() {
    assert!(NAMED.len() >= 40 && UNNAMED.len() >= 15);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_secret_with_a_name_never_leaves(name in any_name(), value in "[a-zA-Z0-9]{6,24}", seed in any::<u64>()) {
        let value = format!("pl4nted{value}");
        for (place, plant) in NAMED {
            let left = left_of(&plant(&name, &value), &Arc::default(), seed);
            prop_assert!(!left.contains(&value[..]), "{}: {} is left in {}", place, name, left);
        }
    }

    #[test]
    fn a_value_of_a_secret_never_leaves(value in "[!-~]{1,24}", end in "[a-z0-9]{7}", seed in any::<u64>()) {
        let value = format!("{value}{end}");
        let mut collector = Collector::default();
        collector.add("foo", value.as_bytes());
        let values = Arc::new(collector.finish());
        let encoded = STANDARD.encode(&value);
        for (place, plant) in UNNAMED.iter().chain(NAMED) {
            let left = left_of(&plant("foo", &value), &values, seed);
            let mut told: Value = serde_json::from_str(&left).unwrap();
            told["metadata"]["name"] = Value::Null;
            prop_assert!(!told.to_string().contains(&value[..]) && !left.contains(&encoded[..]), "{}: {} is left in {}", place, value, left);
        }
    }

    #[test]
    fn what_is_ordinary_stays(name in prop::sample::select(ORDINARY), value in "[a-z]{3,12}") {
        for object in [
            json!({"metadata": {"name": "a"}, "spec": {name: value}}),
            json!({"metadata": {"name": "a"}, "spec": {"parameters": [{"name": name, "value": value}]}}),
            json!({"metadata": {"name": "a", "annotations": {name: value}}}),
            json!({"data": {name: value, "a.properties": format!("{name}={value}\n"), "a.yaml": format!("{name}: {value}\n")}}),
        ] {
            let left: Value = serde_json::from_str(&left_of(&object, &Arc::default(), 1)).unwrap();
            for part in ["spec", "data", "metadata"] {
                prop_assert_eq!(left.get(part), object.get(part), "{}", name);
            }
        }
    }
}
