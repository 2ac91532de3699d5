//! Brings a Job to where it should be: looks, decides, acts, and writes down what came of it.

use super::backoff::Backoff;
use super::claim::{self, unless_gone};
use super::decide::{End, Step, Tally, Verdict, View};
use super::pod::Pod;
use super::progress::{Condition, Progress};
use super::spec::Spec;
use super::template;
use crate::life::client::{Client, Tone};
use crate::object::Object;
use crate::status::Status;
use crate::store::Key;
use jiff::SignedDuration;
use std::sync::Arc;

/// What a look at a Job came to.
#[derive(Debug, Default)]
pub(super) struct Synced {
    /// When to look again, if nothing happens.
    pub(super) again_in: Option<SignedDuration>,
    /// What is remembered of failed pods, if it was written down.
    pub(super) backoff: Option<Backoff>,
    /// What could not be done; it is tried again.
    pub(super) failure: Option<Status>,
}

/// What acting has changed in what the status will say.
struct Counts {
    active: i64,
    ready: i64,
    terminating: i64,
    failure: Option<Status>,
}

impl Counts {
    fn removed(&mut self, pod: &Pod) {
        self.active -= 1;
        self.terminating += 1;
        self.ready -= i64::from(pod.is_ready());
    }
}

pub(super) fn sync(client: &mut Client<'_>, job: &Object, loose: Vec<Key>, backoff: Backoff) -> Synced {
    let mut synced = Synced::default();
    if let Err(failure) = sync_into(client, job, loose, backoff, &mut synced) {
        synced.failure = Some(failure);
    }
    synced
}

fn sync_into(
    client: &mut Client<'_>,
    job: &Object,
    loose: Vec<Key>,
    backoff: Backoff,
    synced: &mut Synced,
) -> Result<(), Status> {
    let now = client.now();
    let spec = Spec::read(job);
    let mut progress = Progress::read(job);
    let mut written = progress.clone();
    let pods = claim::claim(client, job, loose)?;
    if progress.started.is_none() && !spec.is_suspended {
        progress.started = Some(now);
    }
    let before = progress.clone();
    let is_being_deleted = job.is_being_deleted();
    let view = View { spec: &spec, progress: &before, pods: &pods, is_being_deleted, backoff, now };
    let tally = view.tally();
    let step = view.decide(&tally);
    let is_managed = !matches!(step, Step::Finish(_)) && !is_being_deleted;
    let mut verdict = None;
    let mut counts = Counts {
        active: i64::try_from(tally.active.len()).unwrap_or(i64::MAX),
        ready: tally.ready,
        terminating: tally.terminating,
        failure: None,
    };
    if !matches!(step, Step::Finish(_)) {
        synced.again_in = view.deadline_in();
    }
    match step {
        Step::Finish(reached) => {
            delete(client, job, &tally.active, false, &mut counts);
            // Pods that could not be deleted keep the Job going.
            verdict = (counts.active == 0).then_some(reached);
        }
        Step::Remove(removed) => delete(client, job, &removed, true, &mut counts),
        Step::Create(indexes) => create(client, job, &spec, &tally, &indexes, &mut counts),
        Step::Wait(wait) => {
            let wait = wait.max(super::BATCH);
            synced.again_in = Some(synced.again_in.map_or(wait, |known| known.min(wait)));
        }
        Step::Nothing => {}
    }
    if verdict.is_none() && view.is_complete(&tally, counts.active) {
        verdict = Some(Verdict::completed());
    } else if is_managed {
        suspend_or_resume(client, job, &spec, &mut progress);
    }
    progress.active = counts.active;
    progress.ready = Some(counts.ready);
    progress.terminating = Some(counts.terminating);

    let mut tracked = view.track(&tally, verdict.as_ref(), &mut progress);
    if write(client, job, &progress, &mut written)? {
        synced.backoff = Some(tally.backoff);
    }
    let mut refused = None;
    for pod in std::mem::take(&mut tracked.released) {
        match unless_gone(client.change(&claim::pods(), &Key::of(&pod.0), template::let_go)) {
            Ok(_) => {
                tracked.held.remove(pod.uid());
            }
            Err(status) => refused = Some(status),
        }
    }
    progress.count(&tracked.held);
    if let Some(status) = refused {
        write(client, job, &progress, &mut written)?;
        return Err(status);
    }
    let ended = verdict.as_ref().filter(|verdict| view.conclude(&tracked, verdict, &mut progress));
    write(client, job, &progress, &mut written)?;
    if let Some(verdict) = ended {
        tell_end(client, job, &spec, &progress, verdict);
    }
    synced.failure = counts.failure;
    Ok(())
}

