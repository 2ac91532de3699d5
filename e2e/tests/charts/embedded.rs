//! `jobwright deploy --drydock` with a chart: helm deploys to the cluster inside the process.

use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::render::Renderer;
use jobwright_e2e::target;
use std::process::{Command, Output};

pub(crate) const TESTS: &[Test] = &[("a chart is deployed to the cluster inside the process", deploy)];

const PLAN: &str = r#"
apiVersion: jobwright.io/v1alpha1
kind: Plan
release: {name: shop, namespace: shop, version: 1.4.0}
components:
- {name: settings, manifests: {path: settings.yaml}}
- {name: web, dependsOn: [settings], chart: {path: chart}}
jobs:
- id: migrate
  component: web
  phase: pre
  retires: {never: test}
  pod: {template: {spec: {containers: [{name: migrate, image: "busybox:1", command: [sh, -c, "sleep 60"]}]}}}
- id: smoke-test
  phase: post
  retires: {never: test}
  podFrom: {deployment: web, command: [sh, -c, "echo passed"]}
"#;

const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "shop/web:1"}]}
"#;

fn deploy(helm: &Renderer) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let temporary = tempfile::tempdir()?;
    std::fs::create_dir_all(directory.path().join("chart/templates"))?;
    for (name, text) in [
        ("jobwright.yaml", PLAN),
        ("settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"),
        ("chart/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("chart/templates/web.yaml", WEB),
    ] {
        std::fs::write(directory.path().join(name), text)?;
    }
    let jobwright = |words: &[&str]| -> Result<Output> {
        let mut command = Command::new(target::jobwright()?);
        command.args(words).arg(directory.path());
        // What leads helm elsewhere is ignored.
        command.env("HELM_KUBEAPISERVER", "https://127.0.0.1:1").env("HELM_KUBECONTEXT", "elsewhere");
        command.env("PATH", helm.directory()).env("HOME", directory.path()).env("TMPDIR", temporary.path());
        Ok(command.output()?)
    };
    let planned = jobwright(&["plan", "--drydock"])?;
    ensure!(planned.status.success(), "{planned:?}");
    let deployed = jobwright(&["deploy", "--drydock", "-o", "json"])?;
    ensure!(deployed.status.success(), "{deployed:?}");
    let report: serde_json::Value = serde_json::from_slice(&deployed.stdout)?;
    let actions: Vec<_> = report["components"].as_array().into_iter().flatten().map(|one| &one["action"]).collect();
    ensure!(actions == ["installed", "installed"], "{report}");
    let outcomes: Vec<_> = report["jobs"].as_array().into_iter().flatten().map(|one| &one["outcome"]).collect();
    ensure!(outcomes == ["succeeded", "succeeded"], "{report}");
    // The kubeconfig with its token ends with the process.
    let left: Vec<_> = std::fs::read_dir(temporary.path())?.collect();
    ensure!(left.is_empty(), "left behind: {left:?}");
    Ok(())
}
