//! `init-cert` as it is typed, and as a job of a plan.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::deploy::stage::Stage;
use jobwright_drydock::{Drydock, User};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use std::process::Command;

const USUAL: &str = "init-cert -n shop --service hook --secret hook-tls --settle 1s --timeout 30s";

/// A stage with a namespace and webhook configurations of these names.
fn stage(builder: jobwright_drydock::Builder, names: &[&str]) -> Stage {
    let stage = Stage::on(builder, "");
    let client = stage.client();
    let parameters = PatchParams::apply("test").force();
    stage.block_on(async {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        let namespaces = Api::<Namespace>::all(client.clone());
        namespaces.patch("shop", &parameters, &Patch::Apply(namespace)).await.unwrap();
        for name in names {
            webhooks(&client).patch(name, &parameters, &Patch::Apply(configuration(name))).await.unwrap();
        }
    });
    stage
}

fn webhooks(client: &kube::Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

fn configuration(name: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name}, "webhooks": [{"name": "a.shop.example", "admissionReviewVersions": ["v1"],
        "sideEffects": "None", "clientConfig": {"service": {"name": "hook", "namespace": "shop"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}]})
}

fn bundle(stage: &Stage, name: &str) -> String {
    let object = stage.block_on(webhooks(&stage.client()).get(name)).unwrap();
    object.data["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned()
}

fn secret(stage: &Stage, name: &str) -> Option<Secret> {
    stage.block_on(Api::<Secret>::namespaced(stage.client(), "shop").get_opt(name)).unwrap()
}

#[test]
fn a_certificate_is_made_kept_and_renewed() {
    let stage = stage(Drydock::builder(), &["shop", "other"]);
    let usual = format!("{USUAL} --validating-webhook shop other");
    let checked = stage.jobwright(&format!("{usual} --check")).expect(1);
    assert!(checked.out.starts_with("would be created: there is no Secret `hook-tls`"), "{}", checked.out);
    assert!(secret(&stage, "hook-tls").is_none(), "a check changes nothing");

    let made = stage.jobwright(&format!("{usual} -o json")).expect(0).json();
    assert_eq!(made["action"], "created");
    assert!(made["reason"].as_str().unwrap().starts_with("there is no Secret `hook-tls`"), "{made}");
    assert_eq!((&made["daysLeft"], &made["restarted"]), (&json!(364), &json!([])));
    assert!(made["notAfter"].as_str().unwrap().ends_with('Z'), "{made}");
    let targets: Vec<&Value> = made["targets"].as_array().unwrap().iter().map(|target| &target["name"]).collect();
    assert_eq!(targets, ["shop", "other"]);
    assert!(made["targets"].as_array().unwrap().iter().all(|target| target["injected"] == true), "{made}");
    assert_eq!(bundle(&stage, "shop"), bundle(&stage, "other"));

    let kept = stage.jobwright(&usual).expect(0);
    assert!(kept.out.starts_with("kept: valid until "), "{}", kept.out);
    stage.jobwright(&format!("{usual} --check")).expect(0);

    let again = stage.jobwright(&format!("{usual} --again 7")).expect(0);
    assert!(again.out.starts_with("renewed: a new one was asked for"), "{}", again.out);
    let again = stage.jobwright(&format!("{usual} --again 7")).expect(0);
    assert!(again.out.starts_with("kept: "), "{}", again.out);

    let before = secret(&stage, "hook-tls").unwrap().data;
    let forced = stage.jobwright(&format!("{usual} --force --cluster-domain cluster.local")).expect(0);
    assert!(forced.out.starts_with("renewed: a new one was asked for"), "{}", forced.out);
    assert_ne!(secret(&stage, "hook-tls").unwrap().data, before);
    for said in [forced, again, kept] {
        assert!(!(said.out + &said.error).contains("PRIVATE"), "a key was told");
    }
}

#[test]
fn a_name_more_is_a_reason_and_a_check_says_it() {
    let stage = stage(Drydock::builder(), &[]);
    stage.jobwright(&format!("{USUAL} --stage secret")).expect(0);
    let said = stage.jobwright(&format!("{USUAL} --check --cluster-domain cluster.local -o json")).expect(1).json();
    assert_eq!(said["action"], "renewed");
    assert_eq!(said["reason"].as_str().unwrap().split(';').next(), Some("SAN hook.shop.svc.cluster.local missing"));
}

#[test]
fn prometheus_can_read_how_it_went() {
    let stage = stage(Drydock::builder(), &[]);
    stage.jobwright(&format!("{USUAL} --metrics certificate.prom")).expect(0);
    let read = || std::fs::read_to_string(stage.path("certificate.prom")).unwrap();
    assert!(
        read().contains("jobwright_certificate_days_left{namespace=\"shop\",secret=\"hook-tls\"} 364\n"),
        "{}",
        read()
    );
    let missing = format!("{USUAL} --validating-webhook nowhere --metrics certificate.prom");
    let said = stage.jobwright(&missing.replace("--timeout 30s", "--timeout 1s")).expect(1);
    assert!(said.error.contains("there is no ValidatingWebhookConfiguration `nowhere`"), "{}", said.error);
    assert!(read().contains("jobwright_certificate_last_run_succeeded{namespace=\"shop\",secret=\"hook-tls\"} 0\n"));
}

#[test]
fn the_roles_that_are_printed_are_enough_and_without_them_nothing_is_touched() {
    let token = "of-a-visitor";
    let stage = stage(Drydock::builder().rbac(true).token(token, User::new("visitor", &[])), &["shop"]);
    let text = std::fs::read_to_string(stage.path("kubeconfig")).unwrap();
    let mut kubeconfig: Value = serde_json::from_str(&text).unwrap();
    kubeconfig["users"][0]["user"]["token"] = token.into();
    stage.file("kubeconfig", &kubeconfig.to_string());
    let usual = format!("{USUAL} --validating-webhook shop --mark configmap:shop-mark");
    let map = json!({"metadata": {"name": "shop-mark"}, "data": {"identity": "1.a"}});
    let maps = Api::<ConfigMap>::namespaced(stage.client(), "shop");
    stage.block_on(maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap())).unwrap();
    let refused = stage.jobwright(&usual).expect(4);
    for part in [
        "kind: Role",
        "kind: ClusterRole",
        "resourceNames: [hook-tls, hook-tls-ca]",
        "create secrets",
        "patch validatingwebhookconfigurations/shop",
        "patch configmaps/shop-mark",
    ] {
        assert!(refused.error.contains(part), "{part} is not in\n{}", refused.error);
    }
    assert!(secret(&stage, "hook-tls").is_none());

    let printed = stage.jobwright(&format!("{usual} --print-rbac")).expect(0).out;
    let client = stage.client();
    stage.block_on(async {
        let parameters = PatchParams::apply("test").force();
        for document in jobwright_yaml::parse(&printed).unwrap() {
            let mut role = document.root.to_json();
            let kind = role["kind"].as_str().unwrap().to_owned();
            let name = role["metadata"]["name"].as_str().unwrap().to_owned();
            let of = |kind: &str| ApiResource::from_gvk(&GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind));
            let api = |kind: &str| -> Api<DynamicObject> {
                let resource = of(kind);
                if kind.starts_with("Cluster") {
                    Api::all_with(client.clone(), &resource)
                } else {
                    Api::namespaced_with(client.clone(), "shop", &resource)
                }
            };
            api(&kind).patch(&name, &parameters, &Patch::Apply(role.take())).await.unwrap();
            let bound = format!("{kind}Binding");
            let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": bound, "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "visitor"}]});
            api(&bound).patch(&name, &parameters, &Patch::Apply(binding)).await.unwrap();
        }
    });
    stage.jobwright(&usual).expect(0);
    stage.jobwright(&format!("{usual} --force")).expect(0);
}

