//! Says what would be done, and does none of it.

use super::Surroundings;
use super::decide::{self, Made, Trust};
use super::dial::Dialling;
use super::error::Error;
use super::force::{self, Prepared};
use super::inspect::Pair;
use super::observe::{self, Mishap};
use super::options::{Options, Stage};
use super::report::{Action, Report};
use super::rotate::target_reports;
use super::secrets;
use super::servers;
use jiff::Timestamp;

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
            Prepared::Wanted(noticed) => look(around, options, noticed.forced).await.map_err(told),
        }
    };
    tokio::select! {
        checked = tokio::time::timeout(options.timeout, checked) => checked.map_err(|_| late())?,
        () = around.cancellation.cancelled() => Err(Error::Cancelled),
    }
}

async fn look(around: &Surroundings, options: &Options, forced: Option<Timestamp>) -> Result<Report, Mishap> {
    let (now, made) = (around.clock.now(), Made::foreseeing(forced));
    let trust = observe::trust(&around.client, options, now).await?;
    let verdict = decide::judge(&trust, options, &made, now);
    let pair = trust.whole_pair().filter(|pair| pair.works(now));
    // A pair that works is not for the inject stage to change.
    let stage = decide::stage(&trust, options, &made);
    let verdict = match pair.filter(|_| stage == Stage::Inject) {
        Some(pair) => decide::Verdict { action: Action::Kept, reason: format!("valid until {}", pair.ends) },
        None => verdict,
    };
    if verdict.action != Action::Kept
        && let Some(refusal) = trust.pair_secret.as_ref().and_then(secrets::refusal)
    {
        return Err(Error::Refused(refusal).into());
    }
    let (mut open, mut notes) = (untrusting(&trust, now), Vec::new());
    if options.stage != Stage::Secret {
        open.extend(trust.missing.iter().map(|missing| format!("there is no {missing}")));
        if trust.pair_secret.as_ref().is_some_and(secrets::is_unfinished) {
            open.push("servers may not have it yet".to_owned());
        }
        if let Some(pair) = pair {
            match &around.dialling {
                Dialling::With(_) => open.extend(ask(around, options, &trust, pair).await?),
                Dialling::Not(why) => notes.push(format!("not seen by a handshake: {why}")),
            }
        }
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

/// Targets whose bundles lack what they should have.
fn untrusting(trust: &Trust, now: Timestamp) -> Vec<String> {
    let required = trust.required(now);
    let lacking = trust.targets.iter().filter(|target| !target.has(&required));
    lacking.map(|target| format!("{target} does not trust it")).collect()
}

/// What is not as it should be with the servers.
async fn ask(around: &Surroundings, options: &Options, trust: &Trust, pair: &Pair) -> Result<Option<String>, Mishap> {
    let Dialling::With(dialler) = &around.dialling else { return Ok(None) };
    let (namespace, service) = (&options.namespace, &options.service);
    let Some(servers) = servers::find(&around.client, namespace, service, &trust.ports()).await? else {
        return Ok(Some(format!("there is no Service `{service}`")));
    };
    let Some(authority) = &pair.authority else { return Ok(None) };
    let wanted = (&pair.leaf, authority);
    let shown = servers::ask(&**dialler, &servers.servers, &options.called(), wanted, &around.clock).await;
    Ok(shown.trouble(!options.deployments.is_empty()))
}
