//! Whatever a Secret holds: a decision and a reason, and never a panic.

use super::super::decide::{Made, Trust, judge, next};
use super::super::inspect::{PairData, PairState, inspect_authority, inspect_pair};
use super::{Ca, now, options};
use proptest::prelude::*;
use std::sync::LazyLock;

/// Things that may be found in a Secret: good, of others, of other kinds.
static SCRAPS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let (ca, other) = (Ca::usual(), Ca::usual());
    let (pair, self_signed) = (ca.usual_pair(), super::self_signed());
    let foreign = other.other_pair(&rcgen::PKCS_ED25519, |_| ());
    let mut scraps = vec![ca.text(), ca.key.into_bytes(), other.text(), b"-----BEGIN CERTIFICATE-----\n".to_vec()];
    for PairData { certificate, key, authority } in [pair, foreign, self_signed] {
        scraps.extend([certificate, key, authority]);
    }
    scraps
});

/// A field: some scraps one after the other, with a few bytes changed, cut somewhere; or any bytes at all.
fn field() -> impl Strategy<Value = Vec<u8>> {
    let scraps = proptest::collection::vec(0..SCRAPS.len(), 0..4);
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    let torn =
        (scraps, changes, proptest::option::of(any::<prop::sample::Index>())).prop_map(|(scraps, changes, cut)| {
            let mut bytes: Vec<u8> = scraps.into_iter().flat_map(|index| SCRAPS[index].clone()).collect();
            for (index, value) in changes {
                if !bytes.is_empty() {
                    let at = index.index(bytes.len());
                    bytes[at] = value;
                }
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len() + 1));
            }
            bytes
        });
    prop_oneof![4 => torn, 1 => proptest::collection::vec(any::<u8>(), 0..300)]
}

proptest! {
    #[test]
    fn whatever_a_secret_holds_there_is_a_decision_and_a_reason(
        certificate in field(), key in field(), authority in field(), other in field(), other_key in field(),
    ) {
        let data = PairData { certificate, key, authority };
        let authority = inspect_authority(&other, &other_key, now());
        let known: Vec<_> = authority.certificate().cloned().into_iter().collect();
        let pair = inspect_pair(&data, &known, &options().names(), now());
        if let PairState::Whole(pair) = &pair && pair.flaw.is_none() {
            prop_assert!(pair.works(now()));
        }
        let trust = Trust {
            targets: Vec::new(), unready: Vec::new(), missing: Vec::new(), pair, pair_secret: None, authority, authority_secret: None,
            previous: known,
        };
        let verdict = judge(&trust, &options(), &Made::default(), now());
        prop_assert!(!verdict.reason.is_empty());
        let _ = next(&trust, &options(), &Made::default(), now());
    }
}
