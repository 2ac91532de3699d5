//! Decides what comes next about Secrets and bundles. Pure: what is there goes in, one step comes out; whoever carries it
//! out looks again and asks again, so that a run may be interrupted anywhere and two may run at once.
//!
//! The order is what keeps every server trusted: the new CA is written down, bundles trust it besides the old one, all
//! API servers have seen that, and only then the pair changes.

use super::certificate::{Certificate, alive, fingerprint, read_all};
use super::chain::is_for;
use super::inspect::{Authority, AuthorityState, Pair, PairState};
use super::issue::later;
use super::options::{Options, Stage, show};
use super::report::Action;
use super::secrets;
use super::target::{Missing, Target};
use crate::mark::{self, Memory};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// More Services than have ever been behind one certificate.
const MOST_OTHERS: usize = 16;
/// More than any rotation leaves behind.
const MOST_PREVIOUS: usize = 16;
/// Servers write times down without their fractions.
const FRACTION: Duration = Duration::from_secs(1);

/// What there is of Secrets and bundles.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    pub(super) targets: Vec<Target>,
    /// Those that only the release makes ready.
    pub(super) unready: Vec<Target>,
    pub(super) missing: Vec<Missing>,
    pub(super) pair: PairState,
    pub(super) pair_secret: Option<Secret>,
    pub(super) authority: AuthorityState,
    pub(super) authority_secret: Option<Secret>,
    /// CAs that servers may still be vouched for by.
    pub(super) previous: Vec<Certificate>,
}

/// What this run has made so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Made {
    /// The fingerprint of its CA.
    pub(super) authority: Option<String>,
    pub(super) pair: bool,
    /// An earlier rotation is unfinished, and this run could not prove that every server presents the current pair.
    pub(super) unproven: bool,
    /// When all API servers have seen what it has put into bundles, by our clock.
    pub(super) settled_at: Option<Timestamp>,
    /// A forced deploy that it would notice, if it only looks.
    pub(super) forced: Option<Timestamp>,
    /// The versions of targets that it has seen, and when it has first, by our clock.
    seen: BTreeMap<String, (String, Timestamp)>,
}

impl Made {
    /// Nothing, before a run that would notice this forced deploy.
    pub(super) fn foreseeing(forced: Option<Timestamp>) -> Self {
        Self { forced, ..Self::default() }
    }

    /// Remembers when each version of a target was seen first.
    pub(super) fn see(&mut self, targets: &[Target], now: Timestamp) {
        for target in targets {
            let seen = self.seen.entry(target.to_string()).or_insert_with(|| (target.version.clone(), now));
            if seen.0 != target.version {
                *seen = (target.version.clone(), now);
            }
        }
    }
}

/// What becomes of the pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) action: Action,
    pub(super) reason: String,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Finish an earlier rotation, if every server presents the current pair.
    Conclude,
    /// Write the Secret of the CA: with a new one, and why, or with more before it.
    WriteAuthority { new: Option<String>, previous: Vec<Certificate> },
    /// Add these to the bundles of some targets.
    Extend { targets: Vec<usize>, certificates: Vec<Certificate> },
    /// Give up what earlier versions own of targets.
    Release,
    /// What is wanted contradicts what is there.
    Refuse(String),
    /// Wait until all API servers have seen the bundles.
    Settle(Duration),
    /// Make a pair and write it.
    WritePair,
    /// Nothing can be done before this has come about.
    Wait(String),
    /// The pair is there, and everybody who is there trusts it.
    Trusted,
}

impl Trust {
    /// The pair, if a server can use it.
    pub(super) fn whole_pair(&self) -> Option<&Pair> {
        match &self.pair {
            PairState::Whole(pair) => Some(pair),
            PairState::Missing(_) | PairState::Broken(_) => None,
        }
    }

    /// Who vouches for the pair that is there.
    pub(super) fn vouches(&self) -> Option<&Certificate> {
        self.whole_pair()?.authority.as_ref()
    }

    /// Whether a new CA is there and the pair is still the old one: somebody has begun, and has not come to the pair.
    pub(super) fn is_under_way(&self) -> bool {
        match (self.vouches(), &self.authority) {
            (Some(old), AuthorityState::Whole(new)) => *old != new.certificate && self.previous.contains(old),
            _ => false,
        }
    }

