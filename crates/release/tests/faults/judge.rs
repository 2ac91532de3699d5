//! What must hold of every deploy, judged by witnesses that nothing under test can write.
//!
//! - A deploy ends within its `--timeout` and a minute.
//! - Only the holder of the lease writes, and no program of a runner runs while another runner holds the lease.
//! - No object that a deploy applies is deleted by it.
//! - A report matches the cluster: objects of components, containers of jobs, revisions of Helm releases.
//! - No part of a Secret's value appears in events, reports, Jobs, Leases, Events, ConfigMaps, or the calls of programs.

use crate::scenario::{NAMESPACE, POD_JOBS, PodJob, SECRET, VERSIONS, keys, manifests};
use crate::support::cluster::{list, overlap, path, text};
use crate::support::journal::Entry;
use crate::world::{Deployed, Outcome, World};
use base64::Engine as _;
use http::Request;
use jobwright_drydock::Started;
use jobwright_engine::{Action, DeployOutcome, JobOutcome, Report};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// What is left at the end of a play, without what differs from run to run: objects, how often containers of jobs that
/// run once have ended well, the status of the Helm release.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ending(BTreeMap<String, String>);

impl Ending {
    /// What differs from another ending. Where another version came first, jobs may have succeeded less often.
    pub(crate) fn differences(&self, expected: &Self, fewer_successes: bool) -> Vec<String> {
        let names: BTreeSet<&String> = self.0.keys().chain(expected.0.keys()).collect();
        let differs = names.into_iter().filter(|name| {
            let (found, expected) = (self.0.get(*name), expected.0.get(*name));
            found != expected && !(fewer_successes && name.starts_with(SUCCESSES) && found < expected)
        });
        differs.map(|name| format!("{name} is {:?}, not {:?}", self.0.get(name), expected.0.get(name))).collect()
    }
}

const SUCCESSES: &str = "successes of";

/// Everything that is wrong with a deploy that is over.
pub(crate) async fn judge(world: &World<'_>, deployed: &Deployed) -> Vec<String> {
    let mut problems = judge_witnesses(world, deployed).await;
    if let Outcome::Reported(report) = &deployed.outcome {
        let mut wrong = Vec::new();
        judge_report(world, deployed, report, &mut wrong).await;
        problems.extend(wrong.iter().map(|wrong| format!("{}: {wrong}", name(deployed))));
    }
    problems
}

fn name(deployed: &Deployed) -> String {
    format!("deploy of {} by {}", deployed.version, deployed.runner)
}

/// What is wrong with a deploy, but for whether its report matches the cluster.
pub(crate) async fn judge_witnesses(world: &World<'_>, deployed: &Deployed) -> Vec<String> {
    let mut problems = world.programs.take_problems();
    let leaks = world.take_leaks();
    problems.extend(leaks.into_iter().map(|event| format!("an event contains the secret: {event}")));
    match deployed.outcome {
        Outcome::Hung => problems.push("it did not end within a minute after --timeout".to_owned()),
        Outcome::Flooded => problems.push("it makes calls without a pause and without end".to_owned()),
        Outcome::Reported(_) | Outcome::Refused(_) | Outcome::Killed => {}
    }
    if reveals(&format!("{deployed:?}")) {
        problems.push("the report contains the secret".to_owned());
    }
    if world.programs.works().iter().any(|work| reveals(&work.call)) {
        problems.push("a program was called with the secret".to_owned());
    }
    judge_objects(world, &mut problems).await;
    let entries = world.journal.take();
    problems.extend(world.journal.trespasses(&entries));
    problems.extend(entries.iter().filter_map(judge_delete));
    problems.iter().map(|problem| format!("{}: {problem}", name(deployed))).collect()
}

/// Nothing that a deploy applies is deleted by it.
fn judge_delete(entry: &Entry) -> Option<String> {
    let call = &entry.call;
    let key = (call.group.as_str(), call.resource.as_str(), call.name.as_str());
    let applies = keys(&entry.version).0.contains(&key);
    (applies && call.verb == "delete" && entry.succeeded)
        .then(|| format!("`{}` deleted what it applies: {call}", entry.runner))
}

