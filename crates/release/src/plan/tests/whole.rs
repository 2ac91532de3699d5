//! Nothing that a plan says is lost: every field of the schema is read, and every value matters.

use super::*;
use jobwright_yaml::{Node, Value as Yaml};
use std::collections::BTreeSet;

/// A plan with every field that there is.
const WHOLE: &str = r#"
apiVersion: jobwright.io/v1alpha1
kind: Plan
release: {name: shop, namespace: shop-a, version: 1.4.0, upgradeFrom: ["1.3"]}
parallel: 5
onRemovedComponent: Prune
components:
- name: db
  chart: {path: charts/db}
  values: [values/db.yaml]
  set: {replicas: 3, image: {tag: a}}
  helm: {wait: false, timeout: 12m, release: database}
- {name: api, dependsOn: [db], chart: {ref: shop/api, version: 1.2.3, repo: "https://charts.example"}}
- {name: rules, manifests: {path: rules/, wait: false, timeout: 13m, onDrift: Report}}
jobs:
- id: migrate
  component: api
  phase: pre
  on: [install]
  run: OnChange
  after: [prepare]
  skipIf: [{apiVersion: v1, kind: ConfigMap, name: schema, jsonPath: "{.data.version}", equals: "14"}]
  onFailure: Continue
  onSupersede: Replace
  onUnknown: RunAgain
  onCancel: Stop
  retires: {at: 2.0.0}
  retries: {limit: 2, backoff: 14s}
  timeout: 15m
  keep: {finished: 1h, runs: 9, logBytes: 1024}
  pod: {template: {metadata: {labels: {a: b}}, spec: {containers: [{name: m, image: "shop/api:1.4.0"}]}}}
- id: prepare
  component: api
  phase: pre
  retires: {never: base}
  podFrom: {deployment: api, container: main, image: "shop/api:2", command: [run], args: [prepare]}
- id: certificate
  initCert:
    service: hook
    services: [hook-two]
    secret: tls
    caSecret: ca
    validatingWebhooks: [a]
    mutatingWebhooks: [b]
    webhookSelector: c=d
    crds: [e]
    apiServices: [f]
    deployments: [g]
    clusterDomain: cluster.example
    validity: 100d
    caValidity: 1000d
    renewBefore: 1/4
    settle: 16s
    handshake: false
- id: snapshot
  phase: post
  backfill:
    sink: s3://bucket/in
    kinds: [Pod]
    excludeKinds: [Event]
    namespaces: [a]
    selector: a=b
    fieldSelector: c=d
    names: [e]
    excludeNames: [f]
    metadataOnly: true
    labels: [g]
    excludeLabels: [h]
    annotations: [i]
    excludeAnnotations: [j]
    secretValues: require
    pageSize: 100
    concurrency: 3
    batchBytes: 4096
    batchRecords: 50
    compress: gzip
    retryFor: 17m
    auth: {secret: api-key, key: token-a, header: x-key}
    tls: {ca: a.pem, cert: b.pem, key: c.pem, caSecret: d, certSecret: e}
    metricPrefix: shop_
    metricNames: verbatim
    s3: {endpoint: "https://s3.example", region: eu, pathStyle: true}
    checkpoint: configmap:progress
    resumeWithin: 18m
    lock: only
    lockWait: 19m
    waitFor: ["tcp:db:5432"]
    waitTimeout: 20m
- {id: upload, phase: post, backfill: {sink: "file:out.zst", auth: {file: key.txt}}}
- id: take
  phase: post
  adopt: {release: old, namespace: other, force: true, objects: [{apiVersion: v1, kind: Service, name: s, namespace: other-b}]}
- {id: grow, phase: pre, growVolume: {claim: data, to: 30Gi, detach: {kind: StatefulSet, name: db}, patience: 21m}}
- {id: hello, phase: post, command: {program: echo, args: [hello], env: {A: b}, directory: bin}}
"#;

