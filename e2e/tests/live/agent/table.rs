//! The upgrade tables of such charts: every row, with every Helm, as hooks and as plain Jobs. What was seen is written to
//! the file that `JOBWRIGHT_UPGRADES` names; `cargo xtask generate` makes the page of it.

use super::{Agent, CHART, HELM_3, HELM_4, Mode, SOON};
use crate::Test;
use anyhow::{Context as _, Result, bail, ensure};
use jobwright_e2e::image::build::JOBWRIGHT;
use jobwright_e2e::live::Stage;
use jobwright_e2e::results;
use jobwright_e2e::version::HelmVersion::{self, V3_17_3, V3_22_0, V4_3_1};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

macro_rules! tables {
    ($($name:literal: $needs:ident, $document:ident, $mode:ident, $helm:ident;)*) => {
        &[$(Test { name: $name, needs: $needs, play: |stage| play(stage, Document::$document, Mode::$mode, $helm) }),*]
    };
}

pub(crate) const TESTS: &[Test] = tables![
    "upgrade_table_first_hook_3_17_3": HELM_3, First, Hook, V3_17_3;
    "upgrade_table_first_plain_3_17_3": HELM_3, First, Plain, V3_17_3;
    "upgrade_table_first_hook_3_22_0": HELM_3, First, Hook, V3_22_0;
    "upgrade_table_first_plain_3_22_0": HELM_3, First, Plain, V3_22_0;
    "upgrade_table_first_hook_4_3_1": HELM_4, First, Hook, V4_3_1;
    "upgrade_table_first_plain_4_3_1": HELM_4, First, Plain, V4_3_1;
    "upgrade_table_second_hook_3_17_3": HELM_3, Second, Hook, V3_17_3;
    "upgrade_table_second_plain_3_17_3": HELM_3, Second, Plain, V3_17_3;
    "upgrade_table_second_hook_3_22_0": HELM_3, Second, Hook, V3_22_0;
    "upgrade_table_second_plain_3_22_0": HELM_3, Second, Plain, V3_22_0;
    "upgrade_table_second_hook_4_3_1": HELM_4, Second, Hook, V4_3_1;
    "upgrade_table_second_plain_4_3_1": HELM_4, Second, Plain, V4_3_1;
];

/// Which table is played. In the first, an upgrade without a change runs no backfill; in the second, it does once the Job
/// has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Document {
    First,
    Second,
}

impl Document {
    fn values(self) -> &'static str {
        match self {
            Self::First => "initBackfillJob.run=OnChange,initCertJob.run=Always",
            Self::Second => "initBackfillJob.run=OnChangeOrExpired,initCertJob.run=OnChangeOrExpired",
        }
    }
}

const RUNS: &str = "runs";
/// Something has to see that nothing was forced: the hook, or the Job of the revision.
const NOT: &str = "does not run: its Job ends immediately";
const KEEPS: &str = "runs, keeps the certificate";
/// A forced upgrade has removed the bundle.
const RESTORES: &str = "puts back the `caBundle`, keeps the certificate";
const RENEWS: &str = "runs, issues a new certificate";

