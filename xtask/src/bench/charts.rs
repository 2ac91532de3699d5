//! A release of charts on a real cluster, beside what else deploys many charts.

use super::{Bench, ratio};
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::cargo::cargo;
use jobwright_e2e::cluster::{Name, Place};
use jobwright_e2e::tools::Tools;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// How many charts the release has.
const CHARTS: usize = 20;
/// How many are deployed at once.
const AT_ONCE: usize = 4;
/// How often each is measured; the median counts.
const TIMES: usize = 3;
const HELMFILE: &str = "1.8.0";
const HELMS: [&str; 2] = ["3.22.0", "4.3.1"];
const CLUSTER: &str = "bench";

pub(super) fn section(bench: &Bench) -> Result<String> {
    let mut page = format!(
        "{CHARTS} small charts (a Deployment of one pod and a ConfigMap) on a real cluster of one node on this machine, by the same\n\
         helm throughout: `jobwright deploy` of a plan with all of them, `helm upgrade --install --wait` of each in turn, and\n\
         `helmfile sync` {HELMFILE} with `wait`. jobwright and helmfile deploy {AT_ONCE} at once. Each is timed {TIMES} times, each time in a\n\
         new namespace, in turn; the median counts. Ratios are what jobwright takes to what the other takes.\n\n"
    );
    let cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(why) => return Ok(format!("{page}Not measured: {why:#}.\n")),
    };
    page.push_str("| | jobwright | helm, each in turn | ratio | helmfile | ratio |\n|---|---:|---:|---:|---:|---:|\n");
    for helm in HELMS {
        let seconds = cluster.compare(bench, helm)?;
        for (what, index) in [("first deploy", 0), ("nothing changed", 1)] {
            let [own, helms, helmfiles] = seconds[index];
            writeln!(
                page,
                "| {what}, Helm {helm} | {own:.2} s | {helms:.2} s | {} | {helmfiles:.2} s | {} |",
                ratio(own, helms),
                ratio(own, helmfiles)
            )?;
        }
    }
    Ok(page)
}

/// A real cluster that is ended with this.
struct Cluster {
    tools: PathBuf,
    kubeconfig: PathBuf,
}

/// Deploys all charts in a namespace.
type Deploy<'a> = &'a dyn Fn(&str) -> Result<()>;

impl Cluster {
    fn start() -> Result<Self> {
        let tools = Tools::directory(None)?;
        let helmfile = format!("helmfile-{HELMFILE}");
        run(cargo().args(["xtask", "tools", &helmfile]))?;
        let name: Name = CLUSTER.parse()?;
        let cluster = Self { tools, kubeconfig: Place::of(&name).kubeconfig() };
        run_cluster(&["up", "--name", CLUSTER, "--with", "helm3,helm4"])?;
        Ok(cluster)
    }

    /// The seconds of jobwright, helm and helmfile, for a first deploy and for one where nothing has changed.
    fn compare(&self, bench: &Bench, helm: &str) -> Result<[[f64; 3]; 2]> {
        let directory = tempfile::tempdir()?;
        write_charts(directory.path())?;
        let program = self.tools.join(format!("helm-{helm}/helm"));
        let on_path = format!("{}:/usr/local/bin:/usr/bin:/bin", program.parent().context("a directory")?.display());
        let place = directory.path();
        let command = |program: &Path| {
            let mut command = Command::new(program);
            command.current_dir(place).env("KUBECONFIG", &self.kubeconfig).env("PATH", &on_path);
            command
        };
        let own = |namespace: &str| {
            write_plan(place, namespace)?;
            run(command(&bench.root.join("target/release/jobwright")).args(["deploy", "-q"]))
        };
        let helms = |namespace: &str| {
            (0..CHARTS).try_for_each(|number| {
                let name = format!("part-{number}");
                let words = ["upgrade", "--install", "--wait", "--namespace", namespace, &name, &name];
                run(command(&program).args(words))
            })
        };
        let helmfiles = |namespace: &str| {
            write_helmfile(place, namespace)?;
            let at_once = AT_ONCE.to_string();
            let words = ["sync", "--quiet", "--concurrency", &at_once];
            run(command(&self.tools.join(format!("helmfile-{HELMFILE}/helmfile"))).args(words))
        };
        let ways: [(&str, Deploy<'_>); 3] = [("own", &own), ("helm", &helms), ("helmfile", &helmfiles)];
        let kubectl = |words: &[&str]| run(command(&self.tools.join("kubernetes-1.34.10/kubectl")).args(words));
        let times = if bench.quick { 1 } else { TIMES };
        let mut taken = vec![[Vec::new(), Vec::new(), Vec::new()], [Vec::new(), Vec::new(), Vec::new()]];
        for turn in 0..times {
            for (index, (name, deploy)) in ways.iter().enumerate() {
                let namespace = format!("{name}-{turn}");
                kubectl(&["create", "namespace", &namespace])?;
                for seconds in &mut taken {
                    seconds[index].push(time(|| deploy(&namespace))?);
                }
                kubectl(&["delete", "namespace", &namespace, "--wait"])?;
            }
        }
        let figures = taken.into_iter().map(|ways| ways.map(median)).collect::<Vec<_>>();
        Ok([figures[0], figures[1]])
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // What is left is found, and said, by the next `up` or `down`.
        let _ = run_cluster(&["down", "--name", CLUSTER]);
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where times are taken")]
fn time(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64())
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn run_cluster(words: &[&str]) -> Result<()> {
    let program = ["run", "--quiet", "--package", "jobwright-e2e", "--bin", "cluster", "--"];
    run(cargo().args(program).args(words))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed:\n{said}");
    Ok(())
}

fn write_charts(directory: &Path) -> Result<()> {
    for number in 0..CHARTS {
        let name = format!("part-{number}");
        let templates = directory.join(&name).join("templates");
        std::fs::create_dir_all(&templates)?;
        std::fs::write(
            directory.join(&name).join("Chart.yaml"),
            format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"),
        )?;
        std::fs::write(
            templates.join("all.yaml"),
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {level: info}\n---\n\
             apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}}\nspec:\n  \
             selector: {matchLabels: {app: {{ .Release.Name }}}}\n  template:\n    \
             metadata: {labels: {app: {{ .Release.Name }}}}\n    spec:\n      terminationGracePeriodSeconds: 0\n      \
             containers: [{name: c, image: \"busybox:1\", command: [sleep, \"100000\"]}]\n",
        )?;
    }
    Ok(())
}

fn write_plan(directory: &Path, namespace: &str) -> Result<()> {
    let mut plan = format!(
        "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {{name: bench, namespace: {namespace}}}\nparallel: {AT_ONCE}\ncomponents:\n"
    );
    for number in 0..CHARTS {
        writeln!(plan, "- {{name: part-{number}, chart: {{path: part-{number}}}}}")?;
    }
    Ok(std::fs::write(directory.join("jobwright.yaml"), plan)?)
}

fn write_helmfile(directory: &Path, namespace: &str) -> Result<()> {
    let mut file = String::from("helmDefaults: {wait: true}\nreleases:\n");
    for number in 0..CHARTS {
        writeln!(file, "- {{name: part-{number}, chart: ./part-{number}, namespace: {namespace}}}")?;
    }
    Ok(std::fs::write(directory.join("helmfile.yaml"), file)?)
}
