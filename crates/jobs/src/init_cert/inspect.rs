//! Looks at what a Secret holds: is it a pair, whose is it, and what is wrong with it? Pure: bytes in, findings out.

use super::certificate::{Certificate, Facts, facts, read_all};
use super::chain;
use super::key::Key;
use jiff::Timestamp;

/// No Secret is larger in a cluster; more is not looked at.
const LARGEST: usize = 1024 * 1024;
/// No server shows a longer chain.
const LONGEST_CHAIN: usize = 16;

/// What a Secret holds of a pair, as it stands there.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct PairData {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) authority: Vec<u8>,
}

/// How a pair is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PairState {
    /// There is none, and why.
    Missing(String),
    /// There is something that no server can use, and why.
    Broken(String),
    /// A server can use it.
    Whole(Box<Pair>),
}

/// A pair that a server can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) leaf: Certificate,
    pub(super) facts: Facts,
    /// The certificate that vouches for it, if anybody does.
    pub(super) authority: Option<Certificate>,
    /// When it ends, or whoever vouches for it, whichever is first.
    pub(super) ends: Timestamp,
    /// Why it cannot stay.
    pub(super) flaw: Option<String>,
}

impl Pair {
    /// Whether the API server accepts it now, from a bundle that has its CA.
    pub(super) fn works(&self, now: Timestamp) -> bool {
        self.authority.is_some() && self.facts.begins <= now && now < self.ends
    }
}

/// Looks at a pair. `known` are certificates, besides those of the Secret itself, that may vouch for it.
pub(super) fn inspect_pair(data: &PairData, known: &[Certificate], names: &[String], now: Timestamp) -> PairState {
    if data.certificate.is_empty() && data.key.is_empty() {
        return PairState::Missing("is empty".to_owned());
    }
    let broken = |reason: &str| PairState::Broken(reason.to_owned());
    let fields = [("tls.crt", &data.certificate), ("tls.key", &data.key), ("ca.crt", &data.authority)];
    for (name, bytes) in &fields {
        if bytes.len() > LARGEST {
            return PairState::Broken(format!("{name} is larger than any certificate"));
        }
    }
    let (chain, is_whole) = read_all(&data.certificate);
    let Some(leaf) = chain.first().cloned() else { return broken("tls.crt holds no certificate") };
    if !is_whole {
        return broken("tls.crt is damaged");
    }
    if chain.len() > LONGEST_CHAIN {
        return PairState::Broken(format!("tls.crt holds {} certificates", chain.len()));
    }
    let Some(facts) = facts(&leaf) else { return broken("the certificate in tls.crt cannot be understood") };
    let Some(key) = Key::read(&data.key) else {
        // A key that is too weak is not read at all, and that is not what is wrong with it.
        return broken(facts.weakness.as_deref().unwrap_or("tls.key holds no key that can be read"));
    };
    if !key.fits(&leaf) {
        return broken("tls.key is not the key of tls.crt");
    }
    // A chain that is complete brings its own CA, if nobody else names it; what is self-signed is its own.
    let (named, _) = read_all(&data.authority);
    let itself = facts.is_self_signed.then_some(&leaf);
    let candidates = named.iter().chain(known).chain(chain.iter().skip(1)).chain(itself);
    let authority = chain::find_authority(&chain, candidates, now).cloned();
    let flaw = find_flaw(&chain, &facts, authority.as_ref(), names, now);
    let ends = authority.as_ref().and_then(super::certificate::facts).map_or(facts.ends, |of| of.ends.min(facts.ends));
    PairState::Whole(Box::new(Pair { leaf, facts, authority, ends, flaw }))
}

fn find_flaw(
    chain: &[Certificate],
    leaf: &Facts,
    authority: Option<&Certificate>,
    names: &[String],
    now: Timestamp,
) -> Option<String> {
    if leaf.has_ended(now) {
        return Some(format!("expired on {}", leaf.ends));
    }
    if leaf.begins > now {
        return Some(format!("not valid before {}", leaf.begins));
    }
    if let Some(name) = names.iter().find(|name| !chain.first().is_some_and(|leaf| chain::is_for(leaf, name))) {
        return Some(format!("SAN {name} missing"));
    }
    if !leaf.is_for_servers {
        return Some("not for servers: its extended key usage lacks serverAuth".to_owned());
    }
    let weak = |certificate: &Certificate| facts(certificate).and_then(|facts| facts.weakness);
    if let Some(weakness) = chain.iter().find_map(weak) {
        return Some(weakness);
    }
    let Some(authority) = authority else { return Some("no CA is known that vouches for it".to_owned()) };
    if let Some(weakness) = weak(authority) {
        return Some(format!("its CA: {weakness}"));
    }
    if chain::verifies(chain, std::slice::from_ref(authority), now) {
        None
    } else {
        Some("its CA has ended".to_owned())
    }
}

/// How a CA of ours is.
#[derive(Clone, Debug)]
pub(super) enum AuthorityState {
    /// There is none, and why.
    Missing(String),
    /// It cannot vouch for anybody, and why. Its certificate may still be trusted by somebody.
    Broken(String, Option<Certificate>),
    /// It can.
    Whole(Authority),
}

/// A CA that can vouch for certificates.
#[derive(Clone, Debug)]
pub(super) struct Authority {
    pub(super) certificate: Certificate,
    pub(super) key: Key,
    pub(super) ends: Timestamp,
}

impl AuthorityState {
    /// Its certificate, whatever it is good for.
    pub(super) fn certificate(&self) -> Option<&Certificate> {
        match self {
            Self::Missing(_) => None,
            Self::Broken(_, certificate) => certificate.as_ref(),
            Self::Whole(authority) => Some(&authority.certificate),
        }
    }
}

/// Looks at a CA.
pub(super) fn inspect_authority(certificate: &[u8], key: &[u8], now: Timestamp) -> AuthorityState {
    let broken = |reason: &str, certificate| AuthorityState::Broken(reason.to_owned(), certificate);
    if certificate.is_empty() && key.is_empty() {
        return AuthorityState::Missing("is empty".to_owned());
    }
    if certificate.len() > LARGEST || key.len() > LARGEST {
        return broken("is larger than any certificate", None);
    }
    let (certificates, _) = read_all(certificate);
    let Some(certificate) = certificates.into_iter().next() else { return broken("holds no certificate", None) };
    let Some(facts) = facts(&certificate) else { return broken("cannot be understood", None) };
    let reason = match Key::read(key) {
        _ if !facts.is_authority => "holds a certificate that is none of a CA".to_owned(),
        _ if facts.has_ended(now) => format!("expired on {}", facts.ends),
        _ if facts.begins > now => format!("is not valid before {}", facts.begins),
        _ if facts.weakness.is_some() => facts.weakness.unwrap_or_default(),
        None => "has no key that can be read".to_owned(),
        Some(key) if !key.fits(&certificate) => "has a key that is not its own".to_owned(),
        Some(key) => return AuthorityState::Whole(Authority { certificate, key, ends: facts.ends }),
    };
    broken(&reason, Some(certificate))
}
