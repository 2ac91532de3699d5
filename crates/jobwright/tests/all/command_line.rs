//! The binary as it is typed: what it prints, where, and how it exits.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn jobwright(arguments: &[&str]) -> std::io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_jobwright")).args(arguments).output()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_demo_tells_its_story_and_succeeds() {
    let output = jobwright(&["demo"]).unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let story = text(&output.stdout);
    for part in ["job migrate completed", "field is immutable", "has run 3 times"] {
        assert!(story.contains(part), "{part} is not in\n{story}");
    }
    let again = text(&jobwright(&["demo"]).unwrap().stdout);
    assert_eq!(story, again, "the same every time");
}

#[test]
fn the_demo_as_json_is_one_document() {
    let output = jobwright(&["demo", "-o", "json"]).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document.is_object() || document.is_array(), "{document}");
}

#[test]
fn help_groups_the_commands() {
    let help = text(&jobwright(&["--help"]).unwrap().stdout);
    assert!(help.contains("Try it, without a cluster:\n  demo"), "{help}");
    assert!(help.contains("Shell and manual:\n  completions"), "{help}");
    assert!(text(&jobwright(&["--version"]).unwrap().stdout).starts_with("jobwright "));
}

#[test]
fn wrong_arguments_exit_with_2_and_a_remedy() {
    for (arguments, part) in [
        (vec!["demmo"], "'demo'"),
        (vec!["drydock"], "--kubeconfig"),
        (vec!["drydock", "--kubeconfig", "k", "--plain", "--listen", "0.0.0.0:0"], "leave out `--plain`"),
        (vec!["drydock", "--kubeconfig", "k", "--script", "/nowhere.yaml"], "/nowhere.yaml"),
        (vec!["drydock", "--kubeconfig", "/nowhere/k"], "/nowhere/k"),
    ] {
        let output = jobwright(&arguments).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = text(&output.stderr);
        assert!(error.contains(part), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn drydock_writes_a_private_kubeconfig_and_stops_when_told() {
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let mut server = Command::new(env!("CARGO_BIN_EXE_jobwright"))
        .args(["drydock", "--kubeconfig"])
        .arg(&kubeconfig)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(appears(&kubeconfig), "the kubeconfig was not written");
    let mode = std::fs::metadata(&kubeconfig).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it holds a token");
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    assert!(text.contains("https://127.0.0.1:") && text.contains("certificate-authority-data"), "{text}");
    let id = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
    let mut said = String::new();
    server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("drydock listens on 127.0.0.1:"), "{said}");
}

/// Waits until a file is there. Says whether it ever was.
fn appears(path: &Path) -> bool {
    let wait = || std::thread::sleep(Duration::from_millis(20));
    (0..1000).any(|_| {
        path.exists() || {
            wait();
            false
        }
    })
}

#[test]
fn the_script_of_the_guide_is_understood() {
    let guide = include_str!("../../../../docs/drydock.md");
    let script = guide.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert!(jobwright_drydock::Script::from_yaml(script).is_ok(), "{script}");
}
