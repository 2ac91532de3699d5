//! The upgrade tables of charts that ship a backfill and a certificate: when what runs.

use crate::deploy::stage::{Stage, component, job};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, PostParams};

/// Makes what the ledger says older, as if time had passed.
fn make_older(stage: &Stage, by: SignedDuration) {
    let maps = Api::<ConfigMap>::namespaced(stage.client(), "shop");
    let ledgers = ListParams::default().labels("jobwright.io/ledger=1");
    let mut ledger = stage.block_on(maps.list(&ledgers)).unwrap().items.remove(0);
    let data = ledger.data.as_mut().unwrap();
    let mut runs: serde_json::Value = serde_json::from_str(&data["runs"]).unwrap();
    for run in runs.as_array_mut().unwrap() {
        let finished: Timestamp = run["finishedAt"].as_str().unwrap().parse().unwrap();
        run["finishedAt"] = finished.checked_sub(by).unwrap().to_string().into();
    }
    data.insert("runs".to_owned(), runs.to_string());
    stage.block_on(maps.replace(&ledger.name_any(), &PostParams::default(), &ledger)).unwrap();
}

/// A release with a component and a job after it, with a run policy; its line holds a version.
fn release(stage: &Stage, version: &str, policy: &str) {
    let line = format!("echo backfill {version}");
    let more = format!("component: agent, phase: post, run: {policy}, keep: {{finished: 60s}}");
    let job = job("backfill", &line, &more);
    stage.plan("1.4.0", &format!("components:\n- {{name: agent, manifests: {{path: agent}}}}\njobs:\n{job}"));
    component(stage, "agent", version);
}

fn deploy(stage: &Stage, arguments: &str) -> String {
    let report = stage.jobwright(&format!("deploy -o json {arguments}")).expect(0).json();
    report["jobs"][0]["outcome"].as_str().unwrap().to_owned()
}

#[test]
fn a_changed_version_or_image_runs_it() {
    for policy in ["OnChange", "OnChangeOrExpired", "Always"] {
        let stage = Stage::new("");
        release(&stage, "1", policy);
        assert_eq!(deploy(&stage, ""), "succeeded", "{policy}");
        release(&stage, "2", policy);
        assert_eq!(deploy(&stage, ""), "succeeded", "{policy}");
        assert_eq!((stage.starts("echo backfill 1"), stage.starts("echo backfill 2")), (1, 1), "{policy}");
    }
}

#[test]
fn a_forced_deploy_runs_it_again() {
    for policy in ["OnChange", "OnChangeOrExpired", "Always"] {
        let stage = Stage::new("");
        release(&stage, "1", policy);
        deploy(&stage, "");
        assert_eq!(deploy(&stage, "--redeploy --force"), "succeeded", "{policy}");
        assert_eq!(stage.starts("echo backfill 1"), 2, "{policy}");
    }
}

#[test]
fn applied_again_with_nothing_changed_it_depends_on_the_policy() {
    for (policy, at_once, later) in [("OnChange", 1, 1), ("OnChangeOrExpired", 1, 2), ("Always", 2, 3)] {
        let stage = Stage::new("");
        release(&stage, "1", policy);
        deploy(&stage, "");
        deploy(&stage, "--redeploy");
        assert_eq!(stage.starts("echo backfill 1"), at_once, "{policy}, at once");
        let hour = SignedDuration::from_hours(1);
        make_older(&stage, hour);
        deploy(&stage, "--redeploy");
        assert_eq!(stage.starts("echo backfill 1"), later, "{policy}, when the kept time has passed");
    }
}
