//! `jobwright deploy` with every Helm: charts with jobs around them, the upgrade tables, and a helm that is killed.

use crate::Test;
use crate::engine::job;
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::cluster::Deployer;
use jobwright_e2e::live::{Deploys, Need, Stage};
use jobwright_e2e::version::HelmVersion::{self, V3_17_3, V3_22_0, V4_3_1};
use serde_json::Value;

const HELM_3: &[Need] = &[Need::Containers, Need::Deployer(&[Deployer::Helm3])];
const HELM_4: &[Need] = &[Need::Containers, Need::Deployer(&[Deployer::Helm4])];

pub(crate) const TESTS: &[Test] = &[
    Test { name: "deploy_follows_the_tables_with_helm_3_17_3", needs: HELM_3, play: |stage| tables(stage, V3_17_3) },
    Test { name: "deploy_follows_the_tables_with_helm_3_22_0", needs: HELM_3, play: |stage| tables(stage, V3_22_0) },
    Test { name: "deploy_follows_the_tables_with_helm_4_3_1", needs: HELM_4, play: |stage| tables(stage, V4_3_1) },
    Test { name: "deploy_killed_with_helm_3_22_0_goes_on", needs: HELM_3, play: |stage| killed(stage, V3_22_0) },
    Test { name: "deploy_killed_with_helm_4_3_1_goes_on", needs: HELM_4, play: |stage| killed(stage, V4_3_1) },
];

/// A chart with one ConfigMap and a Deployment, and a job after it with a run policy.
fn write(stage: &Stage<'_>, deploys: &Deploys<'_>, release: &str, value: &str, policy: &str) -> Result<()> {
    deploys.file("chart/Chart.yaml", "apiVersion: v2\nname: agent\nversion: 1.0.0\n")?;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {value: '{{ .Values.value }}'}\n";
    deploys.file("chart/templates/map.yaml", map)?;
    deploys.file("values.yaml", &format!("value: '{value}'\n"))?;
    let more = format!("component: {release}-agent, phase: post, run: {policy}, keep: {{finished: 5s}}");
    let before = job(stage.image(), "before", "echo before", &format!("component: {release}-agent, phase: pre"));
    let after = job(stage.image(), "after", &format!("echo after {value}"), &more);
    let component =
        format!("components:\n- {{name: {release}-agent, chart: {{path: chart}}, values: [values.yaml]}}\n");
    Ok(deploys.plan(release, "1.0.0", &format!("{component}jobs:\n{before}{after}"))?)
}

fn outcome(report: &Value, id: &str) -> Result<String> {
    let mut jobs = report["jobs"].as_array().into_iter().flatten();
    let job = jobs.find(|job| job["id"] == id).with_context(|| format!("no job `{id}` in {report}"))?;
    Ok(job["outcome"].as_str().unwrap_or_default().to_owned())
}

fn tables(stage: &Stage<'_>, helm: HelmVersion) -> Result<()> {
    for (policy, again, later) in [("OnChange", 1, 1), ("OnChangeOrExpired", 1, 2), ("Always", 2, 3)] {
        let release = policy.to_lowercase();
        let deploys = Deploys::new(stage, &release)?;
        deploys.use_helm(helm)?;
        write(stage, &deploys, &release, "1", policy)?;
        let runs = |expected: usize, what: &str| -> Result<()> {
            let seen = stage.runs_like(&format!("{release}-after-"))?;
            ensure!(seen == expected, "{policy}, {what}: it has run {seen} times instead of {expected}");
            Ok(())
        };
        let report = deploys.expect(0, &["deploy", "-o", "json"])?.json()?;
        ensure!(report["components"][0]["action"] == "installed", "{report}");
        ensure!(outcome(&report, "before")? == "succeeded" && outcome(&report, "after")? == "succeeded", "{report}");
        let report = deploys.expect(0, &["deploy", "-o", "json"])?.json()?;
        ensure!(report["components"][0]["action"] == "unchanged", "{report}");
        runs(1, "nothing has changed")?;
        if policy != "OnChangeOrExpired" {
            // Its kept time passes while helm works.
            deploys.expect(0, &["deploy", "-q", "--redeploy"])?;
            runs(again, "applied again at once")?;
        }
        std::thread::sleep(std::time::Duration::from_secs(6));
        deploys.expect(0, &["deploy", "-q", "--redeploy"])?;
        runs(later, "applied again when the kept time has passed")?;
        deploys.expect(0, &["deploy", "-q", "--redeploy", "--force"])?;
        runs(later + 1, "forced")?;
        write(stage, &deploys, &release, "2", policy)?;
        let report = deploys.expect(0, &["deploy", "-o", "json"])?.json()?;
        ensure!(report["components"][0]["action"] == "upgraded", "{report}");
        runs(later + 2, "the values have changed")?;
        ensure!(stage.runs_like(&format!("{release}-before-"))? == 2, "the pre-job runs once, and once more by force");
    }
    Ok(())
}

/// Kills jobwright, and helm with it, at every call of helm: before it starts, while it works, and when it is done.
fn killed(stage: &Stage<'_>, helm: HelmVersion) -> Result<()> {
    let program = stage.live().tools().helm(helm)?.display().to_string();
    let at = |call: usize, when: &str| -> Result<Option<()>> {
        let release = format!("call{call}-{when}");
        let deploys = Deploys::new(stage, &release)?;
        write(stage, &deploys, &release, "1", "OnChange")?;
        let script = format!(
            "echo x >>calls\nif [ $(wc -l <calls) = {call} ]; then\n  case {when} in\n    before) kill -9 $PPID; exit 1;;\n    \
             during) {program} \"$@\" & sleep 0.4; kill -9 $PPID $!; exit 1;;\n    after) {program} \"$@\"; kill -9 $PPID; exit 0;;\n  \
             esac\nfi\nexec {program} \"$@\""
        );
        deploys.use_script(&script)?;
        let first = deploys.run(&["deploy", "-q"])?;
        if first.code == 0 {
            return Ok(None);
        }
        ensure!(first.code == -1, "it was not killed: {first:?}");
        let report = deploys.expect(0, &["deploy", "-o", "json"])?.json()?;
        ensure!(report["outcome"] == "succeeded", "{release}: {report}");
        let map = stage.find("configmap", &format!("{release}-agent"))?.context("the ConfigMap of the chart")?;
        ensure!(map["data"]["value"] == "1", "{map}");
        for job in ["before", "after"] {
            let runs = stage.runs_like(&format!("{release}-{job}-"))?;
            ensure!(runs == 1, "{release}: {job} has run {runs} times\n{report}");
        }
        Ok(Some(()))
    };
    let mut call = 1;
    while std::thread::scope(|scope| {
        let plays: Vec<_> = ["before", "during", "after"].map(|when| scope.spawn(move || at(call, when))).into();
        let mut more = true;
        for play in plays {
            more &= play.join().unwrap_or_else(|_| Err(anyhow::anyhow!("it panicked")))?.is_some();
        }
        anyhow::Ok(more)
    })? {
        call += 1;
        ensure!(call < 20, "helm is called without end");
    }
    ensure!(call >= 3, "helm was called {call} times");
    Ok(())
}
