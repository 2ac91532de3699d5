//! Says what would be done, and does none of it.

use super::Surroundings;
use super::decide::{self, Made, Next};
use super::error::Error;
use super::force::{self, Prepared};
use super::objects::Objects;
use super::observe::{self, Mishap};
use super::options::{Options, Stage};
use super::report::{Action, Report};
use super::rotate::{Rotation, Step, target_reports, unready};
use super::secrets;
use super::target::Target;
use jiff::Timestamp;
use std::sync::Mutex;

/// What [`init_cert`](super::init_cert) would do. Nothing is changed, and nothing is waited for.
pub async fn check(around: &Surroundings, options: &Options) -> Result<Report, Error> {
    options.check()?;
    let around = &around.bounded();
    let told = |mishap| match mishap {
        Mishap::Cluster { doing, error } => Error::cluster(doing, error),
        Mishap::Fatal(error) => error,
    };
    let late = || Error::TimedOut {
        waiting_for: "servers and the cluster answer too slowly".to_owned(),
        limit: options.timeout,
    };
    let checked = async {
        match force::prepare(around, options, false).await? {
            Prepared::Needless(report) => Ok(*report),
            Prepared::Wanted(noticed) => Box::pin(look(around, options, noticed.forced)).await.map_err(told),
            Prepared::Wiped => Box::pin(look(around, &options.for_bundles(), None)).await.map_err(told),
        }
    };
    tokio::select! {
        checked = tokio::time::timeout(options.timeout, checked) => checked.map_err(|_| late())?,
        () = around.cancellation.cancelled() => Err(Error::Cancelled),
    }
}

async fn look(around: &Surroundings, options: &Options, forced: Option<Timestamp>) -> Result<Report, Mishap> {
    let (now, made) = (around.clock.now(), Made::foreseeing(forced));
    let trust = observe::trust(&around.client, options, &mut Objects::default(), now).await?;
    let verdict = decide::judge(&trust, options, &made, now);
    let pair = trust.whole_pair().filter(|pair| pair.works(now));
    // A pair that works is not for the inject stage to change.
    let stage = decide::stage(&trust, options, &made);
    let verdict = match pair.filter(|_| stage == Stage::Inject) {
        Some(pair) => decide::Verdict { action: Action::Kept, reason: format!("valid until {}", pair.ends) },
        None => verdict,
    };
    if verdict.action != Action::Kept
        && stage != Stage::Inject
        && let Some(refusal) = trust.pair_secret.as_ref().and_then(secrets::refusal)
    {
        return Err(Error::Refused(refusal).into());
    }
    let mut notes: Vec<String> = trust.unready.iter().map(unready).collect();
    let mut open = Vec::new();
    match decide::next(&trust, options, &made, now) {
        Next::Refuse(refusal) => return Err(Error::Refused(refusal).into()),
        Next::Release => open.extend(trust.all_targets().filter_map(|target| {
            target.release_operations().map(|_| format!("an earlier version owns more of {target} than its bundle"))
        })),
        Next::Extend { certificates, .. } => {
            let lacking: Vec<_> = trust.targets.iter().filter(|target| !target.has(&certificates)).collect();
            if let Some(claim) = lacking.iter().find_map(|target| target.refusal()) {
                return Err(Error::Refused(claim).into());
            }
            open.extend(lacking.iter().map(|target| format!("{target} does not trust it")));
        }
        // The verdict says so.
        Next::Conclude
        | Next::WriteAuthority { .. }
        | Next::Settle(_)
        | Next::WritePair
        | Next::Wait(_)
        | Next::Trusted => {}
    }
    // What servers show matters only once nothing comes before it.
    let current = pair.zip(trust.pair_secret.as_ref()).filter(|_| verdict.action == Action::Kept);
    if let Some((pair, secret)) = current {
        let waiting_for = Mutex::new(String::new());
        match Rotation::new(around, options, &waiting_for).assess(&trust, pair, secret).await? {
            Step::Done(more) => notes.extend(more),
            step => {
                if let Step::Narrow(targets, _) = &step
                    && let Some(claim) =
                        targets.iter().filter_map(|target| trust.targets.get(*target)).find_map(Target::refusal)
                {
                    return Err(Error::Refused(claim).into());
                }
                open.push(step.to_string());
            }
        }
    }
    if options.stage != Stage::Secret {
        let missing = trust.missing.iter().map(|missing| format!("there is no {missing}"));
        let missing: Vec<String> = missing.filter(|missing| !open.contains(missing)).collect();
        open.extend(missing);
    }
    Ok(Report {
        action: verdict.action,
        reason: verdict.reason,
        not_after: trust.whole_pair().map(|pair| pair.ends),
        at: now,
        targets: target_reports(&trust, trust.vouches(), |_| false),
        restarted: Vec::new(),
        notes,
        open,
    })
}
