use super::element::Plain;
use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn set(text: &str) -> FieldSet {
    FieldSet::from_value(&serde_json::from_str(text).unwrap()).unwrap()
}

#[test]
fn fields_are_read_and_written_in_the_order_of_the_server() {
    for text in [
        "{}",
        r#"{"f:data":{".":{},"f:a":{}}}"#,
        r#"{"f:metadata":{"f:finalizers":{".":{},"v:\"a.b/c\"":{},"v:\"d.e/f\"":{}},"f:labels":{".":{},"f:l":{}}}}"#,
        r#"{"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}},"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{}}}"#,
        r#"{"f:l":{"v:2":{},"v:10":{},"v:\"a\\u003cb\"":{},"v:true":{},"v:null":{},"i:-1":{},"i:2":{}}}"#,
    ] {
        assert_eq!(set(text).to_string(), text);
        assert_eq!(set(text).to_value(), serde_json::from_str::<Value>(text).unwrap());
    }
}

#[test]
fn odd_fields_are_understood() {
    assert_eq!(set(r#"{"x:1":{},"f:a":{".":{}},"f:b":null,".":{}}"#).to_string(), r#"{"f:a":{},"f:b":{}}"#);
    assert_eq!(set(r#"{"k:{\"b\":1.0,\"a\":1e2}":{}}"#).to_string(), r#"{"k:{\"a\":100,\"b\":1}":{}}"#);
    assert_eq!(set(r#"{"v:1":{"f:a":{}},"v:1.0":{}}"#).to_string(), r#"{"v:1":{".":{},"f:a":{}}}"#);
    for text in [r#"{"f":{}}"#, r#"{"fa":{}}"#, r#"{"f:a":1}"#, r#"{"k:x":{}}"#, r#"{"i:x":{}}"#, r#"{"v:":{}}"#, "3"] {
        assert!(FieldSet::from_value(&serde_json::from_str(text).unwrap()).is_err(), "{text}");
    }
}

#[test]
fn sets_are_combined() {
    let left = set(r#"{"f:a":{".":{},"f:b":{},"f:c":{}},"f:d":{}}"#);
    let right = set(r#"{"f:a":{"f:b":{}},"f:d":{"f:e":{}},"f:g":{}}"#);
    assert_eq!(
        left.clone().union(&right).to_string(),
        r#"{"f:a":{".":{},"f:b":{},"f:c":{}},"f:d":{".":{},"f:e":{}},"f:g":{}}"#
    );
    assert_eq!(left.intersection(&right).to_string(), r#"{"f:a":{"f:b":{}}}"#);
    assert_eq!(left.difference(&right).to_string(), r#"{"f:a":{".":{},"f:c":{}},"f:d":{}}"#);
    assert_eq!(right.difference(&left).to_string(), r#"{"f:d":{"f:e":{}},"f:g":{}}"#);
    assert_eq!(right.outside(&left).to_string(), r#"{"f:g":{}}"#);
    assert_eq!(left.outside(&right).to_string(), r#"{"f:a":{".":{},"f:c":{}},"f:d":{}}"#);
}

#[test]
fn paths_read_as_in_messages() {
    let set = set(
        r#"{"f:spec":{"f:z":{},"f:c":{"k:{\"name\":\"x\",\"port\":80}":{"f:image":{}}},"f:s":{"v:\"f\"":{}},"f:i":{"i:3":{}}}}"#,
    );
    let paths: Vec<String> = set.paths().iter().map(|path| path_text(path)).collect();
    assert_eq!(paths, [".spec.z", r#".spec.c[name="x",port=80].image"#, ".spec.i[3]", r#".spec.s[="f"]"#]);
}

#[test]
fn tracking_is_filtered() {
    let all = set(
        r#"{"f:spec":{"f:c":{"k:{\"name\":\"x\"}":{".":{},"f:image":{},"f:resources":{"f:limits":{}}}}},"f:status":{"f:a":{}}}"#,
    );
    let except = Tracked::Except(FieldSet::of(&[&["status"]]));
    assert!(
        !except.filter(&all).contains(&[PathElement::Field("status".to_owned()), PathElement::Field("a".to_owned())])
    );
    let only = Tracked::Only(&[&["spec", "c", "*", "resources"]]);
    assert_eq!(
        only.filter(&all).to_string(),
        r#"{"f:spec":{"f:c":{"k:{\"name\":\"x\"}":{".":{},"f:resources":{"f:limits":{}}}}}}"#
    );
    assert_eq!(Tracked::All.filter(&all), all);
}

fn any_plain() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        Just(json!(1.0)),
        Just(json!(0.5)),
        "[a<\"\\\\\u{1}]{0,2}".prop_map(Value::from),
    ]
}

fn any_element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        4 => "[abf:.]{0,2}".prop_map(PathElement::Field),
        1 => prop::collection::btree_map("[ab]", any_plain().prop_map(Plain), 1..3)
            .prop_map(|keys| PathElement::Key(keys.into_iter().collect())),
        1 => any_plain().prop_map(|value| PathElement::Value(Plain(value))),
        1 => (-2i64..3).prop_map(PathElement::Index),
    ]
}

pub(crate) fn any_set() -> impl Strategy<Value = FieldSet> {
    prop::collection::vec(prop::collection::vec(any_element(), 1..4), 0..10).prop_map(|paths| {
        let mut set = FieldSet::default();
        for path in paths {
            set.insert(&path);
        }
        set
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(set in any_set()) {
        let read = FieldSet::from_value(&set.to_value()).unwrap();
        prop_assert_eq!(&read, &set);
        let text: Value = serde_json::from_str(&set.to_string()).unwrap();
        prop_assert_eq!(text, set.to_value());
    }

    #[test]
    fn any_json_is_read_without_panic(value in crate::patch::testing::any_value()) {
        FieldSet::from_value(&value).ok();
    }

    #[test]
    fn sets_obey_the_laws_of_sets(left in any_set(), right in any_set()) {
        let both = left.clone().union(&right);
        prop_assert_eq!(&both, &right.clone().union(&left));
        prop_assert_eq!(left.intersection(&right), right.intersection(&left));
        prop_assert_eq!(left.difference(&right).union(&left.intersection(&right)), left.clone());
        prop_assert!(left.difference(&left).is_empty());
        prop_assert!(both.outside(&both).is_empty());
        for path in left.paths() {
            prop_assert!(both.contains(&path));
            prop_assert_eq!(left.difference(&right).contains(&path), !right.contains(&path));
        }
        prop_assert_eq!(both.intersection(&left), left);
    }
}
