use super::*;
use crate::patch::testing::{any_object, any_value};
use proptest::prelude::*;
use serde_json::json;

fn patched(document: &Value, patch: &Value) -> Option<Value> {
    let mut document = document.clone();
    apply(&mut document, patch).ok().map(|()| document)
}

#[test]
fn operations_apply_as_on_the_server() {
    let document = json!({"data": {"a": "1"}, "list": ["x", "y"], "none": null});
    let with = |list: Value| json!({"data": {"a": "1"}, "list": list, "none": null});
    let data = |data: Value| json!({"data": data, "list": ["x", "y"], "none": null});
    for (patch, outcome) in [
        (json!([{"op": "test", "path": "/data/a", "value": "1"}]), Some(document.clone())),
        (json!([{"op": "test", "path": "/data/a", "value": "2"}]), None),
        (json!([{"op": "test", "path": "/data/zz", "value": null}]), Some(document.clone())),
        (json!([{"op": "test", "path": "/data/zz", "value": 1}]), None),
        (json!([{"op": "test", "path": "/data/a", "value": null}]), None),
        (json!([{"op": "test", "path": "/data/a"}]), None),
        (json!([{"op": "test", "path": "/nope/zz", "value": null}]), None),
        (json!([{"op": "test", "path": "/none", "value": null}]), Some(document.clone())),
        (json!([{"op": "test", "path": "", "value": document}]), Some(document.clone())),
        (json!([{"op": "test", "path": "/list/2", "value": null}]), None),
        (json!([{"op": "remove", "path": "/data/a"}]), Some(data(json!({})))),
        (json!([{"op": "remove", "path": "/data/zz"}]), None),
        (json!([{"op": "remove", "path": "/list/-1"}]), Some(with(json!(["x"])))),
        (json!([{"op": "remove", "path": "/list/-3"}]), None),
        (json!([{"op": "replace", "path": "/data/zz", "value": "n"}]), Some(data(json!({"a": "1", "zz": "n"})))),
        (json!([{"op": "replace", "path": "/nope/zz", "value": "n"}]), None),
        (json!([{"op": "replace", "path": "/list/2", "value": "n"}]), None),
        (json!([{"op": "replace", "path": "", "value": "x"}]), Some(document.clone())),
        (json!([{"op": "replace", "path": "", "value": []}]), Some(json!([]))),
        (json!([{"op": "add", "path": "", "value": {}}]), None),
        (json!([{"op": "add", "path": "/list/-", "value": "z"}]), Some(with(json!(["x", "y", "z"])))),
        (json!([{"op": "add", "path": "/list/2", "value": "z"}]), Some(with(json!(["x", "y", "z"])))),
        (json!([{"op": "add", "path": "/list/3", "value": "z"}]), None),
        (json!([{"op": "add", "path": "/list/-1", "value": "z"}]), Some(with(json!(["x", "y", "z"])))),
        (json!([{"op": "add", "path": "/list/-3", "value": "z"}]), Some(with(json!(["z", "x", "y"])))),
        (json!([{"op": "add", "path": "ignored/data", "value": {}}]), Some(data(json!({})))),
        (json!([{"op": "add", "path": "data", "value": {}}]), None),
        (json!([{"op": "add", "path": "/data/b"}]), Some(data(json!({"a": "1", "b": null})))),
        (json!([{"op": "add", "path": "/data/a~1b~0", "value": 1}]), Some(data(json!({"a": "1", "a/b~": 1})))),
        (json!([{"op": "add", "path": "/data/a/b", "value": 1}]), None),
        (json!([{"op": "add", "path": "/none/b", "value": 1}]), None),
        (json!([{"op": "copy", "from": "/data/zz", "path": "/data/q"}]), Some(data(json!({"a": "1", "q": null})))),
        (json!([{"op": "copy", "from": "/data/a", "path": "/list/0"}]), Some(with(json!(["1", "x", "y"])))),
        (json!([{"op": "move", "from": "/data/zz", "path": "/data/q"}]), None),
        (json!([{"op": "move", "from": "/data/a", "path": "/data/a/b"}]), None),
        (json!([{"op": "move", "from": "/list/0", "path": "/list/-"}]), Some(with(json!(["y", "x"])))),
        (json!([{"op": "bogus", "path": "/data/zz", "value": "n"}]), None),
        (json!([{"path": "/data/zz", "value": "n"}]), None),
        (json!([{"op": "add", "value": "n"}]), None),
        (json!([{"op": "add", "path": null, "value": "n"}]), None),
        (json!([null]), None),
        (json!([]), Some(document.clone())),
        (json!(null), Some(document.clone())),
    ] {
        assert_eq!(patched(&document, &patch), outcome, "{patch}");
    }
}

