//! Every reason for which a pair or a CA is not good.

use super::super::inspect::{AuthorityState, Pair, PairData, PairState, inspect_authority, inspect_pair};
use super::super::issue::later;
use super::{Ca, DAY, now, options, self_signed, set_life};
use rcgen::{ExtendedKeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

fn whole(data: &PairData) -> Pair {
    match inspect_pair(data, &[], &options().names(), now()) {
        PairState::Whole(pair) => *pair,
        other => panic!("{other:?}"),
    }
}

fn flaw(data: &PairData) -> Option<String> {
    whole(data).flaw
}

#[test]
fn a_pair_of_ours_has_no_flaw() {
    let ca = Ca::usual();
    let pair = whole(&ca.usual_pair());
    assert_eq!(pair.flaw, None);
    assert_eq!(pair.authority, Some(ca.certificate));
    assert!(pair.works(now()) && !pair.works(later(now(), DAY * 366)));
}

#[test]
fn pairs_of_other_makers_are_understood() {
    let ca = Ca::usual();
    for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
        assert_eq!(flaw(&ca.other_pair(algorithm, |_| ())), None, "{algorithm:?}");
    }
    assert_eq!(flaw(&self_signed()), None);
    // A chain may bring its CA along, and the Secret need not name it.
    let mut chain = ca.usual_pair();
    chain.certificate.append(&mut std::mem::take(&mut chain.authority));
    assert_eq!(flaw(&chain), None);
}

#[test]
fn a_ca_that_only_a_bundle_knows_vouches_too() {
    let ca = Ca::usual();
    let data = PairData { authority: Vec::new(), ..ca.usual_pair() };
    assert_eq!(flaw(&data).as_deref(), Some("no CA is known that vouches for it"));
    let known = [Ca::usual().certificate, ca.certificate.clone()];
    match inspect_pair(&data, &known, &options().names(), now()) {
        PairState::Whole(pair) => assert_eq!((pair.flaw, pair.authority), (None, Some(ca.certificate))),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_no_server_can_use_is_broken() {
    let (ca, other) = (Ca::usual(), Ca::usual());
    let good = ca.usual_pair();
    let with = |change: fn(&mut PairData)| {
        let mut data = good.clone();
        change(&mut data);
        data
    };
    let mut many = good.clone();
    many.certificate = good.certificate.repeat(17);
    let cases: Vec<(PairData, &str)> = vec![
        (with(|data| data.certificate = b"junk".to_vec()), "tls.crt holds no certificate"),
        (with(|data| data.certificate.clear()), "tls.crt holds no certificate"),
        (with(|data| data.certificate.truncate(200)), "tls.crt holds no certificate"),
        (with(|data| data.certificate.extend(b"-----BEGIN CERTIFICATE-----\n")), "tls.crt is damaged"),
        (many, "tls.crt holds 17 certificates"),
        (
            with(|data| {
                data.certificate = b"-----BEGIN CERTIFICATE-----\nMAMCAQA=\n-----END CERTIFICATE-----\n".to_vec();
            }),
            "the certificate in tls.crt cannot be understood",
        ),
        (with(|data| data.key.clear()), "tls.key holds no key that can be read"),
        (with(|data| data.key.truncate(60)), "tls.key holds no key that can be read"),
        (with(|data| data.key = vec![b'x'; 2 << 20]), "tls.key is larger than any certificate"),
        (PairData { key: other.usual_pair().key, ..good.clone() }, "tls.key is not the key of tls.crt"),
    ];
    for (data, reason) in cases {
        let found = inspect_pair(&data, &[], &options().names(), now());
        assert_eq!(found, PairState::Broken(reason.to_owned()));
    }
    let nothing = inspect_pair(&PairData::default(), &[], &options().names(), now());
    assert_eq!(nothing, PairState::Missing("is empty".to_owned()));
}

#[test]
fn what_cannot_stay_says_why() {
    let ca = Ca::usual();
    let old = later(now(), DAY * 400);
    let changed = |change: fn(&mut rcgen::CertificateParams)| ca.other_pair(&PKCS_ECDSA_P256_SHA256, change);
    let short = Ca::new(DAY, "2026-02-27T12:00:00Z".parse().unwrap());
    let cases = [
        (
            changed(|parameters| set_life(parameters, "2025-01-01T00:00:00Z".parse().unwrap(), DAY)),
            "expired on 2025-01-02T00:00:00Z",
        ),
        (
            changed(|parameters| set_life(parameters, "2027-01-01T00:00:00Z".parse().unwrap(), DAY)),
            "not valid before 2027-01-01T00:00:00Z",
        ),
        (changed(|parameters| drop(parameters.subject_alt_names.pop())), "SAN hook.shop.svc missing"),
        (changed(|parameters| parameters.subject_alt_names.clear()), "SAN hook missing"),
        (
            changed(|parameters| parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]),
            "not for servers: its extended key usage lacks serverAuth",
        ),
        (
            short.other_pair(&PKCS_ECDSA_P256_SHA256, |parameters| {
                set_life(parameters, "2026-02-27T12:00:00Z".parse().unwrap(), DAY * 90);
            }),
            "its CA has ended",
        ),
        (PairData { authority: Ca::usual().text(), ..ca.usual_pair() }, "no CA is known that vouches for it"),
    ];
    for (data, reason) in cases {
        assert_eq!(flaw(&data).as_deref(), Some(reason));
    }
    let pair = inspect_pair(&ca.usual_pair(), &[], &options().names(), old);
    assert!(
        matches!(pair, PairState::Whole(pair) if pair.flaw.as_deref().is_some_and(|flaw| flaw.starts_with("expired on")))
    );
}

#[test]
fn the_full_name_is_asked_for_only_where_the_domain_is_known() {
    let ca = Ca::usual();
    let names = super::Options { cluster_domain: Some("cluster.local".to_owned()), ..options() }.names();
    match inspect_pair(&ca.usual_pair(), &[], &names, now()) {
        PairState::Whole(pair) => {
            assert_eq!(pair.flaw.as_deref(), Some("SAN hook.shop.svc.cluster.local missing"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_ca_that_cannot_vouch_says_why() {
    let (ca, other) = (Ca::usual(), Ca::usual());
    let told = |certificate: &[u8], key: &str| match inspect_authority(certificate, key.as_bytes(), now()) {
        AuthorityState::Whole(_) => "good".to_owned(),
        AuthorityState::Missing(reason) | AuthorityState::Broken(reason, _) => reason,
    };
    let leaf = ca.usual_pair();
    let (old, young) = (Ca::new(DAY, later(now(), DAY * 9)), Ca::new(DAY, "2020-01-01T00:00:00Z".parse().unwrap()));
    assert_eq!(told(&ca.text(), &ca.key), "good");
    assert_eq!(told(b"", ""), "is empty");
    assert_eq!(told(b"junk", &ca.key), "holds no certificate");
    assert_eq!(told(&vec![0; 2 << 20], &ca.key), "is larger than any certificate");
    assert_eq!(told(&ca.text(), ""), "has no key that can be read");
    assert_eq!(told(&ca.text(), &other.key), "has a key that is not its own");
    assert_eq!(
        told(&leaf.certificate, &String::from_utf8(leaf.key).unwrap()),
        "holds a certificate that is none of a CA"
    );
    assert_eq!(told(&young.text(), &young.key), "expired on 2020-01-02T00:00:00Z");
    assert!(told(&old.text(), &old.key).starts_with("is not valid before 2026-03-10T"));
}
