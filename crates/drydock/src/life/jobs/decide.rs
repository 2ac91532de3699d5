//! What a Job needs next, from what it asks for, how far it is and which pods it has. Nothing here acts
//! (Kubernetes v1.34 `job/job_controller.go`, `syncJob` and `manageJob`).

use super::backoff::Backoff;
use super::indexes::Indexes;
use super::pod::Pod;
use super::policy::{self, Handling};
use super::progress::Progress;
use super::spec::{Completion, Spec};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// The most pods that are made or deleted in one step.
const MOST_PODS: usize = 500;

/// What a decision is made from.
pub(super) struct View<'a> {
    pub(super) spec: &'a Spec<'a>,
    pub(super) progress: &'a Progress,
    pub(super) pods: &'a [Pod],
    pub(super) is_being_deleted: bool,
    pub(super) backoff: Backoff,
    pub(super) now: Timestamp,
}

/// How a Job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Success,
    Failure,
}

/// That a Job ends, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) end: End,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Verdict {
    fn new(end: End, reason: &str, message: impl Into<String>) -> Self {
        Self { end, reason: reason.to_owned(), message: message.into() }
    }

    /// That enough pods have succeeded.
    pub(super) fn completed() -> Self {
        Self::new(End::Success, "CompletionsReached", "Reached expected number of succeeded pods")
    }

    /// The condition that says so before the Job has ended.
    pub(super) fn early_condition(&self) -> &'static str {
        match self.end {
            End::Success => "SuccessCriteriaMet",
            End::Failure => "FailureTarget",
        }
    }

    /// The condition that says that the Job has ended.
    pub(super) fn final_condition(&self) -> &'static str {
        match self.end {
            End::Success => "Complete",
            End::Failure => "Failed",
        }
    }
}

/// What pods and status come to.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    pub(super) active: Vec<&'a Pod>,
    pub(super) ready: i64,
    pub(super) terminating: i64,
    pub(super) succeeded: i64,
    failed: i64,
    pub(super) backoff: Backoff,
    /// Indexes that had succeeded when the status was last written, and now.
    pub(super) completed_before: Indexes,
    pub(super) completed: Indexes,
    pub(super) failed_indexes: Option<Indexes>,
    /// By index: the last failed pod, which is held until its replacement knows how often the index failed.
    pub(super) held_back: BTreeMap<i64, &'a Pod>,
}

/// What to do with the pods of a Job.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// The Job is over, and so are its pods.
    Finish(Verdict),
    Remove(Vec<&'a Pod>),
    /// So many pods, or one for each index.
    Create(Vec<Option<i64>>),
    /// Pods are needed, but not so soon.
    Wait(SignedDuration),
    Nothing,
}

