//! The agent's chart on a real cluster: its certificate, its look at the cluster, and what is left of both.

#[path = "agent/table.rs"]
pub(crate) mod table;

use crate::Test;
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::cluster::Deployer;
use jobwright_e2e::image::build::{AGENT, JOBWRIGHT};
use jobwright_e2e::live::{Need, Stage};
use jobwright_e2e::version::HelmVersion;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

pub(crate) const HELM_3: &[Need] =
    &[Need::Containers, Need::Image(JOBWRIGHT), Need::Image(AGENT), Need::Deployer(&[Deployer::Helm3])];
pub(crate) const HELM_4: &[Need] =
    &[Need::Containers, Need::Image(JOBWRIGHT), Need::Image(AGENT), Need::Deployer(&[Deployer::Helm4])];

pub(crate) const TESTS: &[Test] = &[
    Test { name: "agent_comes_goes_and_comes_again_as_hooks", needs: HELM_3, play: |s| comes_and_goes(s, Mode::Hook) },
    Test {
        name: "agent_comes_goes_and_comes_again_as_plain_jobs",
        needs: HELM_3,
        play: |s| comes_and_goes(s, Mode::Plain),
    },
    Test { name: "agent_jobs_are_deleted_by_their_label", needs: HELM_3, play: delete_by_label },
];

pub(crate) const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/agent");
const SOON: Duration = Duration::from_mins(2);

/// How the jobs are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Hook,
    Plain,
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Hook => "hook",
            Self::Plain => "plain",
        })
    }
}

/// A release of the chart.
pub(crate) struct Agent<'a> {
    pub(crate) stage: &'a Stage<'a>,
    pub(crate) helm: HelmVersion,
    pub(crate) mode: Mode,
}

/// The values that every release of these tests has. Nobody else's objects are asked about.
pub(crate) fn values(namespace: &str, mode: Mode) -> Value {
    let image = |name: &str| {
        let (repository, tag) = name.rsplit_once(':').unwrap_or((name, ""));
        json!({"repository": repository, "tag": tag, "pullPolicy": "Never"})
    };
    json!({
        "image": image(AGENT.image),
        "webhook": {"namespaceSelector": {"matchLabels": {"asks": namespace}}},
        "initCertJob": {
            "image": image(JOBWRIGHT.image),
            "schedule": null,
            "ttlSecondsAfterFinished": 60,
            "args": ["--settle", "1s"],
        },
        "initBackfillJob": {"image": image(JOBWRIGHT.image), "schedule": null, "ttlSecondsAfterFinished": 60},
        "releaseHooks": {"mode": mode.to_string()},
    })
}

