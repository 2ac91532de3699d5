//! Short names for long content: a hash in letters that spell nothing.

use serde_json::Value;

/// The letters of apimachinery's `rand.SafeEncodeString`.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A hash of a value; another one for each count of collisions.
pub(crate) fn of(value: &Value, collisions: Option<i64>) -> String {
    let mut hash: u32 = 0x811c_9dc5;
    let collisions = collisions.map(i64::to_le_bytes);
    for byte in value.to_string().bytes().chain(collisions.into_iter().flatten()) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash.to_string().bytes().map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_hash_is_stable_and_spells_nothing() {
        let one = of(&json!({"a": 1}), None);
        assert_eq!(one, of(&json!({"a": 1}), None));
        assert_ne!(one, of(&json!({"a": 2}), None));
        assert_ne!(one, of(&json!({"a": 1}), Some(1)));
        assert!(one.bytes().all(|letter| LETTERS.contains(&letter)), "{one}");
    }
}
