//! A secret that comes up wherever something is said, and must be nowhere in what Jobwright prints or records.

use crate::deploy::stage::{Said, Stage};
use jobwright_drydock::{Drydock, Script};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

const SECRET: &str = "correct-horse-battery";

/// A job whose pod gets the Secret, with more fields of its pod and of itself.
fn job(id: &str, pod: &Value, fields: &str) -> String {
    let mut template = json!({"spec": {"containers": [{
        "name": "m", "image": format!("busybox:{id}"), "command": ["sh", "-c", "true"],
        "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
    }]}});
    template["spec"].as_object_mut().unwrap().extend(pod.as_object().cloned().unwrap_or_default());
    format!("- {{id: {id}, retires: {{never: test}}, {fields}, pod: {{template: {template}}}}}\n")
}

fn stage(script: &str, plan: &str) -> Stage {
    let stage = Stage::on(Drydock::builder().script(Script::from_yaml(script).unwrap()), plan);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"},
        "stringData": {"password": SECRET}});
    stage.create(&[secret]);
    stage
}

/// Nothing that was printed or recorded has the secret, and what hides it is there.
fn assert_hidden(stage: &Stage, said: &[Said]) {
    let maps = Api::<ConfigMap>::namespaced(stage.client(), "shop");
    let maps = stage.block_on(maps.list(&ListParams::default())).unwrap();
    let mut texts: Vec<String> = maps.items.iter().map(|map| serde_json::to_string(map).unwrap()).collect();
    assert!(texts.iter().any(|text| text.contains("jobwright.io/ledger") || text.contains("deploys")), "{texts:?}");
    texts.extend(said.iter().flat_map(|said| [said.out.clone(), said.error.clone()]));
    assert!(texts.iter().any(|text| text.contains("***")), "something was said: {texts:?}");
    for text in texts {
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn logs_and_termination_messages_hide_secrets_everywhere() {
    let script = format!(
        "containers:\n- match: {{image: 'busybox:migrate'}}\n  then: {{exit: 3, after: 5s, logs: ['log says {SECRET}'], message: 'message says {SECRET}'}}\n"
    );
    let stage = stage(&script, &format!("jobs:\n{}", job("migrate", &json!({}), "phase: pre")));
    let said = [
        "deploy -v",
        "deploy -o json",
        "status",
        "history -o json",
        "history",
        "logs migrate",
        "logs migrate -o json",
        "plan",
    ]
    .map(|command| stage.jobwright(command));
    assert!(said[0].error.contains("log says ***"), "{}", said[0].error);
    assert!(said[0].out.contains("message says ***"), "{}", said[0].out);
    assert_hidden(&stage, &said);
}

#[test]
fn events_hide_secrets() {
    // The name of the volume is part of what the kubelet reports.
    let volumes = json!({"volumes": [{"name": SECRET, "configMap": {"name": "missing"}}]});
    let stage =
        stage("containers: []\n", &format!("jobs:\n{}", job("migrate", &volumes, "phase: pre, onCancel: Stop")));
    let deploy = stage.start("deploy -v");
    deploy.wait_for_error("***");
    deploy.signal(rustix::process::Signal::INT);
    let said = [deploy.wait().expect(130), stage.jobwright("history -o json")];
    assert_hidden(&stage, &said);
}

#[test]
fn output_of_helm_hides_secrets_of_jobs() {
    let plan = format!(
        "components:\n- {{name: api, chart: {{path: api}}}}\njobs:\n{}",
        job("warm", &json!({}), "component: api, phase: post")
    );
    let stage = stage("containers: []\n", &plan);
    stage.file("api/Chart.yaml", "apiVersion: v2\nname: api\nversion: 1.0.0\n");
    let helm = format!(
        "#!/bin/sh\nif [ \"$1\" = version ]; then echo v3.17.3; exit; fi\necho working with {SECRET}\necho 'Error: {SECRET} is wrong' >&2\nexit 1\n"
    );
    stage.file("bin/helm", &helm);
    std::fs::set_permissions(stage.path("bin/helm"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let said = ["deploy -v", "deploy -o json"].map(|command| stage.jobwright_with_programs(command).expect(1));
    assert!(said[0].out.contains("*** is wrong"), "{}\n{}", said[0].out, said[0].error);
    assert_hidden(&stage, &said);
}
