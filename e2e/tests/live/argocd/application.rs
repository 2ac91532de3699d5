//! An Application: made, committed to, synced by hand, and what Argo CD says of it.

use super::{ALL_RUN, NO_MORE, SOON};
use anyhow::Result;
use jobwright_e2e::live::{Film, Repository, Stage};
use regex::Regex;
use serde_json::{Value, json};
use std::time::Duration;

/// What is different each time.
const MASKS: &[(&str, &str)] = &[
    (r"Invalid value: \{.*\}: field is immutable", "Invalid value: TEMPLATE: field is immutable"),
    (r"/dev/shm/\d+", "/dev/shm/DIGITS"),
    (r"(Retrying attempt #\d+) at [^.]*\.", "$1 at TIME."),
    (r"\b[0-9a-f]{40}\b", "REV"),
];

/// Values over those of a chart, if they are in the repository.
pub(super) const OWN_VALUES: &str = "own-values.yaml";

/// How an Application is synced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Automation {
    Manual,
    Automatic,
    PruneAndHeal,
}

/// An Application that follows a repository. Dropping it deletes it.
pub(super) struct Application<'a> {
    stage: &'a Stage<'a>,
    repository: Repository,
}

impl<'a> Application<'a> {
    /// One that takes what it made with it when it is deleted.
    pub(super) fn make(stage: &'a Stage<'a>, automation: Automation, files: &[(&str, &str)]) -> Result<Self> {
        Self::make_with(stage, automation, &json!({}), files)
    }

