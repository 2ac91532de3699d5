//! How far a Job is: its status.

use crate::clock;
use crate::object::Object;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The status of a Job.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Progress {
    pub(super) active: i64,
    pub(super) ready: Option<i64>,
    pub(super) terminating: Option<i64>,
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    pub(super) completed_indexes: String,
    pub(super) failed_indexes: Option<String>,
    pub(super) uncounted: Uncounted,
    pub(super) conditions: Vec<Condition>,
    pub(super) started: Option<Timestamp>,
    completed: Option<Timestamp>,
}

/// The uids of pods that have ended and are not in the counts yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Uncounted {
    pub(super) succeeded: Vec<String>,
    pub(super) failed: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) kind: String,
    pub(super) is_true: bool,
    pub(super) reason: String,
    pub(super) message: String,
    probed: Value,
    changed: Value,
}

impl Condition {
    pub(super) fn new(kind: &str, is_true: bool, reason: &str, message: &str, now: Timestamp) -> Self {
        let now = json!(clock::time(now));
        let (kind, reason, message) = (kind.to_owned(), reason.to_owned(), message.to_owned());
        Self { kind, is_true, reason, message, probed: now.clone(), changed: now }
    }

    fn read(value: &Value) -> Self {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let any = |field: &str| value.get(field).cloned().unwrap_or_default();
        Self {
            kind: text("type"),
            is_true: text("status") == "True",
            reason: text("reason"),
            message: text("message"),
            probed: any("lastProbeTime"),
            changed: any("lastTransitionTime"),
        }
    }

    fn to_value(&self) -> Value {
        let status = if self.is_true { "True" } else { "False" };
        let mut condition = json!({"type": self.kind, "status": status,
            "lastProbeTime": self.probed, "lastTransitionTime": self.changed});
        for (field, text) in [("reason", &self.reason), ("message", &self.message)] {
            if !text.is_empty() {
                condition[field] = json!(text);
            }
        }
        condition
    }
}

impl Progress {
    pub(super) fn read(job: &Object) -> Self {
        let number = |field: &str| job.integer(&["status", field]);
        let time = |field: &str| job.at(&["status", field]).and_then(super::pod::time);
        let uids = |field: &str| {
            let uids = job.list(&["status", "uncountedTerminatedPods", field]).iter();
            uids.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            active: number("active").unwrap_or_default(),
            ready: number("ready"),
            terminating: number("terminating"),
            succeeded: number("succeeded").unwrap_or_default(),
            failed: number("failed").unwrap_or_default(),
            completed_indexes: job.text(&["status", "completedIndexes"]).to_owned(),
            failed_indexes: job.at(&["status", "failedIndexes"]).and_then(Value::as_str).map(str::to_owned),
            uncounted: Uncounted { succeeded: uids("succeeded"), failed: uids("failed") },
            conditions: job.list(&["status", "conditions"]).iter().map(Condition::read).collect(),
            started: time("startTime"),
            completed: time("completionTime"),
        }
    }

    /// Puts it into the Job.
    pub(super) fn write(&self, job: &mut Object) {
        let mut status = Map::new();
        let mut put = |field: &str, value: Value| status.insert(field.to_owned(), value);
        for (field, count) in [("active", self.active), ("succeeded", self.succeeded), ("failed", self.failed)] {
            if count != 0 {
                put(field, json!(count));
            }
        }
        for (field, count) in [("ready", self.ready), ("terminating", self.terminating)] {
            count.map(|count| put(field, json!(count)));
        }
        if !self.completed_indexes.is_empty() {
            put("completedIndexes", json!(self.completed_indexes));
        }
        self.failed_indexes.as_ref().map(|indexes| put("failedIndexes", json!(indexes)));
        let mut uncounted = Map::new();
        for (field, uids) in [("succeeded", &self.uncounted.succeeded), ("failed", &self.uncounted.failed)] {
            if !uids.is_empty() {
                uncounted.insert(field.to_owned(), json!(uids));
            }
        }
        put("uncountedTerminatedPods", Value::Object(uncounted));
        if !self.conditions.is_empty() {
            put("conditions", self.conditions.iter().map(Condition::to_value).collect());
        }
        for (field, time) in [("startTime", self.started), ("completionTime", self.completed)] {
            time.map(|time| put(field, json!(clock::time(time))));
        }
        job.set(&["status"], status);
    }

    /// A condition that is true.
    pub(super) fn true_condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind).filter(|condition| condition.is_true)
    }

    /// Makes a condition as it should be; one that is to be false is not made. Says whether that changed anything.
    pub(super) fn ensure(&mut self, wanted: Condition) -> bool {
        match self.conditions.iter_mut().find(|condition| condition.kind == wanted.kind) {
            Some(known) => {
                let same =
                    known.is_true == wanted.is_true && known.reason == wanted.reason && known.message == wanted.message;
                if !same {
                    *known = wanted;
                }
                !same
            }
            None if wanted.is_true => {
                self.conditions.push(wanted);
                true
            }
            None => false,
        }
    }

    pub(super) fn complete(&mut self, now: Timestamp) {
        self.completed = Some(now);
    }

    /// Takes pods into the counts that nothing holds any more.
    pub(super) fn count(&mut self, held: &BTreeSet<String>) {
        for (uids, count) in
            [(&mut self.uncounted.succeeded, &mut self.succeeded), (&mut self.uncounted.failed, &mut self.failed)]
        {
            let before = uids.len();
            uids.retain(|uid| held.contains(uid));
            *count = count.saturating_add(i64::try_from(before - uids.len()).unwrap_or(i64::MAX));
        }
    }
}

/// Whether a Job is over.
pub(crate) fn is_finished(job: &Object) -> bool {
    finish(job).is_some()
}

/// The condition with which a Job ended.
pub(crate) fn finish(job: &Object) -> Option<&Value> {
    let is_final = |condition: &&Value| {
        (condition["type"] == "Complete" || condition["type"] == "Failed") && condition["status"] == "True"
    };
    job.list(&["status", "conditions"]).iter().find(is_final)
}
