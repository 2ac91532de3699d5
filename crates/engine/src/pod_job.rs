//! Jobs that are pods: a template, and how it is to be run.

mod borrow;

pub use borrow::Borrowed;

use crate::fingerprint::is_volatile;
use crate::job::{Retires, When};
use crate::ledger::Active;
use crate::names::{self, ATTEMPT, FINGERPRINT, JOB, MANAGED_BY, PHASE, RUN};
use crate::policy::{Keep, OnCancel, OnFailure, OnSupersede, OnUnknown, Patience, Retries, RunPolicy};
use crate::skip::Condition;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// A job that is a pod.
///
/// ```
/// use jobwright_engine::{PodJob, Retires, RunPolicy, When};
/// use serde_json::json;
///
/// let template = json!({"spec": {"containers": [{"name": "m", "image": "shop/api:1.4.0", "args": ["migrate"]}]}});
/// let migrate = PodJob::new("migrate", When::before("api"), Retires::never("the schema grows"), template);
/// assert_eq!(migrate.run, RunPolicy::OncePerFingerprint);
/// ```
#[derive(Clone, Debug)]
pub struct PodJob {
    /// What it is called.
    pub id: String,
    /// Where in a deploy it belongs.
    pub when: When,
    /// At which version it is to be gone.
    pub retires: Retires,
    /// The pod template, as a Job has it.
    pub template: Value,
    /// Where the template is borrowed from instead, when its turn comes.
    pub borrowed: Option<Borrowed>,
    /// Jobs of the same scope and phase that come before it.
    pub after: Vec<String>,
    /// When it runs again.
    pub run: RunPolicy,
    /// Conditions under any of which it is not needed.
    pub skip_if: Vec<Condition>,
    /// What its failure means for the deploy.
    pub on_failure: OnFailure,
    /// What happens to a run that is in the way.
    pub on_supersede: OnSupersede,
    /// What happens when nobody can say how a run ended.
    pub on_unknown: OnUnknown,
    /// What happens to it when the deploy is cancelled.
    pub on_cancel: OnCancel,
    /// How often a failed attempt is made again.
    pub retries: Retries,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// What is kept of it.
    pub keep: Keep,
    /// How long trouble may last.
    pub patience: Patience,
}

impl PodJob {
    /// A job with the usual policies.
    pub fn new(id: &str, when: When, retires: Retires, template: Value) -> Self {
        Self {
            id: id.to_owned(),
            when,
            retires,
            template,
            borrowed: None,
            after: Vec::new(),
            run: RunPolicy::default(),
            skip_if: Vec::new(),
            on_failure: OnFailure::default(),
            on_supersede: OnSupersede::default(),
            on_unknown: OnUnknown::default(),
            on_cancel: OnCancel::default(),
            retries: Retries::default(),
            timeout: Duration::from_mins(10),
            keep: Keep::default(),
            patience: Patience::default(),
        }
    }

    /// The Job of an attempt, held until its uid is recorded.
    pub(crate) fn manifest(&self, active: &Active, labels: &BTreeMap<String, String>, run_id: &str) -> Value {
        let mut labels = labels.clone();
        labels.insert(MANAGED_BY.to_owned(), names::FIELD_MANAGER.to_owned());
        labels.insert(JOB.to_owned(), self.id.clone());
        labels.insert(PHASE.to_owned(), self.when.phase.to_string());
        labels.insert(RUN.to_owned(), active.run.to_string());
        labels.insert(ATTEMPT.to_owned(), active.attempt.to_string());
        let annotations = json!({FINGERPRINT: active.fingerprint.to_string()});
        let mut template = self.template.clone();
        let metadata = entry(&mut template, "metadata");
        for (part, ours) in [("labels", &json!(labels)), ("annotations", &annotations)] {
            let theirs = metadata[part].as_object().into_iter().flatten().filter(|(key, _)| !is_foreign(key));
            let pairs: Map<String, Value> = theirs
                .chain(ours.as_object().into_iter().flatten())
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            entry(metadata, part);
            metadata[part] = Value::Object(pairs);
        }
        let spec = entry(&mut template, "spec");
        spec["restartPolicy"] = json!("Never");
        for list in ["initContainers", "containers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                identify(container, run_id, active.attempt);
            }
        }
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": active.job, "labels": labels, "annotations": annotations},
            "spec": {
                "backoffLimit": 0,
                "podReplacementPolicy": "Failed",
                "activeDeadlineSeconds": self.timeout.as_secs().max(1),
                "suspend": true,
                "template": template,
            },
        })
    }
}

/// Lets a container know which run it is, so that it can do nothing twice.
fn identify(container: &mut Value, run_id: &str, attempt: u32) {
    let theirs = container["env"].as_array().cloned().unwrap_or_default();
    let ours = [("JOBWRIGHT_RUN_ID", run_id.to_owned()), ("JOBWRIGHT_ATTEMPT", attempt.to_string())];
    let mut variables: Vec<Value> =
        theirs.into_iter().filter(|theirs| ours.iter().all(|(name, _)| theirs["name"] != *name)).collect();
    variables.extend(ours.into_iter().map(|(name, value)| json!({"name": name, "value": value})));
    if let Some(container) = container.as_object_mut() {
        container.insert("env".to_owned(), Value::Array(variables));
    }
}

/// Labels and annotations by which deployers and owners recognise what is theirs: never on what is ours.
fn is_foreign(key: &str) -> bool {
    is_volatile(key) && !matches!(key, "helm.sh/chart" | "app.kubernetes.io/version") && !key.starts_with("checksum/")
}

/// A field of what is made an object if it is none.
fn entry<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    if !value.is_object() {
        *value = json!({});
    }
    &mut value[key]
}
