//! A secret that comes up wherever something is said, and must be nowhere in what Jobwright prints or records.

use crate::deploy::stage::{Said, Stage};
use jobwright_drydock::{Drydock, Script};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

const SECRET: &str = "correct-horse-battery";
/// A value that no job reads, of a Secret in manifests.
const OWN: &str = "staple-in-manifests";
/// No part of this length may be left of it.
const PART: usize = 6;

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

type Kind = (&'static str, &'static str);

/// Ledgers, records and Leases.
const RECORDS: [Kind; 2] = [("", "ConfigMap"), ("coordination.k8s.io", "Lease")];
/// Jobs, and what Kubernetes reports of their pods.
const OTHERS: [Kind; 2] = [("batch", "Job"), ("", "Event")];

/// Objects of the namespace as texts.
fn written(stage: &Stage, kinds: &[Kind]) -> Vec<String> {
    let texts = |(group, kind): &Kind| {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let objects = Api::<DynamicObject>::namespaced_with(stage.client(), "shop", &resource);
        let listed = stage.block_on(objects.list(&ListParams::default())).unwrap().items;
        listed.iter().map(|object| serde_json::to_string(object).unwrap()).collect::<Vec<_>>()
    };
    kinds.iter().flat_map(texts).collect()
}

/// Nothing that was printed or recorded has the secret, and what hides it is there.
fn assert_hidden(stage: &Stage, said: &[Said]) {
    assert_hidden_in(&written(stage, &[RECORDS, OTHERS].concat()), said);
}

