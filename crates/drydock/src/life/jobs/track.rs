//! Which pods a Job counts and lets go of, and when it has ended. Nothing here acts
//! (Kubernetes v1.34 `job/job_controller.go`, `trackJobStatusAndRemoveFinalizers`).

use super::decide::{End, Tally, Verdict, View};
use super::indexes::Indexes;
use super::pod::Pod;
use super::progress::{Condition, Progress};
use std::collections::BTreeSet;

/// The most pods that wait to be counted.
const MOST_UNCOUNTED: usize = 500;

/// What comes of looking at the pods of a Job.
#[derive(Debug)]
pub(super) struct Tracked<'a> {
    /// Pods to let go of once the status is written.
    pub(super) released: Vec<&'a Pod>,
    /// Uids of the pods that are held now.
    pub(super) held: BTreeSet<String>,
    /// Whether there were more pods than fit.
    is_full: bool,
}

impl<'a> View<'a> {
    /// Writes down which pods have ended, before they are let go of.
    pub(super) fn track(&self, tally: &Tally<'a>, verdict: Option<&Verdict>, progress: &mut Progress) -> Tracked<'a> {
        let spec = self.spec;
        let mut pods: Vec<&Pod> = self.pods.iter().filter(|pod| pod.is_tracked()).collect();
        if spec.indexed().is_some() {
            pods.sort_by_key(|pod| pod.index());
        }
        let held: BTreeSet<String> = pods.iter().map(|pod| pod.uid().to_owned()).collect();
        let known = progress.uncounted.clone();
        progress.count(&held);
        let mut tracked = Tracked { released: Vec::new(), held, is_full: false };
        let mut new_indexes = Vec::new();
        for pod in pods {
            let failed = spec.considers_failed(pod);
            if !self.can_let_go(tally, verdict, pod, failed) {
                continue;
            }
            tracked.released.push(pod);
            let is_known = |uids: &[String]| uids.iter().any(|uid| uid == pod.uid());
            if pod.has_succeeded() && !is_known(&known.failed) {
                if spec.indexed().is_some() {
                    let index = spec.index_of(pod).filter(|index| !tally.completed_before.contains(*index));
                    new_indexes.extend(index);
                } else if !is_known(&known.succeeded) {
                    progress.uncounted.succeeded.push(pod.uid().to_owned());
                }
            } else if (failed || verdict.is_some_and(|verdict| verdict.end == End::Failure))
                && !is_known(&known.failed)
                && spec.can_count(pod)
                && spec.handling(pod).counts()
            {
                progress.uncounted.failed.push(pod.uid().to_owned());
            }
            let waiting = new_indexes.len() + progress.uncounted.succeeded.len() + progress.uncounted.failed.len();
            if waiting >= MOST_UNCOUNTED {
                tracked.is_full = true;
                break;
            }
        }
        if spec.indexed().is_some() {
            let completed = tally.completed.merge(&new_indexes.into_iter().collect());
            progress.succeeded = completed.total();
            progress.completed_indexes = completed.to_string();
            progress.failed_indexes = tally.failed_indexes.as_ref().map(Indexes::to_string);
        }
        if let Some(verdict) = verdict
            && progress.true_condition(verdict.early_condition()).is_none()
        {
            let Verdict { reason, message, .. } = verdict;
            progress.conditions.push(Condition::new(verdict.early_condition(), true, reason, message, self.now));
        }
        tracked
    }

    fn can_let_go(&self, tally: &Tally<'_>, verdict: Option<&Verdict>, pod: &Pod, failed: bool) -> bool {
        if self.is_being_deleted || verdict.is_some() || pod.has_succeeded() {
            return true;
        }
        let is_held_back = || {
            self.spec.index_limits().is_some()
                && pod.index().and_then(|index| tally.held_back.get(&index)).is_some_and(|held| held.uid() == pod.uid())
        };
        failed && !is_held_back()
    }

    /// Ends the Job if nothing is left to wait for. Says whether it did.
    pub(super) fn conclude(&self, tracked: &Tracked<'_>, verdict: &Verdict, progress: &mut Progress) -> bool {
        let uncounted = &progress.uncounted;
        let waits = tracked.is_full
            || !uncounted.succeeded.is_empty()
            || !uncounted.failed.is_empty()
            || progress.terminating.unwrap_or_default() > 0;
        if waits {
            return false;
        }
        let Verdict { reason, message, .. } = verdict;
        progress.ensure(Condition::new(verdict.final_condition(), true, reason, message, self.now));
        if verdict.end == End::Success {
            progress.complete(self.now);
        }
        true
    }
}
