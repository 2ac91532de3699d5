//! The library chart `release-hooks`, by the example that uses it, with real Helm: what a migration Job does as a hook and
//! as a plain Job, when it fails, when it is forced, and from one mode to the other.

use crate::Test;
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::cluster::Deployer;
use jobwright_e2e::live::{Need, Stage};
use jobwright_e2e::version::HelmVersion::{self, V3_17_3, V4_3_1};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const HELM_3: &[Need] = &[Need::Containers, Need::Deployer(&[Deployer::Helm3])];
const HELM_4: &[Need] = &[Need::Containers, Need::Deployer(&[Deployer::Helm4])];

pub(crate) const TESTS: &[Test] = &[
    Test {
        name: "release_hooks_a_hook_is_one_on_install_and_upgrade_3_17_3",
        needs: HELM_3,
        play: |s| hook(s, V3_17_3),
    },
    Test { name: "release_hooks_a_hook_is_one_on_install_and_upgrade_4_3_1", needs: HELM_4, play: |s| hook(s, V4_3_1) },
    Test { name: "release_hooks_a_plain_job_runs_when_it_changes_3_17_3", needs: HELM_3, play: |s| plain(s, V3_17_3) },
    Test { name: "release_hooks_a_plain_job_runs_when_it_changes_4_3_1", needs: HELM_4, play: |s| plain(s, V4_3_1) },
    Test {
        name: "release_hooks_a_failed_migration_keeps_its_logs_3_17_3",
        needs: HELM_3,
        play: |s| failing(s, V3_17_3),
    },
    Test { name: "release_hooks_a_failed_migration_keeps_its_logs_4_3_1", needs: HELM_4, play: |s| failing(s, V4_3_1) },
    Test { name: "release_hooks_modes_are_changed_both_ways_3_17_3", needs: HELM_3, play: |s| modes(s, V3_17_3) },
    Test { name: "release_hooks_modes_are_changed_both_ways_4_3_1", needs: HELM_4, play: |s| modes(s, V4_3_1) },
    Test {
        name: "release_hooks_a_bundled_database_is_waited_for_3_17_3",
        needs: HELM_3,
        play: |s| bundled(s, V3_17_3),
    },
    Test { name: "release_hooks_a_bundled_database_is_waited_for_4_3_1", needs: HELM_4, play: |s| bundled(s, V4_3_1) },
];

pub(crate) const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/migration");
const SOON: Duration = Duration::from_mins(2);
const JOB: &str = "shop-migrate-hook";

/// A release of the example.
struct Shop<'a> {
    stage: &'a Stage<'a>,
    helm: HelmVersion,
}

impl Shop<'_> {
    fn words(&self, verb: &[&'static str], set: &str, more: &[&'static str]) -> Vec<String> {
        let image = format!("image={0},releaseHooks.waitFor.image={0}", self.stage.image());
        let words = [verb, &["shop", CHART, "--set"], &[], more].concat();
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        words.insert(verb.len() + 3, format!("{image},{set}"));
        words
    }

    /// Installs or upgrades it with these values.
    fn deploy(&self, verb: &'static str, set: &str, more: &[&'static str]) -> Result<()> {
        let words = self.words(&[verb], set, more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.stage.helm(self.helm, &words)?;
        Ok(())
    }

    fn fail(&self, verb: &'static str, set: &str) -> Result<String> {
        let words = self.words(&[verb], set, &[]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Ok(self.stage.failing_helm(self.helm, &words)?)
    }

    fn uninstall(&self) -> Result<()> {
        self.stage.helm(self.helm, &["uninstall", "shop", "--wait"])?;
        Ok(())
    }

    /// Replaces every object by itself, as people do who think that it helps.
    fn force(&self, set: &str) -> Result<()> {
        match self.helm {
            V4_3_1 => self.deploy("upgrade", set, &["--force-replace", "--server-side=false"]),
            _ => self.deploy("upgrade", set, &["--force"]),
        }
    }

    /// The only Job of it whose name is not that of a hook.
    fn plain_job(&self) -> Result<Value> {
        let jobs = self.stage.list("jobs")?;
        let plain: Vec<&Value> = jobs.iter().filter(|job| job["metadata"]["name"] != JOB).collect();
        ensure!(plain.len() == 1, "there are {} plain Jobs: {jobs:#?}", plain.len());
        Ok(plain[0].clone())
    }

    fn job(&self) -> Result<Value> {
        self.stage.find("job", JOB)?.with_context(|| format!("Job/{JOB} is not there"))
    }

    fn expect_runs(&self, start: &str, expected: usize, when: &str) -> Result<()> {
        let runs = self.stage.runs_like(start)?;
        ensure!(runs == expected, "{when}: {start}… has run {runs} times, not {expected}");
        Ok(())
    }

    fn expect_log(&self, job: &str, expected: &str) -> Result<()> {
        let log = self.stage.kubectl(&["logs", &format!("job/{job}")])?;
        ensure!(log.trim() == expected, "{job} said `{log}`");
        Ok(())
    }

    /// What is left in the namespace, apart from what every namespace has.
    fn left(&self) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for kind in
            ["jobs", "pods", "deployments", "statefulsets", "services", "secrets", "configmaps", "serviceaccounts"]
        {
            for object in self.stage.list(kind)? {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let usual = matches!((kind, name), ("configmaps", "kube-root-ca.crt") | ("serviceaccounts", "default"));
                if !usual {
                    left.push(format!("{kind}/{name}"));
                }
            }
        }
        Ok(left)
    }

    fn until_left(&self, expected: &[&str]) -> Result<()> {
        let mut left = Vec::new();
        let reached = self.stage.until("", SOON, || {
            left = self.left().map_err(|error| jobwright_e2e::error::Error::Command {
                command: "listing what is left".to_owned(),
                reason: format!("{error:#}"),
            })?;
            Ok((left == expected).then_some(()))
        });
        reached.with_context(|| format!("what is left is {left:?}, not {expected:?}"))?;
        Ok(())
    }
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].to_string()
}

