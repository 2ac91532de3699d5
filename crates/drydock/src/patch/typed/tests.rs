use super::*;
use crate::patch::testing::{any_object, any_object_of, widget_schema};
use crate::schema::Schema;
use proptest::prelude::*;
use serde_json::json;
use std::sync::LazyLock;

static WIDGET: LazyLock<Schema> = LazyLock::new(widget_schema);
static POD: LazyLock<Schema> = LazyLock::new(|| Schema::built_in("io.k8s.api.core.v1.Pod"));

fn widget() -> Type<'static> {
    Type::of(WIDGET.root())
}

fn merged(live: Value, applied: Value) -> Value {
    merge(widget(), &json!({ "spec": live }), &json!({ "spec": applied }))["spec"].clone()
}

#[test]
fn lists_keep_the_order_of_the_configuration_and_the_place_of_the_rest() {
    for (live, applied, outcome) in [
        (json!(["a", "b", "c"]), json!(["c", "a"]), json!(["b", "c", "a"])),
        (json!(["a", "b", "c"]), json!(["a", "x", "c"]), json!(["a", "b", "x", "c"])),
        (json!(["a", "b"]), json!(["x"]), json!(["a", "b", "x"])),
        (json!(["a", "b"]), json!(["b", "x", "a"]), json!(["b", "x", "a"])),
        (json!(["a", "a", "b"]), json!(["b"]), json!(["a", "a", "b"])),
        (json!(["a", "a", "b"]), json!(["a"]), json!(["a", "b"])),
        (json!(["a"]), json!(null), json!(["a"])),
        (json!(null), json!([]), json!([])),
    ] {
        assert_eq!(merged(json!({"tags": live}), json!({"tags": applied}))["tags"], outcome, "{live} {applied}");
    }
}

#[test]
fn what_is_a_whole_is_replaced_and_what_is_not_is_merged() {
    for (live, applied, outcome) in [
        (json!({"atom": {"x": 1}}), json!({"atom": {"y": 1}}), json!({"atom": {"y": 1}})),
        (json!({"point": {"x": 1}}), json!({"point": {"y": 1}}), json!({"point": {"x": 1, "y": 1}})),
        (json!({"words": ["a"]}), json!({"words": []}), json!({"words": []})),
        (json!({"any": {"a": 1}}), json!({"any": [1]}), json!({"any": [1]})),
        (json!({"any": [1]}), json!({"any": {"a": 1}}), json!({"any": {"a": 1}})),
        (json!({"any": {"a": 1}}), json!({"any": {"b": [2]}}), json!({"any": {"a": 1, "b": [2]}})),
        (
            json!({"items": [{"name": "a", "value": "1"}]}),
            json!({"items": [{"name": "a", "tags": ["t"]}]}),
            json!({"items": [{"name": "a", "value": "1", "tags": ["t"]}]}),
        ),
    ] {
        assert_eq!(merged(live.clone(), applied.clone()), outcome, "{live} {applied}");
    }
}

