use super::*;
use crate::patch::managers::Versions;
use crate::patch::managers::testing::{By, Lab, books, object};
use crate::patch::merge::without_nulls;
use crate::patch::testing::{any_object, any_object_of};
use crate::patch::typed::compare;
use crate::schema::{Schema, View};
use proptest::prelude::*;
use std::sync::LazyLock;

static WIDGET: LazyLock<Lab> = LazyLock::new(Lab::widget);

fn spec(spec: Value) -> Value {
    json!({ "spec": spec })
}

#[test]
fn managers_share_what_they_agree_on() {
    let lab = Lab::config_map();
    let one = lab.apply(By("one", 1), None, &json!({"data": {"a": "1"}})).unwrap();
    assert_eq!(books(&one), [r#"Apply one 1 {"f:data":{"f:a":{}}}"#]);

    let shared = lab.apply(By("two", 2), Some(&one), &json!({"data": {"a": "1"}})).unwrap();
    let without_time = r#"Apply two - {"f:data":{"f:a":{}}}"#;
    assert_eq!(books(&shared), [without_time, r#"Apply one 1 {"f:data":{"f:a":{}}}"#]);
    assert_eq!(lab.apply(By("two", 3), Some(&shared), &json!({"data": {"a": "1"}})).unwrap(), shared);

    let more = lab.apply(By("two", 4), Some(&shared), &json!({"data": {"a": "1", "b": "2"}})).unwrap();
    let two = r#"Apply two 4 {"f:data":{"f:a":{},"f:b":{}}}"#;
    assert_eq!(books(&more), [r#"Apply one 1 {"f:data":{"f:a":{}}}"#, two]);
    assert_eq!(lab.apply(By("one", 5), Some(&more), &json!({"data": {"a": "1"}})).unwrap(), more);

    let status = lab.apply(By("three", 6), Some(&more), &json!({"data": {"a": "9", "b": "8"}})).unwrap_err();
    assert_eq!((status.code, status.reason), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Apply failed with 3 conflicts: conflicts with \"one\":\n- .data.a\nconflicts with \"two\":\n- .data.a\n- .data.b"
    );

    let less = lab.apply(By("two", 7), Some(&more), &json!({})).unwrap();
    assert_eq!(less.get("data"), Some(&json!({"a": "1"})));
    assert_eq!(books(&less), [r#"Apply one 1 {"f:data":{"f:a":{}}}"#]);
    let nothing = lab.apply(By("one", 8), Some(&less), &json!({})).unwrap();
    assert_eq!((nothing.get("data"), books(&nothing)), (None, vec![]));
}

#[test]
fn conflicts_are_worded_as_the_servers() {
    let lab = Lab::job();
    let live = spec(json!({"backoffLimit": 3, "template": {"spec": {"terminationGracePeriodSeconds": 30}}}));
    let live = lab.create(By("kubectl-create", 1), &live);
    let conflict = |body: Value| lab.apply(By("app", 2), Some(&live), &spec(body)).unwrap_err();

    let one = conflict(json!({"backoffLimit": 5}));
    assert_eq!(
        one.message,
        r#"Apply failed with 1 conflict: conflict with "kubectl-create" using batch/v1: .spec.backoffLimit"#
    );
    assert_eq!(
        one.to_value()["details"]["causes"],
        json!([{"reason": "FieldManagerConflict", "field": ".spec.backoffLimit",
            "message": r#"conflict with "kubectl-create" using batch/v1"#}])
    );
    let two = conflict(json!({"backoffLimit": 5, "template": {"spec": {"terminationGracePeriodSeconds": 5}}}));
    assert_eq!(
        two.message,
        "Apply failed with 2 conflicts: conflicts with \"kubectl-create\" using batch/v1:\n\
         - .spec.backoffLimit\n- .spec.template.spec.terminationGracePeriodSeconds"
    );
    let live = lab.update(By("m/status", 3), &live, &json!({"status": {"conditions": [{"type": "A"}]}}));
    let status = lab.apply(By("n/status", 4), Some(&live), &json!({"status": {"conditions": []}})).unwrap_err();
    assert_eq!(
        status.message,
        r#"Apply failed with 1 conflict: conflict with "m" with subresource "status" using batch/v1: .status.conditions"#
    );
}

#[test]
fn force_takes_and_what_is_dropped_goes_if_nobody_has_it() {
    let lab = Lab::job();
    let live = lab.create(By("create", 1), &spec(json!({"backoffLimit": 3})));
    let forced = spec(json!({"backoffLimit": 5, "ttlSecondsAfterFinished": 7}));
    let forced = lab.force(By("app", 2), Some(&live), &forced).unwrap();
    let app = r#"Apply app 2 {"f:spec":{"f:backoffLimit":{},"f:ttlSecondsAfterFinished":{}}}"#;
    assert_eq!(books(&forced), [app]);

    let both = spec(json!({"activeDeadlineSeconds": 9, "ttlSecondsAfterFinished": 7}));
    let both = lab.apply(By("two", 3), Some(&forced), &both).unwrap();
    let kept = lab.apply(By("app", 4), Some(&both), &spec(json!({"backoffLimit": 5}))).unwrap();
    assert_eq!(kept.integer(&["spec", "ttlSecondsAfterFinished"]), Some(7));
    let two = r#"Apply two 3 {"f:spec":{"f:activeDeadlineSeconds":{},"f:ttlSecondsAfterFinished":{}}}"#;
    assert_eq!(books(&kept), [r#"Apply app 2 {"f:spec":{"f:backoffLimit":{}}}"#, two]);
    let gone = lab.apply(By("two", 5), Some(&kept), &spec(json!({"activeDeadlineSeconds": 9}))).unwrap();
    assert_eq!(gone.at(&["spec", "ttlSecondsAfterFinished"]), None);
}

#[test]
fn lists_are_merged_and_pruned_by_item() {
    let one = spec(json!({
        "ports": [{"port": 80, "name": "web"}, {"port": 443, "protocol": "TCP"}],
        "tags": ["a", "b"], "items": [{"name": "i", "value": "1"}, {"name": "j"}],
    }));
    let live = WIDGET.apply(By("one", 1), None, &one).unwrap();
    let two = spec(json!({
        "ports": [{"port": 443, "name": "tls"}, {"port": 53, "protocol": "UDP"}],
        "tags": ["c", "b"], "items": [{"name": "k"}, {"name": "i", "tags": ["t"]}],
    }));
    let live = WIDGET.apply(By("two", 2), Some(&live), &two).unwrap();
    assert_eq!(
        live.get("spec").unwrap(),
        &json!({
            "items": [{"name": "k"}, {"name": "i", "tags": ["t"], "value": "1"}, {"name": "j"}],
            "ports": [{"name": "web", "port": 80}, {"name": "tls", "port": 443, "protocol": "TCP"},
                {"port": 53, "protocol": "UDP"}],
            "tags": ["a", "c", "b"],
        })
    );
    let live =
        WIDGET.apply(By("one", 3), Some(&live), &spec(json!({"tags": ["b"], "items": [{"name": "j"}]}))).unwrap();
    assert_eq!(
        live.get("spec").unwrap(),
        &json!({
            "items": [{"name": "k"}, {"name": "i", "tags": ["t"]}, {"name": "j"}],
            "ports": [{"name": "tls", "port": 443}, {"port": 53, "protocol": "UDP"}],
            "tags": ["c", "b"],
        })
    );
    let live =
        WIDGET.apply(By("two", 4), Some(&live), &spec(json!({"ports": [{"port": 53, "protocol": "UDP"}]}))).unwrap();
    assert_eq!(
        live.get("spec").unwrap(),
        &json!({"items": [{"name": "j"}], "ports": [{"port": 53, "protocol": "UDP"}], "tags": ["b"]})
    );
}

#[test]
fn what_is_atomic_changes_as_a_whole_and_what_is_free_by_entry() {
    let one = spec(json!({
        "labels": {"l": "1"}, "atom": {"x": 1}, "words": ["w"], "free": {"p": {"q": 1}, "l": [1]},
        "any": {"a": {"b": 2}}, "open": {"z": {"y": 1}, "a": {"b": "c"}},
    }));
    let live = WIDGET.apply(By("one", 1), None, &one).unwrap();
    assert_eq!(
        books(&live),
        [concat!(
            r#"Apply one 1 {"f:spec":{"f:any":{"f:a":{".":{},"f:b":{}}},"f:atom":{},"#,
            r#""f:free":{"f:l":{},"f:p":{".":{},"f:q":{}}},"f:labels":{"f:l":{}},"#,
            r#""f:open":{"f:a":{"f:b":{}},"f:z":{".":{},"f:y":{}}},"f:words":{}}}"#
        )]
    );
    let two = spec(json!({"atom": {"y": 1}, "words": ["w", "v"], "free": {"p": {"q": 2}, "l": [1, 2]}}));
    let status = WIDGET.apply(By("two", 2), Some(&live), &two).unwrap_err();
    assert_eq!(
        status.message,
        "Apply failed with 4 conflicts: conflicts with \"one\":\n\
         - .spec.atom\n- .spec.words\n- .spec.free.l\n- .spec.free.p.q"
    );
    let forced = WIDGET.force(By("two", 3), Some(&live), &two).unwrap();
    assert_eq!(forced.at(&["spec", "atom"]), Some(&json!({"y": 1})));
    assert_eq!(forced.at(&["spec", "free"]), Some(&json!({"l": [1, 2], "p": {"q": 2}})));
}

#[test]
fn null_and_empty_remove_nothing_but_what_was_applied() {
    let live = WIDGET.create(By("m", 1), &spec(json!({"labels": {"l": "1"}, "tags": ["a"]})));
    let merged = WIDGET.apply(By("one", 2), Some(&live), &spec(json!({"labels": null, "tags": []}))).unwrap();
    assert_eq!(merged.get("spec"), live.get("spec"));
    assert_eq!(books(&merged)[0], r#"Apply one - {"f:spec":{"f:labels":{}}}"#);
}

#[test]
fn fields_from_before_the_first_apply_are_somebodys() {
    let lab = Lab::config_map();
    let live = object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "uid": "u"},
        "data": {"a": "1", "b": "1"}}));
    let status = lab.apply(By("one", 1), Some(&live), &json!({"data": {"a": "2"}})).unwrap_err();
    assert_eq!(status.message, r#"Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a"#);
    let forced = lab.force(By("one", 1), Some(&live), &json!({"data": {"a": "2"}})).unwrap();
    assert_eq!(
        books(&forced),
        [r#"Apply one 1 {"f:data":{"f:a":{}}}"#, r#"Update before-first-apply 1 {"f:data":{".":{},"f:b":{}}}"#]
    );
}

#[test]
fn a_key_that_is_left_out_is_what_go_makes_of_it() {
    let lab = Lab::job();
    let pod = |containers: Value| spec(json!({"template": {"spec": {"containers": containers}}}));
    let live =
        lab.create(By("m", 1), &pod(json!([{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}])));
    let merged = lab.apply(By("n", 2), Some(&live), &pod(json!([{"image": "x"}]))).unwrap();
    assert_eq!(merged.at(&["spec", "template", "spec", "containers"]).unwrap().as_array().unwrap().len(), 2);
    let named = pod(json!([{"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}]));
    let merged = lab.apply(By("n", 2), Some(&live), &named).unwrap();
    let ports = &merged.at(&["spec", "template", "spec", "containers"]).unwrap()[0]["ports"];
    assert_eq!(ports, &json!([{"containerPort": 80, "protocol": "TCP", "name": "web"}]));
}

#[test]
fn empty_structs_are_there_whether_they_are_written_or_not() {
    let lab = Lab::job();
    let container = |value: Value| spec(json!({"template": {"spec": {"containers": [value]}}}));
    let live = lab.create(By("m", 1), &container(json!({"name": "a", "image": "b"})));
    let applied = container(json!({"name": "a", "image": "b", "resources": {}}));
    let merged = lab.apply(By("n", 2), Some(&live), &applied).unwrap();
    assert_eq!(merged.get("spec"), live.get("spec"));
    assert!(books(&merged)[0].starts_with("Apply n - "));
}

#[test]
fn what_has_the_wrong_form_is_refused_in_the_servers_words() {
    let refused = |spec: Value| WIDGET.apply(By("m", 1), None, &json!({ "spec": spec })).unwrap_err();
    for (spec, what) in [
        (json!({"nope": 1}), ".spec.nope: field not declared in schema"),
        (json!({"tags": ["c", "c"]}), r#".spec.tags: duplicate entries for key [="c"]"#),
        (
            json!({"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}),
            r#".spec.ports: duplicate entries for key [port=80,protocol="TCP"]"#,
        ),
        (
            json!({"items": [{"value": "x"}]}),
            ".spec.items: element 0: associative list with keys has an element that omits all key fields [\"name\"] \
             (and doesn't have default values for any key fields)",
        ),
        (
            json!({"items": [null, "x"]}),
            ".spec.items: element 0: associative list with keys may not have a null element",
        ),
        (json!({"items": ["x"]}), ".spec.items: element 0: associative list with keys may not have non-map elements"),
        (json!({"tags": [["x"]]}), ".spec.tags: element 0: not supported: associative list with lists as elements"),
        (
            json!({"tags": [{"a": "b"}]}),
            ".spec.tags: element 0: associative list without keys has an element that's a map type",
        ),
        (
            json!({"tags": [null]}),
            ".spec.tags: element 0: associative list without keys has an element that's an explicit null",
        ),
        (json!({"labels": "x"}), ".spec.labels: expected map, got &{x}"),
        (json!({"words": {"a": 1}}), ".spec.words: expected list, got &{map[a:1]}"),
        (
            json!({"name": {"c": 1.5, "d": [1]}, "size": "x"}),
            "errors:\n  .spec.name: expected string, got \
             &value.valueUnstructured{Value:map[string]interface {}{\"c\":1.5, \"d\":[]interface {}{1}}}\n  \
             .spec.size: expected numeric (int or float), got string",
        ),
    ] {
        let status = refused(spec);
        assert_eq!((status.code, status.reason), (500, ""));
        assert_eq!(
            status.message,
            format!("failed to create typed patch object (/x; lab.example/v1, Kind=Widget): {what}")
        );
    }
    let flag = Lab::config_map().apply(By("m", 1), None, &json!({"immutable": "yes", "metadata": {"namespace": "n"}}));
    assert_eq!(
        flag.unwrap_err().message,
        "failed to create typed patch object (n/x; /v1, Kind=ConfigMap): .immutable: expected boolean, got &{yes}"
    );
}

#[test]
fn another_type_and_sent_books_are_refused() {
    let lab = Lab::config_map();
    for (body, message) in [
        (json!({"apiVersion": "v2", "kind": "ConfigMap"}), "invalid object type: /v2, Kind=ConfigMap"),
        (json!({"apiVersion": "v1"}), "invalid object type: /v1, Kind="),
        (json!({}), "invalid object type: /, Kind="),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": []}}),
            "metadata.managedFields must be nil",
        ),
    ] {
        let status = lab.with(By("m", 1), None, |write| apply(write, "ConfigMap", None, &object(body), false));
        let status = status.unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (400, message));
    }
    let null = lab.apply(By("m", 1), None, &json!({"metadata": {"managedFields": null}, "data": {"a": "1"}}));
    assert_eq!(books(&null.unwrap()), [r#"Apply m 1 {"f:data":{"f:a":{}}}"#]);
    let broken = object(json!({"metadata": {"managedFields": [{"operation": "x"}]}}));
    let status = lab.apply(By("m", 1), Some(&broken), &json!({})).unwrap_err();
    assert_eq!(status.message, "failed to decode managed fields: operation must be `Apply` or `Update`");
    let unread = unreadable(&lab.body(&json!({})), "json: x");
    assert_eq!(
        unread.message,
        "failed to convert new object (/x; /v1, Kind=ConfigMap) to proper version: \
         unable to convert unstructured object to /v1, Kind=ConfigMap: json: x"
    );
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_client_side() {
    const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let lab = Lab::config_map();
    let last =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1", "b": "1"}});
    let annotated = |data: Value| json!({"data": data, "metadata": {"annotations": {ANNOTATION: last.to_string()}}});
    let live = lab.create(By("kubectl-client-side-apply", 1), &annotated(json!({"a": "1", "b": "1"})));
    let taken = lab.apply(By("kubectl", 2), Some(&live), &json!({"data": {"a": "2"}})).unwrap();
    assert_eq!(taken.get("data"), Some(&json!({"a": "2", "b": "1"})));
    let annotation = r#"{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"x"}}"#;
    assert_eq!(taken.annotation(ANNOTATION), Some(format!("{annotation}\n").as_str()));
    assert_eq!(lab.apply(By("other", 2), Some(&live), &json!({"data": {"a": "2"}})).unwrap_err().code, 409);

    let drifted = lab.update(By("edit", 2), &live, &annotated(json!({"a": "3", "b": "1"})));
    let status = lab.apply(By("kubectl", 3), Some(&drifted), &json!({"data": {"a": "2", "b": "2"}})).unwrap_err();
    assert_eq!(status.message, r#"Apply failed with 1 conflict: conflict with "edit" using v1: .data.a"#);
}

#[test]
fn a_part_that_became_atomic_is_owned_as_a_whole() {
    let live = object(json!({"apiVersion": "lab.example/v1", "kind": "Widget", "spec": {"atom": {"x": 1}},
        "metadata": {"name": "x", "managedFields": [{"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1",
            "apiVersion": "lab.example/v1", "fieldsV1": {"f:spec": {"f:atom": {"f:x": {}}}}}]}}));
    let merged = WIDGET.apply(By("n", 1), Some(&live), &spec(json!({"size": 1}))).unwrap();
    assert_eq!(books(&merged)[0], r#"Apply m - {"f:spec":{"f:atom":{}}}"#);
}

/// A version that calls the size of a widget its amount.
struct Renamed(Schema);

impl Versions for Renamed {
    fn convert(&self, value: &Value, api_version: &str) -> Option<(View<'_>, Value)> {
        let (old, new, schema) = match api_version {
            "lab.example/v1" => ("amount", "size", &WIDGET.schema),
            "lab.example/v2" => ("size", "amount", &self.0),
            _ => return None,
        };
        let mut converted = object(value.clone());
        converted.set(&["apiVersion"], api_version);
        if let Some(value) = converted.remove(&["spec", old]) {
            converted.set(&["spec", new], value);
        }
        Some((schema.root(), converted.into_value()))
    }
}

#[test]
fn what_was_applied_in_another_version_is_pruned_and_kept() {
    let texts = json!({"amount": {"type": "integer"}, "name": {"type": "string"}});
    let spec = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": texts}}});
    let renamed = Renamed(Schema::custom(&spec));
    let live = |manager: &str| {
        object(json!({"apiVersion": "lab.example/v1", "kind": "Widget", "spec": {"size": 1, "name": "a"},
        "metadata": {"name": "x", "managedFields": [
            {"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1", "apiVersion": "lab.example/v2",
                "fieldsV1": {"f:spec": {"f:amount": {}, "f:name": {}}}},
            {"manager": "gone", "operation": "Apply", "fieldsType": "FieldsV1", "apiVersion": "lab.example/v0",
                "fieldsV1": {"f:spec": {"f:name": {}}}},
        ]}}))
    };
    let apply = |manager: &str, body: Value| {
        let body = WIDGET.body(&body);
        WIDGET.with(By("m", 2), Some(&renamed), |write| apply(write, "Widget", Some(&live(manager)), &body, false))
    };
    let pruned = apply("m", json!({"spec": {"name": "a"}})).unwrap();
    assert_eq!(pruned.get("spec"), Some(&json!({"name": "a"})));
    assert_eq!(pruned.api_version(), "lab.example/v1");
    assert_eq!(books(&pruned), [r#"Apply m 2 {"f:spec":{"f:name":{}}}"#]);

    let kept = apply("other", json!({"spec": {"name": "a"}})).unwrap();
    assert_eq!(kept.get("spec"), Some(&json!({"size": 1, "name": "a"})));
    let status = apply("other", json!({"spec": {"size": 2}})).unwrap_err();
    assert_eq!(status.message, r#"Apply failed with 1 conflict: conflict with "other": .spec.amount"#);
}

/// An object as the caller stores it: a kind's schema drops nulls.
fn stored(merged: Object) -> Object {
    object(without_nulls(&merged.into_value()))
}

/// A configuration without empty lists and maps. Where their items would be merged nobody owns them, or the server
/// prunes what it has just merged, so that they come and go.
fn without_empty(value: Value) -> Value {
    let is_empty = |value: &Value| {
        matches!(value, Value::Array(list) if list.is_empty()) || matches!(value, Value::Object(map) if map.is_empty())
    };
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(name, value)| (name, without_empty(value)))
            .filter(|(_, value)| !is_empty(value))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.into_iter().map(without_empty).filter(|item| !is_empty(item)).collect(),
        other => other,
    }
}

fn configuration() -> impl Strategy<Value = Value> {
    any_object_of(WIDGET.schema.root()).prop_map(without_empty)
}

proptest! {
    #[test]
    fn applying_never_panics(live in any_object(), applied in any_object()) {
        WIDGET.force(By("m", 1), Some(&object(live)), &applied).ok();
    }

    #[test]
    fn applying_twice_is_applying_once(
        live in any_object_of(WIDGET.schema.root()),
        before in configuration(),
        applied in configuration(),
    ) {
        let live = WIDGET.create(By("one", 1), &live);
        let live = WIDGET.force(By("two", 2), Some(&live), &before).map(stored).unwrap_or(live);
        if let Ok(once) = WIDGET.force(By("two", 3), Some(&live), &applied).map(stored) {
            let twice = WIDGET.apply(By("two", 4), Some(&once), &applied).map(stored);
            prop_assert_eq!(twice, Ok(once));
        }
    }

    #[test]
    fn what_is_applied_is_in_the_object(
        live in any_object_of(WIDGET.schema.root()),
        applied in any_object_of(WIDGET.schema.root()),
    ) {
        let live = WIDGET.create(By("one", 1), &live);
        if let Ok(merged) = WIDGET.force(By("two", 2), Some(&live), &applied) {
            let root = Type::of(WIDGET.schema.root());
            let changes = compare(root, &WIDGET.body(&applied).into_value(), &value_without_books(Some(&merged)));
            prop_assert!(changes.removed.is_empty(), "{}", changes.removed);
            prop_assert!(changes.modified.is_empty(), "{}", changes.modified);
        }
    }

    #[test]
    fn applying_what_is_there_takes_nothing_from_others(
        first in any_object_of(WIDGET.schema.root()),
        second in any_object_of(WIDGET.schema.root()),
    ) {
        let live = WIDGET.create(By("one", 1), &first);
        let live = WIDGET.force(By("two", 2), Some(&live), &second).map(stored).unwrap_or(live);
        let same = value_without_books(Some(&live));
        prop_assume!(!books(&live).is_empty());
        if let Ok(merged) = WIDGET.force(By("three", 3), Some(&live), &same) {
            prop_assert_eq!(value_without_books(Some(&merged)), same);
            let others = |object: &Object| books(object).into_iter().filter(|line| !line.contains(" three ")).collect::<Vec<_>>();
            prop_assert_eq!(others(&merged), others(&live));
        }
    }

    #[test]
    fn applying_nothing_after_something_removes_it(applied in configuration()) {
        let empty = WIDGET.create(By("one", 1), &json!({}));
        if let Ok(live) = WIDGET.apply(By("two", 2), Some(&empty), &applied).map(stored) {
            let cleared = WIDGET.apply(By("two", 3), Some(&live), &json!({})).map(stored).unwrap();
            prop_assert_eq!(cleared.get("spec"), None);
        }
    }
}
