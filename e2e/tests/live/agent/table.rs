//! The tables of what upgrades do to the jobs of such charts: every row, with every Helm, as hooks and as plain Jobs.
//! What was seen is written to the file that `JOBWRIGHT_UPGRADES` names, for the page.

use super::{Agent, CHART, HELM_3, HELM_4, Mode, SOON};
use crate::Test;
use anyhow::{Context as _, Result, bail, ensure};
use jobwright_e2e::image::build::JOBWRIGHT;
use jobwright_e2e::live::Stage;
use jobwright_e2e::results;
use jobwright_e2e::version::HelmVersion::{self, V3_17_3, V4_3_1};
use serde_json::json;
use std::path::Path;

macro_rules! tables {
    ($($name:literal: $needs:ident, $document:ident, $mode:ident, $helm:ident;)*) => {
        &[$(Test { name: $name, needs: $needs, play: |stage| play(stage, Document::$document, Mode::$mode, $helm) }),*]
    };
}

pub(crate) const TESTS: &[Test] = tables![
    "upgrade_table_first_hook_3_17_3": HELM_3, First, Hook, V3_17_3;
    "upgrade_table_first_plain_3_17_3": HELM_3, First, Plain, V3_17_3;
    "upgrade_table_first_hook_4_3_1": HELM_4, First, Hook, V4_3_1;
    "upgrade_table_first_plain_4_3_1": HELM_4, First, Plain, V4_3_1;
    "upgrade_table_second_hook_3_17_3": HELM_3, Second, Hook, V3_17_3;
    "upgrade_table_second_plain_3_17_3": HELM_3, Second, Plain, V3_17_3;
    "upgrade_table_second_hook_4_3_1": HELM_4, Second, Hook, V4_3_1;
    "upgrade_table_second_plain_4_3_1": HELM_4, Second, Plain, V4_3_1;
];

/// Whose table is played: the first says that an upgrade without a change runs no backfill, the second that it does once
/// the Job has expired.
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

const NOT: &str = "does not run";
const RUNS: &str = "runs";
/// A hook cannot be left out, so its Job sees that there is nothing to do.
const AT_ONCE: &str = "ends at once";
const KEEPS: &str = "runs, keeps the certificate";
const RENEWS: &str = "runs, makes a new certificate";

/// What is done, and what the two jobs are expected to do then.
struct Row {
    scenario: &'static str,
    deploy: fn(&Play<'_>) -> Result<()>,
    backfill: fn(Document, Mode) -> &'static str,
    init_cert: fn(Document, Mode) -> &'static str,
}

const ROWS: &[Row] = &[
    Row {
        scenario: "install",
        deploy: |play| play.upgrade(CHART, ""),
        backfill: |_, _| RUNS,
        init_cert: |_, _| RENEWS,
    },
    Row {
        scenario: "another version of the chart",
        deploy: |play| play.upgrade(&play.next_version()?, ""),
        backfill: |_, _| RUNS,
        init_cert: |_, _| KEEPS,
    },
    Row {
        scenario: "another image",
        deploy: |play| play.upgrade(&play.next_version()?, &next_image()),
        backfill: |_, _| RUNS,
        init_cert: |_, _| KEEPS,
    },
    Row {
        scenario: "nothing changed",
        deploy: |play| play.upgrade(&play.next_version()?, &next_image()),
        backfill: backfill_left_alone,
        init_cert: init_cert_left_alone,
    },
    Row {
        scenario: "nothing changed, the Jobs have expired",
        deploy: |play| {
            play.until_expired()?;
            play.upgrade(&play.next_version()?, &next_image())
        },
        backfill: |document, _| match document {
            Document::First => AT_ONCE,
            Document::Second => RUNS,
        },
        init_cert: |_, _| KEEPS,
    },
    Row {
        scenario: "forced (`--force`), nothing changed, the Jobs are there",
        deploy: |play| play.force(&play.next_version()?, &next_image()),
        backfill: backfill_left_alone,
        init_cert: init_cert_left_alone,
    },
    Row {
        scenario: "forced (`--force --set again=…`)",
        deploy: |play| play.force(&play.next_version()?, &format!("{},again=1", next_image())),
        backfill: |_, _| RUNS,
        init_cert: |_, _| RENEWS,
    },
];

/// What a backfill does while its last Job is there and nothing has changed.
fn backfill_left_alone(_: Document, mode: Mode) -> &'static str {
    match mode {
        Mode::Hook => AT_ONCE,
        Mode::Plain => NOT,
    }
}