/// Writes the status where it is another than the one written last. Says whether it was.
fn write(client: &mut Client<'_>, job: &Object, progress: &Progress, written: &mut Progress) -> Result<bool, Status> {
    if progress == written {
        return Ok(false);
    }
    client.change_status(&claim::jobs(), &Key::of(job), |job| progress.write(job))?;
    written.clone_from(progress);
    Ok(true)
}

/// Deletes pods, those that shall not count without being held.
fn delete(client: &mut Client<'_>, job: &Object, pods: &[&Pod], let_go: bool, counts: &mut Counts) {
    for pod in pods {
        let key = Key::of(&pod.0);
        let free = if let_go && pod.is_tracked() {
            client.change(&claim::pods(), &key, template::let_go).map(drop)
        } else {
            Ok(())
        };
        let deleted = unless_gone(free.and_then(|()| client.delete(&claim::pods(), &key)));
        match deleted {
            Ok(deleted) => {
                counts.removed(pod);
                if deleted.is_some() {
                    client.tell(job, Tone::Normal, "SuccessfulDelete", &format!("Deleted pod: {}", pod.0.name()));
                }
            }
            Err(status) => {
                client.tell(job, Tone::Warning, "FailedDelete", &format!("Error deleting: {status}"));
                counts.failure = Some(status);
            }
        }
    }
}

/// Makes pods, in batches that double as long as all goes well.
fn create(
    client: &mut Client<'_>,
    job: &Object,
    spec: &Spec<'_>,
    tally: &Tally<'_>,
    indexes: &[Option<i64>],
    counts: &mut Counts,
) {
    let (mut left, mut batch) = (indexes, 1);
    while !left.is_empty() && counts.failure.is_none() {
        let (now, later) = left.split_at(batch.min(left.len()));
        for index in now {
            match client.create(&claim::pods(), template::pod(job, spec, tally, *index)) {
                Ok(pod) => {
                    counts.active += 1;
                    created(client, job, &pod);
                }
                Err(status) if status.is_because_namespace_goes() => {}
                Err(status) => {
                    client.tell(job, Tone::Warning, "FailedCreate", &format!("Error creating: {status}"));
                    counts.failure = Some(status);
                }
            }
        }
        (left, batch) = (later, batch * 2);
    }
}

fn created(client: &mut Client<'_>, job: &Object, pod: &Arc<Object>) {
    client.tell(job, Tone::Normal, "SuccessfulCreate", &format!("Created pod: {}", pod.name()));
}

fn suspend_or_resume(client: &mut Client<'_>, job: &Object, spec: &Spec<'_>, progress: &mut Progress) {
    let now = client.now();
    let (reason, event, message) = if spec.is_suspended {
        ("JobSuspended", "Suspended", "Job suspended")
    } else {
        ("JobResumed", "Resumed", "Job resumed")
    };
    if progress.ensure(Condition::new("Suspended", spec.is_suspended, reason, message, now)) {
        client.tell(job, Tone::Normal, event, message);
        if !spec.is_suspended {
            progress.started = Some(now);
        }
    }
}

fn tell_end(client: &mut Client<'_>, job: &Object, spec: &Spec<'_>, progress: &Progress, verdict: &Verdict) {
    match verdict.end {
        End::Success => {
            if spec.completions().is_some_and(|completions| progress.succeeded > completions) {
                let message = "Too many succeeded pods running after completion count reached";
                client.tell(job, Tone::Warning, "TooManySucceededPods", message);
            }
            client.tell(job, Tone::Normal, "Completed", "Job completed");
        }
        End::Failure => client.tell(job, Tone::Warning, &verdict.reason, &verdict.message),
    }
}
