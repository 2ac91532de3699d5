//! Which events were told lately, so that the same event again only counts up.

use crate::store::Key;
use std::collections::{BTreeMap, VecDeque};

/// How many events are remembered, as by the recorders of real controllers (client-go v0.34 `tools/record`).
const REMEMBERED: usize = 4096;

/// What makes two events the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fingerprint {
    uid: Box<str>,
    component: &'static str,
    reason: Box<str>,
    message: Box<str>,
}

impl Fingerprint {
    pub(crate) fn new(uid: &str, component: &'static str, reason: &str, message: &str) -> Self {
        Self { uid: uid.into(), component, reason: reason.into(), message: message.into() }
    }
}

/// The events that were told lately.
#[derive(Debug, Default)]
pub(crate) struct Told {
    events: BTreeMap<Fingerprint, Key>,
    order: VecDeque<Fingerprint>,
}

impl Told {
    /// Where the same event is.
    pub(crate) fn find(&self, fingerprint: &Fingerprint) -> Option<Key> {
        self.events.get(fingerprint).cloned()
    }

    pub(crate) fn note(&mut self, fingerprint: Fingerprint, event: Key) {
        if self.events.insert(fingerprint.clone(), event).is_none() {
            self.order.push_back(fingerprint);
        }
        while self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.events.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_events_are_forgotten() {
        let mut told = Told::default();
        let fingerprint = |number: usize| Fingerprint::new(&number.to_string(), "test", "Tested", "");
        for number in 0..=REMEMBERED {
            told.note(fingerprint(number), Key::new("default", &number.to_string()));
        }
        assert_eq!(told.find(&fingerprint(0)), None);
        assert_eq!(told.find(&fingerprint(1)), Some(Key::new("default", "1")));
        assert_eq!(told.events.len(), REMEMBERED);
    }
}