    /// Whether bundles still have to trust a CA before this one: it is unknown whether servers present its certificates.
    pub(super) fn is_overlapping(&self, now: Timestamp) -> bool {
        !self.previous(now).is_empty()
    }

    /// When the last forced deploy was noticed.
    pub(super) fn forced(&self, options: &Options) -> Option<Timestamp> {
        let secret = self.authority_secret.as_ref()?;
        Memory::of(&secret.metadata, &mark::key("init-cert", &options.secret))?.forced
    }

    /// The ports at which a Service is called.
    pub(super) fn ports(&self, service: &str) -> BTreeSet<u16> {
        let entries = self.targets.iter().flat_map(|target| &target.entries);
        entries.filter(|entry| entry.service == service).map(|entry| entry.port).collect()
    }

    /// Everything that was read, ready or not.
    pub(super) fn all_targets(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().chain(&self.unready)
    }

    /// The Services that the pair is for, besides those that are wanted.
    pub(super) fn other_services(&self, options: &Options) -> Vec<String> {
        self.whole_pair().map(|pair| options.other_services(&pair.facts.names)).unwrap_or_default()
    }

    /// The names of the next pair. What the pair before it was for stays, as somebody may still call it by that; whoever
    /// forces a pair for certain Services alone does so after the release.
    pub(super) fn names(&self, options: &Options) -> Vec<String> {
        let mut names = options.names();
        if options.force && options.stage != Stage::Secret {
            return names;
        }
        let Some(pair) = self.whole_pair() else { return names };
        for service in options.other_services(&pair.facts.names).into_iter().take(MOST_OTHERS) {
            names.extend(options.names_among(&pair.facts.names, &service));
        }
        names
    }

    /// CAs before this one that have not ended.
    fn previous(&self, now: Timestamp) -> Vec<Certificate> {
        alive(&self.previous, now)
    }

    /// All that every bundle has to have while the pair stays as it is.
    pub(super) fn required(&self, now: Timestamp) -> Vec<Certificate> {
        let coming = self.authority.certificate().filter(|_| self.is_under_way());
        let mut required: Vec<Certificate> = self.vouches().into_iter().chain(coming).cloned().collect();
        extend(&mut required, self.previous(now));
        required
    }
}

/// Says what becomes of the pair, and why.
pub(super) fn judge(trust: &Trust, options: &Options, made: &Made, now: Timestamp) -> Verdict {
    let renew = |reason: String| Verdict { action: Action::Renewed, reason };
    let is_forced = is_forced(trust, options, made) && stage(trust, options, made) != Stage::Inject;
    let asked = if is_owed(trust, options, made) { REPLACED } else { FORCED };
    match &trust.pair {
        PairState::Missing(_) if is_forced => Verdict { action: Action::Created, reason: asked.to_owned() },
        _ if is_forced => renew(asked.to_owned()),
        PairState::Missing(reason) => Verdict { action: Action::Created, reason: reason.clone() },
        PairState::Broken(reason) => renew(reason.clone()),
        PairState::Whole(pair) => {
            if let Some(flaw) = &pair.flaw {
                return renew(flaw.clone());
            }
            let left: Duration = pair.ends.duration_since(now).try_into().unwrap_or_default();
            if trust.is_under_way() {
                renew("a rotation that was begun goes on".to_owned())
            } else if left < options.renew_before.of(pair.facts.life()) && !made.pair {
                renew(format!("valid until {}, and less than {} is left", pair.ends, options.renew_before))
            } else {
                Verdict { action: Action::Kept, reason: format!("valid until {}", pair.ends) }
            }
        }
    }
}

/// Whether a new pair is asked for, whatever there is.
fn is_forced(trust: &Trust, options: &Options, made: &Made) -> bool {
    let remembered = trust.pair_secret.as_ref().and_then(secrets::again);
    let is_new = options.again.as_ref().is_some_and(|again| remembered != Some(again));
    (options.force || is_new) && !made.pair || is_owed(trust, options, made)
}

