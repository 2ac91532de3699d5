//! Names, labels and annotations of what is made in a cluster.

use sha2::{Digest as _, Sha256};

/// Who writes, as servers call it.
pub(crate) const FIELD_MANAGER: &str = "jobwright";

pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
pub(crate) const RELEASE: &str = "jobwright.io/release";
pub(crate) const COMPONENT: &str = "jobwright.io/component";
pub(crate) const JOB: &str = "jobwright.io/job";
pub(crate) const PHASE: &str = "jobwright.io/phase";
pub(crate) const RUN: &str = "jobwright.io/run";
pub(crate) const ATTEMPT: &str = "jobwright.io/attempt";
pub(crate) const FINGERPRINT: &str = "jobwright.io/fingerprint";
pub(crate) const LEDGER: &str = "jobwright.io/ledger";

/// The way names are made; a new way gets a new number, so that old and new names never meet.
const FORMAT: &str = "1";
/// Crockford's alphabet, which has no letters that look alike.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Lower-case base32 characters of a hash over all parts.
pub(crate) fn hash(parts: &[&str], length: usize) -> String {
    let mut hasher = Sha256::new();
    for part in std::iter::once(&FORMAT).chain(parts) {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let digest = hasher.finalize();
    let bit = |index: usize| digest[index / 8] >> (7 - index % 8) & 1;
    let digit = |position: usize| (0..5).fold(0, |digit, offset| digit << 1 | usize::from(bit(position * 5 + offset)));
    (0..length.min(51)).map(|position| char::from(ALPHABET[digit(position)])).collect()
}

/// A base, cut where it is too long, and a hash that is always whole.
pub(crate) fn with_hash(base: &str, limit: usize, hash: &str) -> String {
    let end = base.char_indices().nth(limit).map_or(base.len(), |(end, _)| end);
    format!("{}-{hash}", base[..end].trim_end_matches(['-', '.']))
}

/// The name of a ledger, a lease or another record of ours.
pub fn record(base: &str, parts: &[&str]) -> String {
    format!("jobwright-{}", with_hash(base, 40, &hash(parts, 8)))
}

/// Whether a text can be a label's value and part of a name: what the ids of jobs, components and releases must be.
pub fn is_identifier(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    let bytes = text.as_bytes();
    bytes.len() <= 63 && bytes.iter().copied().all(inner) && edge(bytes.first()) && edge(bytes.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_depends_on_every_part_and_on_where_it_ends() {
        assert_ne!(hash(&["ab", "c"], 10), hash(&["a", "bc"], 10));
        assert_ne!(hash(&["a"], 10), hash(&["a", ""], 10));
        assert_eq!(hash(&["shop", "migrate"], 10), "mppy7g0n0m");
        assert_eq!(hash(&["shop"], 8).len(), 8);
    }

    #[test]
    fn a_long_base_is_cut_and_the_hash_is_not() {
        let name = with_hash(&"a".repeat(80), 52, "0123456789");
        assert_eq!(name.len(), 63);
        assert!(name.ends_with("a-0123456789"), "{name}");
        assert_eq!(with_hash("abc-def", 4, "h"), "abc-h");
        assert_eq!(record("shop-migrate", &["x"]), format!("jobwright-shop-migrate-{}", hash(&["x"], 8)));
        assert!(record(&"b".repeat(60), &["x"]).len() <= 63);
    }

    #[test]
    fn identifiers_fit_into_labels() {
        for good in ["a", "migrate", "move-2", "0"] {
            assert!(is_identifier(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", &"a".repeat(64)] {
            assert!(!is_identifier(bad), "{bad}");
        }
    }
}
