//! What `jobwright cascade` writes is what Helm accepts.

use crate::Test;
use anyhow::{Result, ensure};
use jobwright_e2e::render::Renderer;
use jobwright_e2e::target;
use std::process::Command;

pub(crate) const TESTS: &[Test] = &[("a lock that cascade wrote is one that Helm builds from", lock)];

fn lock(helm: &Renderer) -> Result<()> {
    let directory = tempfile::tempdir()?;
    for (name, text) in [
        ("core", "apiVersion: v2\nname: core\nversion: 1.5.1\ntype: library\n"),
        (
            "agent",
            "apiVersion: v2\nname: agent\nversion: 2.14.0\ndependencies:\n- name: core\n  version: '>=1.0.0 <3.0.0-0'\n  repository: file://../core\n  condition: core.enabled,global.core\n  import-values: [data]\n",
        ),
    ] {
        std::fs::create_dir(directory.path().join(name))?;
        std::fs::write(directory.path().join(name).join("Chart.yaml"), text)?;
    }
    let agent = directory.path().join("agent").display().to_string();
    helm.helm(&["dependency", "update", &agent])?;
    let cascade = Command::new(target::jobwright()?)
        .args(["cascade", "core", "--bump", "major"])
        .current_dir(directory.path())
        .output()?;
    ensure!(cascade.status.success(), "{cascade:?}");
    let lock = std::fs::read_to_string(directory.path().join("agent/Chart.lock"))?;
    ensure!(lock.contains("version: 2.0.0"), "{lock}");
    // It refuses a lock whose digest is not that of the chart.
    helm.helm(&["dependency", "build", &agent])?;
    ensure!(directory.path().join("agent/charts/core-2.0.0.tgz").is_file());
    Ok(())
}
