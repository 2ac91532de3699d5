//! `jobwright render` as it is typed.

use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn chart() -> std::io::Result<TempDir> {
    let directory = tempfile::tempdir()?;
    for (name, text) in [
        ("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        ("values.yaml", "replicas: 1000000\nimage: {tag: v1}\n"),
        (
            "templates/a.yaml",
            "kind: ConfigMap\napiVersion: v1\nmetadata: {name: {{ .Release.Name }}}\nreplicas: {{ .Values.replicas | int }}\ntag: {{ required \"image.tag is required\" .Values.image.tag }}\nrandom: {{ randAlphaNum 8 }}\nsecret: {{ (lookup \"v1\" \"Secret\" \"default\" \"s\").data }}\n",
        ),
        ("templates/b.yaml", "kind: Job\nmetadata:\n  name: j\n  annotations: {helm.sh/hook: nonsense}\n"),
        ("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\ndata: {k: v}\n"),
    ] {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        std::fs::write(path, text)?;
    }
    Ok(directory)
}

fn render(here: &Path, arguments: &[&str]) -> std::io::Result<Output> {
    // No helm is on this PATH.
    Command::new(env!("CARGO_BIN_EXE_jobwright"))
        .arg("render")
        .args(arguments)
        .current_dir(here)
        .env("PATH", "/")
        .output()
}

#[test]
fn a_chart_is_printed_as_helm_prints_it_and_what_is_drawn_is_drawn_again() {
    let directory = chart().unwrap();
    let arguments = ["web", ".", "--set", "image.tag=v2", "--seed", "7", "--lookup", "secret.yaml"];
    let output = render(directory.path(), &arguments).unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.starts_with("---\n# Source: shop/templates/a.yaml\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: web}\nreplicas: 1000000\ntag: v2\nrandom: "),
        "{text}"
    );
    assert!(text.contains("secret: map[k:v]"), "{text}");
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(notes.contains("shop/templates/b.yaml drops Job `j`"), "{notes}");
    assert_eq!(render(directory.path(), &arguments).unwrap().stdout, output.stdout);
}

#[test]
fn what_cannot_be_rendered_ends_with_3_and_what_is_mistyped_with_2() {
    let directory = chart().unwrap();
    let output = render(directory.path(), &[".", "--set", "image.tag=null"]).unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("execution error at (shop/templates/a.yaml:5:8): image.tag is required"), "{message}");
    let output = render(directory.path(), &["repo/chart"]).unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("run `helm pull repo/chart`"), "{message}");
    let output = render(directory.path(), &[".", "--set", "a"]).unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
