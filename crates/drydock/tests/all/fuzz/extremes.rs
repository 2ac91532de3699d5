//! Requests that are too much: too large, too deep, too many. They are refused or served, and the next one is served.

use crate::fuzz::request::Asked;
use crate::fuzz::world::{Answer, World};
use serde_json::{Value, json};
use std::time::Duration;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const LIMIT: usize = 3 * 1024 * 1024;

async fn send(world: &mut World, method: &str, uri: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Answer {
    let asked = Asked {
        method: method.to_owned(),
        uri: uri.to_owned(),
        content_type: content_type.to_owned(),
        body: body.into(),
        ..Asked::default()
    };
    world.ask(&asked).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_body_of_more_than_three_mebibytes_is_refused_in_the_servers_words() {
    let mut world = World::new();
    let body = |length: usize| {
        let text = json!({"metadata": {"name": "a"}, "data": {"k": ""}}).to_string();
        text.replace("\"\"", &format!("\"{}\"", "x".repeat(length - text.len())))
    };
    let refused = send(&mut world, "POST", CONFIG_MAPS, "application/json", body(LIMIT + 1)).await;
    assert_eq!(
        refused.json(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 413,
            "reason": "RequestEntityTooLarge", "message": "Request entity too large: limit is 3145728"})
    );
    // One byte less is read, and then it is the ConfigMap that is too large.
    let refused = send(&mut world, "POST", CONFIG_MAPS, "application/json", body(LIMIT)).await;
    assert_eq!(
        (refused.code, refused.message()),
        (422, r#"ConfigMap "a" is invalid: []: Too long: may not be more than 1048576 bytes"#.to_owned())
    );
    // Who asks for what is not there, or sends what nobody reads, hears of that and not of the body.
    let unknown = send(&mut world, "POST", "/apis/nobody/v1/things", "application/json", body(LIMIT + 1)).await;
    assert_eq!(unknown.code, 404);
    let read = send(&mut world, "GET", CONFIG_MAPS, "application/json", body(LIMIT + 1)).await;
    assert_eq!(read.code, 200);
    for method in ["PUT", "PATCH", "DELETE"] {
        let uri = format!("{CONFIG_MAPS}/a");
        let refused = send(&mut world, method, &uri, "application/merge-patch+json", body(LIMIT + 1)).await;
        assert_eq!(refused.code, 413, "{method}");
    }
    world.goes_on().await;
}

/// Texts that are nested very deeply, whole and cut off.
fn deep(depth: usize) -> Vec<String> {
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    let fields = |close: &str| format!("{}1{}", "{\"a\":".repeat(depth), close.repeat(depth));
    vec![
        format!("{open}{close}"),
        open,
        fields("}"),
        fields(""),
        format!("{{\"metadata\":{{\"name\":\"a\"}},\"data\":{}}}", fields("}")),
    ]
}

#[tokio::test(start_paused = true)]
async fn deep_bodies_are_refused() {
    let mut world = World::new();
    world.furnish().await;
    for depth in [100, 127, 128, 129, 1_000, 10_000, 10_001, 200_000] {
        for text in deep(depth) {
            for kind in ["/api/v1/namespaces/default/configmaps", "/apis/shop.example/v1/namespaces/default/gadgets"] {
                for content_type in ["application/json", "application/yaml"] {
                    let answer = send(&mut world, "POST", kind, content_type, text.clone()).await;
                    assert!(answer.code < 500, "{depth} {kind} {content_type}: {}", answer.code);
                }
                for patch in crate::fuzz::patches::TYPES {
                    let uri = format!("{kind}/a?fieldManager=me");
                    let answer = send(&mut world, "PATCH", &uri, patch, text.clone()).await;
                    let is_refused = (400..500).contains(&answer.code);
                    assert!(is_refused || depth < 128, "{depth} {kind} {patch}: {}", answer.code);
                }
            }
        }
    }
    world.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn patches_cannot_make_an_object_grow_without_end() {
    let mut world = World::new();
    world.furnish().await;
    let uri = "/api/v1/namespaces/default/configmaps/settings";
    let doubling: Vec<Value> = (0..40).map(|_| json!({"op": "copy", "from": "", "path": "/data/x"})).collect();
    let answer = send(&mut world, "PATCH", uri, "application/json-patch+json", json!(doubling).to_string()).await;
    assert!(answer.code >= 400);
    let deeper: Vec<Value> = (1..9_000)
        .map(|depth| json!({"op": "add", "path": "/data".to_owned() + &"/x".repeat(depth), "value": {}}))
        .take(1_500)
        .collect();
    let answer = send(&mut world, "PATCH", uri, "application/json-patch+json", json!(deeper).to_string()).await;
    assert!(answer.code >= 400);
    let many: Vec<Value> = (0..10_001).map(|_| json!({"op": "test", "path": "/kind", "value": "ConfigMap"})).collect();
    let answer = send(&mut world, "PATCH", uri, "application/json-patch+json", json!(many).to_string()).await;
    assert_eq!(answer.code, 413, "{}", answer.message());
    world.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn aliases_of_yaml_do_not_explode() {
    let mut world = World::new();
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for level in 1..20 {
        let below = format!("*a{},", level - 1).repeat(9);
        bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    bomb.push_str("metadata: {name: a}\n");
    let circle = "metadata: &m {name: a, labels: *m}\n";
    let merge = "metadata: {name: a}\ndata: &d\n  <<: [*d, *d]\n";
    for text in
        [bomb.as_str(), circle, merge, "a: !!binary x", "%YAML 9.9\n---\n", "--- a\n--- b\n", "? [a]\n: b\n", "\u{0}"]
    {
        let made = send(&mut world, "POST", CONFIG_MAPS, "application/yaml", text).await;
        assert!((400..500).contains(&made.code), "{text}: {}", made.code);
        let uri = format!("{CONFIG_MAPS}/a?fieldManager=me");
        let applied = send(&mut world, "PATCH", &uri, "application/apply-patch+yaml", text).await;
        assert!(applied.code >= 400, "{text}: {}", applied.code);
    }
    world.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn huge_selectors_and_numbers_are_read() {
    let mut world = World::new();
    world.furnish().await;
    let values: Vec<String> = (0..9_000).map(|number| format!("v{number}")).collect();
    let long = "a".repeat(60_000);
    for (query, code) in [
        (format!("labelSelector=a+in+({})", values.join(",")), 200),
        (format!("labelSelector={}", vec!["a!=b"; 10_000].join(",")), 200),
        (format!("labelSelector={}", "(".repeat(50_000)), 400),
        (format!("labelSelector={long}"), 400),
        (format!("fieldSelector={}", vec!["metadata.name!=b"; 3_000].join(",")), 200),
        (format!("fieldSelector=metadata.name={long}"), 200),
        (format!("continue={long}"), 400),
        ("limit=9223372036854775807".to_owned(), 200),
        ("limit=9223372036854775808".to_owned(), 400),
        ("limit=-9223372036854775808".to_owned(), 200),
        ("watch=1&timeoutSeconds=9223372036854775807".to_owned(), 200),
        ("watch=1&timeoutSeconds=-1".to_owned(), 200),
        ("resourceVersion=18446744073709551615".to_owned(), 504),
        ("x=1&".repeat(15_000), 200),
    ] {
        let answer = world.get(&format!("/api/v1/namespaces/default/pods?{query}")).await;
        assert_eq!(answer.code, code, "{}: {}", &query[..query.len().min(60)], answer.message());
    }
    world.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn a_great_many_labels_are_taken() {
    let mut world = World::new();
    let labels: Value = (0..5_000).map(|number| (format!("label-{number}"), json!("x"))).collect();
    let made = world.post(CONFIG_MAPS, &json!({"metadata": {"name": "a", "labels": labels}})).await;
    assert_eq!(made.code, 201, "{}", made.message());
    let annotations: Value = (0..5_000).map(|number| (format!("a-{number}"), json!("x".repeat(60)))).collect();
    let refused = world.post(CONFIG_MAPS, &json!({"metadata": {"name": "b", "annotations": annotations}})).await;
    assert_eq!(refused.code, 422, "{}", refused.message());
    world.goes_on().await;
}

/// A definition with one field of this schema.
fn definition(field: &Value) -> Value {
    json!({"metadata": {"name": "gadgets.shop.example"}, "spec": {"group": "shop.example", "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
            {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": field}}}}}}]}})
}

fn gadget(value: &Value) -> Value {
    json!({"apiVersion": "shop.example/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": {"x": value}})
}

async fn try_field(field: Value, value: Value) {
    let mut world = World::new();
    let made = world.post(DEFINITIONS, &definition(&field)).await;
    if made.code == 201 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let answer = world.post("/apis/shop.example/v1/namespaces/default/gadgets", &gadget(&value)).await;
        assert!(answer.code < 500, "{field}: {}", answer.message());
    }
    world.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn patterns_cannot_take_forever() {
    let text = json!("a".repeat(100_000));
    for pattern in [
        "^(a+)+$",
        "(a*)*b",
        "(a|aa)+$",
        "((a{1,100}){1,100}){1,100}",
        "a{1000000}",
        "(?=a)",
        "\\1",
        "[",
        "(".repeat(20_000).as_str(),
    ] {
        try_field(json!({"type": "string", "pattern": pattern}), text.clone()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn rules_cannot_take_forever() {
    let list = "[0,1,2,3,4,5,6,7,8,9]";
    let mut nested = String::from("true");
    for level in 0..12 {
        nested = format!("{list}.all(v{level}, {nested})");
    }
    let rules = [
        nested,
        format!("{}1{} == 1", "(".repeat(20_000), ")".repeat(20_000)),
        format!("{}true", "!".repeat(50_000)),
        format!("1{} > 0", " + 1".repeat(20_000)),
        format!("self{} == ''", ".replace('', self)".repeat(40)),
        format!("{}1{} == 1", "[".repeat(5_000), "]".repeat(5_000)),
        "self.size() > 0 ? ".repeat(3_000),
        "self.matches('((a{1,100}){1,100}){1,100}')".to_owned(),
        "'x' in ".repeat(4_000),
    ];
    for rule in rules {
        let field = json!({"type": "string", "maxLength": 100, "x-kubernetes-validations": [{"rule": rule}]});
        try_field(field, json!("a".repeat(100))).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_of_two_billion_pods_is_taken_in_and_can_be_deleted() {
    let pod = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let run = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}});
    let apps = json!({"replicas": i32::MAX, "selector": {"matchLabels": {"app": "a"}}, "template": pod, "podManagementPolicy": "Parallel"});
    let rolling = json!({"replicas": i32::MAX, "selector": {"matchLabels": {"app": "a"}}, "template": pod});
    for (collection, spec) in [
        ("/apis/apps/v1/namespaces/default/replicasets", &rolling),
        ("/apis/apps/v1/namespaces/default/deployments", &rolling),
        ("/apis/apps/v1/namespaces/default/statefulsets", &apps),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            &json!({"parallelism": i32::MAX, "completions": i32::MAX, "template": run}),
        ),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            &json!({"parallelism": 100_000, "completions": 100_000, "completionMode": "Indexed", "template": run}),
        ),
    ] {
        let mut world = World::new();
        let made = world.post(collection, &json!({"metadata": {"name": "a"}, "spec": spec})).await;
        assert_eq!(made.code, 201, "{collection}: {}", made.message());
        let options = json!({"propagationPolicy": "Background"}).to_string();
        let gone = send(&mut world, "DELETE", &format!("{collection}/a"), "application/json", options).await;
        assert_eq!(gone.code, 200, "{}", gone.message());
        world.goes_on().await;
    }
}

#[tokio::test(start_paused = true)]
async fn containers_cannot_take_forever() {
    let mut world = World::new();
    for (number, line) in [
        "while true; do :; done",
        "while true; do echo x; done",
        "until false; do x=$x$x$x; x=a$x; done",
        "while true; do (while true; do :; done); done",
        "for i in 1 2 3; do while true; do sleep 0; done; done",
        "while true; do sleep 0.000000001; done",
        "while sleep 0; do touch /x; cat /x >> /x; done",
        "f() { f; }; f",
        ":(){ :|:& };:",
        "while true; do true & done",
        "trap 'while true; do :; done' TERM; sleep 1000",
    ]
    .iter()
    .enumerate()
    {
        let container = json!({"name": "a", "image": "a", "command": ["sh", "-c", line]});
        let pod = json!({"metadata": {"name": format!("pod-{number}")}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 5}});
        let made = world.post("/api/v1/namespaces/default/pods", &pod).await;
        assert_eq!(made.code, 201, "{}", made.message());
        tokio::time::sleep(Duration::from_secs(3)).await;
        send(&mut world, "DELETE", &format!("/api/v1/namespaces/default/pods/pod-{number}"), "", "").await;
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    world.goes_on().await;
}
