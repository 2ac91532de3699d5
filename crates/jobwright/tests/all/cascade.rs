//! `jobwright cascade` as it is typed.

use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn charts() -> std::io::Result<TempDir> {
    let directory = tempfile::tempdir()?;
    for (name, text) in [
        ("core", "apiVersion: v2\nname: core\nversion: 1.5.1 # ours\n"),
        (
            "agent",
            "apiVersion: v2\nname: agent\nversion: 2.14.0\ndependencies:\n- {name: core, version: 1.X, repository: file://../core}\n",
        ),
    ] {
        let chart = directory.path().join("charts").join(name);
        std::fs::create_dir_all(&chart)?;
        std::fs::write(chart.join("Chart.yaml"), text)?;
    }
    std::fs::create_dir(directory.path().join(".git"))?;
    Ok(directory)
}

fn cascade(here: &Path, arguments: &[&str]) -> std::io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_jobwright")).arg("cascade").args(arguments).current_dir(here).output()
}

fn chart(directory: &TempDir, name: &str) -> std::io::Result<String> {
    std::fs::read_to_string(directory.path().join("charts").join(name).join("Chart.yaml"))
}

#[test]
fn versions_go_up_together_and_a_table_says_so() {
    let directory = charts().unwrap();
    let output = cascade(directory.path(), &["charts/core"]).unwrap();
    assert!(output.status.success(), "{output:?}");
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout), @r"
    CHART  OLD     NEW     BECAUSE OF
    core   1.5.1   1.6.0   it was asked for
    agent  2.14.0  2.15.0  core
    ");
    assert_eq!(chart(&directory, "core").unwrap(), "apiVersion: v2\nname: core\nversion: 1.6.0 # ours\n");
    assert!(chart(&directory, "agent").unwrap().contains("version: 2.15.0"));
}

#[test]
fn a_dry_run_changes_nothing_and_json_is_one_document() {
    let directory = charts().unwrap();
    // From within a chart, by the name of another one.
    let here = directory.path().join("charts/agent");
    let output = cascade(&here, &["core", "--bump", "major", "--dry-run", "-o", "json"]).unwrap();
    assert!(output.status.success(), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["charts"][1]["new"], "3.0.0");
    assert_eq!(document["files"], serde_json::json!(["charts/core/Chart.yaml", "charts/agent/Chart.yaml"]));
    assert!(chart(&directory, "core").unwrap().contains("1.5.1"));
}

#[test]
fn what_cannot_be_done_exits_with_2_and_says_why() {
    let directory = charts().unwrap();
    let output = cascade(directory.path(), &["shop"]).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("there is no chart `shop`") && said.contains("agent, core"), "{said}");

    let core = directory.path().join("charts/core/Chart.yaml");
    let circle =
        "apiVersion: v2\nname: core\nversion: 1.5.1\ndependencies: [{name: agent, repository: file://../agent}]\n";
    std::fs::write(&core, circle).unwrap();
    let output = cascade(directory.path(), &["core"]).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("in a circle: agent → core → agent"), "{output:?}");
    assert_eq!(std::fs::read_to_string(core).unwrap(), circle);
}
