//! Run policies: does a job have to run, after all that its ledger knows?

use super::{Durability, Skip, Spec, Verdict};
use crate::ledger::{Ledger, Outcome, Run, later};
use crate::policy::{OnUnknown, RunPolicy};
use jiff::Timestamp;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Decision {
    Run,
    Done(Verdict),
}

/// Whether a job has to run. A run that was cancelled is the result of the deploy that is being cancelled, and of none that
/// resumes it.
pub(super) fn decide(spec: &Spec, ledger: &Ledger, is_cancelled: bool, now: Timestamp) -> Decision {
    if let Some(run) = concluded(spec, ledger).filter(|run| is_cancelled || run.outcome != Outcome::Cancelled) {
        return Decision::Done(verdict(run));
    }
    if !spec.nonce.is_empty() && !ledger.head.has_handled(&spec.nonce) {
        return Decision::Run;
    }
    if let Some(run) = ledger.unknown_of(&spec.fingerprints) {
        return match spec.on_unknown {
            OnUnknown::Fail => Decision::Done(Verdict::Unknown { run }),
            OnUnknown::RunAgain => Decision::Run,
        };
    }
    skip(spec, ledger, now).map_or(Decision::Run, |skip| Decision::Done(Verdict::Skipped(skip)))
}

/// What the ledger alone says of a job: a run in the cluster continues, and one that this deploy started has ended. A run in
/// this process ends with it.
pub(crate) fn verdict_of_record(spec: &Spec, ledger: &Ledger) -> Option<Verdict> {
    match ledger.active() {
        Some(_) if spec.durability == Durability::Process => None,
        Some(active) => Some(Verdict::Left { run: active.run }),
        None => concluded(spec, ledger).map(verdict),
    }
}

/// The end of the run that this very deploy started, with these inputs and for this request.
fn concluded<'a>(spec: &Spec, ledger: &'a Ledger) -> Option<&'a Run> {
    let last = ledger.runs().find(|run| run.is_final && run.outcome != Outcome::Superseded)?;
    let same = last.revision == spec.revision && spec.fingerprints.include(&last.fingerprint);
    // A run whose end is unknown is a matter of policy, and a request for one more run wants one more.
    let asks_again = !spec.nonce.is_empty() && spec.nonce != last.nonce;
    let runs_again = last.outcome == Outcome::Unknown && spec.on_unknown == OnUnknown::RunAgain;
    (same && !asks_again && !runs_again).then_some(last)
}

fn verdict(run: &Run) -> Verdict {
    match run.outcome {
        Outcome::Succeeded => Verdict::Succeeded { run: run.run, attempts: run.attempt },
        Outcome::Unknown => Verdict::Unknown { run: run.run },
        Outcome::Cancelled => Verdict::Cancelled { run: Some(run.run) },
        Outcome::Failed | Outcome::Superseded => {
            Verdict::Failed { run: Some(run.run), attempts: run.attempt, reason: run.reason.clone() }
        }
    }
}

fn skip(spec: &Spec, ledger: &Ledger, now: Timestamp) -> Option<Skip> {
    let same = ledger.success_of(&spec.fingerprints);
    let last = ledger.last_success();
    let unchanged = last.filter(|done| spec.fingerprints.include(&done.fingerprint));
    let satisfied = match spec.run {
        RunPolicy::Always => return None,
        RunPolicy::Once => last.map(|done| Skip::AlreadySucceeded { run: done.run }),
        RunPolicy::OncePerFingerprint => same.map(|done| Skip::AlreadySucceeded { run: done.run }),
        RunPolicy::OnChange => unchanged.map(|done| Skip::Unchanged { run: done.run }),
        RunPolicy::OnChangeOrExpired => unchanged.and_then(|done| {
            let until = later(ledger.last_success_at()?, spec.keep.finished);
            (now < until).then_some(Skip::NotExpired { run: done.run, until })
        }),
    };
    satisfied.or_else(|| {
        let newest = ledger.newest_version()?;
        let is_older = spec.version.as_ref().is_some_and(|version| version < newest);
        is_older.then(|| Skip::NewerAlreadyApplied { newest: newest.clone() })
    })
}
