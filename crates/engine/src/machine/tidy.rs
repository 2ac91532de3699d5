//! Jobs that are left over: finished ones expire, suspended ones are deleted, and running ones are waited for.

use super::{Life, Observed, Spec, Step, Stray, Verdict, Waiting};
use crate::ledger::later;
use crate::policy::OnSupersede;
use jiff::Timestamp;

/// Puts one leftover away, if there is one.
pub(super) fn tidy(spec: &Spec, observed: &Observed, now: Timestamp) -> Option<Step> {
    observed.strays.iter().find_map(|stray| match &stray.life {
        Life::Finished(finish) if !stray.expires => {
            // The time counts from its end, which may be long ago.
            let since = now.duration_since(finish.at).as_secs().max(0);
            let keep = i64::try_from(spec.keep.finished.as_secs()).unwrap_or(i64::MAX);
            let seconds = i32::try_from(since.saturating_add(keep)).unwrap_or(i32::MAX);
            Some(Step::Expire { job: stray.job.clone(), uid: stray.uid.clone(), seconds })
        }
        // No ledger names it, so it has never started: a process that had lost its lease created it.
        Life::Held => Some(delete(stray)),
        Life::Finished(_) | Life::Running { .. } | Life::Going { .. } => None,
    })
}

/// Before a run starts: nothing of another one may be running any more.
pub(super) fn make_room(spec: &Spec, observed: &Observed, now: Timestamp) -> Option<Step> {
    let wanted = |stray: &&Stray| stray.job == spec.job_name(spec.fingerprints.newest(), &spec.first_nonce(), 1);
    let mut running =
        observed.strays.iter().filter(|stray| matches!(stray.life, Life::Running { .. }) && !wanted(stray));
    match (running.next(), spec.on_supersede) {
        (Some(stray), OnSupersede::Replace) => return Some(delete(stray)),
        (Some(stray), OnSupersede::Fail) => {
            let job = &stray.job;
            return Some(fail(format!("Job `{job}` of an earlier run is still running: wait for it, or delete it")));
        }
        (Some(_), OnSupersede::Wait) => return Some(Step::Wait(Waiting::for_room(None))),
        (None, _) => {}
    }
    let leaving = observed.strays.iter().find_map(|stray| match stray.life {
        Life::Going { since } => Some((format!("Job `{}`", stray.job), Some(since))),
        _ => None,
    });
    let remains = || observed.remains.as_ref().map(|remains| (format!("Pod `{}`", remains.pod), remains.since));
    leaving.or_else(remains).map(|(what, since)| match since {
        Some(since) => await_removal(spec, &what, since, now, Waiting::for_room),
        None => Step::Wait(Waiting::for_room(None)),
    })
}

/// Waits for something that is being deleted, and gives up when that takes too long.
pub(super) fn await_removal(
    spec: &Spec,
    what: &str,
    since: Timestamp,
    now: Timestamp,
    waiting: impl Fn(Option<Timestamp>) -> Waiting,
) -> Step {
    let end = later(since, spec.patience.with_removal);
    if now < end {
        return Step::Wait(waiting(Some(end)));
    }
    let minutes = spec.patience.with_removal.as_secs() / 60;
    fail(format!(
        "{what} has been terminating for more than {minutes} minutes and may still run: check its node; if the node is lost, delete the pod with `kubectl delete pod --force`"
    ))
}

fn fail(reason: String) -> Step {
    Step::Done(Verdict::Failed { run: None, attempts: 0, reason })
}

fn delete(stray: &Stray) -> Step {
    Step::Delete { job: stray.job.clone(), uid: stray.uid.clone() }
}
