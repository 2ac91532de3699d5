//! Decisions about rollouts, without a cluster.

use super::*;
use serde_json::json;

fn deployment(replicas: i64, strategy: Value) -> Object {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "d", "generation": 1},
        "spec": {"replicas": replicas, "strategy": strategy, "selector": {"matchLabels": {"app": "web"}},
            "progressDeadlineSeconds": 600, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"version": 2}}}});
    Object::from_value(deployment).unwrap()
}

fn rolling(surge: Value, unavailable: Value) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
}

/// A set of a version, with how many replicas it should have, has, and are available.
fn set(version: i64, wanted: i64, actual: i64, available: i64) -> (Arc<Object>, bool) {
    let set = json!({"metadata": {"name": format!("web-{version}"), "namespace": "shop", "uid": format!("s{version}"),
            "creationTimestamp": format!("1970-01-01T00:00:0{version}Z"),
            "annotations": {REVISION: version.to_string(), super::super::set::DESIRED: "10", super::super::set::MAXIMUM: "13"}},
        "spec": {"replicas": wanted, "template": {"metadata": {"labels": {"app": "web", "pod-template-hash": version.to_string()}}, "spec": {"version": version}}},
        "status": {"replicas": actual, "readyReplicas": available, "availableReplicas": available}});
    (Arc::new(Object::from_value(set).unwrap()), actual > 0)
}

fn told(deployment: &Object, sets: Vec<(Arc<Object>, bool)>) -> Vec<String> {
    let plan = Rollout::new(deployment, sets, Timestamp::UNIX_EPOCH).decide();
    let words = plan.steps.into_iter().filter_map(|step| match step {
        Step::Tell(message) => Some(message.replace("replica set ", "")),
        Step::Delete(key) => Some(format!("delete {}", key.name)),
        _ => None,
    });
    words.collect()
}

#[test]
fn a_new_set_starts_with_what_the_surge_allows() {
    let deployment = deployment(10, rolling(json!(3), json!(2)));
    let first = told(&deployment, vec![set(1, 10, 10, 10)]);
    assert_eq!(first[1..], ["Scaled down web-1 from 10 to 8"]);
    assert!(first[0].starts_with("Scaled up web-") && first[0].ends_with("from 0 to 3"), "{first:?}");
}

#[test]
fn old_sets_shrink_as_far_as_enough_are_available() {
    let deployment = deployment(10, rolling(json!(3), json!(2)));
    assert_eq!(told(&deployment, vec![set(1, 10, 10, 10), set(2, 3, 3, 0)]), ["Scaled down web-1 from 10 to 8"]);
    assert_eq!(told(&deployment, vec![set(1, 8, 8, 8), set(2, 3, 3, 0)]), ["Scaled up web-2 from 3 to 5"]);
    assert_eq!(told(&deployment, vec![set(1, 8, 8, 8), set(2, 5, 5, 0)]), [""; 0]);
    assert_eq!(told(&deployment, vec![set(1, 8, 8, 8), set(2, 5, 5, 5)]), ["Scaled down web-1 from 8 to 3"]);
}

#[test]
fn what_does_not_work_goes_first() {
    let deployment = deployment(10, rolling(json!(3), json!(2)));
    let sets = vec![set(0, 4, 4, 1), set(1, 7, 7, 7), set(2, 2, 2, 2)];
    assert_eq!(
        told(&deployment, sets),
        ["Scaled down web-0 from 4 to 1", "Scaled down web-0 from 1 to 0", "Scaled down web-1 from 7 to 6"]
    );
}

#[test]
fn bounds_that_round_to_nothing_still_move() {
    let bounds = Bounds::of(&deployment(1, rolling(json!("0%"), json!("1%"))));
    assert_eq!(bounds, Bounds { surge: 0, unavailable: 1 });
    assert_eq!(Bounds::of(&deployment(3, rolling(json!("25%"), json!("25%")))), Bounds { surge: 1, unavailable: 0 });
    assert_eq!(Bounds::of(&deployment(3, json!({"type": "Recreate"}))), Bounds { surge: 0, unavailable: 0 });
}

#[test]
fn recreating_takes_all_away_before_anything_comes() {
    let deployment = deployment(10, json!({"type": "Recreate"}));
    assert_eq!(told(&deployment, vec![set(1, 10, 10, 10)]), ["Scaled down web-1 from 10 to 0"]);
    assert_eq!(told(&deployment, vec![set(1, 0, 0, 0)]).len(), 1);
    let (waiting, _) = set(1, 0, 0, 0);
    assert_eq!(told(&deployment, vec![(waiting, true)]), [""; 0], "a pod is still there");
}

#[test]
fn replicas_are_shared_out_when_their_number_changes() {
    let larger = deployment(15, rolling(json!(3), json!(2)));
    assert_eq!(
        told(&larger, vec![set(1, 8, 8, 8), set(2, 5, 5, 0)]),
        ["Scaled up web-1 from 8 to 11", "Scaled up web-2 from 5 to 7"]
    );
    assert_eq!(
        told(&deployment(0, rolling(json!(3), json!(2))), vec![set(2, 10, 10, 10)]),
        ["Scaled down web-2 from 10 to 0"]
    );
}