#[test]
fn what_cannot_work_is_a_matter_of_usage() {
    let said = |line: &str| {
        let ended = Command::new(env!("CARGO_BIN_EXE_jobwright")).args(line.split_whitespace()).output().unwrap();
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    };
    for (line, part) in [
        ("init-cert --service hook", "--secret"),
        ("init-cert --service hook --secret s --force --check", "cannot be used with"),
        ("init-cert --service hook --secret s --renew-before third --drydock", "invalid renewal"),
        ("init-cert --service hook --secret s --ca-secret s --drydock", "a Secret of its own"),
        ("init-cert --service hook --secret s --validity 30d --renew-before 40d --drydock", "renewed by every run"),
    ] {
        let (code, error) = said(line);
        assert_eq!(code, Some(2), "{line}: {error}");
        assert!(error.contains(part), "{line}: {error}");
    }
}

#[test]
fn without_a_cluster_it_can_be_tried_in_memory() {
    let ended = Command::new(env!("CARGO_BIN_EXE_jobwright"))
        .args(format!("{USUAL} --drydock -o json").split_whitespace())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((ended.status.code(), &report["action"]), (Some(0), &json!("created")));
    assert!(report["reason"].as_str().unwrap().contains("nobody serves in a cluster in memory"), "{report}");
}