/// What is done, and what the two jobs are expected to do then.
struct Row {
    scenario: &'static str,
    deploy: fn(&Play<'_>) -> Result<()>,
    backfill: fn(Document, Mode) -> &'static str,
    init_cert: fn(Document, Mode) -> &'static str,
}

const ROWS: &[Row] = &[
    Row {
        scenario: "Install",
        deploy: |play| play.upgrade(CHART, ""),
        backfill: |_, _| RUNS,
        init_cert: |_, _| RENEWS,
    },
    Row {
        scenario: "**Standard version upgrade**",
        deploy: |play| play.upgrade(&play.next_version()?, ""),
        backfill: |_, _| RUNS,
        init_cert: |_, _| KEEPS,
    },
    Row {
        scenario: "Another image",
        deploy: |play| play.upgrade(&play.next_version()?, &next_image()),
        backfill: |_, _| RUNS,
        init_cert: |_, _| KEEPS,
    },
    Row {
        scenario: "**Forced upgrade** (`--force`)",
        deploy: |play| play.force(&play.next_version()?, &next_image()),
        backfill: |_, _| RUNS,
        init_cert: |_, _| RENEWS,
    },
    Row {
        scenario: "**Upgrade without chart version change**",
        deploy: |play| play.upgrade(&play.next_version()?, &next_image()),
        backfill: |_, _| NOT,
        init_cert: init_cert_left_alone,
    },
    Row {
        scenario: "Upgrade without chart version change, the Jobs have expired",
        deploy: |play| {
            play.until_expired()?;
            play.upgrade(&play.next_version()?, &next_image())
        },
        backfill: |document, _| match document {
            Document::First => NOT,
            Document::Second => RUNS,
        },
        init_cert: |_, _| KEEPS,
    },
    Row {
        scenario: "Forced upgrade with another image",
        deploy: |play| play.force(&play.next_version()?, ""),
        backfill: |_, _| RUNS,
        init_cert: |_, _| RENEWS,
    },
    Row {
        scenario: "Another value of `again`",
        deploy: |play| play.upgrade(&play.next_version()?, "again=1"),
        backfill: |_, _| RUNS,
        init_cert: |_, _| RENEWS,
    },
    Row {
        scenario: "Forced upgrade with `onForce: Keep`",
        deploy: |play| {
            // What is different then is a change, too.
            play.upgrade(&play.next_version()?, "again=1,onForce=Keep")?;
            play.begin()?;
            play.force(&play.next_version()?, "again=1,onForce=Keep")
        },
        backfill: |_, mode| match mode {
            Mode::Hook => NOT,
            Mode::Plain => "does not run",
        },
        init_cert: |document, mode| match (document, mode) {
            (Document::First, _) | (_, Mode::Hook) => KEEPS,
            (Document::Second, Mode::Plain) => RESTORES,
        },
    },
];

/// What init-cert does while its last Job exists and nothing has changed.
fn init_cert_left_alone(document: Document, mode: Mode) -> &'static str {
    match (document, mode) {
        (Document::First, _) | (_, Mode::Hook) => KEEPS,
        (Document::Second, Mode::Plain) => NOT,
    }
}

/// The other image of the jobs.
fn next_image() -> String {
    let next = JOBWRIGHT.next();
    let tag = next.rsplit_once(':').map_or("", |(_, tag)| tag);
    format!("initCertJob.image.tag={tag},initBackfillJob.image.tag={tag}")
}

struct Play<'a> {
    agent: Agent<'a>,
    document: Document,
    /// What there was before the upgrade that is judged.
    before: std::cell::RefCell<Before>,
}

/// How often each Job had run, and the certificate.
#[derive(Default)]
struct Before {
    runs: BTreeMap<String, usize>,
    all: BTreeMap<&'static str, usize>,
    certificate: Option<String>,
}

/// Both Jobs of a job: its own, and in mode `plain` the one for each revision.
fn starts(job: &'static str) -> [&'static str; 2] {
    match job {
        "backfill" => ["agent-backfill-", "agent-if-forced-backfill-"],
        _ => ["agent-init-cert-", "agent-if-forced-init-cert-"],
    }
}

