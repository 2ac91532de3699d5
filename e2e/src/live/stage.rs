//! Where one test plays: a namespace of its own, kubectl and Helm in it, and what they saw when it fails.

use super::Live;
use super::film::{self, Film};
use crate::clock;
use crate::command::{Command, Ended};
use crate::error::Error;
use crate::kubectl::Kubectl;
use crate::object::{List, Object};
use crate::outcome::Exit;
use crate::version::HelmVersion;
use crate::witness::Witness;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// How often is looked whether something has come about.
const POLL: Duration = Duration::from_secs(1);

/// How many lines of each log are worth reading.
const LINES: &str = "--tail=15";

/// Deployers' own kinds, of which a failure shows the state.
const DEPLOYER_KINDS: [&str; 4] = [
    "helmreleases.helm.toolkit.fluxcd.io",
    "kustomizations.kustomize.toolkit.fluxcd.io",
    "gitrepositories.source.toolkit.fluxcd.io",
    "applications.argoproj.io",
];

/// Tells tests apart that begin alike and at the same moment.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A namespace of its own. Dropping it deletes the namespace.
#[derive(Debug)]
pub struct Stage<'a> {
    live: &'a Live,
    kubectl: Kubectl,
    witness: Option<Witness>,
    home: TempDir,
}

impl<'a> Stage<'a> {
    /// Makes the namespace of a test and waits until pods can be made in it.
    pub fn new(live: &'a Live, test: &str) -> Result<Self, Error> {
        let home = tempfile::tempdir().map_err(Error::io("make a temporary directory"))?;
        let namespace = name_namespace(test);
        let kubectl = Kubectl::new(live.tools.kubectl(), &live.kubeconfig, home.path(), &namespace);
        let mut stage = Self { live, kubectl, witness: None, home };
        stage.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))?;
        stage.until("the service account of the namespace", Duration::from_secs(20), || {
            Ok(stage.find("serviceaccount", "default")?.map(|_| ()))
        })?;
        stage.witness = Some(Witness::new(&stage.kubectl)?);
        Ok(stage)
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        self.kubectl.namespace()
    }

    /// The cluster.
    pub fn live(&self) -> &Live {
        self.live
    }

    /// An image that has `sh`.
    pub fn image(&self) -> &str {
        &self.live.image
    }

    /// Applies an object, as its only owner.
    pub fn apply(&self, object: &Value) -> Result<(), Error> {
        self.try_apply(object)?.map_err(|reason| Error::Command { command: "kubectl apply".to_owned(), reason })
    }

    /// Applies an object; the inner error is what the API said against it.
    pub fn try_apply(&self, object: &Value) -> Result<Result<(), String>, Error> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(self.namespace());
        let words = ["apply", "--server-side", "--force-conflicts", "--namespace", namespace, "-f", "-"];
        let ended = self.kubectl.command(&words).stdin(Some(object.to_string())).run()?;
        Ok(if ended.exit == Exit::Code(0) { Ok(()) } else { Err(ended.stderr) })
    }

    /// Runs kubectl in the namespace and expects success.
    pub fn kubectl(&self, words: &[&str]) -> Result<String, Error> {
        self.kubectl.run(words)
    }

    /// Reads an object; `None` if it is not there.
    pub fn find(&self, kind: &str, name: &str) -> Result<Option<Value>, Error> {
        let text = self.kubectl.run(&["get", kind, name, "--ignore-not-found", "--output=json"])?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        serde_json::from_str(&text).map(Some).map_err(Error::json(format!("{kind}/{name}")))
    }

    /// Reads all objects of a kind.
    pub fn list(&self, kind: &str) -> Result<Vec<Value>, Error> {
        let text = self.kubectl.run(&["get", kind, "--output=json"])?;
        let list: Value = serde_json::from_str(&text).map_err(Error::json(format!("the list of {kind}")))?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// What a condition of an object says: `True Reason "message"`.
    pub fn condition(&self, kind: &str, name: &str, condition: &str) -> Result<Option<String>, Error> {
        Ok(film::said(&self.find(kind, name)?.unwrap_or_default(), condition, self.namespace()))
    }

    /// How many containers of a Job have run, whether it and its pods are still there or not.
    pub fn runs(&self, job: &str) -> Result<usize, Error> {
        let pods: List = self.kubectl.raw(&format!("/api/v1/namespaces/{}/pods", self.namespace()))?;
        let pods: Vec<&Object> = pods.items.iter().collect();
        Ok(self.witness.as_ref().map_or(0, |witness| witness.runs_of(job, &pods)))
    }

    /// How many containers of Jobs whose names start so have run.
    pub fn runs_like(&self, start: &str) -> Result<usize, Error> {
        let pods: List = self.kubectl.raw(&format!("/api/v1/namespaces/{}/pods", self.namespace()))?;
        let pods: Vec<&Object> = pods.items.iter().collect();
        Ok(self.witness.as_ref().map_or(0, |witness| witness.runs_like(start, &pods)))
    }

    /// Follows an object of this namespace from now on; its kind is served at `apis/GROUP/VERSION`, `KIND`.
    pub fn film(&self, kind: (&str, &str), name: &str) -> Result<Film, Error> {
        self.film_in(self.namespace(), kind, name)
    }

    /// Follows an object of another namespace.
    pub fn film_in(&self, namespace: &str, kind: (&str, &str), name: &str) -> Result<Film, Error> {
        Film::start(&self.kubectl, namespace, kind, name)
    }

    /// What was told of an object, as `Normal Reason "message"` with `NS` for the namespace, the oldest first.
    pub fn events_of(&self, kind: &str, name: &str) -> Result<Vec<String>, Error> {
        let mut events = self.list("events")?;
        events.retain(|event| event["involvedObject"]["kind"] == kind && event["involvedObject"]["name"] == name);
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        events.sort_by_key(|event| (text(event, "firstTimestamp"), text(event, "lastTimestamp")));
        let line = |event: &Value| {
            let message = text(event, "message").replace(self.namespace(), "NS");
            format!("{} {} \"{message}\"", text(event, "type"), text(event, "reason"))
        };
        Ok(events.iter().map(line).collect())
    }

    /// Waits until something has come about, and says what was awaited if it does not in time.
    pub fn until<T>(
        &self,
        what: &str,
        limit: Duration,
        mut look: impl FnMut() -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let start = clock::now();
        loop {
            let last = look();
            if let Ok(Some(seen)) = last {
                return Ok(seen);
            }
            if start.elapsed() > limit {
                last?;
                return Err(Error::Late { what: what.to_owned(), limit });
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits until a condition of an object starts like this, and returns all that it says.
    pub fn until_condition(
        &self,
        kind: &str,
        name: &str,
        condition: &str,
        start: &str,
        limit: Duration,
    ) -> Result<String, Error> {
        let mut last = None;
        let reached = self.until("", limit, || {
            last = self.condition(kind, name, condition)?;
            Ok(last.clone().filter(|said| said.starts_with(start)))
        });
        reached.map_err(|error| match error {
            Error::Late { limit, .. } => {
                let said = last.unwrap_or_else(|| "nothing".to_owned());
                Error::Late {
                    what: format!("{condition} of {kind}/{name} to say `{start}…` (it says {said})"), limit
                }
            }
            other => other,
        })
    }

    /// Runs Helm in the namespace and expects success.
    pub fn helm(&self, version: HelmVersion, words: &[&str]) -> Result<String, Error> {
        self.run_helm(version, words)?.successful()
    }

    /// Runs Helm in the namespace and expects it to fail; gives what it says.
    pub fn failing_helm(&self, version: HelmVersion, words: &[&str]) -> Result<String, Error> {
        let ended = self.run_helm(version, words)?;
        if ended.exit == Exit::Code(0) {
            let command = format!("helm {}", words.join(" "));
            return Err(Error::Command { command, reason: "it succeeded".to_owned() });
        }
        Ok(ended.stderr)
    }

    fn run_helm(&self, version: HelmVersion, words: &[&str]) -> Result<Ended, Error> {
        Command::new(self.live.tools.helm(version)?)
            .arguments(["--namespace", self.namespace()])
            .arguments(words)
            .environment("KUBECONFIG", &self.live.kubeconfig)
            .environment("HOME", self.home.path())
            .deadline(Duration::from_mins(5))
            .run()
    }

    /// A directory for charts and the like.
    pub fn directory(&self) -> &std::path::Path {
        self.home.path()
    }

    /// What there is to see of a failure: objects, events, logs, and the deployers' own state.
    pub fn view(&self) -> String {
        let mut text = String::new();
        let mut show = |words: &[&str]| {
            let said = self.kubectl.command(words).run();
            let said = said.map_or_else(|error| error.to_string(), |ended| ended.stdout + &ended.stderr);
            if !said.trim().is_empty() && !said.contains("doesn't have a resource type") {
                let _ = writeln!(text, "\n$ kubectl {}\n{}", words.join(" "), said.trim_end());
            }
        };
        show(&["get", "all,secrets,configmaps", "--output=wide"]);
        show(&["get", "events", "--sort-by=.lastTimestamp"]);
        let pods = self.list("pods").unwrap_or_default();
        for pod in pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()) {
            show(&["logs", pod, "--all-containers", "--prefix", LINES]);
        }
        for kind in DEPLOYER_KINDS {
            for object in self.deployer_objects(kind) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let _ = writeln!(text, "\nstatus of {kind} {name}:\n{:#}", object["status"]);
            }
        }
        text
    }

    /// Objects of a deployer's kind that are here, or deploy to here.
    fn deployer_objects(&self, kind: &str) -> Vec<Value> {
        let text = self.kubectl.run(&["get", kind, "--all-namespaces", "--output=json"]).unwrap_or_default();
        let list: Value = serde_json::from_str(&text).unwrap_or_default();
        let here = |object: &&Value| {
            let places = [&object["metadata"]["namespace"], &object["spec"]["destination"]["namespace"]];
            places.iter().any(|place| *place == self.namespace())
        };
        list["items"].as_array().into_iter().flatten().filter(here).cloned().collect()
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        let delete = ["delete", "namespace", self.namespace(), "--wait=false", "--ignore-not-found"];
        // It ends with the cluster anyway.
        let _ = self.kubectl.run(&delete);
    }
}

/// A name that no other test has had: what it is about, when, and which one in this process. It is as long each time,
/// and not longer, because charts shorten names that are made of it.
fn name_namespace(test: &str) -> String {
    let short: String = test.replace('_', "-").chars().take(34).collect();
    let number = MADE.fetch_add(1, Ordering::Relaxed) % 100;
    format!("{}-{:06x}-{number:02}", short.trim_end_matches('-'), clock::seconds() & 0xff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_begin_alike_have_namespaces_of_their_own() {
        let name = "flux_attempt_2_values_are_not_templates_on_";
        assert_ne!(name_namespace(&format!("{name}install")), name_namespace(&format!("{name}upgrade")));
    }
}