/// Whether a forced deploy asks for a new pair. If there is none, the next one is new anyway.
fn is_owed(trust: &Trust, options: &Options, made: &Made) -> bool {
    let noticed = trust.forced(options).max(made.forced);
    noticed.is_some()
        && trust.pair_secret.as_ref().is_some_and(|secret| secrets::forced(secret) < noticed)
        && !made.pair
}

/// How much is done: all of it for a forced deploy, which no stage before this one could see.
pub(super) fn stage(trust: &Trust, options: &Options, made: &Made) -> Stage {
    match options.stage {
        Stage::Inject if is_owed(trust, options, made) => Stage::All,
        stage => stage,
    }
}

const FORCED: &str = "a new one was asked for";
const REPLACED: &str = "a deploy was forced";

/// Whether a forced run keeps the CA and issues a certificate only.
///
/// While servers may present certificates of earlier CAs, bundles have to trust those, too. A further CA would not replace
/// any of them, so that bundles would grow with every forced run; the one that is to replace them is already there.
pub(super) fn keeps_authority(trust: &Trust, options: &Options, made: &Made, now: Timestamp) -> bool {
    is_forced(trust, options, made) && !trust.is_under_way() && trust.is_overlapping(now)
}

/// Says what comes next about Secrets and bundles.
pub(super) fn next(trust: &Trust, options: &Options, made: &Made, now: Timestamp) -> Next {
    let verdict = judge(trust, options, made, now);
    if let Some(refusal) = contradiction(trust, options, made, &verdict) {
        return Next::Refuse(refusal);
    }
    if trust.all_targets().any(|target| target.release_operations().is_some()) {
        return Next::Release;
    }
    if stage(trust, options, made) == Stage::Inject {
        return match trust.whole_pair() {
            Some(pair) if pair.works(now) => trust_in(trust, &trust.required(now)).unwrap_or(Next::Trusted),
            _ => Next::Wait(format!(
                "Secret `{}` has no certificate that works ({}): the secret stage comes first",
                options.secret, verdict.reason
            )),
        };
    }
    if verdict.action == Action::Kept {
        return trust_in(trust, &trust.required(now)).unwrap_or(Next::Trusted);
    }
    if options.stage == Stage::All
        && made.authority.is_none()
        && !made.unproven
        && keeps_authority(trust, options, made, now)
    {
        return Next::Conclude;
    }
    let authority = match fit(trust, options, made, now) {
        Ok(authority) => authority,
        Err(why) => {
            return unreached(trust, now)
                .unwrap_or_else(|| Next::WriteAuthority { new: Some(why), previous: outgoing(trust, None, now) });
        }
    };
    let previous = outgoing(trust, Some(&authority.certificate), now);
    if previous.iter().any(|certificate| !trust.previous.contains(certificate)) {
        return Next::WriteAuthority { new: None, previous };
    }
    let mut required = vec![authority.certificate.clone()];
    extend(&mut required, previous);
    trust_in(trust, &required)
        .or_else(|| settle(trust, &authority.certificate, options, made, now))
        .unwrap_or(Next::WritePair)
}

/// The CA that vouches for the next pair, or why there has to be another one first.
pub(super) fn fit<'a>(
    trust: &'a Trust,
    options: &Options,
    made: &Made,
    now: Timestamp,
) -> Result<&'a Authority, String> {
    match &trust.authority {
        AuthorityState::Missing(reason) | AuthorityState::Broken(reason, _) => Err(format!("the CA {reason}")),
        AuthorityState::Whole(authority) => {
            let is_made = made.authority.as_ref().is_some_and(|made| *made == fingerprint(&authority.certificate));
            let is_kept = is_made || trust.is_under_way() || keeps_authority(trust, options, made, now);
            if is_forced(trust, options, made) && !is_kept {
                return Err("a new CA was asked for".to_owned());
            }
            // One that was just made ends a little before what it vouches for would.
            if authority.ends < later(now, options.validity.saturating_mul(9) / 10) {
                let validity = show(options.validity);
                return Err(format!("the CA ends on {}, before a certificate of {validity} would", authority.ends));
            }
            Ok(authority)
        }
    }
}