/// Values that fields of this type take.
fn values(node: &Node) -> &'static [&'static str] {
    match &node.value {
        Yaml::Number(_) => &["7", "8", "8192"],
        Yaml::Bool(_) => &["true", "false"],
        _ => &[
            "zz",
            "23m",
            "9.9.9",
            "77Gi",
            "pre",
            "post",
            "upgrade",
            "1/7",
            "Report",
            "Redeploy",
            "Always",
            "Abort",
            "Fail",
            "Leave",
            "zstd",
            "never",
            "legal",
            "Deployment",
            "'{.zz}'",
            "tcp:zz:1",
            "configmap:zz",
            "file:zz",
        ],
    }
}

fn scalars<'a>(node: &'a Node, found: &mut Vec<&'a Node>) {
    match &node.value {
        Yaml::Map(entries) => entries.iter().for_each(|entry| scalars(&entry.value, found)),
        Yaml::List(items) => items.iter().for_each(|item| scalars(item, found)),
        _ => found.push(node),
    }
}

#[test]
fn every_value_of_a_plan_matters() {
    assert_eq!(errors(WHOLE), [""; 0]);
    let read = |text: &str| PlanFile::parse(Path::new("p"), text).map(|file| format!("{:?}", file.plan));
    let whole = read(WHOLE).unwrap();
    let document = jobwright_yaml::parse(WHOLE).unwrap().remove(0);
    let mut found = Vec::new();
    scalars(&document.root, &mut found);
    // `apiVersion` and `kind` of the file have one value only; names that others refer to, and the phase of jobs in
    // order, cannot change alone.
    let fixed = ["jobwright.io/v1alpha1", "Plan", "db", "api", "prepare", "pre"];
    let mut changed = 0;
    for node in found {
        let before = &WHOLE[node.span.clone()];
        let mut takes = 0;
        for value in values(node).iter().filter(|value| **value != before) {
            if takes == 2 {
                break;
            }
            let text = format!("{}{value}{}", &WHOLE[..node.span.start], &WHOLE[node.span.end..]);
            if let Ok(read) = read(&text) {
                let place = jobwright_yaml::position(WHOLE, node.span.start);
                assert_ne!(read, whole, "{}:{} `{before}` and `{value}` mean the same", place.line, place.column);
                takes += 1;
            }
        }
        assert!(takes > 0 || fixed.contains(&before), "`{before}` takes no other value");
        changed += takes;
    }
    assert!(changed > 150, "only {changed} changes were tried");
}

#[test]
fn every_field_of_the_schema_is_in_the_whole_plan() {
    let schema = plan_schema();
    let mut fields = BTreeSet::new();
    let mut queue = vec![schema.as_value()];
    while let Some(value) = queue.pop() {
        if let Some(properties) = value["properties"].as_object() {
            fields.extend(properties.keys().cloned());
        }
        match value {
            serde_json::Value::Object(map) => queue.extend(map.values()),
            serde_json::Value::Array(items) => queue.extend(items),
            _ => {}
        }
    }
    let missing: Vec<&String> = fields.iter().filter(|field| !WHOLE.contains(&format!("{field}:"))).collect();
    assert!(fields.len() > 120 && missing.is_empty(), "{} fields, missing {missing:?}", fields.len());
}

#[test]
fn contradictions_are_in_the_schema_for_editors() {
    let schema = plan_schema();
    let rules = |name: &str| schema.as_value()["$defs"][name]["allOf"].clone();
    assert_eq!(rules("Job")[0]["oneOf"].as_array().unwrap().len(), 7);
    assert_eq!(
        rules("Component")[0]["oneOf"],
        serde_json::json!([{"required": ["chart"]}, {"required": ["manifests"]}])
    );
    assert_eq!(rules("Chart")[1]["dependentSchemas"]["version"]["anyOf"], serde_json::json!([{"required": ["ref"]}]));
    assert_eq!(rules("Retires")[0]["description"], "Exactly one of `at`, `never`");
}
