//! The engine on a real cluster: what becomes of pod jobs, counted by what the cluster has started.

use crate::Test;
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::live::{Deploys, Need, Stage};
use serde_json::Value;
use std::time::Duration;

const CONTAINERS: &[Need] = &[Need::Containers];

pub(crate) const TESTS: &[Test] = &[
    Test { name: "jobs_succeed_fail_and_are_tried_again_and_leave_proof", needs: CONTAINERS, play: outcomes },
    Test { name: "a_run_in_the_way_is_waited_for", needs: CONTAINERS, play: |stage| supersede(stage, "Wait") },
    Test { name: "a_run_in_the_way_is_replaced", needs: CONTAINERS, play: |stage| supersede(stage, "Replace") },
    Test { name: "a_run_in_the_way_is_an_error_if_wanted", needs: CONTAINERS, play: |stage| supersede(stage, "Fail") },
    Test { name: "an_image_that_cannot_be_pulled_fails_early", needs: CONTAINERS, play: bad_image },
    Test { name: "a_runner_killed_at_ten_points_runs_everything_once", needs: CONTAINERS, play: killed },
];

const LIMIT: Duration = Duration::from_mins(2);

/// A job of a plan that is a pod with a shell line.
pub(crate) fn job(image: &str, id: &str, line: &str, more: &str) -> String {
    format!(
        "- {{id: {id}, retires: {{never: test}}, {more}, pod: {{template: {{spec: {{terminationGracePeriodSeconds: 1, \
         containers: [{{name: m, image: '{image}', command: [sh, -c, '{line}']}}]}}}}}}}}\n"
    )
}

/// What became of each job of a report.
fn outcomes_of(report: &Value) -> Vec<String> {
    let jobs = report["jobs"].as_array().into_iter().flatten();
    jobs.map(|job| format!("{} {}", job["id"].as_str().unwrap_or("?"), job["outcome"].as_str().unwrap_or("?")))
        .collect()
}

fn outcomes(stage: &Stage<'_>) -> Result<()> {
    let deploys = Deploys::new(stage, "outcomes")?;
    let jobs = [
        job(stage.image(), "good", "echo well done", "phase: pre, run: OnChange"),
        job(stage.image(), "bad", "echo no such table; exit 3", "phase: pre, run: OnChange, onFailure: Continue"),
        job(
            stage.image(),
            "flaky",
            "echo try $JOBWRIGHT_ATTEMPT; test $JOBWRIGHT_ATTEMPT = 2",
            "phase: pre, run: OnChange, retries: {limit: 2, backoff: 1s}",
        ),
    ];
    deploys.plan("r", "1.0.0", &format!("jobs:\n{}", jobs.concat()))?;
    let report = deploys.run(&["deploy", "-o", "json"])?.json()?;
    let seen = outcomes_of(&report);
    ensure!(seen == ["good succeeded", "bad failed", "flaky succeeded"], "{report}");
    stage.kubectl(&["delete", "jobs", "--all", "--wait"])?;
    for (id, attempt, log) in
        [("good", "1", "well done"), ("bad", "1", "no such table"), ("flaky", "1", "try 1"), ("flaky", "2", "try 2")]
    {
        let said = deploys.expect(0, &["logs", id, "--attempt", attempt])?;
        ensure!(said.stdout.trim() == log, "{id} {attempt}: {}", said.stdout);
    }
    let history = deploys.expect(0, &["history", "bad", "-o", "json"])?.json()?;
    ensure!(history["runs"][0]["exitCode"] == 3, "{history}");
    // The Jobs are gone, and what has succeeded does not run again.
    deploys.run(&["deploy", "-q"])?;
    for (job, runs) in [("r-good-", 1), ("r-bad-", 2), ("r-flaky-", 2)] {
        let seen = stage.runs_like(job)?;
        ensure!(seen == runs, "{job} has run {seen} times instead of {runs}");
    }
    Ok(())
}

fn supersede(stage: &Stage<'_>, policy: &str) -> Result<()> {
    let deploys = Deploys::new(stage, "supersede")?;
    let more = format!("phase: post, run: OnChange, onSupersede: {policy}");
    deploys.plan("r", "1.0.0", &format!("jobs:\n{}", job(stage.image(), "backfill", "echo old; sleep 15", &more)))?;
    let mut first = deploys.start(&["deploy"])?;
    stage.until("the first run to start", LIMIT, || Ok((stage.runs_like("r-backfill-")? == 1).then_some(())))?;
    let id = rustix::process::Pid::from_child(&first);
    rustix::process::kill_process(id, rustix::process::Signal::INT)?;
    ensure!(first.wait()?.code() == Some(130), "a cancelled deploy exits with 130");
    let said = deploys.run(&["deploy", "--force", "-o", "json"])?;
    let report = said.json()?;
    let history = deploys.expect(0, &["history", "-o", "json"])?.json()?;
    let runs: Vec<&str> =
        history["runs"].as_array().into_iter().flatten().filter_map(|run| run["outcome"].as_str()).collect();
    let started = stage.runs_like("r-backfill-")?;
    match policy {
        "Wait" => ensure!(said.code == 0 && runs == ["Succeeded", "Succeeded"] && started == 2, "{report}\n{history}"),
        "Replace" => {
            ensure!(said.code == 0 && runs == ["Succeeded", "Superseded"] && started == 2, "{report}\n{history}");
        }
        _ => {
            let reason = report["jobs"][0]["reason"].as_str().context("a reason")?;
            ensure!(said.code == 1 && reason.contains("onSupersede") && started == 1, "{report}");
        }
    }
    Ok(())
}