#[test]
fn a_patch_that_does_not_apply_changes_nothing() {
    let mut document = json!({"a": 1});
    let patch = json!([{"op": "remove", "path": "/a"}, {"op": "test", "path": "/b", "value": 1}]);
    let status = apply(&mut document, &patch).unwrap_err();
    assert_eq!(
        (status.code, status.reason, status.message.as_str()),
        (422, "Invalid", "the server rejected our request due to an error in our request")
    );
    assert_eq!(document, json!({"a": 1}));
}

#[test]
fn the_form_is_checked_in_gos_words() {
    for (patch, message) in [
        (
            json!({"op": "add"}),
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (
            json!("text"),
            "error decoding patch: json: cannot unmarshal string into Go value of type []handlers.jsonPatchOp",
        ),
        (json!([1]), "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (
            json!([{"op": 1, "path": "/data/x"}]),
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
    ] {
        let status = check(&patch).unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (400, message));
    }
    let unknown = check(&json!([null, {"op": "add", "path": "/x", "value": 1, "extra": 1}])).unwrap();
    assert_eq!(unknown, [r#"json patch unknown field "[1].extra""#]);
    assert_eq!(check(&Value::Null).unwrap(), Vec::<String>::new());
    let status = apply(&mut json!({}), &json!({"op": "add"})).unwrap_err();
    assert_eq!(
        (status.code, status.message.as_str()),
        (400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    );
}

#[test]
fn a_patch_has_limits() {
    let tests = vec![json!({"op": "test", "path": "/zz", "value": null}); MOST_OPERATIONS + 1];
    let status = apply(&mut json!({}), &Value::Array(tests)).unwrap_err();
    assert_eq!(
        (status.code, status.reason, status.message.as_str()),
        (
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
        )
    );
}

#[test]
fn copies_do_not_blow_up() {
    let doubling: Vec<Value> =
        (0..100).map(|number| json!({"op": "copy", "from": "/a", "path": format!("/a/{number}")})).collect();
    let document = json!({"a": {"text": "x".repeat(1000)}});
    assert_eq!(patched(&document, &Value::Array(doubling)), None);
    let few: Vec<Value> =
        (0..100).map(|number| json!({"op": "copy", "from": "/a", "path": format!("/{number}")})).collect();
    assert!(patched(&document, &Value::Array(few)).is_some());
}

#[test]
fn moves_do_not_dig_without_end() {
    let dig = [
        json!({"op": "add", "path": "/b", "value": {}}),
        json!({"op": "move", "from": "/a", "path": "/b/a"}),
        json!({"op": "move", "from": "/b", "path": "/a"}),
    ];
    let document = json!({"a": {}});
    let patch = |rounds: usize| Value::Array(dig.iter().cloned().cycle().take(3 * rounds).collect());
    assert!(depth(&patched(&document, &patch(100)).unwrap()) > 100);
    assert_eq!(patched(&document, &patch(3000)), None);
}

fn any_path() -> impl Strategy<Value = String> {
    prop::collection::vec("(a|b|0|1|-|-1|~0|~1|)", 0..4).prop_map(|parts| parts.join("/"))
}

fn any_operation() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["add", "remove", "replace", "move", "test", "copy", "none"]);
    prop_oneof![
        8 => (kind, any_path(), any_path(), any_value()).prop_map(|(op, path, from, value)| {
            json!({"op": op, "path": format!("/{path}"), "from": format!("/{from}"), "value": value})
        }),
        1 => any_value(),
    ]
}

proptest! {
    #[test]
    fn no_patch_panics(
        document in any_object(),
        patch in prop_oneof![4 => prop::collection::vec(any_operation(), 0..8).prop_map(Value::Array), 1 => any_value()],
    ) {
        let mut document = document;
        let before = document.clone();
        check(&patch).ok();
        if apply(&mut document, &patch).is_err() {
            prop_assert_eq!(document, before);
        }
    }

    #[test]
    fn what_was_added_is_found_and_can_be_removed(document in any_object(), value in any_value(), name in "[a-z~/]{0,3}") {
        let path = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let added = patched(&document, &json!([{"op": "add", "path": path, "value": value}, {"op": "test", "path": path, "value": value}]));
        prop_assert!(added.is_some());
        let removed = patched(&added.unwrap(), &json!([{"op": "remove", "path": path}]));
        prop_assert!(removed.unwrap().get(&name).is_none());
    }
}
