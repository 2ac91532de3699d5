use super::testing::{By, Lab, books, object};
use super::*;
use crate::patch::testing::{any_object, any_object_of};
use crate::schema::Schema;
use proptest::prelude::*;
use serde_json::json;
use std::sync::LazyLock;

static WIDGET: LazyLock<Lab> = LazyLock::new(Lab::widget);

#[test]
fn a_new_job_is_tracked_as_on_the_server() {
    let container = json!({
        "name": "a", "image": "b", "imagePullPolicy": "Always",
        "env": [{"name": "E", "value": "1"}], "ports": [{"containerPort": 80, "protocol": "TCP"}],
    });
    let job = Lab::job().create(
        By("kubectl-create", 1),
        &json!({
            "metadata": {"labels": {"l": "1"}, "uid": "u", "generation": 1, "creationTimestamp": "2026-11-16T02:52:51Z"},
            "spec": {"backoffLimit": 3, "suspend": true, "template": {"spec": {
                "containers": [container], "restartPolicy": "Never", "securityContext": {},
            }}},
            "status": {"active": 1},
        }),
    );
    assert_eq!(
        books(&job),
        [concat!(
            r#"Update kubectl-create 1 {"f:metadata":{"f:labels":{".":{},"f:l":{}}},"f:spec":{"f:backoffLimit":{},"#,
            r#""f:suspend":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:env":{".":{},"#,
            r#""k:{\"name\":\"E\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"#,
            r#""f:name":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"#,
            r#""f:containerPort":{},"f:protocol":{}}},"f:resources":{}}},"f:restartPolicy":{},"#,
            r#""f:securityContext":{}}}}}"#
        )]
    );
}

