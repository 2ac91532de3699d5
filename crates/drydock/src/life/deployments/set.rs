//! A ReplicaSet as its Deployment sees it.

use crate::life::workload::amount::{Rounding, resolve};
use crate::life::workload::{count, created, hash, reference_to, wanted_replicas};
use crate::object::{Object, strings};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";
const HASH: &str = "pod-template-hash";
/// Annotations of a Deployment that its ReplicaSets do not get.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED,
    MAXIMUM,
    "deprecated.deployment.rollback.to",
];
/// How long the list of earlier revisions may become.
const LONGEST_HISTORY: usize = 2000;

/// A ReplicaSet of a Deployment, and what is planned for it.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) object: Object,
    /// Whether any of its pods has not finished, even if it is about to go.
    pub(super) has_running_pods: bool,
}

impl Set {
    pub(super) fn wanted(&self) -> i64 {
        wanted_replicas(&self.object)
    }

    pub(super) fn actual(&self) -> i64 {
        count(&self.object, &["status", "replicas"])
    }

    pub(super) fn ready(&self) -> i64 {
        count(&self.object, &["status", "readyReplicas"])
    }

    pub(super) fn available(&self) -> i64 {
        count(&self.object, &["status", "availableReplicas"])
    }

    pub(super) fn revision(&self) -> i64 {
        self.object.annotation(REVISION).and_then(|number| number.parse().ok()).unwrap_or_default()
    }

    /// The order of age: oldest first.
    pub(super) fn age(&self) -> (Timestamp, String) {
        (created(&self.object), self.object.name().to_owned())
    }

    /// An annotation that is a count.
    pub(super) fn number(&self, annotation: &str) -> Option<i64> {
        self.object.annotation(annotation)?.parse::<i32>().ok().filter(|number| *number >= 0).map(i64::from)
    }

    /// Whether it has been asked for so many replicas already.
    pub(super) fn is_noted(&self, desired: i64, maximum: i64) -> bool {
        self.object.annotation(DESIRED) == Some(&desired.to_string())
            && self.object.annotation(MAXIMUM) == Some(&maximum.to_string())
    }

    pub(super) fn note(&mut self, desired: i64, maximum: i64) {
        self.object.set(&["metadata", "annotations", DESIRED], desired.to_string());
        self.object.set(&["metadata", "annotations", MAXIMUM], maximum.to_string());
    }

    /// Brings the annotations of the newest set up to date. Says whether anything changed.
    pub(super) fn annotate(&mut self, deployment: &Object, revision: i64) -> bool {
        let before = self.object.at(&["metadata", "annotations"]).cloned();
        for (key, value) in strings(deployment.at(&["metadata", "annotations"])) {
            if !NOT_COPIED.contains(&key) {
                self.object.set(&["metadata", "annotations", key], value);
            }
        }
        let known = self.object.annotation(REVISION).map(str::to_owned);
        let number = known.as_deref().map_or(Some(0), |text| text.parse::<i64>().ok());
        if number.is_some_and(|number| number < revision) {
            self.object.set(&["metadata", "annotations", REVISION], revision.to_string());
            if let Some(known) = known {
                self.remember(&known);
            }
        }
        self.object.at(&["metadata", "annotations"]) != before.as_ref()
    }

    fn remember(&mut self, revision: &str) {
        let history = self.object.annotation(REVISION_HISTORY).unwrap_or_default();
        let mut revisions: Vec<&str> = history.split(',').filter(|known| !known.is_empty()).collect();
        revisions.push(revision);
        let mut history = revisions.join(",");
        while history.len() > LONGEST_HISTORY && revisions.len() > 1 {
            revisions.remove(0);
            history = revisions.join(",");
        }
        self.object.set(&["metadata", "annotations", REVISION_HISTORY], history);
    }

    /// Whether it runs the template of the Deployment.
    pub(super) fn has_template_of(&self, deployment: &Object) -> bool {
        let plain = |object: &Object| {
            let mut template = object.at(&["spec", "template"]).cloned().unwrap_or(Value::Null);
            if let Some(Value::Object(labels)) = template.pointer_mut("/metadata/labels") {
                labels.remove(HASH);
            }
            template
        };
        plain(&self.object) == plain(deployment)
    }

    /// A set for the template of a Deployment, still without a size.
    pub(super) fn for_template(deployment: &Object) -> Self {
        let template = deployment.at(&["spec", "template"]).cloned().unwrap_or_else(|| json!({}));
        let hash = hash::of(&template, deployment.integer(&["status", "collisionCount"]));
        let name = deployment.name();
        let mut object = Object::default();
        object.set(&["apiVersion"], "apps/v1");
        object.set(&["kind"], "ReplicaSet");
        object.set(&["metadata", "name"], format!("{}-{hash}", &name[..name.len().min(253 - hash.len() - 1)]));
        object.set(&["metadata", "namespace"], deployment.namespace());
        object.set(&["metadata", "ownerReferences"], json!([reference_to(deployment)]));
        object.set(&["spec", "selector"], deployment.at(&["spec", "selector"]).cloned().unwrap_or_default());
        object.set(&["spec", "selector", "matchLabels", HASH], hash.as_str());
        object.set(&["spec", "template"], template);
        object.set(&["spec", "template", "metadata", "labels", HASH], hash.as_str());
        let labels = object.at(&["spec", "template", "metadata", "labels"]).cloned().unwrap_or_default();
        object.set(&["metadata", "labels"], labels);
        object.set(&["spec", "minReadySeconds"], count(deployment, &["spec", "minReadySeconds"]));
        Self { object, has_running_pods: false }
    }
}

/// How far a rollout may go above and below the wanted number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) surge: i64,
    pub(super) unavailable: i64,
}

impl Bounds {
    pub(super) fn of(deployment: &Object) -> Self {
        if !is_rolling(deployment) {
            return Self { surge: 0, unavailable: 0 };
        }
        let wanted = wanted_replicas(deployment);
        let at = |field| deployment.at(&["spec", "strategy", "rollingUpdate", field]);
        let surge = resolve(at("maxSurge"), wanted, Rounding::Up);
        let unavailable = resolve(at("maxUnavailable"), wanted, Rounding::Down);
        // Both may be rounded to nothing, and then nothing would ever move.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { surge, unavailable: if wanted == 0 { 0 } else { unavailable.min(wanted) } }
    }
}

pub(super) fn is_rolling(deployment: &Object) -> bool {
    deployment.text(&["spec", "strategy", "type"]) != "Recreate"
}