impl Agent<'_> {
    /// Installs or upgrades it, and waits for all that it brings along.
    pub(crate) fn deploy(&self, chart: &str, set: &str, more: &[&str]) -> Result<()> {
        let file = self.stage.directory().join("values.json");
        std::fs::write(&file, values(self.stage.namespace(), self.mode).to_string())?;
        let file = file.to_string_lossy();
        let mut words = vec!["upgrade", "--install", "agent", chart, "--values", &file, "--timeout=3m"];
        if !set.is_empty() {
            words.extend(["--set", set]);
        }
        words.extend(more);
        self.stage.helm(self.helm, &words)?;
        Ok(())
    }

    /// Puts everything in its own place.
    pub(crate) fn force(&self, chart: &str, set: &str, more: &[&str]) -> Result<()> {
        let how: &[&str] = match self.helm {
            HelmVersion::V4_3_1 => &["--force-replace", "--server-side=false"],
            _ => &["--force"],
        };
        self.deploy(chart, set, &[how, more].concat())
    }

    /// How often a job has run.
    pub(crate) fn runs(&self, job: &str) -> Result<usize> {
        Ok(self.stage.runs_like(&format!("agent-{job}-"))?)
    }

    /// The Jobs that are there for a job.
    pub(crate) fn jobs(&self, job: &str) -> Result<Vec<String>> {
        let start = format!("agent-{job}-");
        let names =
            self.stage.list("jobs")?.into_iter().filter_map(|job| job["metadata"]["name"].as_str().map(str::to_owned));
        Ok(names.filter(|name| name.starts_with(&start)).collect())
    }

    /// The certificate that is served.
    pub(crate) fn certificate(&self) -> Result<String> {
        let secret = self.stage.find("secret", "agent-certificate")?.context("there is no certificate")?;
        Ok(secret["data"]["tls.crt"].as_str().unwrap_or_default().to_owned())
    }

    /// Expects that the API server asks the webhook: it refuses what it is asked to refuse.
    pub(crate) fn expect_asked(&self) -> Result<()> {
        let name = format!("{}-refused", self.stage.namespace());
        let labels = json!({"asks": self.stage.namespace(), "jobwright.local/refused": "not-today"});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        let Err(said) = self.stage.try_apply(&namespace)? else {
            self.stage.kubectl(&["delete", "namespace", &name])?;
            anyhow::bail!("the webhook was not asked");
        };
        ensure!(said.contains("denied the request: not-today"), "it was refused by `{said}`");
        Ok(())
    }

    /// What is left, apart from what every namespace has.
    fn left(&self) -> Result<Vec<String>, jobwright_e2e::error::Error> {
        let mut left = Vec::new();
        for kind in
            ["jobs", "pods", "deployments", "services", "secrets", "configmaps", "serviceaccounts", "roles", "leases"]
        {
            for object in self.stage.list(kind)? {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                if !matches!((kind, name), ("configmaps", "kube-root-ca.crt") | ("serviceaccounts", "default")) {
                    left.push(format!("{kind}/{name}"));
                }
            }
        }
        Ok(left)
    }
}

fn comes_and_goes(stage: &Stage<'_>, mode: Mode) -> Result<()> {
    let agent = Agent { stage, helm: HelmVersion::V3_17_3, mode };
    agent.deploy(CHART, "", &["--wait", "--wait-for-jobs"])?;
    agent.expect_asked()?;
    let certificate = agent.certificate()?;
    stage.helm(agent.helm, &["uninstall", "agent", "--wait"])?;
    let stays = [
        "secrets/agent-certificate",
        "secrets/agent-certificate-ca",
        "configmaps/agent-backfill",
        "leases/agent-backfill",
        "leases/agent-init-cert",
    ];
    let mut left = Vec::new();
    let reached = stage.until("", SOON, || {
        left = agent.left()?;
        Ok((left == stays).then_some(()))
    });
    reached.with_context(|| format!("what is left is {left:?}"))?;
    let cluster_wide =
        stage.kubectl(&["get", "clusterroles,clusterrolebindings,validatingwebhookconfigurations", "--output=name"])?;
    ensure!(!cluster_wide.contains(&format!("/{}-agent", stage.namespace())), "{cluster_wide}");

    agent.deploy(CHART, "", &["--wait", "--wait-for-jobs"])?;
    agent.expect_asked()?;
    ensure!(agent.certificate()? == certificate, "the certificate is another one, though the first was good");
    Ok(())
}

/// What the documents of such charts advise, while a backfill runs that will not end.
fn delete_by_label(stage: &Stage<'_>) -> Result<()> {
    let agent = Agent { stage, helm: HelmVersion::V3_17_3, mode: Mode::Plain };
    agent.deploy(CHART, "initBackfillJob.args={--wait-for,tcp:nobody:1}", &["--wait"])?;
    stage.until("the backfill to run", SOON, || Ok(stage.runs_like("agent-backfill-")?.eq(&1).then_some(())))?;
    stage.kubectl(&["delete", "job", "-l", "app.kubernetes.io/component=webhook-server"])?;
    ensure!(agent.jobs("backfill")?.is_empty() && agent.jobs("init-cert")?.is_empty(), "Jobs are left");
    agent.force(CHART, "", &["--wait", "--wait-for-jobs"])?;
    ensure!(agent.runs("backfill")? == 2, "the backfill did not run again");
    agent.expect_asked()
}
