use super::*;
use crate::patch::testing::{any_object, any_object_of};
use crate::schema::Schema;
use proptest::prelude::*;
use serde_json::json;
use std::sync::LazyLock;

static DEPLOYMENT: LazyLock<Schema> = LazyLock::new(|| Schema::built_in("io.k8s.api.apps.v1.Deployment"));

fn patched(object: &Value, patch: &Value) -> Result<Value, Status> {
    let mut object = object.clone();
    apply(DEPLOYMENT.root(), &mut object, patch).map(|()| object)
}

fn deployment() -> Value {
    json!({
        "metadata": {"name": "d", "finalizers": ["a.b/c", "d.e/f"], "labels": {"l": "1"}},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
            "template": {"spec": {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
                "tolerations": [{"key": "k", "operator": "Exists"}],
                "containers": [
                    {"name": "one", "image": "i1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"}]},
                    {"name": "two", "image": "i2", "resources": {"limits": {"cpu": "1"}}},
                ],
            }},
        },
    })
}

/// A patch of the pod's spec, and what it makes of one of its fields.
fn pod_spec(patch: Value, field: &str) -> Result<Value, Status> {
    let patched = patched(&deployment(), &json!({"spec": {"template": {"spec": patch}}}))?;
    Ok(patched["spec"]["template"]["spec"][field].clone())
}

#[test]
fn lists_merge_by_key() {
    let deployment = deployment();
    let containers = &deployment["spec"]["template"]["spec"]["containers"];
    let (one, two) = (&containers[0], &containers[1]);
    let changed = |container: &Value, image: &str| {
        let mut container = container.clone();
        container["image"] = json!(image);
        container
    };
    for (patch, outcome) in [
        (
            json!([{"name": "two", "image": "x"}, {"name": "new", "image": "n"}]),
            json!([one, changed(two, "x"), {"name": "new", "image": "n"}]),
        ),
        (json!([{"name": "one", "$patch": "delete"}]), json!([two])),
        (json!([{"name": "none", "$patch": "delete"}]), json!([one, two])),
        (json!([{"$patch": "replace"}, {"name": "z", "image": "q"}]), json!([{"name": "z", "image": "q"}])),
        (json!([]), json!([one, two])),
    ] {
        assert_eq!(pod_spec(json!({"containers": patch}), "containers").unwrap(), outcome, "{patch}");
    }
    let ports = json!([{"name": "one", "ports": [{"containerPort": 80, "name": "web"}]}]);
    let containers = pod_spec(json!({"containers": ports}), "containers").unwrap();
    assert_eq!(
        containers[0]["ports"],
        json!([{"containerPort": 80, "protocol": "TCP", "name": "web"}, {"containerPort": 81, "protocol": "TCP"}])
    );
}

#[test]
fn lists_without_a_key_are_replaced() {
    let tolerations = json!([{"key": "z", "operator": "Exists"}]);
    assert_eq!(pod_spec(json!({"tolerations": tolerations}), "tolerations").unwrap(), tolerations);
}

#[test]
fn what_is_new_comes_without_directives_and_nulls() {
    let env = json!([{"name": "Q", "$patch": "delete"}, {"name": "P", "value": "1", "valueFrom": null}]);
    let containers = pod_spec(json!({"containers": [{"name": "two", "env": env}]}), "containers").unwrap();
    assert_eq!(containers[1]["env"], json!([{"name": "P", "value": "1"}]));
    let affinity = json!({"nodeAffinity": null, "podAffinity": {}});
    assert_eq!(pod_spec(json!({"affinity": affinity}), "affinity").unwrap(), json!({"podAffinity": {}}));
}

