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
    let ending = Ending {
        outcome,
        reason: reason.to_owned(),
        exit_code: finish.and_then(|finish| finish.exit_code),
        finished_at: finish.map_or(now, |finish| finish.at),
        log: observed.log.clone().unwrap_or_else(unread),
        next,
    };
    ledger.conclude(ending, &spec.revision, &spec.keep)
}