fn size(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl<'a> View<'a> {
    /// Pods whose end is not yet in the status.
    fn newly_ended(&self, known: &[String], ended: impl Fn(&Pod) -> bool) -> Vec<&'a Pod> {
        let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        let is_new = |pod: &&Pod| pod.is_tracked() && !known.contains(pod.uid()) && self.spec.can_count(pod);
        self.pods.iter().filter(is_new).filter(|pod| ended(pod)).collect()
    }

    pub(super) fn tally(&self) -> Tally<'a> {
        let (spec, progress) = (self.spec, self.progress);
        let succeeded = self.newly_ended(&progress.uncounted.succeeded, Pod::has_succeeded);
        let failed = self.newly_ended(&progress.uncounted.failed, |pod| spec.considers_failed(pod));
        let counted = failed.iter().filter(|pod| spec.handling(pod).counts()).count();
        let times = |pods: &[&Pod]| pods.iter().map(|pod| pod.finished_at()).collect::<Vec<_>>();
        let active: Vec<&Pod> = self.pods.iter().filter(|pod| pod.is_active()).collect();
        let sum = |counted: i64, new: usize, uncounted: usize| counted.saturating_add(size(new + uncounted));
        let mut tally = Tally {
            ready: size(active.iter().filter(|pod| pod.is_ready()).count()),
            active,
            terminating: size(self.pods.iter().filter(|pod| pod.is_terminating()).count()),
            succeeded: sum(progress.succeeded, succeeded.len(), progress.uncounted.succeeded.len()),
            failed: sum(progress.failed, counted, progress.uncounted.failed.len()),
            backoff: self.backoff.after(&times(&succeeded), &times(&failed)),
            completed_before: Indexes::default(),
            completed: Indexes::default(),
            failed_indexes: None,
            held_back: BTreeMap::new(),
        };
        self.tally_indexes(&mut tally);
        tally
    }

    fn tally_indexes(&self, tally: &mut Tally<'a>) {
        let Some(indexed) = self.spec.indexed() else { return };
        let tracked = || self.pods.iter().filter(|pod| pod.is_tracked());
        let indexes = |ended: &dyn Fn(&Pod) -> bool| -> Indexes {
            tracked().filter(|pod| ended(pod)).filter_map(|pod| self.spec.index_of(pod)).collect()
        };
        tally.completed_before = Indexes::parse(&self.progress.completed_indexes, indexed.count);
        tally.completed = tally.completed_before.merge(&indexes(&Pod::has_succeeded));
        tally.succeeded = tally.completed.total();
        let Some(limits) = indexed.limits else { return };
        let has_failed_for_good = |pod: &Pod| {
            self.spec.considers_failed(pod)
                && match self.spec.handling(pod) {
                    Handling::FailIndex => true,
                    Handling::Ignore => false,
                    Handling::Count | Handling::FailJob(_) => pod.index_failures() >= limits.backoff,
                }
        };
        let before = self.progress.failed_indexes.as_deref().unwrap_or_default();
        let failed = Indexes::parse(before, indexed.count).merge(&indexes(&has_failed_for_good));
        let active: BTreeSet<i64> = tally.active.iter().filter_map(|pod| pod.index()).collect();
        for pod in tracked().filter(|pod| self.spec.considers_failed(pod)) {
            let Some(index) = self.spec.index_of(pod) else { continue };
            if tally.completed.contains(index) || failed.contains(index) || active.contains(&index) {
                continue;
            }
            let order = |pod: &Pod| (pod.index_failures() + pod.index_ignored_failures(), pod.finished_at());
            let ((failures, time), known) = (order(pod), tally.held_back.get(&index).map(|known| order(known)));
            if known.is_none_or(|(known, known_time)| known <= failures && known_time <= time) {
                tally.held_back.insert(index, pod);
            }
        }
        tally.failed_indexes = Some(failed);
    }

    /// Whether the Job ends, with active pods or not.
    fn verdict(&self, tally: &Tally<'_>) -> Option<Verdict> {
        let (spec, progress) = (self.spec, self.progress);
        let told = |end: End, condition: &str| {
            progress.true_condition(condition).map(|known| Verdict::new(end, &known.reason, known.message.as_str()))
        };
        let by_policy = || {
            self.pods.iter().filter(|pod| spec.considers_failed(pod)).find_map(|pod| match spec.handling(pod) {
                Handling::FailJob(message) => Some(Verdict::new(End::Failure, "PodFailurePolicy", message)),
                _ => None,
            })
        };
        told(End::Success, "SuccessCriteriaMet")
            .or_else(|| told(End::Failure, "FailureTarget"))
            .or_else(by_policy)
            .or_else(|| self.limit_reached(tally))
            .or_else(|| self.indexes_decide(tally))
    }

    fn limit_reached(&self, tally: &Tally<'_>) -> Option<Verdict> {
        if tally.failed > self.spec.backoff_limit || self.restarted_too_often() {
            let message = "Job has reached the specified backoff limit";
            return Some(Verdict::new(End::Failure, "BackoffLimitExceeded", message));
        }
        if self.deadline_in().is_some_and(|left| left <= SignedDuration::ZERO) {
            let message = "Job was active longer than specified deadline";
            return Some(Verdict::new(End::Failure, "DeadlineExceeded", message));
        }
        None
    }

    fn restarted_too_often(&self) -> bool {
        let running = self.pods.iter().filter(|pod| !pod.has_succeeded() && !pod.has_failed());
        let restarts = running.map(Pod::restarts).fold(0, i64::saturating_add);
        self.spec.restarts_containers && restarts >= self.spec.backoff_limit.max(1)
    }

    /// How long the Job may still be active.
    pub(super) fn deadline_in(&self) -> Option<SignedDuration> {
        let deadline = self.spec.deadline.filter(|_| !self.spec.is_suspended)?;
        Some(deadline.saturating_sub(self.now.duration_since(self.progress.started?)))
    }

    fn indexes_decide(&self, tally: &Tally<'_>) -> Option<Verdict> {
        let indexed = self.spec.indexed()?;
        let failed = tally.failed_indexes.as_ref().map_or(0, Indexes::total);
        if indexed.limits.and_then(|limits| limits.max_failed).is_some_and(|most| failed > most) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(Verdict::new(End::Failure, "MaxFailedIndexesExceeded", message));
        }
        if failed > 0 && failed.saturating_add(tally.completed.total()) >= indexed.count {
            return Some(Verdict::new(End::Failure, "FailedIndexes", "Job has failed indexes"));
        }
        let message = policy::success(indexed.success_rules, indexed.count, &tally.completed)?;
        Some(Verdict::new(End::Success, "SuccessPolicy", message))
    }

    /// What to do next.
    pub(super) fn decide(&self, tally: &Tally<'a>) -> Step<'a> {
        if let Some(verdict) = self.verdict(tally) {
            return Step::Finish(verdict);
        }
        if self.is_being_deleted {
            return Step::Nothing;
        }
        let active = size(tally.active.len());
        let wanted = self.wanted(tally);
        let surplus = usize::try_from(active.saturating_sub(wanted)).unwrap_or_default();
        let mut removed = self.least_worth(&tally.active, surplus);
        if !removed.is_empty() {
            if !self.spec.is_suspended {
                removed.truncate(MOST_PODS);
            }
            return Step::Remove(removed);
        }
        let terminating = if self.spec.only_replaces_failed() { tally.terminating } else { 0 };
        let lacking = usize::try_from(wanted.saturating_sub(active).saturating_sub(terminating)).unwrap_or_default();
        if lacking == 0 || self.spec.is_suspended { Step::Nothing } else { self.create(tally, lacking.min(MOST_PODS)) }
    }

    /// How many pods should be active.
    fn wanted(&self, tally: &Tally<'_>) -> i64 {
        let left = |count: i64| count.saturating_sub(tally.succeeded).min(self.spec.parallelism).max(0);
        match &self.spec.completion {
            _ if self.spec.is_suspended => 0,
            Completion::Any if tally.succeeded > 0 => size(tally.active.len()),
            Completion::Any => self.spec.parallelism,
            Completion::Count(count) => left(*count),
            Completion::Indexed(indexed) => left(indexed.count),
        }
    }

    /// The pods to remove: those whose index is none or has another pod, then those that are worth least.
    fn least_worth(&self, active: &[&'a Pod], at_least: usize) -> Vec<&'a Pod> {
        let mut sorted = active.to_vec();
        sorted.sort_by_cached_key(|pod| pod.worth());
        if self.spec.indexed().is_none() {
            sorted.truncate(at_least);
            return sorted;
        }
        let mut best: BTreeMap<i64, &str> = BTreeMap::new();
        for pod in &sorted {
            if let Some(index) = self.spec.index_of(pod) {
                best.insert(index, pod.uid());
            }
        }
        let is_kept = |pod: &&Pod| self.spec.index_of(pod).and_then(|index| best.get(&index)) == Some(&pod.uid());
        let (kept, mut removed): (Vec<_>, Vec<_>) = sorted.into_iter().partition(is_kept);
        let more = at_least.saturating_sub(removed.len());
        removed.extend(kept.into_iter().take(more));
        removed
    }

    fn create(&self, tally: &Tally<'_>, count: usize) -> Step<'a> {
        let Some(indexed) = self.spec.indexed() else {
            return wait_or(tally.backoff.remaining(self.now), || Step::Create(vec![None; count]));
        };
        let taken = self.taken_indexes(tally);
        let missing = taken.missing(indexed.count, count);
        if indexed.limits.is_none() {
            let create = || Step::Create(missing.into_iter().map(Some).collect());
            return wait_or(tally.backoff.remaining(self.now), create);
        }
        let waits = |index: &i64| {
            let Some(pod) = tally.held_back.get(index) else { return SignedDuration::ZERO };
            let failures = pod.index_failures() + pod.index_ignored_failures() + 1;
            Backoff::new(failures.unsigned_abs(), pod.finished_at()).remaining(self.now)
        };
        let shortest = missing.iter().map(waits).min().unwrap_or_default();
        let create = || {
            let now = missing.iter().filter(|index| waits(index).is_zero());
            Step::Create(now.copied().map(Some).collect())
        };
        wait_or(shortest, create)
    }

    /// Indexes that need no new pod.
    fn taken_indexes(&self, tally: &Tally<'_>) -> Indexes {
        let is_in_the_way = |pod: &&Pod| pod.is_active() || (self.spec.only_replaces_failed() && pod.is_terminating());
        let running: Indexes = self.pods.iter().filter(is_in_the_way).filter_map(Pod::index).collect();
        let taken = tally.completed.merge(&running);
        tally.failed_indexes.as_ref().map_or_else(|| taken.clone(), |failed| taken.merge(failed))
    }

    /// Whether enough pods have succeeded, with so many still active.
    pub(super) fn is_complete(&self, tally: &Tally<'_>, active: i64) -> bool {
        let enough = match &self.spec.completion {
            Completion::Any => tally.succeeded > 0,
            Completion::Count(count) => tally.succeeded >= *count,
            Completion::Indexed(indexed) => tally.succeeded >= indexed.count,
        };
        enough && active == 0
    }
}

fn wait_or<'a>(wait: SignedDuration, otherwise: impl FnOnce() -> Step<'a>) -> Step<'a> {
    if wait > SignedDuration::ZERO { Step::Wait(wait) } else { otherwise() }
}
