//! What is to be done about a Deployment: decided from what is there, and done elsewhere
//! (kubernetes v1.34 `pkg/controller/deployment`: `sync.go`, `rolling.go`, `recreate.go`).

use super::scale;
use super::set::{Bounds, REVISION, Set, is_rolling};
use super::status;
use crate::life::workload::wanted_replicas;
use crate::object::Object;
use crate::store::Key;
use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Something to do.
#[derive(Debug)]
pub(super) enum Step {
    /// Make this ReplicaSet.
    Create(Object),
    /// Write size and annotations of this ReplicaSet.
    Change(Object),
    Delete(Key),
    /// Tell that a ReplicaSet was scaled.
    Tell(String),
    /// Write the status and the revision of this Deployment.
    Report(Object),
}

/// What to do, and when to look again.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) due: Option<Timestamp>,
}

/// A Deployment and its sets, as they will be when the steps so far are done.
#[derive(Debug)]
pub(super) struct Rollout {
    pub(super) deployment: Object,
    pub(super) new: Option<Set>,
    /// Oldest first.
    pub(super) old: Vec<Set>,
    pub(super) bounds: Bounds,
    pub(super) now: Timestamp,
    steps: Vec<Step>,
}

impl Rollout {
    /// `sets` come with whether any of their pods is not finished.
    pub(super) fn new(deployment: &Object, sets: Vec<(Arc<Object>, bool)>, now: Timestamp) -> Self {
        let mut old: Vec<Set> = sets
            .into_iter()
            .map(|(set, has_running_pods)| Set { object: Object::clone(&set), has_running_pods })
            .collect();
        old.sort_by_cached_key(Set::age);
        let new = old.iter().position(|set| set.has_template_of(deployment)).map(|index| old.remove(index));
        Self { deployment: deployment.clone(), new, old, bounds: Bounds::of(deployment), now, steps: Vec::new() }
    }

    /// Decides everything.
    pub(super) fn decide(mut self) -> Plan {
        if self.deployment.is_being_deleted() {
            self.sync_revision();
            self.report_counts();
        } else {
            self.note_pause();
            let paused = self.is_paused();
            self.sync_revision();
            if paused || self.is_resized() {
                self.rescale();
                if paused {
                    self.clean_up();
                }
                self.report_counts();
            } else if is_rolling(&self.deployment) {
                self.roll();
            } else {
                self.recreate();
            }
        }
        let due = status::deadline(&self.deployment);
        Plan { steps: self.steps, due }
    }

    pub(super) fn wanted(&self) -> i64 {
        wanted_replicas(&self.deployment)
    }

    fn maximum(&self) -> i64 {
        self.wanted() + self.bounds.surge
    }

    pub(super) fn sets(&self) -> impl Iterator<Item = &Set> {
        self.old.iter().chain(&self.new)
    }

    fn is_paused(&self) -> bool {
        self.deployment.at(&["spec", "paused"]) == Some(&Value::Bool(true))
    }

    fn note_pause(&mut self) {
        if !status::has_deadline(&self.deployment) {
            return;
        }
        let reason = status::progress(&self.deployment).and_then(|progress| progress["reason"].as_str());
        let (reason, message) = match (self.is_paused(), reason) {
            (_, Some("ProgressDeadlineExceeded")) => return,
            (true, reason) if reason != Some("DeploymentPaused") => ("DeploymentPaused", "Deployment is paused"),
            (false, Some("DeploymentPaused")) => ("DeploymentResumed", "Deployment is resumed"),
            _ => return,
        };
        status::set_progress(&mut self.deployment, "Unknown", reason, message, self.now);
        self.steps.push(Step::Report(self.deployment.clone()));
    }

    fn next_revision(&self) -> i64 {
        self.old.iter().map(Set::revision).max().unwrap_or_default() + 1
    }

    /// Brings the newest set's annotations and the Deployment's revision up to date.
    fn sync_revision(&mut self) {
        let revision = self.next_revision();
        let Some(new) = &mut self.new else { return };
        let min_ready = self.deployment.integer(&["spec", "minReadySeconds"]).unwrap_or_default();
        let differs = new.object.integer(&["spec", "minReadySeconds"]).unwrap_or_default() != min_ready;
        if differs {
            new.object.set(&["spec", "minReadySeconds"], min_ready);
        }
        if new.annotate(&self.deployment, revision) || differs {
            self.steps.push(Step::Change(new.object.clone()));
        }
        let revision = new.object.annotation(REVISION).unwrap_or_default().to_owned();
        let mut changed = self.set_revision(&revision);
        if status::has_deadline(&self.deployment) && status::progress(&self.deployment).is_none() {
            let name = self.new.as_ref().map_or("", |new| new.object.name());
            let message = format!("Found new replica set {name:?}");
            status::set_progress(&mut self.deployment, "True", "FoundNewReplicaSet", &message, self.now);
            changed = true;
        }
        if changed {
            self.steps.push(Step::Report(self.deployment.clone()));
        }
    }

