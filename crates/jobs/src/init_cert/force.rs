//! Finds out whether a forced deploy asks for a new certificate, or has only removed who trusts it.

use super::Surroundings;
use super::error::Error;
use super::objects::Objects;
use super::observe::{self, Mishap};
use super::options::Options;
use super::report::{Action, Report};
use super::secrets::FORCED;
use crate::mark::{Cluster, MarkError, Marking, Noticed};
use jiff::Timestamp;

/// What a run is for.
pub(super) enum Prepared {
    /// A run, after this was noticed.
    Wanted(Noticed),
    /// No certificate is asked for, but a bundle lacks its CA: a deploy that replaces objects has removed it.
    Wiped,
    /// Nothing: no deploy was forced.
    Needless(Box<Report>),
}

/// Marks the ConfigMap of the release, if there is one and that may be, and finds out whether a deploy was forced.
///
/// It needs no lease, so that a run that has nothing to do does not wait for another.
pub(super) async fn prepare(around: &Surroundings, options: &Options, may_write: bool) -> Result<Prepared, Error> {
    let Some(mark) = &options.mark else {
        return if options.only_if_forced {
            Box::pin(wiped(around, options)).await
        } else {
            Ok(Prepared::Wanted(Noticed::default()))
        };
    };
    let (secret, authority) = (&options.secret, options.authority_secret());
    let cluster = Cluster { client: &around.client, clock: &around.clock, retry: around.retry() };
    let marking = Marking::of_certificate(cluster, &options.namespace, mark, (secret, &authority));
    let noticed = if may_write { marking.notice().await? } else { marking.foresee().await? };
    if !noticed.is_tracked {
        (around.tell)(&format!("ConfigMap `{}` does not exist: a forced deploy will not be noticed", mark.config_map));
    }
    if options.only_if_forced {
        let issued = marking.annotation_of_secret(secret, FORCED).await?;
        let answered = |issued: Option<String>| issued.and_then(|time| time.parse::<Timestamp>().ok());
        let is_owed = noticed.forced.is_some() && issued.is_some_and(|issued| answered(issued) < noticed.forced);
        if !is_owed {
            return Box::pin(wiped(around, options)).await;
        }
    }
    Ok(Prepared::Wanted(noticed))
}

/// Whether bundles have to trust the certificate again, although no new one is asked for.
async fn wiped(around: &Surroundings, options: &Options) -> Result<Prepared, Error> {
    let now = around.clock.now();
    let look = || async {
        match observe::trust(&around.client, options, &mut Objects::default(), now).await {
            Ok(trust) => Ok(Ok(trust)),
            Err(Mishap::Fatal(error)) => Ok(Err(error)),
            Err(Mishap::Cluster { error, .. }) => Err(error),
        }
    };
    let trust = around.retry().call("read who trusts the certificate", look).await??;
    let works = trust.whole_pair().is_some_and(|pair| pair.works(now));
    let required = trust.required(now);
    if works && trust.targets.iter().any(|target| !target.has(&required)) {
        return Ok(Prepared::Wiped);
    }
    Ok(Prepared::Needless(Box::new(needless(around))))
}

fn needless(around: &Surroundings) -> Report {
    Report {
        action: Action::Kept,
        reason: "no deploy was forced".to_owned(),
        not_after: None,
        at: around.clock.now(),
        targets: Vec::new(),
        restarted: Vec::new(),
        notes: Vec::new(),
        open: Vec::new(),
    }
}

impl From<MarkError> for Error {
    fn from(error: MarkError) -> Self {
        match error {
            MarkError::Cluster(error) => error.into(),
            other @ MarkError::NoIdentity(_) => Self::Refused(other.to_string()),
        }
    }
}
