//! One job of a deploy: what is wanted of it, and what became of it.

use super::stage::skipped;
use super::{Deploy, Manager};
use crate::context::Context;
use crate::driver::pods::{Pods, inputs, resolve};
use crate::driver::tasks::Tasks;
use crate::driver::{Attempts, drive};
use crate::error::Error;
use crate::event::Event;
use crate::fingerprint::{Fingerprints, Inputs};
use crate::graph::Flow;
use crate::job::{Job, Occasion, Retires, When};
use crate::ledger::Ledger;
use crate::ledger::store::Book;
use crate::lookout::Lookout;
use crate::machine::{self, Durability, Effort, Identity, Spec, Verdict};
use crate::names::COMPONENT;
use crate::pod_job::PodJob;
use crate::policy::{Keep, OnCancel, OnFailure, OnSupersede, OnUnknown, Patience};
use crate::registry::{Entry, Work};
use crate::report::{JobOutcome, JobReport, between};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a job is not even looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    OtherOccasion,
    NotSelected,
    Cancelled,
}

impl LeftOut {
    pub(super) fn reason(self, occasion: Occasion) -> &'static str {
        match (self, occasion) {
            (Self::OtherOccasion, Occasion::Install) => "runs on upgrade only",
            (Self::OtherOccasion, Occasion::Upgrade) => "runs on install only",
            (Self::NotSelected, _) => "not selected by `--only` or `--skip`; due at the next deploy",
            (Self::Cancelled, _) => super::CANCELLED,
        }
    }
}