    fn set_revision(&mut self, revision: &str) -> bool {
        let changed = self.deployment.annotation(REVISION) != Some(revision);
        if changed {
            self.deployment.set(&["metadata", "annotations", REVISION], revision);
        }
        changed
    }

    /// Makes the set of the current template.
    fn create(&mut self) {
        let revision = self.next_revision();
        let mut new = Set::for_template(&self.deployment);
        new.object.set(&["spec", "replicas"], 0);
        let size = if is_rolling(&self.deployment) { scale::room_for(self, &new) } else { self.wanted() };
        new.object.set(&["spec", "replicas"], size);
        new.annotate(&self.deployment, revision);
        new.note(self.wanted(), self.maximum());
        let name = new.object.name().to_owned();
        self.steps.push(Step::Create(new.object.clone()));
        if size > 0 {
            self.steps.push(Step::Tell(format!("Scaled up replica set {name} from 0 to {size}")));
        }
        self.new = Some(new);
        let mut changed = self.set_revision(&revision.to_string());
        if status::has_deadline(&self.deployment) {
            let message = format!("Created new replica set {name:?}");
            status::set_progress(&mut self.deployment, "True", "NewReplicaSetCreated", &message, self.now);
            changed = true;
        }
        if changed {
            self.steps.push(Step::Report(self.deployment.clone()));
        }
    }

    /// Whether somebody has changed the wanted number of replicas.
    fn is_resized(&self) -> bool {
        let wanted = self.wanted();
        self.sets()
            .filter(|set| set.wanted() > 0)
            .any(|set| set.number(super::set::DESIRED).is_some_and(|desired| desired != wanted))
    }

    /// Gives a set a size. Says whether that is another one.
    pub(super) fn resize(&mut self, which: Which, size: i64) -> bool {
        let (wanted, maximum) = (self.wanted(), self.maximum());
        let set = match which {
            Which::New => self.new.as_mut(),
            Which::Old(index) => self.old.get_mut(index),
        };
        let Some(set) = set else { return false };
        let before = set.wanted();
        if before == size && set.is_noted(wanted, maximum) {
            return false;
        }
        set.object.set(&["spec", "replicas"], size);
        set.note(wanted, maximum);
        let name = set.object.name().to_owned();
        self.steps.push(Step::Change(set.object.clone()));
        if before == size {
            return false;
        }
        let direction = if before < size { "up" } else { "down" };
        self.steps.push(Step::Tell(format!("Scaled {direction} replica set {name} from {before} to {size}")));
        true
    }

    /// As [`Rollout::resize`], but a set that has its size is left alone.
    pub(super) fn resize_if_needed(&mut self, which: Which, size: i64) -> bool {
        let now = match which {
            Which::New => self.new.as_ref(),
            Which::Old(index) => self.old.get(index),
        };
        now.is_some_and(|set| set.wanted() != size) && self.resize(which, size)
    }

    fn roll(&mut self) {
        if self.new.is_none() {
            self.create();
        }
        if !scale::grow_new(self) && !scale::shrink_old(self) && status::is_complete(&self.deployment) {
            self.clean_up();
        }
        self.report();
    }

    fn recreate(&mut self) {
        let mut shrunk = false;
        for index in 0..self.old.len() {
            shrunk |= self.resize_if_needed(Which::Old(index), 0);
        }
        if shrunk || self.old.iter().any(|set| set.actual() > 0 || set.has_running_pods) {
            self.report();
            return;
        }
        if self.new.is_none() {
            self.create();
        }
        let wanted = self.wanted();
        self.resize_if_needed(Which::New, wanted);
        if status::is_complete(&self.deployment) {
            self.clean_up();
        }
        self.report();
    }

    fn rescale(&mut self) {
        scale::rescale(self);
    }

    /// Takes away the oldest sets that are empty, but so many.
    fn clean_up(&mut self) {
        let Some(limit) = self.deployment.integer(&["spec", "revisionHistoryLimit"]) else { return };
        let mut sets: Vec<&Set> = self.old.iter().filter(|set| !set.object.is_being_deleted()).collect();
        let surplus = sets.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        sets.sort_by_key(|set| (set.revision(), set.age()));
        let empty = sets.into_iter().take(surplus).filter(|set| {
            let observed = set.object.integer(&["status", "observedGeneration"]).unwrap_or_default();
            set.actual() == 0 && set.wanted() == 0 && set.object.generation() <= observed
        });
        let steps: Vec<Step> = empty.map(|set| Step::Delete(Key::of(&set.object))).collect();
        self.steps.extend(steps);
    }

    fn report_counts(&mut self) {
        let status = status::counted(self);
        self.finish(status);
    }

    fn report(&mut self) {
        let status = status::judged(self);
        self.finish(status);
    }

    fn finish(&mut self, status: Value) {
        if self.deployment.at(&["status"]) != Some(&status) {
            self.deployment.set(&["status"], status);
            self.steps.push(Step::Report(self.deployment.clone()));
        }
    }
}

/// One of the sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    New,
    Old(usize),
}