fn bad_image(stage: &Stage<'_>) -> Result<()> {
    let deploys = Deploys::new(stage, "image")?;
    let job = job("nowhere.invalid/nothing:1", "pull", "true", "phase: pre, timeout: 10m");
    deploys.plan("r", "1.0.0", &format!("jobs:\n{job}"))?;
    let report = deploys.expect(1, &["deploy", "-o", "json"])?.json()?;
    let reason = report["jobs"][0]["reason"].as_str().context("a reason")?;
    ensure!(reason.contains("nowhere.invalid/nothing:1"), "{reason}");
    ensure!(report["jobs"][0]["seconds"].as_f64().is_some_and(|seconds| seconds < 300.0), "{report}");
    Ok(())
}

/// What a deploy has come to: the point at which it is killed.
#[derive(Clone, Copy, Debug)]
enum Point {
    Started,
    Lease,
    Ledger,
    Job,
    Released,
    Pod,
    Running,
    Ended,
    Recorded,
    Told,
}

fn killed(stage: &Stage<'_>) -> Result<()> {
    let points = [
        Point::Started,
        Point::Lease,
        Point::Ledger,
        Point::Job,
        Point::Released,
        Point::Pod,
        Point::Running,
        Point::Ended,
        Point::Recorded,
        Point::Told,
    ];
    // A few at a time: looking at the cluster is work for it too.
    for some in points.chunks(3) {
        std::thread::scope(|scope| {
            let plays: Vec<_> = some.iter().map(|point| (point, scope.spawn(|| kill_at(stage, *point)))).collect();
            for (point, play) in plays {
                let played = play.join().unwrap_or_else(|_| Err(anyhow::anyhow!("it panicked")));
                played.with_context(|| format!("killed at {point:?}"))?;
            }
            anyhow::Ok(())
        })?;
    }
    Ok(())
}

fn kill_at(stage: &Stage<'_>, point: Point) -> Result<()> {
    let release = format!("{point:?}").to_lowercase();
    let deploys = Deploys::new(stage, &release)?;
    let job = job(stage.image(), "once", "echo once; sleep 3", "phase: pre, run: OnChange");
    deploys.plan(&release, "1.0.0", &format!("jobs:\n{job}"))?;
    let mut first = deploys.start(&["deploy", "-q"])?;
    // It may be over before it is seen: then it is killed there.
    let start = std::time::Instant::now();
    while first.try_wait()?.is_none()
        && start.elapsed() < LIMIT
        && !has_come_to(stage, &release, point).unwrap_or_default()
    {
        std::thread::sleep(Duration::from_millis(100));
    }
    first.kill()?;
    first.wait()?;
    let report = deploys.expect(0, &["deploy", "-o", "json"])?.json()?;
    ensure!(report["outcome"] == "succeeded", "{report}");
    let runs = stage.runs_like(&format!("{release}-once-"))?;
    ensure!(runs == 1, "it has run {runs} times\n{report}");
    Ok(())
}

fn has_come_to(stage: &Stage<'_>, release: &str, point: Point) -> Result<bool> {
    let label = format!("jobwright.io/release={release}");
    let first = |kind: &str| -> Result<Option<Value>> {
        let text = stage.kubectl(&["get", kind, "--selector", &label, "--output=json"])?;
        let list: Value = serde_json::from_str(&text)?;
        Ok(list["items"].as_array().and_then(|items| items.first().cloned()))
    };
    let ledger = || -> Result<Option<Value>> {
        let text = stage.kubectl(&[
            "get",
            "configmaps",
            "--selector",
            &format!("{label},jobwright.io/ledger"),
            "--output=json",
        ])?;
        let list: Value = serde_json::from_str(&text)?;
        Ok(list["items"].as_array().and_then(|items| items.first().cloned()))
    };
    Ok(match point {
        Point::Started => true,
        Point::Lease => first("leases")?.is_some(),
        Point::Ledger => ledger()?.is_some(),
        Point::Job => first("jobs")?.is_some(),
        Point::Released => first("jobs")?.is_some_and(|job| job["spec"]["suspend"] != true),
        Point::Pod => first("pods")?.is_some(),
        Point::Running => first("pods")?.is_some_and(|pod| pod["status"]["phase"] == "Running"),
        Point::Ended => first("pods")?.is_some_and(|pod| pod["status"]["phase"] == "Succeeded"),
        Point::Recorded => {
            ledger()?.is_some_and(|map| map["data"]["done"].as_str().is_some_and(|done| done.contains("Succeeded")))
        }
        Point::Told => first("jobs")?.is_some_and(|job| job["spec"]["ttlSecondsAfterFinished"].is_number()),
    })
}