impl Play<'_> {
    fn upgrade(&self, chart: &str, set: &str) -> Result<()> {
        self.agent.deploy(chart, &self.set(set), &["--wait", "--wait-for-jobs"])
    }

    fn force(&self, chart: &str, set: &str) -> Result<()> {
        self.agent.force(chart, &self.set(set), &["--wait", "--wait-for-jobs"])
    }

    fn set(&self, set: &str) -> String {
        let client = self.document.values();
        if set.is_empty() { client.to_owned() } else { format!("{client},{set}") }
    }

    /// The chart with another version.
    fn next_version(&self) -> Result<String> {
        let copy = self.agent.stage.directory().join("agent");
        if !copy.exists() {
            for (name, text) in crate::release_hooks::files(Path::new(CHART), "agent/")? {
                let text = if name == "agent/Chart.yaml" {
                    let next = text.replace("\nversion: 2.0.0", "\nversion: 2.0.1");
                    ensure!(next != text, "the chart has another version than the test knows");
                    next
                } else {
                    text
                };
                let file = self.agent.stage.directory().join(name);
                std::fs::create_dir_all(file.parent().context("it is in no directory")?)?;
                std::fs::write(file, text)?;
            }
        }
        Ok(copy.to_string_lossy().into_owned())
    }

    fn until_expired(&self) -> Result<()> {
        self.agent
            .stage
            .until("the Jobs to expire", SOON, || Ok(self.agent.stage.list("jobs")?.is_empty().then_some(())))?;
        Ok(())
    }

    /// What is seen from now on is judged.
    fn begin(&self) -> Result<()> {
        let mut before = Before { certificate: self.agent.certificate().ok(), ..Before::default() };
        for start in starts("backfill").into_iter().chain(starts("init-cert")) {
            before.all.insert(start, self.agent.stage.runs_like(start)?);
            for job in self.jobs(start)? {
                before.runs.insert(job.clone(), self.agent.stage.runs(&job)?);
            }
        }
        self.before.replace(before);
        Ok(())
    }

    fn jobs(&self, start: &str) -> Result<Vec<String>> {
        let jobs = self.agent.stage.list("jobs")?.into_iter();
        let names = jobs.filter_map(|job| job["metadata"]["name"].as_str().map(str::to_owned));
        Ok(names.filter(|name| name.starts_with(start)).collect())
    }

    /// How often Jobs that are called so have run since.
    fn runs_since(&self, start: &str) -> Result<usize> {
        let before = self.before.borrow().all.get(start).copied().unwrap_or_default();
        Ok(self.agent.stage.runs_like(start)? - before)
    }

    /// Which Jobs of the backfill have captured the cluster since: their lines are in their logs.
    fn captures(&self) -> Result<usize> {
        let mut captures = 0;
        let mut looked_at = 0;
        for start in starts("backfill") {
            for job in self.jobs(start)? {
                let runs = self.agent.stage.runs(&job)?;
                // A hook has the same name each time, and its runs add up.
                if runs == self.before.borrow().runs.get(&job).copied().unwrap_or_default() {
                    continue;
                }
                looked_at += 1;
                let log = self.agent.stage.kubectl(&["logs", &format!("job/{job}"), "--tail=-1"])?;
                captures += usize::from(log.lines().any(|line| line.starts_with("{\"apiVersion\"")));
            }
        }
        let [own, forced] = starts("backfill");
        let runs = self.runs_since(own)? + self.runs_since(forced)?;
        ensure!(
            looked_at == runs,
            "of {runs} Jobs of the backfill, {} have expired before they were read",
            runs - looked_at
        );
        Ok(captures)
    }

    fn saw_backfill(&self) -> Result<&'static str> {
        let [own, forced] = starts("backfill");
        match (self.captures()?, self.runs_since(own)? + self.runs_since(forced)?) {
            (1, _) => Ok(RUNS),
            (0, 0) => Ok("does not run"),
            (0, _) => Ok(NOT),
            (several, _) => bail!("the backfill ran {several} times"),
        }
    }

    /// Whether the Job for each revision has put the CA back into a bundle.
    fn has_restored(&self) -> Result<bool> {
        let [_, forced] = starts("init-cert");
        for job in self.jobs(forced)? {
            if !self.before.borrow().runs.contains_key(&job) {
                let log = self.agent.stage.kubectl(&["logs", &format!("job/{job}"), "--tail=-1"])?;
                return Ok(log.contains("trusts the CA"));
            }
        }
        bail!("the Job of init-cert has expired before it was read")
    }

    /// What init-cert did; as hooks it is two Jobs.
    fn saw_init_cert(&self) -> Result<&'static str> {
        let expected = if self.agent.mode == Mode::Hook { 2 } else { 1 };
        let [own, forced] = starts("init-cert");
        let (runs, forced) = (self.runs_since(own)?, self.runs_since(forced)?);
        let is_new = self.before.borrow().certificate != self.agent.certificate().ok();
        Ok(match (runs, forced, is_new) {
            (0, 0, false) => "does not run",
            (0, 1, false) if self.has_restored()? => RESTORES,
            (0, 1, false) => NOT,
            (runs, 0 | 1, false) if runs == expected => KEEPS,
            (runs, 0 | 1, true) if runs == expected => RENEWS,
            (0, 1, true) => RENEWS,
            (runs, forced, _) => bail!("init-cert ran {runs} times, and {forced} times for a forced deploy"),
        })
    }
}

