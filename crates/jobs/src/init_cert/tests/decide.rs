//! What becomes of a pair and why, and in which order: one step after the other, as decisions follow from what is there.

use super::super::certificate::{Certificate, write_all};
use super::super::decide::{Made, Next, Trust, judge, next};
use super::super::inspect::{AuthorityState, PairData, inspect_authority, inspect_pair};
use super::super::issue::later;
use super::super::options::{Options, RenewBefore, Stage};
use super::super::report::Action;
use super::super::target::{Kind, Target};
use super::{Ca, DAY, now, options};
use base64::Engine as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use std::collections::BTreeMap;

fn secret(data: &PairData) -> Secret {
    let fields = [("tls.crt", &data.certificate), ("tls.key", &data.key), ("ca.crt", &data.authority)];
    let data = fields.map(|(key, bytes)| (key.to_owned(), ByteString(bytes.clone())));
    Secret { data: Some(BTreeMap::from(data)), ..Secret::default() }
}

/// A webhook configuration whose only entry trusts these.
fn target(trusted: &[&Certificate]) -> Target {
    let bundle = base64::engine::general_purpose::STANDARD.encode(write_all(trusted.iter().copied()));
    let object = json!({"metadata": {"name": "shop", "uid": "u", "resourceVersion": "1"}, "webhooks": [
        {"name": "a.shop.example", "clientConfig": {"caBundle": bundle, "service": {"name": "hook", "namespace": "shop"}}}]});
    Target::read(Kind::Validating, &object, ("shop", &["hook".to_owned()]))
}

/// What there is: a pair, a CA, older ones, and what is trusted.
fn trust(pair: Option<&PairData>, ca: Option<&Ca>, previous: &[&Certificate], trusted: &[&Certificate]) -> Trust {
    let authority = match ca {
        Some(ca) => inspect_authority(&ca.text(), ca.key.as_bytes(), now()),
        None => AuthorityState::Missing("is not there".to_owned()),
    };
    let known: Vec<Certificate> = authority
        .certificate()
        .into_iter()
        .chain(previous.iter().copied())
        .chain(trusted.iter().copied())
        .cloned()
        .collect();
    Trust {
        targets: vec![target(trusted)],
        unready: Vec::new(),
        missing: Vec::new(),
        pair: pair.map_or_else(
            || super::super::inspect::PairState::Missing("there is no Secret `hook-tls`".to_owned()),
            |pair| inspect_pair(pair, &known, &options().names(), now()),
        ),
        pair_secret: pair.map(secret),
        authority,
        authority_secret: ca.map(|_| Secret::default()),
        previous: previous.iter().copied().cloned().collect(),
    }
}

fn told(trust: &Trust, options: &Options) -> (Action, String) {
    let verdict = judge(trust, options, &Made::default(), now());
    (verdict.action, verdict.reason)
}

#[test]
fn a_pair_is_kept_made_or_renewed_and_says_why() {
    let ca = Ca::usual();
    let pair = ca.usual_pair();
    let good = trust(Some(&pair), Some(&ca), &[], &[&ca.certificate]);
    let ends = "2027-03-01T12:00:00Z";
    assert_eq!(told(&good, &options()), (Action::Kept, format!("valid until {ends}")));
    assert_eq!(
        told(&good, &Options { force: true, ..options() }),
        (Action::Renewed, "a new one was asked for".to_owned())
    );
    let soon = Options { renew_before: RenewBefore::Left(DAY * 364 + DAY / 2), ..options() };
    assert_eq!(told(&good, &soon).0, Action::Kept);
    let sooner = Options { renew_before: RenewBefore::Fraction { numerator: 9999, denominator: 10_000 }, ..options() };
    let left = format!("valid until {ends}, and less than 9999/10000 of its life is left");
    assert_eq!(told(&good, &sooner), (Action::Renewed, left));
    let older = ca.pair(DAY * 30, "2026-02-08T12:00:00Z".parse().unwrap());
    let old = trust(Some(&older), Some(&ca), &[], &[]);
    let reason = "valid until 2026-03-10T12:00:00Z, and less than 1/3 of its life is left";
    assert_eq!(told(&old, &options()), (Action::Renewed, reason.to_owned()));
    let none = trust(None, None, &[], &[]);
    assert_eq!(told(&none, &options()), (Action::Created, "there is no Secret `hook-tls`".to_owned()));
    assert_eq!(told(&none, &Options { force: true, ..options() }).0, Action::Created);
    let torn = PairData { key: Vec::new(), ..pair.clone() };
    let torn = trust(Some(&torn), Some(&ca), &[], &[]);
    assert_eq!(told(&torn, &options()), (Action::Renewed, "tls.key holds no key that can be read".to_owned()));
    let next = Ca::usual();
    let begun = trust(Some(&pair), Some(&next), &[&ca.certificate], &[&ca.certificate]);
    assert_eq!(told(&begun, &options()), (Action::Renewed, "a rotation that was begun goes on".to_owned()));
}

#[test]
fn a_wiped_or_foreign_bundle_is_filled_again_and_the_pair_stays() {
    let (ca, foreign) = (Ca::usual(), Ca::usual());
    for trusted in [vec![], vec![&foreign.certificate]] {
        let trust = trust(Some(&ca.usual_pair()), Some(&ca), &[], &trusted);
        assert_eq!(told(&trust, &options()).0, Action::Kept);
        let step = next(&trust, &options(), &Made::default(), now());
        assert_eq!(step, Next::Extend { targets: vec![0], certificates: vec![ca.certificate.clone()] });
    }
}