impl Deploy<'_> {
    /// Runs a job, if it has to be run, and says whether what comes after it may start.
    pub(super) async fn job(&self, entry: &Entry, occasion: Occasion) -> (JobReport, Flow) {
        if let Some(left) = self.leave_out(entry, occasion) {
            if left == LeftOut::NotSelected {
                self.notes.with(|notes| notes.owed.insert(entry.id.clone(), occasion));
            }
            return (skipped(entry, left.reason(occasion)), Flow::Open);
        }
        let (scope, phase) = (entry.when.scope.clone(), entry.when.phase);
        self.events.send(Event::JobConsidered { job: entry.id.clone(), scope: scope.clone(), phase });
        let started = self.manager.clock.now();
        let (verdict, ends_deploy) =
            self.drive(entry, occasion).await.unwrap_or_else(|error| (self.stop(error), false));
        let (outcome, reason, run, attempts) = verdict.tell();
        let took = between(started, self.manager.clock.now());
        let failed =
            matches!(outcome, JobOutcome::Failed | JobOutcome::Unknown) || matches!(verdict, Verdict::Cancelled { .. });
        if failed && (ends_deploy || entry.on_failure == OnFailure::Abort) {
            self.abort(format!("job `{}` ended the deploy: {reason}", entry.id));
        }
        if !failed {
            self.notes.with(|notes| notes.owed.remove(&entry.id));
        }
        let flow = if failed && entry.on_failure != OnFailure::Continue { Flow::Blocked } else { Flow::Open };
        (JobReport { id: entry.id.clone(), scope, phase, outcome, reason, run, attempts, took }, flow)
    }

    /// Why a job is not even looked at.
    pub(super) fn leave_out(&self, entry: &Entry, occasion: Occasion) -> Option<LeftOut> {
        let settings = &self.manager.settings;
        if entry.when.only.is_some_and(|only| only != occasion) {
            return Some(LeftOut::OtherOccasion);
        }
        let is_selected = settings.only.as_ref().is_none_or(|only| only.contains(&entry.id));
        if settings.skip.contains(&entry.id) || !is_selected {
            return Some(LeftOut::NotSelected);
        }
        self.cancellation.is_cancelled().then_some(LeftOut::Cancelled)
    }

    async fn drive(&self, entry: &Entry, occasion: Occasion) -> Result<(Verdict, bool), Error> {
        self.notes.with(|notes| notes.driven.insert(entry.id.clone()));
        let (spec, mut book, mut attempts) = match self.prepare(entry, occasion).await? {
            Ok(prepared) => prepared,
            Err(reason) => return Ok((Verdict::Failed { run: None, attempts: 0, reason }, false)),
        };
        // Pods hide what they name themselves. A command may print what only pods name.
        if let Work::Code(_) = &entry.work {
            self.hide_secrets(&self.retry).await?;
        }
        let verdict = match drive(&spec, &mut book, &mut *attempts, &self.retry).await {
            Ok(verdict) => verdict,
            // The engine stops, but what is recorded of the job, or still runs, is not a failure of the job.
            Err(error) => {
                let failed = self.stop(error);
                machine::verdict_of_record(&spec, book.ledger()).unwrap_or(failed)
            }
        };
        Ok((verdict, attempts.ends_deploy()))
    }

    /// Stops the deploy, and gives the verdict of a job that it could not begin with.
    fn stop(&self, error: Error) -> Verdict {
        let reason = error.whole_message();
        self.break_off(error);
        Verdict::Failed { run: None, attempts: 0, reason }
    }

    /// What is wanted of a job, what is known of it, and who makes its attempts; or why that cannot be told.
    pub(super) async fn prepare(
        &self,
        entry: &Entry,
        occasion: Occasion,
    ) -> Result<Result<(Spec, Book, Box<dyn Attempts>), String>, Error> {
        let Manager { release, settings, .. } = self.manager;
        let (client, retry) = (&self.client, &self.retry);
        let component = entry.when.scope.component();
        let labels: BTreeMap<String, String> =
            component.map(|name| (COMPONENT.to_owned(), name.to_owned())).into_iter().collect();
        let book = self.books.book(&entry.id, labels.clone())?;
        Ok(Ok(match &entry.work {
            Work::Code(job) => {
                let spec = self.spec_of_code(entry, &**job);
                let context = self.context(entry, occasion);
                let tasks = Tasks::new(Arc::clone(job), context, settings.grace, spec.keep.log_bytes);
                (spec, book, Box::new(tasks))
            }
            Work::Pod(job) => {
                let namespace = &release.namespace;
                let job = match resolve(job, client, namespace, retry).await? {
                    Ok(job) => job,
                    Err(reason) => return Ok(Err(reason)),
                };
                let spec = self.spec_of_pod(entry, &job).await?;
                let mut all = self.labels.clone();
                all.extend(labels);
                let open = || Lookout::open(client, namespace, &self.labels, retry);
                let lookout = self.lookout.clone().unwrap_or_else(open);
                let pods = Pods::new(job, client.clone(), namespace, all, lookout, retry.clone()).behind(&self.mask);
                (spec, book, Box::new(if settings.follow_logs { pods.heard_by(&self.events) } else { pods }))
            }
        }))
    }

    /// Puts away what earlier deploys left behind and this one had no reason to look at: runs that have ended
    /// meanwhile are written down, and finished Jobs expire.
    pub(super) async fn settle(&self) {
        let is_going = |(id, ledger): (String, Result<Ledger, Error>)| {
            ledger.is_ok_and(|ledger| ledger.active().is_some()).then_some(id)
        };
        let mut ids: BTreeSet<String> = self.books.snapshot().into_iter().filter_map(is_going).collect();
        if let Some(mut lookout) = self.lookout.clone() {
            match lookout.ready(&self.retry).await {
                Ok(()) => ids.extend(lookout.job_ids()),
                Err(error) => self.break_off(error),
            }
        }
        for id in ids {
            let was_driven = self.notes.with(|notes| notes.driven.contains(&id));
            if !was_driven && let Err(error) = self.settle_one(&id).await {
                self.break_off(error);
            }
        }
    }

    async fn settle_one(&self, id: &str) -> Result<(), Error> {
        let Some(lookout) = self.lookout.clone() else { return Ok(()) };
        // What manifests of the release bring along is none of ours.
        if id.is_empty() {
            return Ok(());
        }
        let entry = self.registry.jobs().iter().find(|entry| entry.id == id);
        let known = entry.and_then(|entry| match &entry.work {
            Work::Pod(job) => Some(Arc::clone(job)),
            Work::Code(_) => None,
        });
        // What the release no longer knows is kept as usual.
        let job = known.unwrap_or_else(|| {
            Arc::new(PodJob::new(id, When::before_all(), Retires::never("it is gone"), Value::Null))
        });
        let mut book = self.books.book(id, BTreeMap::new())?;
        let spec = Spec { effort: Effort::Settle, keep: job.keep, ..self.spec(id, &Inputs::default()) };
        let namespace = &self.manager.release.namespace;
        let (client, labels) = (self.client.clone(), self.labels.clone());
        let mut attempts = Pods::new(job, client, namespace, labels, lookout, self.retry.clone()).behind(&self.mask);
        drive(&spec, &mut book, &mut attempts, &self.retry).await.map(drop)
    }

    fn context(&self, entry: &Entry, occasion: Occasion) -> Context {
        let component = entry.when.scope.component().map(|name| {
            let found = self.registry.components().iter().find(|component| component.name() == name);
            (name.to_owned(), found.map(|component| component.configuration()).unwrap_or_default())
        });
        Context {
            client: self.client.clone(),
            release: Arc::clone(&self.manager.release),
            component,
            occasion,
            cancellation: self.cancellation.clone(),
            clock: self.manager.clock.clone(),
            job: entry.id.clone(),
            attempt: 1,
            nonce: self.manager.settings.nonce.clone(),
            events: self.events.clone(),
            lines: Arc::default(),
            mask: self.mask.share(),
            watchdog: self.manager.settings.watchdog.clone(),
            retry: self.retry.clone(),
        }
    }

    fn spec_of_code(&self, entry: &Entry, job: &dyn Job) -> Spec {
        let inputs = Inputs { template: job.inputs(), ..Inputs::default() };
        Spec {
            run: job.run_policy(),
            retries: job.retries(),
            durability: Durability::Process,
            deadline: None,
            ..self.spec(&entry.id, &inputs)
        }
    }

    async fn spec_of_pod(&self, entry: &Entry, job: &PodJob) -> Result<Spec, Error> {
        let inputs = inputs(&self.client, &self.manager.release.namespace, job, &self.retry).await?;
        Ok(Spec {
            run: job.run,
            on_supersede: job.on_supersede,
            on_unknown: job.on_unknown,
            on_cancel: job.on_cancel,
            retries: job.retries,
            deadline: Some(job.timeout),
            keep: job.keep,
            patience: job.patience,
            ..self.spec(&entry.id, &inputs)
        })
    }

    fn spec(&self, job: &str, inputs: &Inputs) -> Spec {
        let release = &self.manager.release;
        let settings = &self.manager.settings;
        Spec {
            identity: Identity {
                namespace: release.namespace.clone(),
                owner: release.name.clone(),
                job: job.to_owned(),
                base: format!("{}-{job}", release.name),
            },
            fingerprints: Fingerprints::of(inputs),
            version: release.version.clone(),
            revision: settings.revision.clone(),
            nonce: settings.nonce.clone(),
            run: crate::policy::RunPolicy::default(),
            on_supersede: OnSupersede::default(),
            on_unknown: OnUnknown::default(),
            on_cancel: OnCancel::default(),
            retries: crate::policy::Retries::default(),
            deadline: None,
            keep: Keep::default(),
            patience: Patience::default(),
            durability: Durability::Cluster,
            effort: Effort::Run,
        }
    }
}