#[test]
fn a_plan_makes_the_secret_before_and_tells_who_trusts_it_after() {
    let stage = stage(Drydock::builder(), &["shop"]);
    stage.plan(
        "1.4.0",
        "jobs:\n- id: cert\n  initCert: {service: hook, secret: hook-tls, validatingWebhooks: [shop], settle: 1s}\n",
    );
    let jobs = |report: &Value| -> Vec<String> {
        let jobs = report["jobs"].as_array().unwrap().iter();
        jobs.map(|job| format!("{} {} {}", job["id"], job["phase"], job["outcome"]).replace('"', "")).collect()
    };
    let first = stage.jobwright("deploy -o json").expect(0).json();
    assert_eq!(jobs(&first), ["cert pre succeeded", "cert-inject post succeeded"], "{first}");
    let pair = secret(&stage, "hook-tls").unwrap().data;
    assert!(!bundle(&stage, "shop").is_empty());
    let second = stage.jobwright("deploy -o json").expect(0).json();
    assert_eq!(jobs(&second), ["cert pre skipped", "cert-inject post skipped"], "{second}");
    assert_eq!(secret(&stage, "hook-tls").unwrap().data, pair);
    stage.jobwright("deploy --force").expect(0);
    let forced = secret(&stage, "hook-tls").unwrap().data;
    assert_ne!(forced, pair);
    stage.jobwright("run cert").expect(0);
    assert_eq!(secret(&stage, "hook-tls").unwrap().data, forced);
}

#[test]
fn a_certificate_is_dated_by_the_clock_of_the_cluster() {
    for hours in [-3, 3] {
        let ahead = jiff::SignedDuration::from_hours(hours);
        let stage = Stage::shifted(Drydock::builder(), ahead, "");
        let namespaces = Api::<Namespace>::all(stage.client());
        stage.block_on(async {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
            namespaces.patch("shop", &PatchParams::apply("test"), &Patch::Apply(namespace)).await.unwrap();
        });
        let said = stage.jobwright(&format!("{USUAL} --stage secret -o json")).expect(0);
        assert!(said.error.contains("the cluster's clock is "), "{}", said.error);
        let made = secret(&stage, "hook-tls").unwrap().metadata.creation_timestamp.unwrap().0;
        let ends: jiff::Timestamp = said.json()["notAfter"].as_str().unwrap().parse().unwrap();
        // Whatever this machine's clock says.
        let differs = ends.as_second() - made.as_second() - 365 * 86_400;
        assert!(differs.abs() < 600, "{hours}: it ends {differs} s off");
    }
}
