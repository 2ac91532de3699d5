//! The end of an attempt: what is written down of it, and whether there is a further one.

use super::{Observed, Spec};
use crate::ledger::{Ending, Ledger, Outcome, later};
use jiff::Timestamp;

/// The ledger after the attempt that is going has ended like this.
pub(super) fn conclude(
    spec: &Spec,
    ledger: &Ledger,
    observed: &Observed,
    now: Timestamp,
    outcome: Outcome,
    reason: &str,
) -> Ledger {
    let Some(active) = ledger.active() else { return ledger.clone() };
    let finish = match &observed.attempt {
        super::Seen::Present { life: super::Life::Finished(finish), .. } => Some(finish),
        _ => observed.pod_finish.as_ref(),
    };
    // A job in this process that ends after a cancellation has been cancelled, whatever it says.
    let outcome = match outcome {
        Outcome::Failed if observed.is_cancelled && spec.durability == super::Durability::Process => Outcome::Cancelled,
        other => other,
    };
    let may_retry = outcome == Outcome::Failed
        && spec.takes(active)
        && spec.effort == super::Effort::Run
        && !observed.is_final
        && !observed.is_cancelled;
    let next = may_retry.then(|| spec.retries.wait_after(active.attempt)).flatten().map(|wait| {
        let nonce = format!("{}#{}", active.nonce, active.run);
        (later(now, wait), spec.job_name(&active.fingerprint, &nonce, active.attempt + 1))
    });
    let unread = || match finish {
        _ if spec.keep.log_bytes == 0 => Ok(String::new()),
        Some(_) => Err("it was not read".to_owned()),
        None => Err("there is no pod to read it from".to_owned()),
    };
    // By the cluster's clock where it has said when; else by that of this process.
    let finished_at = finish.map_or(now, |finish| finish.at);
    let started_at = finish.and_then(|finish| finish.started_at).unwrap_or(active.started_at.min(finished_at));
    let ending = Ending {
        outcome,
        reason: shorten(reason),
        exit_code: finish.and_then(|finish| finish.exit_code),
        started_at,
        finished_at,
        // No container starts before the uid of its Job is recorded.
        never_started: finish.is_none() && active.uid.is_none() && !active.job.is_empty(),
        log: observed.log.clone().unwrap_or_else(unread),
        next,
    };
    ledger.conclude(ending, &spec.keep)
}

/// A reason that fits into a ledger, however many control characters a container printed.
fn shorten(reason: &str) -> String {
    const LONGEST: usize = 1024;
    let plain = reason.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut short: String = plain.clone().take(LONGEST).collect();
    if plain.count() > LONGEST {
        short.push('…');
    }
    short
}