#[test]
fn changes_are_found_where_they_are() {
    let changes = |old: Value, new: Value| {
        let found = compare(widget(), &json!({ "spec": old }), &json!({ "spec": new }));
        [found.removed, found.modified, found.added].map(|set| set.to_string())
    };
    let spec = |below: &str| format!(r#"{{"f:spec":{below}}}"#);
    let none = || "{}".to_owned();
    for (old, new, outcome) in [
        (json!({"size": 1}), json!({"size": 1.0}), [none(), none(), none()]),
        (json!({"size": 1}), json!({"size": 2}), [none(), spec(r#"{"f:size":{}}"#), none()]),
        (json!({"size": 1}), json!({}), [spec(r#"{"f:size":{}}"#), none(), none()]),
        (json!({}), json!({"point": {"x": 1}}), [none(), none(), spec(r#"{"f:point":{".":{},"f:x":{}}}"#)]),
        (json!({"point": {}}), json!({"point": {"x": 1}}), [none(), none(), spec(r#"{"f:point":{"f:x":{}}}"#)]),
        (json!({"point": {"x": 1}}), json!({"point": {}}), [spec(r#"{"f:point":{"f:x":{}}}"#), none(), none()]),
        (json!({"tags": ["a", "b"]}), json!({"tags": ["b", "a"]}), [none(), none(), none()]),
        (json!({"words": ["a", "b"]}), json!({"words": ["b", "a"]}), [none(), spec(r#"{"f:words":{}}"#), none()]),
        (
            json!({"any": "x"}),
            json!({"any": {"a": 1}}),
            [none(), spec(r#"{"f:any":{}}"#), spec(r#"{"f:any":{"f:a":{}}}"#)],
        ),
        (json!({"any": {"a": 1}}), json!({"any": null}), [spec(r#"{"f:any":{"f:a":{}}}"#), none(), none()]),
        (
            json!({"ports": [{"port": 1}]}),
            json!({"ports": [{"port": 1, "protocol": "TCP"}]}),
            [none(), none(), spec(r#"{"f:ports":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{"f:protocol":{}}}}"#)],
        ),
    ] {
        assert_eq!(changes(old.clone(), new.clone()), outcome, "{old} {new}");
    }
}

#[test]
fn fields_are_taken_out() {
    let removed = |value: Value, set: Value| {
        let set = FieldSet::from_value(&json!({ "f:spec": set })).unwrap();
        remove(widget(), &json!({ "spec": value }), &set)["spec"].clone()
    };
    for (value, set, outcome) in [
        (json!({"size": 1, "name": "a"}), json!({"f:size": {}}), json!({"name": "a"})),
        (json!({"tags": ["a", "b"]}), json!({"f:tags": {"v:\"a\"": {}}}), json!({"tags": ["b"]})),
        (json!({"tags": ["a"]}), json!({"f:tags": {"v:\"a\"": {}}}), json!({"tags": null})),
        (json!({"free": {"a": {"b": 1}}}), json!({"f:free": {"f:a": {"f:b": {}}}}), json!({"free": {"a": null}})),
        (json!({"atom": {"x": 1}}), json!({"f:atom": {"f:x": {}}}), json!({"atom": null})),
    ] {
        assert_eq!(removed(value.clone(), set), outcome, "{value}");
    }
}

#[test]
fn some_fields_are_not_what_their_types_say() {
    let set = |definition: &str, value: Value| {
        let schema = Schema::built_in(definition);
        field_set(Type::of(schema.root()), &value).to_string()
    };
    assert_eq!(
        set("io.k8s.api.apps.v1.ControllerRevision", json!({"data": {"spec": {"a": 1}}, "revision": 1})),
        r#"{"f:data":{},"f:revision":{}}"#
    );
    assert_eq!(
        set("io.k8s.api.core.v1.PersistentVolume", json!({"spec": {"claimRef": {"name": "a"}}})),
        r#"{"f:spec":{"f:claimRef":{"f:name":{}}}}"#
    );
    let volume = Schema::built_in("io.k8s.api.core.v1.PersistentVolume");
    let unknown = json!({"spec": {"claimRef": {"nme": "a"}}});
    assert_eq!(
        validate(Type::of(volume.root()), &unknown, Duplicates::Refused),
        Err(".spec.claimRef.nme: field not declared in schema".to_owned())
    );
    assert_eq!(set("io.k8s.api.core.v1.Event", json!({"involvedObject": {"name": "a"}})), r#"{"f:involvedObject":{}}"#);
    assert_eq!(
        set("io.k8s.api.core.v1.Service", json!({"spec": {"ports": [{"targetPort": "web"}]}})),
        r#"{"f:spec":{"f:ports":{"k:{\"port\":0,\"protocol\":\"TCP\"}":{".":{},"f:targetPort":{}}}}}"#
    );
}

#[test]
fn go_writes_what_is_held_by_value() {
    let pod = json!({"spec": {"containers": [{"name": "a"}]}, "status": {"conditions": [{"type": "Ready"}]}});
    let filled = filled(POD.root(), &pod);
    assert_eq!(filled["metadata"], json!({}));
    assert_eq!(filled["spec"], json!({"containers": [{"name": "a", "resources": {}}]}));
    assert_eq!(
        filled["status"]["conditions"],
        json!([{"type": "Ready", "status": "", "lastProbeTime": null, "lastTransitionTime": null}])
    );
}

proptest! {
    #[test]
    fn nothing_panics_on_values_of_any_form(left in any_object(), right in any_object()) {
        for root in [widget(), Type::of(POD.root())] {
            let changes = compare(root, &left, &right);
            merge(root, &left, &right);
            let set = with_structs(root, &field_set(root, &left).union(&changes.set()));
            remove(root, &right, &reconcile(root, &set));
            validate(root, &left, Duplicates::Refused).ok();
        }
        filled(POD.root(), &left);
    }

    #[test]
    fn what_is_the_same_does_not_differ(value in any_object_of(POD.root())) {
        let changes = compare(Type::of(POD.root()), &value, &value);
        prop_assert!(changes.set().is_empty() && changes.removed.is_empty());
    }

    #[test]
    fn filling_twice_is_filling_once(value in any_object_of(POD.root())) {
        let once = filled(POD.root(), &value);
        prop_assert_eq!(filled(POD.root(), &once), once);
    }

    #[test]
    fn values_of_a_schema_are_valid(value in any_object_of(WIDGET.root())) {
        if let Err(error) = validate(widget(), &value, Duplicates::Allowed) {
            // Only a list by keys can have items without any.
            prop_assert!(error.contains("omits all key fields"), "{}", error);
        }
    }

    #[test]
    fn without_its_fields_nothing_is_left(value in any_object_of(WIDGET.root())) {
        let set = with_structs(widget(), &field_set(widget(), &value));
        let rest = remove(widget(), &value, &set);
        prop_assert!(field_set(widget(), &rest).is_empty(), "{}", rest);
    }
}
