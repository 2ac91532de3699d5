//! A helm for tests: a shell script that records its calls, and waits for the test to say how each ends.

use crate::stage::Stage;
use jobwright_release::Helm;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What helm was asked for, in order.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<Vec<String>>>>);

impl Calls {
    pub(crate) fn all(&self) -> Vec<Vec<String>> {
        self.0.lock().unwrap().clone()
    }

    /// The calls of `helm upgrade`.
    pub(crate) fn upgrades(&self) -> Vec<Vec<String>> {
        self.all().into_iter().filter(|words| words[0] == "upgrade").collect()
    }
}

const SCRIPT: &str = r#"#!/bin/sh
mkdir -p DIRECTORY/calls DIRECTORY/answers
printf '%s\n' "$@" > DIRECTORY/calls/.$$ && mv DIRECTORY/calls/.$$ DIRECTORY/calls/$$
while [ ! -e DIRECTORY/answers/$$ ]; do sleep 0.02; done
. DIRECTORY/answers/$$
"#;

/// Puts a script in the place of helm.
pub(crate) fn install(stage: &mut Stage, script: &str) {
    let program = stage.path("helm");
    let text = script.replace("DIRECTORY", &stage.directory.path().display().to_string());
    stage.write("helm", &text);
    make_executable(&program);
    stage.helm = Some(Helm { program, version: "3.17.3".to_owned(), arguments: Vec::new() });
}

fn make_executable(program: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A helm that keeps its releases in the cluster as the real one does. `versions` says which version of a chart its
/// repository has at the moment.
pub(crate) fn play(stage: &mut Stage, versions: impl Fn() -> &'static str + Send + 'static) -> Calls {
    install(stage, SCRIPT);
    let calls = Calls::default();
    let (directory, client, noted) = (stage.directory.path().to_owned(), stage.client(), calls.clone());
    tokio::spawn(async move {
        let mut answered = BTreeSet::new();
        loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            for (id, words) in new_calls(&directory, &answered) {
                noted.0.lock().unwrap().push(words.clone());
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let answer = match words.as_slice() {
                    ["show", "chart", ..] => format!("echo 'name: api'; echo 'version: {}'\n", versions()),
                    ["upgrade", "--install", release, ..] => {
                        let number = revisions(&client, release).await.into_iter().max().unwrap_or_default() + 1;
                        create_labelled(&client, release, number, "deployed", label_of(&words)).await;
                        "exit 0\n".to_owned()
                    }
                    _ => "exit 9\n".to_owned(),
                };
                let path = directory.join("answers").join(&id);
                std::fs::write(path.with_extension("new"), answer).unwrap();
                std::fs::rename(path.with_extension("new"), path).unwrap();
                answered.insert(id);
            }
        }
    });
    calls
}

fn new_calls(directory: &Path, answered: &BTreeSet<String>) -> Vec<(String, Vec<String>)> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory.join("calls")).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    let call = |path: &PathBuf| {
        let id = path.file_name()?.to_str()?.to_owned();
        let is_new = !id.starts_with('.') && !answered.contains(&id);
        let words = std::fs::read_to_string(path).ok()?.lines().map(str::to_owned).collect();
        is_new.then_some((id, words))
    };
    files.iter().filter_map(call).collect()
}

/// The numbers of a release's revisions.
pub(crate) async fn revisions(client: &kube::Client, release: &str) -> Vec<u64> {
    let selector = ListParams::default().labels(&format!("owner=helm,name={release}"));
    let listed = Api::<Secret>::namespaced(client.clone(), "shop").list(&selector).await.unwrap();
    listed.iter().map(|secret| secret.metadata.labels.as_ref().unwrap()["version"].parse().unwrap()).collect()
}

/// The label that a helm was given.
pub(crate) fn label_of<'a>(words: &[&'a str]) -> Option<(&'a str, &'a str)> {
    words.iter().skip_while(|word| **word != "--labels").nth(1).and_then(|label| label.split_once('='))
}

/// Creates a revision of a release, as the helm of another client does.
pub(crate) async fn create_revision(client: &kube::Client, release: &str, number: u64, status: &str) {
    create_labelled(client, release, number, status, None).await;
}

/// Creates a revision of a release, as a helm does that was given a label.
pub(crate) async fn create_labelled(
    client: &kube::Client,
    release: &str,
    number: u64,
    status: &str,
    label: Option<(&str, &str)>,
) {
    let mut labels = json!({"owner": "helm", "name": release, "version": number.to_string(), "status": status});
    if let Some((key, value)) = label {
        labels[key] = value.into();
    }
    let secret = json!({"type": "helm.sh/release.v1", "metadata": {
        "name": format!("sh.helm.release.v1.{release}.v{number}"), "labels": labels}});
    let secret: Secret = serde_json::from_value(secret).unwrap();
    Api::namespaced(client.clone(), "shop").create(&PostParams::default(), &secret).await.unwrap();
}

/// Deletes a revision of a release.
pub(crate) async fn delete_revision(client: &kube::Client, release: &str, number: u64) {
    let name = format!("sh.helm.release.v1.{release}.v{number}");
    Api::<Secret>::namespaced(client.clone(), "shop").delete(&name, &DeleteParams::default()).await.unwrap();
}