#[test]
fn a_new_custom_resource_owns_its_structs() {
    let widget = WIDGET.create(By("m", 1), &json!({"spec": {"size": 1, "point": {"x": 1}, "words": ["a"]}}));
    assert_eq!(
        books(&widget),
        [r#"Update m 1 {"f:spec":{".":{},"f:point":{".":{},"f:x":{}},"f:size":{},"f:words":{}}}"#]
    );
}

#[test]
fn an_update_takes_what_it_changes_and_nobody_has_what_it_removes() {
    let lab = Lab::config_map();
    let first = lab.create(By("one", 1), &json!({"data": {"a": "1", "b": "1", "c": "1"}}));
    let second = lab.update(By("two", 2), &first, &json!({"data": {"a": "2", "b": "1", "d": "1"}}));
    assert_eq!(
        books(&second),
        [r#"Update one 1 {"f:data":{".":{},"f:b":{}}}"#, r#"Update two 2 {"f:data":{"f:a":{},"f:d":{}}}"#]
    );
    let third = lab.update(By("one", 3), &second, &json!({"data": {"a": "2", "b": "1", "d": "2"}}));
    assert_eq!(
        books(&third),
        [r#"Update two 2 {"f:data":{"f:a":{}}}"#, r#"Update one 3 {"f:data":{".":{},"f:b":{},"f:d":{}}}"#]
    );
    let emptied = lab.update(By("two", 4), &third, &json!({}));
    assert_eq!(books(&emptied), Vec::<String>::new());
    assert_eq!(emptied.at(&["metadata", "managedFields"]), None);
}

#[test]
fn a_write_that_changes_nothing_leaves_the_books() {
    let lab = Lab::config_map();
    let first = lab.create(By("one", 1), &json!({"data": {"a": "1"}}));
    let again = lab.update(By("two", 2), &first, &json!({"data": {"a": "1"}, "metadata": {"resourceVersion": "7"}}));
    assert_eq!(books(&again), books(&first));
    let removed = lab.update(By("two", 2), &first, &json!({}));
    assert_eq!(books(&removed), Vec::<String>::new());
}

#[test]
fn endpoints_have_entries_of_their_own() {
    let lab = Lab::job();
    let first = lab.create(By("m", 1), &json!({"spec": {"backoffLimit": 1}, "status": {"active": 1}}));
    let change = json!({"spec": {"backoffLimit": 2}, "status": {"active": 2}});
    let second = lab.update(By("m/status", 2), &first, &change);
    assert_eq!(
        books(&second),
        [r#"Update m 1 {"f:spec":{"f:backoffLimit":{}}}"#, r#"Update m/status 2 {"f:status":{"f:active":{}}}"#]
    );
}

#[test]
fn clients_may_send_and_clear_the_books() {
    let lab = Lab::config_map();
    let first = lab.create(By("one", 1), &json!({"data": {"a": "1"}}));
    let sent = json!([{
        "manager": "other", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }]);
    for (sent, by, outcome) in [
        (sent.clone(), "one", vec![r#"Update other - {"f:data":{"f:a":{}}}"#]),
        (sent, "one/status", vec![r#"Update one 1 {"f:data":{".":{},"f:a":{}}}"#]),
        (json!([]), "one", vec![]),
        (json!([{}]), "one", vec![]),
        (json!(null), "one", vec![r#"Update one 1 {"f:data":{".":{},"f:a":{}}}"#]),
        (json!([{"manager": "nonsense"}]), "one", vec![r#"Update one 1 {"f:data":{".":{},"f:a":{}}}"#]),
    ] {
        let body = json!({"data": {"a": "1"}, "metadata": {"managedFields": sent}});
        assert_eq!(books(&lab.update(By(by, 2), &first, &body)), outcome, "{body}");
    }
    let cleared = lab.update(By("one", 2), &first, &json!({"data": {"a": "1"}, "metadata": {"managedFields": [{}]}}));
    assert_eq!(books(&lab.update(By("one", 3), &cleared, &json!({"data": {"a": "2"}}))), Vec::<String>::new());
}

#[test]
fn books_of_an_object_with_wrong_types_are_dropped() {
    let lab = Lab::config_map();
    let first = lab.create(By("one", 1), &json!({"data": {"a": "1"}}));
    assert_eq!(books(&lab.update(By("two", 2), &first, &json!({"data": {"a": 1}}))), Vec::<String>::new());
}

#[test]
fn the_oldest_updates_are_merged() {
    let lab = Lab::config_map();
    let mut data = json!({"z": "1"});
    let mut object = lab.create(By("zero", 0), &json!({"data": data}));
    let names = ["m01", "m02", "m03", "m04", "m05", "m06", "m07", "m08", "m09", "m10", "m11"];
    for (second, name) in (1..).zip(names) {
        data[name] = json!("1");
        object = lab.update(By(name, second), &object, &json!({"data": data}));
    }
    let books = books(&object);
    assert_eq!(books.len(), 10);
    assert_eq!(books[0], r#"Update ancient-changes 2 {"f:data":{".":{},"f:m01":{},"f:m02":{},"f:z":{}}}"#);
    assert_eq!(books[1], r#"Update m03 3 {"f:data":{"f:m03":{}}}"#);
}

#[test]
fn appliers_come_first_then_the_oldest() {
    let lab = Lab::config_map();
    let first = lab.create(By("b", 5), &json!({"data": {"a": "1"}}));
    let second = lab.update(By("a", 3), &first, &json!({"data": {"a": "1", "b": "1"}}));
    let third = lab.apply(By("z", 9), Some(&second), &json!({"data": {"c": "1"}})).unwrap();
    let order: Vec<String> =
        books(&third).iter().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(order, ["Apply z", "Update a", "Update b"]);
}

#[test]
fn items_that_cannot_be_told_apart_are_owned_together() {
    let lab = Lab::job();
    let pod = |env: Value| json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "env": env}]}}}});
    let env = |object: &Object| {
        let line = books(object).remove(0);
        let start = line.find(r#""f:env""#).unwrap();
        line[start..].split(r#","f:name":{},"f:resources""#).next().unwrap().to_owned()
    };
    let single = lab.create(By("m", 1), &pod(json!([{"name": "E", "value": "1"}])));
    assert_eq!(env(&single), r#""f:env":{".":{},"k:{\"name\":\"E\"}":{".":{},"f:name":{},"f:value":{}}}"#);
    let doubled = pod(json!([{"name": "E", "value": "1"}, {"name": "E", "value": "2"}]));
    let double = lab.create(By("m", 1), &doubled);
    assert_eq!(env(&double), r#""f:env":{".":{},"k:{\"name\":\"E\"}":{}}"#);
    assert_eq!(env(&lab.update(By("m", 2), &single, &doubled)), env(&double));
    assert_eq!(env(&lab.update(By("m", 2), &double, &pod(json!([{"name": "E", "value": "1"}])))), env(&single));
}

/// A version that calls its data its spec.
struct Other(Schema);

impl Versions for Other {
    fn convert(&self, object: &Value, api_version: &str) -> Option<(View<'_>, Value)> {
        (api_version == "v2").then(|| (self.0.root(), json!({"apiVersion": "v2", "spec": object["data"]})))
    }
}

#[test]
fn managers_of_other_versions_see_the_object_in_their_words() {
    let lab = Lab::config_map();
    let old = object(json!({"apiVersion": "v1", "data": {"a": "1"}, "metadata": {"managedFields": [
        {"manager": "m", "operation": "Update", "apiVersion": "v2", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:a": {}, "f:b": {}}}},
    ]}}));
    let other = Other(Schema::custom(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})));
    let change = |versions: Option<&dyn Versions>| {
        let mut new = object(json!({"apiVersion": "v1", "data": {"a": "2"}}));
        lab.with(By("n", 2), versions, |write| track_update(write, Some(&old), &mut new));
        books(&new)
    };
    assert_eq!(change(Some(&other)), [r#"Update m - {"f:spec":{"f:b":{}}}"#, r#"Update n 2 {"f:data":{"f:a":{}}}"#]);
    assert_eq!(change(None), [r#"Update n 2 {"f:data":{"f:a":{}}}"#]);
}

#[test]
fn user_agents_name_managers() {
    assert_eq!(name_from_user_agent("kubectl/v1.34.10 (linux/amd64)"), "kubectl");
    assert_eq!(name_from_user_agent("a\u{7}b c"), "ab c");
    assert_eq!(name_from_user_agent(&"é".repeat(100)).len(), 128);
}

proptest! {
    #[test]
    fn tracking_never_panics(old in any_object(), new in any_object()) {
        WIDGET.update(By("m", 2), &object(old), &new);
    }

    #[test]
    fn what_did_not_change_is_not_tracked(old in any_object_of(WIDGET.schema.root())) {
        let first = WIDGET.create(By("one", 1), &old);
        prop_assert_eq!(books(&WIDGET.update(By("two", 2), &first, &old)), books(&first));
    }

    #[test]
    fn no_field_has_two_updaters(
        first in any_object_of(WIDGET.schema.root()),
        second in any_object_of(WIDGET.schema.root()),
    ) {
        let old = WIDGET.create(By("one", 1), &first);
        let new = WIDGET.update(By("two", 2), &old, &second);
        let managers = Managers::of(Some(&new)).unwrap();
        let sets: Vec<_> = managers.iter().map(|(_, entry)| entry.fields.clone()).collect();
        if let [one, two] = sets.as_slice() {
            prop_assert!(one.intersection(two).is_empty());
        }
    }
}

/// A Job of which several parts may be one way or another.
fn any_job() -> impl Strategy<Value = Value> {
    let container = |name: &'static str| {
        (any::<bool>(), proptest::option::of(0..3)).prop_map(move |(image, port)| {
            let ports: Vec<Value> =
                port.into_iter().map(|port| json!({"containerPort": port, "protocol": "TCP"})).collect();
            json!({"name": name, "image": if image { "x" } else { "y" }, "ports": ports})
        })
    };
    let labels = proptest::collection::btree_map("[ab]", "[xy]", 0..3);
    let containers = (proptest::option::of(container("a")), proptest::option::of(container("b")));
    (labels, containers, proptest::option::of(0..3), proptest::option::of(0..2)).prop_map(
        |(labels, (one, two), parallelism, active)| {
            let mut job = json!({"metadata": {"labels": labels}, "spec": {"template": {"spec": {
                "containers": one.into_iter().chain(two).collect::<Vec<_>>()}}}});
            if let Some(parallelism) = parallelism {
                job["spec"]["parallelism"] = json!(parallelism);
            }
            if let Some(active) = active {
                job["status"] = json!({"active": active, "conditions": [{"type": "Suspended", "status": "True"}]});
            }
            job
        },
    )
}

proptest! {
    #[test]
    fn looking_only_at_what_differs_comes_to_the_same(jobs in proptest::collection::vec((any_job(), 0..3_usize), 2..6)) {
        static JOB: LazyLock<Lab> = LazyLock::new(Lab::job);
        let mut live: Option<Object> = None;
        for (second, (job, who)) in (0..).zip(&jobs) {
            let by = By(["one", "two", "one/status"][*who], second);
            let Some(old) = live else {
                live = Some(JOB.create(by, job));
                continue;
            };
            let quick = JOB.update(by, &old, job);
            let mut thorough = JOB.body(job);
            JOB.with(by, None, |write| {
                let managers = Managers::of(Some(&old)).unwrap();
                let (before, after) = (value_without_books(Some(&old)), value_without_books(Some(&thorough)));
                let is_open = !managers.is_empty();
                let managers = Ledger { write }.update(managers, &before, &after, &write.manager.name).unwrap();
                if is_open {
                    managers.write(&mut thorough);
                }
            });
            keep_times(&old, &mut thorough);
            prop_assert_eq!(books(&quick), books(&thorough));
            prop_assert_eq!(&quick, &thorough);
            live = Some(quick);
        }
    }
}
