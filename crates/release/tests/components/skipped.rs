//! Jobs that a deploy skips on request: a later deploy runs them, whatever happens in between.

use crate::stage::{Stage, Wish, component, map};
use jobwright_drydock::{Faults, When};
use jobwright_engine::{Events, JobOutcome, Report};
use std::collections::BTreeSet;

const JOB: &str = "jobs:\n- {id: adopt, component: api, phase: pre, retires: {never: test}, adopt: {release: shop, objects: [{apiVersion: v1, kind: ConfigMap, name: legacy}]}}\n";

async fn prepare() -> (Stage, String) {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[map("api", "1")]);
    stage.manifests("web.yaml", &[map("web", "1")]);
    let legacy = serde_json::from_value(map("legacy", "1")).unwrap();
    stage.api("v1", "ConfigMap").create(&kube::api::PostParams::default(), &legacy).await.unwrap();
    let plan = format!("components:\n{}{}", component("api", "api.yaml"), component("web", "web.yaml"));
    (stage, plan)
}

/// Deploys without the job; none if the process is killed.
async fn deploy_without(stage: &Stage, plan: &str) -> Option<Report> {
    let file = stage.parse(&Wish::default(), plan);
    let mut deployment = stage.deployment(&file, &Wish::default());
    deployment.settings.parallel = 1;
    deployment.settings.skip = BTreeSet::from(["adopt".to_owned()]);
    tokio::select! {
        report = deployment.deploy(stage.cancellation.clone(), Events::nowhere()) => Some(report.unwrap()),
        () = stage.faults.stopped() => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_deploy_that_is_killed_after_the_component_of_a_skipped_job_still_owes_the_job() {
    let (stage, components) = prepare().await;
    deploy_without(&stage, &format!("{components}{JOB}")).await.unwrap();
    let calls = stage.faults.calls().len();
    let mut owed = 0;
    for call in 1..=calls {
        let (mut stage, components) = prepare().await;
        let plan = format!("{components}{JOB}");
        stage.faults.stop_at(call, When::Before);
        if deploy_without(&stage, &plan).await.is_some() {
            continue;
        }
        owed += usize::from(stage.record(&Wish::default()).await.owed.contains_key("adopt"));
        stage.faults = Faults::new(0);
        let report = stage.deploy(&Wish::default(), &plan).await;
        assert_eq!(report.jobs[0].outcome, JobOutcome::Succeeded, "killed at call {call} of {calls}: {report:#?}");
        assert!(stage.record(&Wish::default()).await.owed.is_empty());
    }
    assert!(owed > 0, "it was never killed after the first component");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_skipped_at_the_install_and_runs_on_upgrades_now_runs_on_the_next_upgrade() {
    let (stage, components) = prepare().await;
    deploy_without(&stage, &format!("{components}{JOB}")).await.unwrap();
    let plan = format!("{components}{}", JOB.replace("phase: pre", "phase: pre, on: [upgrade]"));
    stage.manifests("api.yaml", &[map("api", "2")]);
    let report = stage.deploy(&Wish::default(), &plan).await;
    assert_eq!(report.jobs[0].outcome, JobOutcome::Succeeded, "{report:#?}");
}
