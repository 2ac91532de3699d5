//! Components that are charts, deployed by a helm that records its calls.

use crate::helm;
use crate::stage::{Stage, Wish, results};
use jobwright_engine::{Action, DeployOutcome, Events, JobOutcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const CHART: &str = "components:\n- {name: api, chart: {path: chart}}\n";

fn write_chart(stage: &Stage) {
    stage.write("chart/Chart.yaml", "apiVersion: v2\nname: api\nversion: 1.0.0\n");
}

/// Waits until a file is there.
async fn wait_for(path: &std::path::Path) {
    for _ in 0..1500 {
        if path.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} does not appear", path.display());
}

#[tokio::test]
async fn a_pending_release_that_another_client_starts_during_pre_jobs_is_kept() {
    let mut stage = Stage::new().await;
    write_chart(&stage);
    let calls = helm::play(&mut stage, || "1.0.0");
    let plan = format!(
        "{CHART}jobs:\n- {{id: wait, component: api, phase: pre, retires: {{never: test}}, command: {{program: sh, args: [-c, 'touch started; while [ ! -e go ]; do sleep 0.02; done']}}}}\n"
    );
    let client = stage.client();
    let (started, go) = (stage.path("started"), stage.path("go"));
    let other = async {
        wait_for(&started).await;
        helm::create_revision(&client, "api", 1, "pending-install").await;
        std::fs::write(go, "").unwrap();
    };
    let wish = Wish::default();
    let (report, ()) = tokio::join!(stage.deploy(&wish, &plan), other);
    assert_eq!(report.outcome, DeployOutcome::Failed, "{report:#?}");
    assert_eq!(helm::revisions(&stage.client(), "api").await, [1]);
    assert_eq!(calls.upgrades(), Vec::<Vec<String>>::new());
    let reason = &results(&report)[0].2;
    assert!(reason.contains("pending-install") && reason.contains("--unlock"), "{reason}");
}

#[tokio::test]
async fn a_chart_reference_without_version_is_upgraded_when_its_repository_has_a_newer_one() {
    let mut stage = Stage::new().await;
    let newer = Arc::new(AtomicBool::new(false));
    let seen = newer.clone();
    let calls = helm::play(&mut stage, move || if seen.load(Ordering::Relaxed) { "1.1.0" } else { "1.0.0" });
    let plan = "components:\n- {name: api, chart: {ref: 'oci://registry.example/api'}}\n";
    let deploy = || async { stage.succeed(&Wish::default(), plan).await[0].clone() };
    assert_eq!(deploy().await.1, Action::Installed);
    let (_, action, reason) = deploy().await;
    assert_eq!(action, Action::Unchanged, "{reason}");
    newer.store(true, Ordering::Relaxed);
    let (_, action, reason) = deploy().await;
    assert_eq!(action, Action::Upgraded, "{reason}");
    let versions: Vec<String> = calls
        .upgrades()
        .iter()
        .map(|words| words.iter().skip_while(|word| *word != "--version").nth(1).cloned().unwrap_or_default())
        .collect();
    assert_eq!(versions, ["1.0.0", "1.1.0"]);
}

#[tokio::test]
async fn a_job_of_a_chart_plan_runs_without_helm() {
    let stage = Stage::new().await;
    write_chart(&stage);
    let plan = format!(
        "{CHART}jobs:\n- {{id: hello, component: api, phase: post, retires: {{never: test}}, command: {{program: 'true'}}}}\n"
    );
    let file = stage.parse(&Wish::default(), &plan);
    let deployment = stage.deployment(&file, &Wish::default());
    let report = deployment.run_job("hello", CancellationToken::new(), Events::nowhere()).await.unwrap();
    assert_eq!(report.jobs[0].outcome, JobOutcome::Succeeded, "{report:#?}");
    let preview = stage.preview(&Wish::default(), &plan).await;
    let reason = preview.components[0].1.clone().unwrap_err();
    assert!(reason.contains("helm"), "{reason}");
}

#[tokio::test]
async fn unlock_takes_over_what_was_pending_at_the_beginning_and_nothing_else() {
    let mut stage = Stage::new().await;
    write_chart(&stage);
    let calls = helm::play(&mut stage, || "1.0.0");
    helm::create_revision(&stage.client(), "api", 1, "pending-install").await;
    let refused = stage.preview(&Wish::default(), CHART).await.components[0].1.clone().unwrap_err();
    assert!(refused.contains("--unlock"), "{refused}");
    let wish = Wish { unlock: true, ..Wish::default() };
    stage.succeed(&wish, CHART).await;
    assert_eq!(helm::revisions(&stage.client(), "api").await, [1]);
    assert_eq!(calls.upgrades().len(), 1);

    // Another client begins while pre-jobs run.
    let plan = format!(
        "{CHART}jobs:\n- {{id: wait, component: api, phase: pre, retires: {{never: test}}, command: {{program: sh, args: [-c, 'touch started; while [ ! -e go ]; do sleep 0.02; done']}}}}\n"
    );
    let client = stage.client();
    let (started, go) = (stage.path("started"), stage.path("go"));
    let other = async {
        wait_for(&started).await;
        helm::create_revision(&client, "api", 2, "pending-upgrade").await;
        std::fs::write(go, "").unwrap();
    };
    let wish = Wish { version: "1.1.0", ..wish };
    let (report, ()) = tokio::join!(stage.deploy(&wish, &plan), other);
    assert_eq!(report.outcome, DeployOutcome::Failed, "{report:#?}");
    assert_eq!(helm::revisions(&stage.client(), "api").await, [1, 2]);
}

#[tokio::test]
async fn a_release_that_our_own_helm_left_pending_is_recovered() {
    let mut stage = Stage::new().await;
    write_chart(&stage);
    // Killed by the system, for example: nothing is recorded as failed.
    helm::install(&mut stage, "#!/bin/sh\necho \"$*\" > DIRECTORY/called\nkill -9 $$\n");
    let reason = stage.fail(&Wish::default(), CHART).await;
    assert!(reason.contains("signal: 9"), "{reason}");
    let called = std::fs::read_to_string(stage.path("called")).unwrap();
    let label = helm::label_of(&called.split_whitespace().collect::<Vec<_>>());
    helm::create_labelled(&stage.client(), "api", 1, "pending-install", label).await;
    let calls = helm::play(&mut stage, || "1.0.0");
    // From another host it may still run.
    let elsewhere = stage.preview(&Wish { host: "other", ..Wish::default() }, CHART).await;
    assert!(elsewhere.components[0].1.clone().unwrap_err().contains("host `test`"), "{elsewhere:?}");
    stage.succeed(&Wish::default(), CHART).await;
    assert_eq!(calls.upgrades().len(), 1);
    assert_eq!(helm::revisions(&stage.client(), "api").await, [1]);
}

#[tokio::test]
async fn a_release_that_another_client_left_pending_after_our_helm_was_killed_is_kept() {
    let mut stage = Stage::new().await;
    write_chart(&stage);
    helm::install(&mut stage, "#!/bin/sh\nkill -9 $$\n");
    stage.fail(&Wish::default(), CHART).await;
    // The next revision, while ours could still be running: only its label tells.
    helm::create_revision(&stage.client(), "api", 1, "pending-install").await;
    let calls = helm::play(&mut stage, || "1.0.0");
    let reason = stage.fail(&Wish::default(), CHART).await;
    assert!(reason.contains("another client"), "{reason}");
    assert_eq!(helm::revisions(&stage.client(), "api").await, [1]);
    assert_eq!(calls.upgrades(), Vec::<Vec<String>>::new());
}

#[tokio::test]
async fn a_helm_of_an_earlier_deploy_is_waited_for_before_it_has_created_a_revision() {
    let mut stage = Stage::new().await;
    write_chart(&stage);
    helm::install(&mut stage, "#!/bin/sh\nkill -9 $$\n");
    stage.fail(&Wish::default(), CHART).await;
    let words = ["-c", "sleep 1; true", "helm", "upgrade", "--install", "api", "--namespace", "shop"];
    let mut earlier = std::process::Command::new("sh").args(words).spawn().unwrap();
    let calls = helm::play(&mut stage, || "1.0.0");
    stage.succeed(&Wish::default(), CHART).await;
    assert_eq!(calls.upgrades().len(), 1);
    assert!(earlier.try_wait().unwrap().is_some(), "two helms ran at the same time");
}

#[tokio::test]
async fn a_release_that_is_pending_after_our_helm_ended_is_another_clients() {
    let mut stage = Stage::new().await;
    write_chart(&stage);
    helm::install(&mut stage, "#!/bin/sh\necho 'Error: no such template' >&2\nexit 1\n");
    let reason = stage.fail(&Wish::default(), CHART).await;
    assert!(reason.contains("helm: no such template"), "{reason}");
    helm::create_revision(&stage.client(), "api", 1, "pending-install").await;
    let refused = stage.preview(&Wish::default(), CHART).await.components[0].1.clone().unwrap_err();
    assert!(refused.contains("another client"), "{refused}");
}

#[tokio::test]
async fn a_hung_helm_is_ended_after_its_time_limit() {
    let mut stage = Stage::new().await;
    write_chart(&stage);
    helm::install(&mut stage, "#!/bin/sh\necho $$ > DIRECTORY/pid\nwhile true; do sleep 1; done\n");
    let plan = "components:\n- {name: api, chart: {path: chart}, helm: {timeout: 2m}}\n";
    let pid = stage.path("pid");
    let pass = async {
        wait_for(&pid).await;
        // Three minutes pass in no time, and every timer is heard.
        tokio::time::pause();
        tokio::time::sleep(Duration::from_secs(181)).await;
        tokio::time::resume();
    };
    let wish = Wish::default();
    let ended = async { tokio::join!(stage.fail(&wish, plan), pass) };
    let (reason, ()) = tokio::time::timeout(Duration::from_mins(5), ended).await.unwrap();
    assert!(reason.contains("helm has not ended within 180s and was ended: signal: 15"), "{reason}");
}

#[tokio::test]
async fn helm_and_what_it_started_die_with_the_deploy() {
    let mut stage = Stage::new().await;
    write_chart(&stage);
    helm::install(
        &mut stage,
        "#!/bin/sh\ntrap '' TERM\nsh -c 'trap \"\" TERM; echo $$ > DIRECTORY/child; while true; do sleep 1; done' &\necho $$ > DIRECTORY/parent\nwait\n",
    );
    let (parent, child) = (stage.path("parent"), stage.path("child"));
    let both = async {
        wait_for(&parent).await;
        wait_for(&child).await;
    };
    let wish = Wish::default();
    tokio::select! {
        _ = stage.deploy(&wish, CHART) => panic!("helm has ended"),
        () = both => {}
    }
    for file in [parent, child] {
        let mut pid = String::new();
        while pid.is_empty() {
            pid = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        }
        let is_gone = || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            status.is_empty() || status.contains(") Z ")
        };
        for _ in 0..500 {
            if is_gone() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(is_gone(), "process {pid} of {} still runs", file.display());
    }
}

#[tokio::test]
async fn a_long_line_of_helm_is_cut() {
    let mut stage = Stage::new().await;
    write_chart(&stage);
    helm::install(&mut stage, "#!/bin/sh\nhead -c 20000000 /dev/zero | tr '\\0' x\necho\necho end\n");
    let (_, lines) = stage.deploy_loud(&Wish::default(), CHART).await;
    let longest = lines.iter().map(String::len).max().unwrap();
    assert!(longest < 10_000 && lines.iter().any(|line| line == "end"), "{longest} of {} lines", lines.len());
}

#[tokio::test]
async fn what_helm_leaves_running_with_its_output_is_not_waited_for() {
    let mut stage = Stage::new().await;
    write_chart(&stage);
    helm::install(&mut stage, "#!/bin/sh\n(sleep 20 &)\necho ended\nexit 0\n");
    let (report, lines) = stage.deploy_loud(&Wish::default(), CHART).await;
    assert_eq!(report.outcome, DeployOutcome::Succeeded, "{report:#?}");
    assert!(lines.iter().any(|line| line == "ended"), "{lines:?}");
}

#[tokio::test]
async fn a_component_that_changes_from_manifests_to_a_chart_forgets_nothing() {
    let mut stage = Stage::new().await;
    write_chart(&stage);
    helm::play(&mut stage, || "1.0.0");
    stage.manifests("api.yaml", &[crate::stage::map("own", "1")]);
    let manifests = "components:\n- {name: api, manifests: {path: api.yaml}}\n";
    stage.succeed(&Wish::default(), manifests).await;
    stage.succeed(&Wish::default(), CHART).await;
    let deployed = stage.record(&Wish::default()).await.components["api"].clone();
    assert_eq!((deployed.objects.len(), deployed.helm_release.as_deref()), (1, Some("api")));
    stage.manifests("api.yaml", &[crate::stage::map("other", "1")]);
    stage.succeed(&Wish::default(), manifests).await;
    assert_eq!(stage.maps().await, ["other"]);
    assert_eq!(stage.record(&Wish::default()).await.components["api"].helm_release.as_deref(), Some("api"));
}