fn hook(stage: &Stage<'_>, helm: HelmVersion) -> Result<()> {
    let shop = Shop { stage, helm };
    let ttl = "releaseHooks.ttlSecondsAfterFinished=20,feature.migrationHooks=true";
    shop.deploy("install", ttl, &["--wait"])?;
    let first = shop.job()?;
    ensure!(first["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade", "{first}");
    shop.expect_runs(JOB, 1, "installed")?;
    shop.expect_log(JOB, "migrating to schema 1 as shop_ddl")?;
    // What the hook needed has gone, the hook has not.
    ensure!(stage.find("serviceaccount", JOB)?.is_none() && stage.find("secret", "shop-ddl-hook")?.is_none());
    let events = stage.list("events")?;
    ensure!(!events.iter().any(|event| event.to_string().contains("serviceaccount \\\"")), "the account came too late");

    shop.deploy("upgrade", &format!("{ttl},schema=2"), &["--wait"])?;
    let second = shop.job()?;
    ensure!(uid(&first) != uid(&second), "the Job is still the first one");
    shop.expect_runs(JOB, 2, "upgraded")?;
    shop.expect_log(JOB, "migrating to schema 2 as shop_ddl")?;
    for revision in ["1", "2"] {
        let hooks = stage.helm(helm, &["get", "hooks", "shop", "--revision", revision])?;
        let manifest = stage.helm(helm, &["get", "manifest", "shop", "--revision", revision])?;
        ensure!(hooks.contains("kind: Job") && !manifest.contains("kind: Job"), "revision {revision}: {manifest}");
    }
    // Forced or not, a hook is made anew.
    shop.force(&format!("{ttl},schema=2"))?;
    shop.expect_runs(JOB, 3, "forced")?;

    shop.uninstall()?;
    // The TTL takes it, and no policy of the hook did.
    ensure!(stage.find("job", JOB)?.is_some(), "the hook has gone with the release");
    shop.until_left(&[])?;
    shop.deploy("install", ttl, &["--wait"])?;
    shop.expect_runs(JOB, 4, "installed again")
}

fn plain(stage: &Stage<'_>, helm: HelmVersion) -> Result<()> {
    let shop = Shop { stage, helm };
    let set = "feature.migrationHooks=false,migrate=sleep 6";
    // Helm 4 replaces only what it has not applied on the server.
    let client: &[&str] = if helm == V4_3_1 { &["--server-side=false"] } else { &[] };
    shop.deploy("install", set, client)?;
    let first = shop.plain_job()?;
    ensure!(first["metadata"]["annotations"]["helm.sh/hook"].is_null(), "{first}");
    shop.force(set)?;
    ensure!(uid(&shop.plain_job()?) == uid(&first), "forced while it runs: it is another one");
    let name = first["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    stage.until_condition("job", &name, "Complete", "True", SOON)?;
    shop.force(set)?;
    shop.deploy("upgrade", set, &["--wait"])?;
    shop.expect_runs("shop-migrate-", 1, "upgraded without a change, and by force")?;
    shop.expect_log(&name, "migrating to schema 1 as shop_ddl")?;

    shop.deploy("upgrade", &format!("{set},schema=2"), &["--wait", "--wait-for-jobs"])?;
    let second = shop.plain_job()?;
    ensure!(uid(&second) != uid(&first) && second["metadata"]["name"] != first["metadata"]["name"], "{second}");
    shop.expect_runs("shop-migrate-", 2, "upgraded with a change")?;
    let manifest = stage.helm(helm, &["get", "manifest", "shop"])?;
    ensure!(manifest.contains("kind: Job"), "{manifest}");

    shop.uninstall()?;
    shop.until_left(&[])?;
    shop.deploy("install", set, &["--wait", "--wait-for-jobs"])?;
    shop.expect_runs("shop-migrate-", 3, "installed again")
}

fn failing(stage: &Stage<'_>, helm: HelmVersion) -> Result<()> {
    let shop = Shop { stage, helm };
    shop.deploy("install", "schema=1", &["--wait"])?;
    let said = shop.fail("upgrade", "schema=2,migrate=exit 3")?;
    ensure!(said.contains("pre-upgrade hooks failed"), "{said}");
    shop.expect_log(JOB, "migrating to schema 2 as shop_ddl")?;
    let serving = stage.kubectl(&["logs", "deployment/shop"])?;
    ensure!(serving.trim() == "serving with schema 1", "the application was rolled out all the same: {serving}");
    // What the hook needed stays with Helm 3, and is made anew by the next; Helm 4 takes it away, because it succeeded.
    ensure!(stage.find("serviceaccount", JOB)?.is_some() == (helm != V4_3_1), "its account");
    shop.deploy("upgrade", "schema=2", &["--wait"])?;
    shop.expect_runs(JOB, 3, "mended")?;
    ensure!(stage.find("serviceaccount", JOB)?.is_none(), "its account is still there");
    // kubectl may ask the pod that goes, while it is still there.
    let rolled_out =
        || Ok((stage.kubectl(&["logs", "deployment/shop"])?.trim() == "serving with schema 2").then_some(()));
    stage.until("the application to serve with schema 2", SOON, rolled_out)?;
    Ok(())
}

fn modes(stage: &Stage<'_>, helm: HelmVersion) -> Result<()> {
    let shop = Shop { stage, helm };
    let hook = "releaseHooks.ttlSecondsAfterFinished=20";
    let plain = "releaseHooks.mode=plain";
    shop.deploy("install", hook, &["--wait"])?;
    shop.deploy("upgrade", plain, &["--wait", "--wait-for-jobs"])?;
    let job = shop.plain_job()?;
    let name = job["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    shop.expect_runs(&name, 1, "from hook to plain")?;
    shop.deploy("upgrade", hook, &["--wait"])?;
    shop.expect_runs(JOB, 2, "from plain to hook")?;
    ensure!(stage.find("job", &name)?.is_none(), "the plain Job is still there");
    shop.deploy("upgrade", plain, &["--wait", "--wait-for-jobs"])?;
    shop.expect_runs(&name, 2, "and back")?;
    shop.uninstall()?;
    shop.until_left(&[])
}

fn bundled(stage: &Stage<'_>, helm: HelmVersion) -> Result<()> {
    let shop = Shop { stage, helm };
    let set = "releaseHooks.database=bundled";
    shop.deploy("install", set, &["--wait", "--wait-for-jobs", "--timeout=2m"])?;
    let name = shop.plain_job()?["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    shop.expect_log(&name, "migrating to schema 1 as shop_ddl")?;
    shop.expect_runs("shop-migrate-", 1, "installed")?;
    shop.deploy("upgrade", &format!("{set},schema=2"), &["--wait", "--wait-for-jobs", "--timeout=2m"])?;
    shop.expect_runs("shop-migrate-", 2, "upgraded")?;
    shop.uninstall()?;
    shop.until_left(&[])
}

/// The files of a chart, for a repository.
pub(crate) fn files(chart: &Path, below: &str) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    let mut queue = vec![chart.to_owned()];
    while let Some(directory) = queue.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                queue.push(path);
            } else {
                let name = path.strip_prefix(chart)?.display();
                files.push((format!("{below}{name}"), std::fs::read_to_string(&path)?));
            }
        }
    }
    Ok(files)
}
