//! Jobs that are left over: finished ones expire, held ones go, and what still runs is waited for.

use super::{Life, Observed, Spec, Step, Stray, Verdict, Waiting};
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
        // No ledger knows it, so it has never started: a runner that had lost its lease made it.
        Life::Held => Some(delete(stray)),
        Life::Finished(_) | Life::Running | Life::Going => None,
    })
}

/// Before a run starts: nothing of another one may be running any more.
pub(super) fn make_room(spec: &Spec, observed: &Observed) -> Option<Step> {
    let wanted = |stray: &&Stray| stray.job == spec.job_name(spec.fingerprints.newest(), &spec.nonce, 1);
    let running = observed.strays.iter().find(|stray| stray.life == Life::Running && !wanted(stray));
    match (running, spec.on_supersede) {
        (Some(stray), OnSupersede::Replace) => Some(delete(stray)),
        (Some(stray), OnSupersede::Fail) => Some(Step::Done(Verdict::Failed {
            run: None,
            attempts: 0,
            reason: format!("Job `{}` of an earlier run is still going: wait for it, or delete it", stray.job),
        })),
        (Some(_), OnSupersede::Wait) => Some(Step::Wait(Waiting::for_room())),
        (None, _) => (observed.has_remains || observed.strays.iter().any(|stray| stray.life == Life::Going))
            .then(|| Step::Wait(Waiting::for_room())),
    }
}

fn delete(stray: &Stray) -> Step {
    Step::Delete { job: stray.job.clone(), uid: stray.uid.clone() }
}