/// The CAs by which servers may be vouched for when the next pair is there. `next` is the one that it will have.
fn outgoing(trust: &Trust, next: Option<&Certificate>, now: Timestamp) -> Vec<Certificate> {
    let mut all = trust.previous.clone();
    extend(&mut all, trust.vouches().cloned());
    extend(&mut all, trust.authority.certificate().cloned());
    // What vouched for a pair that is broken now may do so for servers that have loaded it before.
    if trust.vouches().is_none()
        && let Some(secret) = &trust.pair_secret
    {
        extend(&mut all, read_all(&secrets::pair_data(secret).authority).0.into_iter().take(MOST_PREVIOUS));
    }
    all.retain(|certificate| Some(certificate) != next);
    alive(&all, now)
}

/// What is wrong if a new pair is wanted for other Services than the one that is there. Two runs that each know of one
/// Service would take its names away from the other.
fn contradiction(trust: &Trust, options: &Options, made: &Made, verdict: &Verdict) -> Option<String> {
    if verdict.action == Action::Kept || options.force || stage(trust, options, made) != Stage::All {
        return None;
    }
    let pair = trust.whole_pair()?;
    let others = trust.other_services(options);
    let lacks = options.names().iter().any(|name| !is_for(&pair.leaf, name));
    let Options { secret, .. } = options;
    (lacks && !others.is_empty()).then(|| {
        let flags: Vec<String> = others.iter().map(|other| format!("--service {other}")).collect();
        format!(
            "Secret `{secret}` is for Service `{}` and not for {}: another run would take these names away again; name all \
             Services (add {}), or pass --force to issue it for {} alone",
            others.join("`, `"),
            options.tell_services(),
            flags.join(" "),
            options.tell_services(),
        )
    })
}

/// What would stop to trust a pair that works, if its CA were replaced: its bundles are not ours to fill yet.
fn unreached(trust: &Trust, now: Timestamp) -> Option<Next> {
    let vouches = trust.vouches().filter(|_| trust.whole_pair().is_some_and(|pair| pair.works(now)))?;
    let target = trust.unready.iter().find(|target| target.has_somewhere(vouches))?;
    Some(Next::Refuse(target.obstacle.clone().unwrap_or_else(|| format!("{target} is not ready"))))
}

/// The targets whose bundles lack something.
fn trust_in(trust: &Trust, required: &[Certificate]) -> Option<Next> {
    let lacking = trust.targets.iter().enumerate().filter(|(_, target)| !target.has(required));
    let targets: Vec<usize> = lacking.map(|(index, _)| index).collect();
    (!targets.is_empty()).then(|| Next::Extend { targets, certificates: required.to_vec() })
}

/// How long all API servers may still take to see a CA that is new in a bundle. Where nothing else was trusted before,
/// there is nobody to wait for.
fn settle(trust: &Trust, authority: &Certificate, options: &Options, made: &Made, now: Timestamp) -> Option<Next> {
    let overlapping: Vec<&Target> = trust.targets.iter().filter(|target| target.has_besides(authority)).collect();
    // The clock of the server may go ahead of ours: a change was made before it was seen, whatever it says.
    let seen = |target: &&Target| {
        let first = made.seen.get(&target.to_string()).map_or(now, |(_, first)| *first);
        match target.changed_at {
            Some(changed) => Some(later(changed.min(first), options.settle + FRACTION)),
            // What we own nothing of does not tell when it was changed: by this run, or at the latest before it was seen.
            None => made.settled_at.is_none().then(|| later(first, options.settle)),
        }
    };
    let here = made.settled_at.filter(|_| !overlapping.is_empty());
    let until = overlapping.iter().filter_map(seen).chain(here).max()?;
    let left: Duration = until.duration_since(now).try_into().unwrap_or_default();
    (!left.is_zero() && !options.settle.is_zero()).then_some(Next::Settle(left))
}

/// Adds what is not there yet.
fn extend(all: &mut Vec<Certificate>, more: impl IntoIterator<Item = Certificate>) {
    for certificate in more {
        if !all.contains(&certificate) {
            all.push(certificate);
        }
    }
}