async fn judge_report(world: &World<'_>, deployed: &Deployed, report: &Report, problems: &mut Vec<String>) {
    let failed: Vec<&str> = report
        .components
        .iter()
        .filter(|component| component.action == Action::Failed)
        .map(|component| component.name.as_str())
        .chain(report.jobs.iter().filter(|job| job.outcome == JobOutcome::Failed).map(|job| job.id.as_str()))
        .collect();
    if report.outcome == DeployOutcome::Succeeded && !failed.is_empty() {
        problems.push(format!("it is reported succeeded, and {failed:?} failed"));
    }
    let has_reason = report.error.is_some() || !failed.is_empty();
    if report.outcome == DeployOutcome::Failed && !has_reason {
        problems.push(format!("it is reported failed without a cause: {report:?}"));
    }
    for component in &report.components {
        if !matches!(component.action, Action::Installed | Action::Upgraded | Action::Unchanged) {
            continue;
        }
        let differences = match component.name.as_str() {
            "web" => judge_release(world).await.into_iter().collect(),
            _ => differences(world, deployed.version).await,
        };
        let (name, action) = (&component.name, component.action);
        problems.extend(differences.iter().map(|difference| format!("`{name}` is reported {action:?}: {difference}")));
    }
    for job in &report.jobs {
        let Some(pod_job) = POD_JOBS.iter().find(|pod_job| pod_job.id == job.id) else {
            if job.id == "work" && job.outcome == JobOutcome::Succeeded {
                let works = world.programs.works();
                if !works.iter().any(|work| work.kind == "work" && work.succeeded && work.version == deployed.version) {
                    problems.push("`work` is reported succeeded, and its program did not succeed".to_owned());
                }
            }
            continue;
        };
        let starts = starts_of(world, pod_job, deployed.version);
        let counts = |started: &&Started| pod_job.once || started.at >= deployed.began;
        let ended_well = starts.iter().filter(counts).any(|started| started.ended.is_some_and(|ended| ended.code == 0));
        match job.outcome {
            // It may have been started by a runner before this one.
            JobOutcome::Succeeded if !starts.iter().any(ended_in_success) => {
                problems.push(format!("`{}` is reported succeeded, and no container of it ended well", job.id));
            }
            JobOutcome::Failed if ended_well => {
                let reason = &job.reason;
                problems.push(format!("`{}` is reported failed ({reason}), and its container ended well", job.id));
            }
            _ => {}
        }
    }
}

fn ended_in_success(started: &Started) -> bool {
    started.ended.is_some_and(|ended| ended.code == 0)
}

/// The containers of a job that have started.
fn starts_of(world: &World<'_>, job: &PodJob, version: &str) -> Vec<Started> {
    let image = format!("busybox:{version}");
    let is_of = |started: &Started| {
        let is_line = started.command.last().is_some_and(|line| line == job.line);
        is_line && (started.image == image || !job.once)
    };
    world.drydock.witness().into_iter().filter(is_of).collect()
}

async fn judge_release(world: &World<'_>) -> Option<String> {
    let last = world.programs.revisions().await.pop();
    let status = last.map(|(_, status)| status);
    (status.as_deref() != Some("deployed")).then(|| format!("its Helm release is {status:?}"))
}

/// What of the cluster differs from the manifests of a version.
pub(crate) async fn differences(world: &World<'_>, version: &str) -> Vec<String> {
    let mut found = Vec::new();
    for object in manifests(version) {
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        match get(world, text(&object["apiVersion"]), kind, name).await {
            None => found.push(format!("{kind} `{name}` does not exist")),
            Some(live) if !is_within(&object, &live) => found.push(format!("{kind} `{name}` is {live}")),
            Some(_) => {}
        }
    }
    for (_, _, name) in keys(version).1 {
        if get(world, "v1", "ConfigMap", name).await.is_some() {
            found.push(format!("ConfigMap `{name}` was not pruned"));
        }
    }
    found
}