/// The same of init-cert.
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
                let text =
                    if name == "agent/Chart.yaml" { text.replace("version: 1.0.0", "version: 1.0.1") } else { text };
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

    /// What the backfill did since it had run so often.
    fn saw_backfill(&self, before: usize) -> Result<&'static str> {
        match self.agent.runs("backfill")? - before {
            0 => return Ok(NOT),
            1 => {}
            several => bail!("the backfill ran {several} times"),
        }
        let jobs = self.agent.jobs("backfill")?;
        let job = jobs.first().context("the Job of the backfill has gone before it was looked at")?;
        let log = self.agent.stage.kubectl(&["logs", &format!("job/{job}")])?;
        Ok(if log.contains("kept: complete") { AT_ONCE } else { RUNS })
    }

    /// What init-cert did; as hooks it is two Jobs.
    fn saw_init_cert(&self, before: usize, certificate: Option<&str>) -> Result<&'static str> {
        let expected = if self.agent.mode == Mode::Hook { 2 } else { 1 };
        let runs = self.agent.runs("init-cert")? - before;
        let is_new = certificate != Some(self.agent.certificate()?.as_str());
        Ok(match (runs, is_new) {
            (0, false) => NOT,
            (runs, false) if runs == expected => KEEPS,
            (runs, true) if runs == expected => RENEWS,
            (runs, _) => bail!("init-cert ran {runs} times"),
        })
    }
}

fn play(stage: &Stage<'_>, document: Document, mode: Mode, helm: HelmVersion) -> Result<()> {
    let play = Play { agent: Agent { stage, helm, mode }, document };
    let mut wrong = Vec::new();
    for row in ROWS {
        let (backfills, certs) = (play.agent.runs("backfill")?, play.agent.runs("init-cert")?);
        let certificate = play.agent.certificate().ok();
        (row.deploy)(&play).with_context(|| row.scenario)?;
        let backfill = ("backfill", (row.backfill)(document, mode), play.saw_backfill(backfills)?);
        let init_cert =
            ("init-cert", (row.init_cert)(document, mode), play.saw_init_cert(certs, certificate.as_deref())?);
        for (job, expected, seen) in [backfill, init_cert] {
            record(stage, (document, mode, helm), row.scenario, (job, expected, seen))?;
            if expected != seen {
                wrong.push(format!("{}: {job} {seen}, expected: {expected}", row.scenario));
            }
        }
        // A wiped bundle is mended by the job after it; whoever has none waits for the next.
        if (row.init_cert)(document, mode) != NOT {
            play.agent.expect_asked().with_context(|| row.scenario)?;
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    if mode == Mode::Plain {
        force_while_it_runs(&play)?;
    }
    Ok(())
}

/// What used to fail: everything is put in its own place while a backfill runs.
fn force_while_it_runs(play: &Play<'_>) -> Result<()> {
    let (agent, stage) = (&play.agent, play.agent.stage);
    let endless = play.set("initBackfillJob.args={--wait-for,tcp:nobody:1}");
    let before = agent.runs("backfill")?;
    let client: &[&str] = if agent.helm == V4_3_1 { &["--server-side=false"] } else { &[] };
    agent.deploy(CHART, &endless, client)?;
    let since = |count: usize| {
        stage.until("the backfill to run", SOON, || {
            Ok((stage.runs_like("agent-backfill-")? == before + count).then_some(()))
        })
    };
    since(1)?;
    let (jobs, certificate) = (agent.jobs("backfill")?, agent.certificate()?);
    agent.force(CHART, &endless, &[])?;
    ensure!(agent.jobs("backfill")? == jobs, "the running Job was replaced");
    agent.force(CHART, &play.set("again=2"), &["--wait", "--wait-for-jobs"])?;
    since(2)?;
    ensure!(agent.jobs("backfill")? != jobs, "there is no new Job");
    ensure!(agent.certificate()? != certificate, "there is no new certificate");
    agent.expect_asked()?;
    for (job, seen) in [("backfill", RUNS), ("init-cert", RENEWS)] {
        let scenario = "forced (`--force --set again=…`) while the backfill runs";
        record(stage, (play.document, agent.mode, agent.helm), scenario, (job, seen, seen))?;
    }
    Ok(())
}

type Where = (Document, Mode, HelmVersion);

/// Writes down what was seen, if anybody wants to know.
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