#[test]
fn sets_merge_by_value() {
    for (patch, finalizers) in [
        (json!({"finalizers": ["x.y/z"]}), json!(["x.y/z", "a.b/c", "d.e/f"])),
        (json!({"finalizers": ["d.e/f", "x.y/z"]}), json!(["a.b/c", "d.e/f", "x.y/z"])),
        (
            json!({"finalizers": ["x.y/z", "a.b/c"], "$setElementOrder/finalizers": ["x.y/z", "d.e/f", "a.b/c"]}),
            json!(["x.y/z", "d.e/f", "a.b/c"]),
        ),
        (json!({"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}), json!(["d.e/f"])),
        (json!({"$deleteFromPrimitiveList/finalizers": "x"}), json!(["a.b/c", "d.e/f"])),
        (json!({"$deleteFromPrimitiveList/nope": ["a.b/c"]}), json!(["a.b/c", "d.e/f"])),
        (
            json!({"finalizers": ["x.y/z", "q.q/q"], "$setElementOrder/finalizers": []}),
            json!(["a.b/c", "d.e/f", "q.q/q", "x.y/z"]),
        ),
    ] {
        let patched = patched(&deployment(), &json!({"metadata": patch})).unwrap();
        assert_eq!(patched["metadata"]["finalizers"], finalizers, "{patch}");
    }
}

#[test]
fn element_order_sorts() {
    let order = json!([{"name": "two"}, {"name": "one"}]);
    let names = |patch: Value| {
        let containers = pod_spec(patch, "containers").unwrap();
        containers.as_array().unwrap().iter().map(|item| item["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(json!({"$setElementOrder/containers": order})), ["two", "one"]);
    let containers = json!([{"name": "one", "image": "z"}]);
    assert_eq!(names(json!({"$setElementOrder/containers": order, "containers": containers})), ["two", "one"]);
}

#[test]
fn objects_follow_directives() {
    for (patch, strategy) in [
        (json!({"$patch": "replace", "type": "Recreate"}), json!({"type": "Recreate"})),
        (json!({"$retainKeys": ["type"], "type": "Recreate"}), json!({"type": "Recreate"})),
        (json!({"$patch": "delete"}), json!({})),
        (json!({"type": "Recreate"}), json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}})),
        (json!({"rollingUpdate": null}), json!({"type": "RollingUpdate"})),
    ] {
        let patched = patched(&deployment(), &json!({"spec": {"strategy": patch}})).unwrap();
        assert_eq!(patched["spec"]["strategy"], strategy, "{patch}");
    }
    let volumes = json!([{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]);
    assert_eq!(
        pod_spec(json!({"volumes": volumes}), "volumes").unwrap(),
        json!([{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}])
    );
}

#[test]
fn maps_merge_by_entry() {
    for (patch, labels) in [
        (json!({"l": null, "m": "2"}), json!({"m": "2"})),
        (json!({"$patch": "delete"}), json!({})),
        (json!({"$patch": "replace", "q": "1"}), json!({"q": "1"})),
    ] {
        let patched = patched(&deployment(), &json!({"metadata": {"labels": patch}})).unwrap();
        assert_eq!(patched["metadata"]["labels"], labels, "{patch}");
    }
    assert_eq!(patched(&deployment(), &Value::Null).unwrap(), deployment());
}

#[test]
fn the_replace_strategy_replaces_an_object() {
    let schema = Schema::built_in("io.k8s.api.policy.v1.PodDisruptionBudget");
    let mut budget = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}});
    apply(schema.root(), &mut budget, &json!({"spec": {"selector": {"matchLabels": {"c": "d"}}}})).unwrap();
    assert_eq!(budget, json!({"spec": {"selector": {"matchLabels": {"c": "d"}}}}));
}

#[test]
fn refusals_are_worded_as_the_servers() {
    let spec = |patch: Value| json!({"spec": {"template": {"spec": patch}}});
    for (patch, code, message) in [
        (
            spec(json!({"containers": [{"image": "x"}]})),
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            spec(json!({"containers": [{"$patch": "delete"}]})),
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (spec(json!({"containers": [{"$patch": "merge"}]})), 500, "merging lists cannot yet be specified in the patch"),
        (
            spec(json!({"containers": [{"$patch": "bogus", "name": "one"}]})),
            500,
            "unknown patch type: bogus in map: map[$patch:bogus name:one]",
        ),
        (
            spec(json!({"volumes": ["x"]})),
            500,
            "list element types are not identical: [[map[emptyDir:map[] name:v] map[emptyDir:map[] name:w]] [x]]",
        ),
        (
            spec(json!({"$setElementOrder/containers": [{"nam": "two"}], "containers": [{"name": "one"}]})),
            500,
            "map: map[nam:two] does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"strategy": {"$patch": "merge", "type": "Recreate"}}}),
            500,
            "unknown patch type: merge in map: map[$patch:merge type:Recreate]",
        ),
        (
            json!({"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}}),
            400,
            "invalid patch format of retainKeys",
        ),
        (json!({"spec": {"strategy": {"$retainKeys": "x"}}}), 400, "invalid patch format of retainKeys"),
        (json!({"metadata": {"$deleteFromPrimitiveList": ["a"]}}), 400, "invalid patch format of primitive list"),
        (json!({"metadata": {"$setElementOrder": ["a"]}}), 400, "invalid patch format of setElementOrder list"),
        (
            json!({"metadata": {"$setElementOrder/nope": ["a"]}}),
            500,
            r#"unable to find api field in struct ObjectMeta for the json field "nope""#,
        ),
        (
            json!({"metadata": {"$setElementOrder/finalizers": "a"}}),
            500,
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"metadata": {"finalizers": ["q.q/q"], "$setElementOrder/finalizers": ["d.e/f"]}}),
            500,
            "The order in patch list:\n[q.q/q]\n doesn't match $setElementOrder list:\n[d.e/f]\n",
        ),
        (json!([]), 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ] {
        let status = patched(&deployment(), &patch).unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (code, message), "{patch}");
    }
    let custom = Schema::custom(&json!({"type": "object"}));
    let status = apply(custom.root(), &mut json!({}), &json!({})).unwrap_err();
    assert_eq!((status.code, status.message.as_str()), (400, "strategic merge patch format is not supported"));
}

#[test]
fn what_comes_out_has_the_types_of_the_schema() {
    for (patch, why) in [
        (json!({"metadata": {"labels": {"a": 1}}}), "cannot convert int64 to string"),
        (json!({"metadata": {"labels": {"a": 1.5}}}), "unrecognized type: string"),
        (json!({"metadata": {"labels": []}}), "cannot restore map from slice"),
        (json!({"spec": "x"}), "cannot restore struct from: string"),
        (json!({"spec": {"paused": 1}}), "unrecognized type: bool"),
        (json!({"spec": {"replicas": 1.5}}), "cannot convert float64 to int32"),
        (json!({"spec": {"replicas": [1]}}), "unrecognized type: int32"),
        (json!({"spec": {"template": {"spec": {"containers": "x"}}}}), "cannot restore slice from string"),
    ] {
        let status = patched(&deployment(), &patch).unwrap_err();
        let quoted = go::plain(&patch);
        assert_eq!(status.message, format!(" \"\" is invalid: patch: Invalid value: {quoted:?}: {why}"));
        assert_eq!(status.code, 422);
    }
    for (replicas, outcome) in [(json!(2.0), 2), (json!(3_000_000_000_i64), -1_294_967_296)] {
        let patched = patched(&deployment(), &json!({"spec": {"replicas": replicas}})).unwrap();
        assert_eq!(patched["spec"]["replicas"], json!(outcome));
    }
}

proptest! {
    #[test]
    fn no_patch_panics(object in any_object_of(DEPLOYMENT.root()), patch in any_object()) {
        patched(&object, &patch).ok();
    }

    #[test]
    fn an_object_merged_into_nothing_is_itself(object in any_object_of(DEPLOYMENT.root())) {
        prop_assert_eq!(patched(&json!({}), &object).unwrap(), object);
    }

    #[test]
    fn nothing_merged_into_an_object_changes_nothing(object in any_object_of(DEPLOYMENT.root())) {
        prop_assert_eq!(patched(&object, &json!({})).unwrap(), object);
    }
}