/// Nothing that Jobwright writes contains the secret: no ledger, no record, no Job, no Lease. Nor do Events.
async fn judge_objects(world: &World<'_>, problems: &mut Vec<String>) {
    let kinds = [("v1", "ConfigMap"), ("v1", "Event"), ("batch/v1", "Job"), ("coordination.k8s.io/v1", "Lease")];
    for (version, kind) in kinds {
        for object in list(&world.client(), NAMESPACE, version, kind).await {
            if reveals(&object.to_string()) {
                problems.push(format!("{kind} `{}` contains the secret", text(&object["metadata"]["name"])));
            }
        }
    }
}

/// Whether a text contains a part of the secret, plain or encoded.
pub(crate) fn reveals(whole: &str) -> bool {
    const PART: usize = 10;
    static PARTS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let encoded = base64::engine::general_purpose::STANDARD.encode(SECRET);
        let parts = |text: &str| {
            text.as_bytes().windows(PART).map(|part| String::from_utf8_lossy(part).into_owned()).collect::<Vec<_>>()
        };
        [parts(SECRET), parts(&encoded)].concat()
    });
    PARTS.iter().any(|part| whole.contains(part))
}

/// What is left at the end of a play. Gives also what is wrong with it by itself.
pub(crate) async fn ending(world: &World<'_>) -> (Ending, Vec<String>) {
    let mut problems = differences(world, VERSIONS[1]).await;
    let mut found = BTreeMap::new();
    for (version, kind) in [
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("apps/v1", "Deployment"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ] {
        for object in list(&world.client(), NAMESPACE, version, kind).await {
            let labels = &object["metadata"]["labels"];
            let is_record = !labels["jobwright.io/ledger"].is_null() || !labels["jobwright.io/record"].is_null();
            if !is_record && labels["owner"] != "helm" {
                found.insert(format!("{kind} {}", text(&object["metadata"]["name"])), essence(object));
            }
        }
    }
    for job in POD_JOBS.iter().filter(|job| job.once) {
        for version in job.versions {
            let starts = starts_of(world, job, version);
            let count = starts.iter().filter(|started| ended_in_success(started)).count();
            found.insert(format!("{SUCCESSES} {} {version}", job.id), count.to_string());
            problems.extend(overlap(&starts).map(|pods| format!("two containers of `{}` ran at once: {pods}", job.id)));
        }
    }
    for job in list(&world.client(), NAMESPACE, "batch/v1", "Job").await {
        if job["spec"]["ttlSecondsAfterFinished"].is_null() {
            problems.push(format!("Job `{}` is left", text(&job["metadata"]["name"])));
        }
    }
    let release = world.programs.revisions().await.pop().map(|(_, status)| status);
    found.insert("Helm release".to_owned(), format!("{release:?}"));
    (Ending(found), problems)
}

/// An object without what differs from run to run.
fn essence(mut object: Value) -> String {
    let metadata = &object["metadata"];
    let mut kept = json!({"labels": metadata["labels"], "annotations": metadata["annotations"]});
    if let Some(annotations) = kept["annotations"].as_object_mut() {
        annotations.remove("deployment.kubernetes.io/revision");
    }
    object["metadata"] = kept;
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    object.to_string()
}

/// Whether everything of `wanted` is in `live`.
fn is_within(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            wanted.iter().all(|(key, value)| live.get(key).is_some_and(|live| is_within(value, live)))
        }
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len() && wanted.iter().zip(live).all(|(wanted, live)| is_within(wanted, live))
        }
        (wanted, live) => wanted == live,
    }
}

async fn get(world: &World<'_>, version: &str, kind: &str, name: &str) -> Option<Value> {
    let request = Request::get(format!("{}/{name}", path(NAMESPACE, version, kind))).body(Vec::new()).unwrap();
    world.client().request::<Value>(request).await.ok()
}