fn play(stage: &Stage<'_>, document: Document, mode: Mode, helm: HelmVersion) -> Result<()> {
    let play = Play { agent: Agent { stage, helm, mode }, document, before: Before::default().into() };
    let mut wrong = Vec::new();
    for row in ROWS {
        play.begin()?;
        (row.deploy)(&play).with_context(|| row.scenario)?;
        let backfill = ("backfill", (row.backfill)(document, mode), play.saw_backfill().context(row.scenario)?);
        let init_cert = ("init-cert", (row.init_cert)(document, mode), play.saw_init_cert().context(row.scenario)?);
        for (job, expected, seen) in [backfill, init_cert] {
            record(stage, (document, mode, helm), row.scenario, (job, expected, seen))?;
            if expected != seen {
                wrong.push(format!("{}: {job} {seen}; expected: {expected}", row.scenario));
            }
        }
        // A forced upgrade removes the bundle, which a job after it puts back.
        play.agent.expect_asked().with_context(|| row.scenario)?;
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    if mode == Mode::Plain {
        force_while_it_runs(&play)?;
    }
    Ok(())
}

/// A forced upgrade while a backfill runs: it succeeds, the Job goes on, and afterwards the backfill runs again.
fn force_while_it_runs(play: &Play<'_>) -> Result<()> {
    let (agent, stage) = (&play.agent, play.agent.stage);
    let slow = play.set("initBackfillJob.args={--wait-for,tcp:gate:443}");
    agent.deploy(CHART, &slow, &["--wait"])?;
    play.begin()?;
    stage.until("the backfill to run", SOON, || {
        Ok((stage.runs_like("agent-backfill-")? > 0 && !play.jobs("agent-backfill-").unwrap_or_default().is_empty())
            .then_some(()))
    })?;
    let jobs = uids(play, "agent-backfill-")?;
    agent.force(CHART, &slow, &[])?;
    ensure!(uids(play, "agent-backfill-")? == jobs, "the running Job was replaced");
    let ports = json!([{"port": 443, "targetPort": 8443}]);
    let selector = json!({"app.kubernetes.io/name": "agent", "app.kubernetes.io/instance": "agent"});
    let gate = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "gate"}, "spec": {"selector": selector, "ports": ports}});
    stage.apply(&gate)?;
    let captured = |start: &str| -> Result<bool> {
        let job = play.jobs(start)?.pop().with_context(|| format!("there is no Job {start}…"))?;
        stage.until_condition("job", &job, "Complete", "True", SOON)?;
        let log = stage.kubectl(&["logs", &format!("job/{job}"), "--tail=-1"])?;
        Ok(log.lines().any(|line| line.starts_with("{\"apiVersion\"")))
    };
    let again = captured("agent-if-forced-backfill-")?;
    // Whichever of the two has the lock first: what was captured before the forced upgrade does not count for it.
    captured("agent-backfill-")?;
    ensure!(again, "the backfill did not run again");
    let [own, forced] = starts("init-cert");
    stage.until("the certificate", SOON, || {
        Ok((agent.certificate().ok() != play.before.borrow().certificate).then_some(()))
    })?;
    for start in [own, forced] {
        for job in play.jobs(start)? {
            stage.until_condition("job", &job, "Complete", "True", SOON)?;
        }
    }
    agent.expect_asked()?;
    for (job, seen) in [("backfill", RUNS), ("init-cert", RENEWS)] {
        let scenario = "Forced upgrade while the backfill runs";
        record(stage, (play.document, agent.mode, agent.helm), scenario, (job, seen, seen))?;
    }
    Ok(())
}

fn uids(play: &Play<'_>, start: &str) -> Result<Vec<String>> {
    let jobs = play
        .agent
        .stage
        .list("jobs")?
        .into_iter()
        .filter(|job| job["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(start)));
    Ok(jobs.filter_map(|job| job["metadata"]["uid"].as_str().map(str::to_owned)).collect())
}

type Where = (Document, Mode, HelmVersion);

/// Writes down what was seen, if a file is named.
#[expect(clippy::disallowed_methods, reason = "the environment says where results go")]
fn record(stage: &Stage<'_>, (document, mode, helm): Where, scenario: &str, job: (&str, &str, &str)) -> Result<()> {
    let Some(file) = std::env::var_os("JOBWRIGHT_UPGRADES") else { return Ok(()) };
    let (job, expected, seen) = job;
    let line = json!({
        "table": format!("{document:?}").to_lowercase(), "mode": mode.to_string(), "helm": helm.to_string(),
        "on": stage.live().about(), "scenario": scenario, "job": job, "expected": expected, "seen": seen,
    });
    Ok(results::add(Path::new(&file), &line)?)
}
