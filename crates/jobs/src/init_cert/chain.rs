//! Does a certificate verify as it would for the API server?

use super::certificate::{Certificate, facts};
use jiff::Timestamp;
use rustls::pki_types::{ServerName, UnixTime};
use std::time::Duration;
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// Whether a chain (the server's certificate first) is vouched for by any of these, at a time.
pub(super) fn verifies(chain: &[Certificate], authorities: &[Certificate], at: Timestamp) -> bool {
    let Some((leaf, rest)) = chain.split_first() else { return false };
    // As in Go's crypto/x509, a certificate that is itself trusted needs nobody to vouch for it, though it may be one
    // that `openssl req -x509` has made a CA.
    if authorities.contains(leaf) {
        return facts(leaf).is_some_and(|facts| facts.begins <= at && !facts.has_ended(at) && facts.is_for_servers);
    }
    let valid =
        |authority: &&Certificate| facts(authority).is_some_and(|facts| facts.begins <= at && !facts.has_ended(at));
    let trusted = authorities.iter().filter(valid);
    let anchors: Vec<_> = trusted.filter_map(|authority| anchor_from_trusted_cert(authority).ok()).collect();
    let Ok(leaf) = EndEntityCert::try_from(leaf) else { return false };
    let usage = KeyUsage::server_auth();
    leaf.verify_for_usage(ALL_VERIFICATION_ALGS, &anchors, rest, unix(at), usage, None, None).is_ok()
}

/// The first of some certificates that vouches for a chain by itself: now, or at least when it began.
pub(super) fn find_authority<'a>(
    chain: &[Certificate],
    candidates: impl Iterator<Item = &'a Certificate> + Clone,
    now: Timestamp,
) -> Option<&'a Certificate> {
    let began = chain.first().and_then(facts).map(|facts| facts.begins);
    [Some(now), began]
        .into_iter()
        .flatten()
        .find_map(|at| candidates.clone().find(|candidate| verifies(chain, std::slice::from_ref(*candidate), at)))
}

/// Whether a certificate is for a name.
pub(super) fn is_for(certificate: &Certificate, name: &str) -> bool {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return false };
    ServerName::try_from(name).is_ok_and(|name| certificate.verify_is_valid_for_subject_name(&name).is_ok())
}

/// A time as TLS counts it.
pub(super) fn unix(time: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default()))
}
