//! How long a controller waits before it tries again what failed: twice as long each time.

use crate::store::Key;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

const FIRST: SignedDuration = SignedDuration::from_millis(5);
const LONGEST: SignedDuration = SignedDuration::from_secs(1000);

/// How often something failed in a row.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    failures: BTreeMap<Key, u32>,
}

impl Retries {
    /// Notes a failure. Says when to try again.
    pub(crate) fn fail(&mut self, key: &Key, now: Timestamp) -> Timestamp {
        let failures = self.failures.entry(key.clone()).or_default();
        let factor = 1_i32.checked_shl((*failures).min(24)).unwrap_or(i32::MAX);
        *failures += 1;
        super::later(now, (FIRST * factor).min(LONGEST))
    }

    /// Forgets the failures of what has worked, or is gone.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.failures.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_limit_and_are_forgotten() {
        let (mut retries, key, start) = (Retries::default(), Key::new("a", "b"), Timestamp::UNIX_EPOCH);
        let wait = |retries: &mut Retries| retries.fail(&key, start).as_millisecond();
        assert_eq!([wait(&mut retries), wait(&mut retries), wait(&mut retries)], [5, 10, 20]);
        for _ in 0..60 {
            wait(&mut retries);
        }
        assert_eq!(wait(&mut retries), 1_000_000);
        retries.forget(&key);
        assert_eq!(wait(&mut retries), 5);
    }
}
