//! What a Job asks for.

use super::pod::Pod;
use super::policy::{self, Handling};
use crate::object::Object;
use jiff::SignedDuration;
use serde_json::Value;

/// The part of a Job's spec that decides what happens.
#[derive(Clone, Debug)]
pub(super) struct Spec<'a> {
    pub(super) parallelism: i64,
    pub(super) completion: Completion<'a>,
    pub(super) backoff_limit: i64,
    pub(super) deadline: Option<SignedDuration>,
    pub(super) is_suspended: bool,
    /// Whether containers are started again in their pods.
    pub(super) restarts_containers: bool,
    only_replaces_failed: bool,
    failure_rules: Option<&'a [Value]>,
}

/// When a Job is done.
#[derive(Clone, Debug)]
pub(super) enum Completion<'a> {
    /// When one pod has succeeded and all others have ended: the pods share a queue of work.
    Any,
    /// When so many pods have succeeded.
    Count(i64),
    /// When a pod has succeeded for each index.
    Indexed(Indexed<'a>),
}

#[derive(Clone, Debug)]
pub(super) struct Indexed<'a> {
    pub(super) count: i64,
    pub(super) success_rules: &'a [Value],
    pub(super) limits: Option<IndexLimits>,
}

/// How often indexes may fail, each on its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexLimits {
    pub(super) backoff: i64,
    pub(super) max_failed: Option<i64>,
}

impl<'a> Spec<'a> {
    pub(super) fn read(job: &'a Object) -> Self {
        let number = |field: &str| job.integer(&["spec", field]);
        let completion = match (number("completions"), job.text(&["spec", "completionMode"])) {
            (Some(count), "Indexed") => Completion::Indexed(Indexed {
                count,
                success_rules: job.list(&["spec", "successPolicy", "rules"]),
                limits: number("backoffLimitPerIndex")
                    .map(|backoff| IndexLimits { backoff, max_failed: number("maxFailedIndexes") }),
            }),
            (Some(count), _) => Completion::Count(count),
            (None, _) => Completion::Any,
        };
        let failure_rules = job.at(&["spec", "podFailurePolicy"]).filter(|policy| !policy.is_null());
        Self {
            parallelism: number("parallelism").unwrap_or(1),
            completion,
            backoff_limit: number("backoffLimit").unwrap_or(6),
            deadline: number("activeDeadlineSeconds").map(SignedDuration::from_secs),
            is_suspended: job.at(&["spec", "suspend"]) == Some(&Value::Bool(true)),
            restarts_containers: job.text(&["spec", "template", "spec", "restartPolicy"]) == "OnFailure",
            only_replaces_failed: failure_rules.is_some() || job.text(&["spec", "podReplacementPolicy"]) == "Failed",
            failure_rules: failure_rules.map(|_| job.list(&["spec", "podFailurePolicy", "rules"])),
        }
    }

    pub(super) fn indexed(&self) -> Option<&Indexed<'a>> {
        match &self.completion {
            Completion::Indexed(indexed) => Some(indexed),
            _ => None,
        }
    }

    /// How many pods or indexes have to succeed, if that is a number.
    pub(super) fn completions(&self) -> Option<i64> {
        match &self.completion {
            Completion::Any => None,
            Completion::Count(count) => Some(*count),
            Completion::Indexed(indexed) => Some(indexed.count),
        }
    }

    pub(super) fn index_limits(&self) -> Option<IndexLimits> {
        self.indexed()?.limits
    }

    /// Whether a pod is replaced only when it has ended, not when it is told to.
    pub(super) fn only_replaces_failed(&self) -> bool {
        self.only_replaces_failed
    }

    /// Whether a pod counts as failed.
    pub(super) fn considers_failed(&self, pod: &Pod) -> bool {
        pod.has_failed() || (!self.only_replaces_failed && pod.is_being_deleted() && !pod.has_succeeded())
    }

    /// What becomes of a failed pod.
    pub(super) fn handling(&self, pod: &Pod) -> Handling {
        self.failure_rules.map_or(Handling::Count, |rules| policy::handle(rules, pod))
    }

    /// The index that a pod works on, if it is one of the Job's.
    pub(super) fn index_of(&self, pod: &Pod) -> Option<i64> {
        let count = self.indexed()?.count;
        pod.index().filter(|index| *index < count)
    }

    /// Whether a pod is one that the Job can count: any, or one with an index.
    pub(super) fn can_count(&self, pod: &Pod) -> bool {
        self.indexed().is_none() || self.index_of(pod).is_some()
    }
}