fn assert_hidden_in(written: &[String], said: &[Said]) {
    let mut texts = written.to_vec();
    assert!(texts.iter().any(|text| text.contains("jobwright.io/ledger") || text.contains("deploys")), "{texts:?}");
    texts.extend(said.iter().flat_map(|said| [said.out.clone(), said.error.clone()]));
    assert!(texts.iter().any(|text| text.contains("***")), "something was said: {texts:?}");
    for text in texts {
        for start in 0..=SECRET.len() - PART {
            let part = &SECRET[start..start + PART];
            assert!(!text.contains(part), "`{part}` is in {text}");
        }
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
    // The pod template and the kubelet's own Events have the name, of course.
    assert_hidden_in(&written(&stage, &RECORDS), &said);
}

/// A helm that fails, and prints the secret to both streams.
fn install_helm(stage: &Stage) {
    let helm = format!(
        "#!/bin/sh\nif [ \"$1\" = version ]; then echo v3.17.3; exit; fi\necho working with {SECRET}\necho 'Error: {SECRET} is wrong' >&2\nexit 1\n"
    );
    stage.file("bin/helm", &helm);
    std::fs::set_permissions(stage.path("bin/helm"), std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn output_of_helm_hides_secrets_of_jobs() {
    let plan = format!(
        "components:\n- {{name: api, chart: {{path: api}}}}\njobs:\n{}",
        job("warm", &json!({}), "component: api, phase: post")
    );
    let stage = stage("containers: []\n", &plan);
    stage.file("api/Chart.yaml", "apiVersion: v2\nname: api\nversion: 1.0.0\n");
    install_helm(&stage);
    let said = ["deploy -v", "deploy -o json"].map(|command| stage.jobwright_with_programs(command).expect(1));
    assert!(said[0].out.contains("*** is wrong"), "{}\n{}", said[0].out, said[0].error);
    assert_hidden(&stage, &said);
}

/// A Deployment whose container gets the Secret.
fn deployment() -> Value {
    let variable = json!({"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}});
    let container = json!({"name": "c", "image": "busybox:serve", "command": ["sh", "-c", "sleep 100000"],
        "env": [variable]});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api"}, "spec": {
        "selector": {"matchLabels": {"app": "api"}},
        "template": {"metadata": {"labels": {"app": "api"}}, "spec": {"containers": [container]}}}})
}

#[test]
fn borrowed_pods_hide_secrets_in_logs_messages_and_the_output_of_helm() {
    let script = format!(
        "containers:\n- match: {{command: '*warm*'}}\n  then: {{exit: 3, after: 5s, logs: ['log says {SECRET}'], message: 'message says {SECRET}'}}\n"
    );
    let job =
        "- {id: warm, retires: {never: test}, component: api, phase: post, podFrom: {deployment: api, args: [warm]}}\n";
    let chart = format!("components:\n- {{name: api, chart: {{path: chart}}}}\njobs:\n{job}");
    let stage = stage(&script, &chart);
    stage.create(&[deployment()]);
    stage.file("chart/Chart.yaml", "apiVersion: v2\nname: api\nversion: 1.0.0\n");
    install_helm(&stage);
    let helm = ["deploy -v", "deploy -o json"].map(|command| stage.jobwright_with_programs(command).expect(1));
    assert!(helm[0].out.contains("*** is wrong"), "{}\n{}", helm[0].out, helm[0].error);
    assert_hidden(&stage, &helm);
    let pods = ["run warm -v", "history", "logs warm"].map(|command| stage.jobwright_with_programs(command));
    assert!(pods[0].error.contains("log says ***"), "{}", pods[0].error);
    assert!(pods[0].out.contains("message says ***"), "{}", pods[0].out);
    assert_hidden(&stage, &pods);
}

#[test]
fn output_of_commands_hides_secrets_also_where_a_line_is_cut() {
    let command = "- {id: import, phase: pre, retires: {never: test}, command: {program: sh, args: [import.sh]}}\n";
    let plan = format!("jobs:\n{command}{}", job("warm", &json!({}), "phase: post"));
    let stage = stage("containers: []\n", &plan);
    // The line is cut within one of them.
    let long = SECRET.repeat(20_000 / SECRET.len());
    stage.file("import.sh", &format!("echo 'working with {SECRET}'\necho {long}\nexit 1\n"));
    let said = ["deploy -v", "history -o json", "logs import"].map(|command| stage.jobwright(command));
    assert!(said[0].error.contains("working with ***"), "{}", said[0].error);
    assert!(said[2].out.contains("***…"), "{}", said[2].out);
    assert_hidden(&stage, &said);
}

/// A plan in which every part comes to say the secret: pods, a command, helm, the API server, and values that are set.
fn talkative() -> String {
    let components = format!(
        "components:\n- {{name: api, manifests: {{path: api.yaml}}}}\n\
         - {{name: own, manifests: {{path: own.yaml}}}}\n\
         - {{name: web, chart: {{path: web}}, set: {{password: {SECRET}}}}}\n"
    );
    let command = "- {id: import, phase: pre, onFailure: Continue, retires: {never: test}, command: {program: sh, args: [import.sh]}}\n";
    let borrowed =
        "- {id: warm, phase: post, component: api, retires: {never: test}, podFrom: {deployment: api, args: [warm]}}\n";
    let migrate = job("migrate", &json!({}), "phase: pre, onFailure: Continue");
    format!("{components}jobs:\n{command}{borrowed}{migrate}")
}

#[test]
fn no_channel_reveals_a_secret() {
    let script = format!(
        "containers:\n- match: {{image: 'busybox:migrate'}}\n  then: {{exit: 3, after: 60s, logs: ['log says {SECRET}'], message: 'message says {SECRET}'}}\n\
         - match: {{command: '*warm*'}}\n  then: {{exit: 3, after: 5s, logs: ['warm says {SECRET}'], message: 'message says {SECRET}'}}\n"
    );
    let stage = stage(&script, &talkative());
    stage.create(&[deployment()]);
    stage.file("import.sh", &format!("echo 'import says {SECRET}'; echo 'import warns {SECRET}' >&2; exit 1\n"));
    stage.file("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n");
    let helm = format!(
        "#!/bin/sh\nif [ \"$1\" = version ]; then echo v3.17.3; exit; fi\necho called with \"$@\"\necho helm says {SECRET}\necho 'Error: {SECRET} is wrong' >&2\nexit 1\n"
    );
    stage.file("bin/helm", &helm);
    std::fs::set_permissions(stage.path("bin/helm"), std::fs::Permissions::from_mode(0o755)).unwrap();
    // The API server repeats a value that it refuses: one that a job reads, and one that only the manifests know.
    let refused = |value: &str| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "labels": {"l": format!("{value}!")}}});
        map.to_string()
    };
    stage.file("api.yaml", &refused(SECRET));
    let own = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own"}, "stringData": {"token": OWN}});
    stage.file("own.yaml", &format!("{own}\n---\n{}", refused(OWN)));
    let mut said = vec![stage.jobwright_with_programs("plan"), stage.jobwright_with_programs("plan -o json")];
    let deploy = stage.start_with_programs("deploy -v");
    stage.wait_for_starts("true", 1);
    said.push(stage.jobwright("logs migrate -f"));
    said.push(deploy.wait().expect(1));
    let shown = said.last().unwrap();
    for part in [
        "log says ***",
        "message says ***",
        "import says ***",
        "import warns ***",
        "helm says ***",
        "*** is wrong",
        "\"***!\"",
    ] {
        assert!(shown.out.contains(part) || shown.error.contains(part), "{part}: {}\n{}", shown.out, shown.error);
    }
    for command in [
        "deploy -o json",
        "run warm -v",
        "run warm -o json",
        "plan",
        "status",
        "status -o json",
        "history",
        "history -o json",
        "logs migrate",
        "logs migrate -o json",
        "logs migrate -f",
        "logs warm",
        "logs import",
        "logs import -o json",
        "lock show",
    ] {
        said.push(stage.jobwright_with_programs(command));
    }
    assert_hidden(&stage, &said);
    for text in written(&stage, &[RECORDS, OTHERS].concat())
        .into_iter()
        .chain(said.iter().flat_map(|said| [said.out.clone(), said.error.clone()]))
    {
        assert!(!text.contains(OWN), "{text}");
    }
}
