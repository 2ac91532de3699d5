//! `--mark` and `--if-forced` as they are typed: a forced deploy issues a new certificate, and runs a backfill again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::backfill::collector::{Collector, Deed};
use crate::backfill::play::{line, stage};
use crate::deploy::stage::Stage;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

fn manifest(identity: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop-mark"}, "data": {"identity": identity}})
}

/// As `helm upgrade` writes it.
fn deploy(stage: &Stage, identity: &str) {
    let maps = Api::<ConfigMap>::namespaced(stage.client(), "default");
    let helm = PatchParams::apply("helm").force();
    stage.block_on(maps.patch("shop-mark", &helm, &Patch::Apply(manifest(identity)))).unwrap();
}

/// As `helm upgrade --force` writes it.
fn force(stage: &Stage, identity: &str) {
    let maps = Api::<ConfigMap>::namespaced(stage.client(), "default");
    let whole = serde_json::from_value(manifest(identity)).unwrap();
    stage.block_on(maps.replace("shop-mark", &PostParams::default(), &whole)).unwrap();
}

#[test]
fn a_forced_deploy_issues_a_new_certificate_once() {
    let stage = stage();
    let usual = "init-cert --service hook --secret hook-tls --settle 1s --timeout 30s --mark configmap:shop-mark";
    deploy(&stage, "1.a");
    let first = stage.jobwright(usual).expect(0);
    assert!(first.out.starts_with("created: "), "{}", first.out);
    for identity in ["2.a", "3.b"] {
        deploy(&stage, identity);
        let said = stage.jobwright(&format!("{usual} --if-forced")).expect(0);
        assert_eq!(said.out.trim(), "kept: no deploy was forced");
        assert!(stage.jobwright(usual).expect(0).out.starts_with("kept: valid until"));
    }
    force(&stage, "4.b");
    let checked = stage.jobwright(&format!("{usual} --check")).expect(1);
    assert!(checked.out.starts_with("would be renewed: a deploy was forced"), "{}", checked.out);
    let forced = stage.jobwright(&format!("{usual} --if-forced")).expect(0);
    assert!(forced.out.starts_with("renewed: a deploy was forced"), "{}", forced.out);
    assert!(stage.jobwright(usual).expect(0).out.starts_with("kept: valid until"));
}

#[test]
fn a_forced_deploy_runs_a_backfill_again_once() {
    let stage = stage();
    let collector = Collector::start(|_| Deed::Take);
    let run = |more: &str| {
        let before = collector.ids().len();
        let marks = "--checkpoint configmap:progress --unless-complete k --mark configmap:shop-mark";
        let summary = stage.jobwright(&line(&collector, &format!("{marks} {more}"))).expect(0).json();
        (summary, collector.ids().len() - before)
    };
    deploy(&stage, "1.a");
    assert_eq!(run("--if-forced").0["skipped"], "no deploy was forced");
    assert!(run("").1 > 7);
    deploy(&stage, "2.a");
    let (kept, sent) = run("");
    assert_eq!((&kept["kept"]["key"], sent), (&json!("k"), 0), "{kept}");
    force(&stage, "3.a");
    // Both Jobs of a release may see it; one of them runs.
    assert!(run("--if-forced").1 > 7);
    assert_eq!((run("").1, run("--if-forced").1), (0, 0));
}

#[test]
fn what_a_mark_needs_is_told_and_its_role_is_printed() {
    let stage = stage();
    let backfill = "backfill --sink stdout --kinds cm";
    let certificate = "init-cert --service hook --secret hook-tls";
    for (typed, told) in [
        (format!("{backfill} --checkpoint configmap:p --mark configmap:m"), "--unless-complete"),
        (format!("{backfill} --checkpoint configmap:p --unless-complete k --if-forced"), "--mark"),
        (format!("{backfill} --checkpoint file:p --unless-complete k --mark configmap:m"), "configmap:NAME"),
        (format!("{certificate} --mark m"), "invalid mark `m`: expected configmap:NAME"),
    ] {
        let said = stage.jobwright(&typed).expect(2);
        assert!(said.error.contains(told), "{typed}: {}", said.error);
    }
    let role = "resources: [configmaps]\n  resourceNames: [m]\n  verbs: [get, patch]\n";
    for typed in [
        format!("{certificate} --mark configmap:m --print-rbac"),
        format!("{backfill} --checkpoint configmap:p --unless-complete k --mark configmap:m --print-rbac"),
    ] {
        let printed = stage.jobwright(&typed).expect(0).out;
        assert!(printed.contains(role), "{typed}:\n{printed}");
    }
    let refused = stage.jobwright(&format!("{certificate} --mark configmap:map-000 --timeout 5s")).expect(1);
    assert!(refused.error.contains("cannot mark ConfigMap `map-000`: its data has no `identity`"), "{}", refused.error);
}