    /// With more of its policy.
    pub(super) fn make_with(
        stage: &'a Stage<'a>,
        automation: Automation,
        more: &Value,
        files: &[(&str, &str)],
    ) -> Result<Self> {
        let repository = stage.live().repository(stage.namespace())?;
        repository.commit(files)?;
        let mut policy = match automation {
            Automation::Manual => json!({}),
            Automation::Automatic => json!({"automated": {}}),
            Automation::PruneAndHeal => json!({"automated": {"prune": true, "selfHeal": true}}),
        };
        for (field, value) in more.as_object().into_iter().flatten() {
            policy[field] = value.clone();
        }
        let mut source = json!({"repoURL": repository.url(), "path": ".", "targetRevision": "main"});
        if files.iter().any(|(path, _)| *path == OWN_VALUES) {
            source["helm"] = json!({"valueFiles": [OWN_VALUES]});
        }
        stage.apply(&json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {
                "name": stage.namespace(),
                "namespace": "argocd",
                "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            },
            "spec": {
                "project": "default",
                "source": source,
                "destination": {"server": "https://kubernetes.default.svc", "namespace": stage.namespace()},
                "syncPolicy": policy,
            },
        }))?;
        Ok(Self { stage, repository })
    }

    pub(super) fn kubectl(&self, verb: &str, words: &[&str]) -> Result<String> {
        let named = [&[verb, "application", self.stage.namespace(), "--namespace=argocd"], words].concat();
        Ok(self.stage.kubectl(&named)?)
    }

    /// Commits, asks for a look at it, and says which commit it is.
    pub(super) fn commit(&self, files: &[(&str, &str)]) -> Result<String> {
        let revision = self.repository.commit(files)?;
        self.refresh()?;
        Ok(revision)
    }

    pub(super) fn refresh(&self) -> Result<()> {
        self.kubectl("annotate", &["--overwrite", "argocd.argoproj.io/refresh=normal"])?;
        Ok(())
    }

    /// Syncs by hand, with hooks and the options of the Application, and waits for the end. As Argo CD's own API does it,
    /// the state of the last operation is removed: Argo CD 2 would take it for the beginning of this one.
    pub(super) fn sync(&self) -> Result<Value> {
        let before = self.status()?["operationState"]["startedAt"].clone();
        let object: Value = serde_json::from_str(&self.kubectl("get", &["--output=json"])?)?;
        let options = &object["spec"]["syncPolicy"]["syncOptions"];
        // Times are whole seconds, and two operations that start in the same one could not be told apart.
        std::thread::sleep(Duration::from_millis(1100));
        let sync = json!({"syncStrategy": {"hook": {}}, "syncOptions": options});
        let operation = json!({"operation": {"sync": sync}, "status": {"operationState": null}});
        self.kubectl("patch", &["--type=merge", "--patch", &operation.to_string()])?;
        self.until("the sync by hand to end", SOON, |status| {
            status["operationState"]["startedAt"] != before && is_over(status)
        })
    }

    /// Ends the operation that runs.
    pub(super) fn terminate(&self) -> Result<Value> {
        let phase = json!({"status": {"operationState": {"phase": "Terminating"}}});
        self.kubectl("patch", &["--type=merge", "--patch", &phase.to_string()])?;
        self.until("the operation to be terminated", SOON, is_over)
    }

    pub(super) fn status(&self) -> Result<Value> {
        let object: Value = serde_json::from_str(&self.kubectl("get", &["--output=json"])?)?;
        Ok(object["status"].clone())
    }

    /// Follows what is said of it from now on.
    pub(super) fn film(&self) -> Result<Film> {
        Ok(self.stage.film_in("argocd", ("apis/argoproj.io/v1alpha1", "applications"), self.stage.namespace())?)
    }

    pub(super) fn until(&self, what: &str, limit: Duration, reached: impl Fn(&Value) -> bool) -> Result<Value> {
        Ok(self.stage.until(what, limit, || {
            let status = self.status().unwrap_or_default();
            Ok(reached(&status).then_some(status))
        })?)
    }

    /// Waits until the operation says this, and returns the state of the Application.
    pub(super) fn until_said(&self, phase: &str, message: &str, limit: Duration) -> Result<Value> {
        self.until(&format!("the operation to be {phase} with `{message}`"), limit, |status| {
            status["operationState"]["phase"] == phase && self.message(status) == message
        })
    }

    /// Waits until the newest commit is in the cluster.
    pub(super) fn until_synced(&self, revisions: usize) -> Result<Value> {
        self.until(&format!("{revisions} revisions to be synced"), SOON, |status| {
            let synced = status["history"].as_array().map_or(0, Vec::len);
            let is_over = [ALL_RUN, NO_MORE].contains(&&*self.message(status));
            status["operationState"]["phase"] == "Succeeded" && is_over && synced == revisions
        })
    }

    /// Waits until the Application is like this: `Synced`, `Healthy`.
    pub(super) fn until_is(&self, sync: &str, health: &str) -> Result<Value> {
        self.until(&format!("the Application to be {sync} and {health}"), SOON, |status| {
            status["sync"]["status"] == sync && status["health"]["status"] == health
        })
    }

    /// What the operation says, but for what is different each time.
    pub(super) fn message(&self, status: &Value) -> String {
        self.mask(status["operationState"]["message"].as_str().unwrap_or_default())
    }

    /// What the operation said one after another.
    pub(super) fn messages(&self, film: &Film) -> Vec<String> {
        let mut said: Vec<String> = film.states().iter().map(|state| self.message(&state["status"])).collect();
        said.dedup();
        said
    }

    /// How the operation ended for each object: `Kind/name status hookPhase syncPhase [hookType] | message`.
    pub(super) fn results(&self, status: &Value) -> Vec<String> {
        let resources = status["operationState"]["syncResult"]["resources"].as_array().cloned().unwrap_or_default();
        let line = |one: &Value| {
            let hook = one["hookType"].as_str().map(|hook| format!("[{hook}]")).unwrap_or_default();
            let name = format!("{}/{}", text(one, "kind"), text(one, "name"));
            let words = [name, text(one, "status"), text(one, "hookPhase"), text(one, "syncPhase"), hook];
            let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
            self.mask(&format!("{} | {}", words.join(" "), text(one, "message")))
        };
        resources.iter().map(line).collect()
    }

    /// What is wrong with it: `Type: message`.
    pub(super) fn conditions(&self, status: &Value) -> Vec<String> {
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().map(|one| self.mask(&format!("{}: {}", text(one, "type"), text(one, "message")))).collect()
    }

    /// What is there of it: `Kind/name status`, with what else is remarkable.
    pub(super) fn resources(&self, status: &Value) -> Vec<String> {
        let resources = status["resources"].as_array().cloned().unwrap_or_default();
        let line = |one: &Value| {
            let mut words = vec![format!("{}/{}", text(one, "kind"), text(one, "name")), text(one, "status")];
            words.extend(
                ["hook", "requiresPruning"].iter().filter(|flag| one[**flag] == true).map(|flag| (*flag).to_owned()),
            );
            words.retain(|word| !word.is_empty());
            self.mask(&words.join(" "))
        };
        resources.iter().map(line).collect()
    }

    fn mask(&self, text: &str) -> String {
        let mut text = text.replace(self.stage.namespace(), "NS");
        for (pattern, with) in MASKS {
            if let Ok(pattern) = Regex::new(pattern) {
                text = pattern.replace_all(&text, *with).into_owned();
            }
        }
        text
    }
}

impl Drop for Application<'_> {
    fn drop(&mut self) {
        // It ends with the cluster anyway.
        let _ = self.kubectl("delete", &["--wait=false", "--ignore-not-found"]);
    }
}

fn text(one: &Value, field: &str) -> String {
    one[field].as_str().unwrap_or_default().to_owned()
}

fn is_over(status: &Value) -> bool {
    ["Succeeded", "Failed", "Error"].iter().any(|phase| status["operationState"]["phase"] == *phase)
}