#[test]
fn a_new_ca_is_trusted_everywhere_before_anybody_shows_what_it_vouches_for() {
    let (old, new) = (Ca::usual(), Ca::usual());
    let pair = old.usual_pair();
    let (wanted, mut made) = (Options { force: true, ..options() }, Made::default());
    let at_first = trust(Some(&pair), Some(&old), &[], &[&old.certificate]);
    let previous = vec![old.certificate.clone()];
    let step = next(&at_first, &wanted, &made, now());
    assert_eq!(step, Next::WriteAuthority { new: Some("a new CA was asked for".to_owned()), previous });
    let written = trust(Some(&pair), Some(&new), &[&old.certificate], &[&old.certificate]);
    let both = vec![new.certificate.clone(), old.certificate.clone()];
    assert_eq!(next(&written, &wanted, &made, now()), Next::Extend { targets: vec![0], certificates: both });
    let extended = trust(Some(&pair), Some(&new), &[&old.certificate], &[&old.certificate, &new.certificate]);
    made.settled_at = Some(later(now(), options().settle));
    assert_eq!(next(&extended, &wanted, &made, now()), Next::Settle(options().settle));
    let settled = later(now(), options().settle);
    assert_eq!(next(&extended, &wanted, &made, settled), Next::WritePair);
    made.pair = true;
    let paired = trust(Some(&new.usual_pair()), Some(&new), &[&old.certificate], &[&old.certificate, &new.certificate]);
    assert_eq!(next(&paired, &wanted, &made, settled), Next::Trusted);
}

#[test]
fn a_renewed_certificate_keeps_its_ca_while_that_lasts() {
    let ca = Ca::usual();
    let older = ca.pair(DAY * 30, "2026-02-08T12:00:00Z".parse().unwrap());
    let old = trust(Some(&older), Some(&ca), &[], &[&ca.certificate]);
    assert_eq!(next(&old, &options(), &Made::default(), now()), Next::WritePair);
    let short = Ca::new(DAY * 100, now());
    let ending = trust(Some(&short.pair(DAY * 30, "2026-02-08T12:00:00Z".parse().unwrap())), Some(&short), &[], &[]);
    let previous = vec![short.certificate.clone()];
    let why = "the CA ends on 2026-06-09T12:00:00Z, before a certificate of 365 days would";
    let step = next(&ending, &options(), &Made::default(), now());
    assert_eq!(step, Next::WriteAuthority { new: Some(why.to_owned()), previous });
}

#[test]
fn the_same_text_forces_only_once() {
    let ca = Ca::usual();
    let wanted = Options { again: Some("revision 7".to_owned()), ..options() };
    let mut trust = trust(Some(&ca.usual_pair()), Some(&ca), &[], &[&ca.certificate]);
    assert_eq!(told(&trust, &wanted), (Action::Renewed, "a new one was asked for".to_owned()));
    let annotations = BTreeMap::from([("jobwright.io/again".to_owned(), "revision 7".to_owned())]);
    trust.pair_secret.as_mut().unwrap().metadata.annotations = Some(annotations);
    assert_eq!(told(&trust, &wanted).0, Action::Kept);
    let later = Options { again: Some("revision 8".to_owned()), ..options() };
    assert_eq!(told(&trust, &later).0, Action::Renewed);
}

#[test]
fn the_inject_stage_changes_no_pair() {
    let ca = Ca::usual();
    let wanted = Options { stage: Stage::Inject, force: true, ..options() };
    let none = trust(None, None, &[], &[]);
    match next(&none, &wanted, &Made::default(), now()) {
        Next::Wait(what) => assert!(what.contains("the secret stage comes first"), "{what}"),
        other => panic!("{other:?}"),
    }
    let there = trust(Some(&ca.usual_pair()), Some(&ca), &[], &[]);
    let step = next(&there, &wanted, &Made::default(), now());
    assert_eq!(step, Next::Extend { targets: vec![0], certificates: vec![ca.certificate] });
}

#[test]
fn a_ca_that_is_not_valid_yet_or_any_more_signs_nothing_and_another_one_is_made() {
    let (early, late) =
        (Ca::new(DAY * 3650, later(now(), DAY)), Ca::new(DAY * 30, "2026-01-01T12:00:00Z".parse().unwrap()));
    for (ca, begins, reason, why) in [
        (
            early,
            later(now(), DAY),
            "not valid before 2026-03-02T11:00:00Z",
            "the CA is not valid before 2026-03-02T11:00:00Z",
        ),
        (
            late,
            "2026-01-01T12:00:00Z".parse().unwrap(),
            "expired on 2026-01-31T12:00:00Z",
            "the CA expired on 2026-01-31T12:00:00Z",
        ),
    ] {
        let pair = ca.pair(DAY * 365, begins);
        let trust = trust(Some(&pair), Some(&ca), &[], &[&ca.certificate]);
        assert_eq!(told(&trust, &options()), (Action::Renewed, reason.to_owned()));
        match next(&trust, &options(), &Made::default(), now()) {
            Next::WriteAuthority { new: Some(found), .. } => assert_eq!(found, why),
            other => panic!("{other:?}"),
        }
    }
}
