//! Events: what controllers tell about objects, and how it is kept from growing without end.
//!
//! The same event again only counts up, many that differ only in their text become one, and whoever tells too much
//! about one object is not listened to (client-go v0.34 `tools/record`).

use super::client::{Client, Tone};
use crate::kinds::Storage;
use crate::object::Object;
use crate::store::Key;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many events, groups and tellers are remembered.
const REMEMBERED: usize = 4096;
/// How many different texts of a reason are told one by one within [`INTERVAL`] seconds.
const DIFFERENT: usize = 10;
const INTERVAL: i64 = 600;
/// How many events about one object may come at once, and how many seconds earn another.
const BURST: i64 = 25;
const REFILL: i64 = 300;

/// Who tells, about what: object and part of it, tone, reason.
type Group = (&'static str, String, &'static str, String);

/// What makes two events the same: a group, a part of the object, a text.
type Same = (Group, String, String);

/// The values of the keys that were used lately.
#[derive(Debug)]
struct Recent<K, V> {
    values: BTreeMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<K: Ord + Clone, V> Recent<K, V> {
    fn entry(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        if !self.values.contains_key(&key) {
            if self.order.len() >= REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.values.remove(&oldest);
            }
            self.order.push_back(key.clone());
        }
        self.values.entry(key).or_insert_with(new)
    }
}

/// What was told lately.
#[derive(Debug, Default)]
pub(crate) struct Told {
    events: Recent<Same, Option<Key>>,
    texts: Recent<Group, (Timestamp, BTreeSet<String>)>,
    tellers: Recent<(&'static str, String), (Timestamp, i64)>,
    last_name: i128,
}

impl Told {
    /// Part of the name of an event: names sort as events were told.
    fn name(&mut self, now: Timestamp) -> String {
        self.last_name = now.as_nanosecond().max(self.last_name + 1);
        format!("{:016x}", self.last_name)
    }

    /// Whether there have been so many different texts lately that this one is not told by itself.
    fn is_one_of_many(&mut self, group: &Group, message: &str, now: Timestamp) -> bool {
        let (last, texts) = self.texts.entry(group.clone(), || (now, BTreeSet::new()));
        if now.duration_since(*last).as_secs() > INTERVAL {
            texts.clear();
        }
        *last = now;
        texts.insert(message.to_owned());
        if texts.len() < DIFFERENT {
            return false;
        }
        texts.pop_first();
        true
    }

    /// Whether somebody tells too much about an object.
    fn is_too_much(&mut self, component: &'static str, uid: &str, now: Timestamp) -> bool {
        let (since, left) = self.tellers.entry((component, uid.to_owned()), || (now, BURST));
        let earned = now.duration_since(*since).as_secs() / REFILL;
        if earned > 0 {
            *left = left.saturating_add(earned).min(BURST);
            *since = now;
        }
        *left -= 1;
        if *left < 0 {
            *left = 0;
            return true;
        }
        false
    }
}

impl Client<'_> {
    /// Tells an event about an object.
    pub(crate) fn tell(&mut self, about: &Object, tone: Tone, reason: &str, message: &str) {
        self.tell_of(about, "", tone, reason, message);
    }

    /// Tells an event about a part of an object: `spec.containers{main}`.
    pub(crate) fn tell_of(&mut self, about: &Object, part: &str, tone: Tone, reason: &str, message: &str) {
        let now = self.now();
        let events = Storage::core("events");
        let group: Group = (self.component, about.uid().to_owned(), tone.name(), reason.to_owned());
        let is_one_of_many = self.cluster.told.is_one_of_many(&group, message, now);
        let (message, same) = if is_one_of_many {
            (format!("(combined from similar events): {message}"), (group, String::new(), String::new()))
        } else {
            (message.to_owned(), (group, part.to_owned(), message.to_owned()))
        };
        if self.cluster.told.is_too_much(self.component, about.uid(), now) {
            return;
        }
        if let Some(key) = self.cluster.told.events.values.get(&same).cloned().flatten() {
            let counted = self.change(&events, &key, |event| count(event, &message, now));
            // An event that is gone is told anew.
            if counted.is_ok() {
                return;
            }
        }
        let event = self.event(about, part, tone, reason, &message);
        let key = Key::of(&event);
        // A namespace that is going takes no events, and nobody is left to read them.
        if self.create(&events, event).is_ok() {
            *self.cluster.told.events.entry(same, || None) = Some(key);
        }
    }

    fn event(&mut self, about: &Object, part: &str, tone: Tone, reason: &str, message: &str) -> Object {
        let now = self.now();
        let namespace = if about.namespace().is_empty() { "default" } else { about.namespace() };
        let name = format!("{}.{}", about.name(), self.cluster.told.name(now));
        let mut event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "kind": about.kind(), "namespace": about.namespace(), "name": about.name(), "uid": about.uid(),
                "apiVersion": about.api_version(), "resourceVersion": about.resource_version(),
            },
            "reason": reason, "message": message, "type": tone.name(), "reportingComponent": self.component,
        });
        if !part.is_empty() {
            event["involvedObject"]["fieldPath"] = json!(part);
        }
        match self.component {
            // The scheduler tells events of the newer kind.
            "default-scheduler" => {
                event["reportingInstance"] = json!("default-scheduler-drydock");
                event["eventTime"] = json!(crate::clock::micro_time(now));
                event["action"] = json!(if reason == "Scheduled" { "Binding" } else { "Scheduling" });
                event["source"] = json!({});
            }
            component => {
                let host = if component == "kubelet" { about.text(&["spec", "nodeName"]) } else { "" };
                event["reportingInstance"] = json!(host);
                event["source"] = json!({"component": component});
                if !host.is_empty() {
                    event["source"]["host"] = json!(host);
                }
                event["eventTime"] = Value::Null;
                event["firstTimestamp"] = json!(crate::clock::time(now));
                event["lastTimestamp"] = json!(crate::clock::time(now));
                event["count"] = json!(1);
            }
        }
        Object::from_value(event).unwrap_or_default()
    }
}

/// Counts an event up.
fn count(event: &mut Object, message: &str, now: Timestamp) {
    if event.integer(&["count"]).is_none() {
        let count = event.integer(&["series", "count"]).unwrap_or(1).saturating_add(1);
        event.set(&["series"], json!({"count": count, "lastObservedTime": crate::clock::micro_time(now)}));
        return;
    }
    event.set(&["count"], event.integer(&["count"]).unwrap_or_default().saturating_add(1));
    event.set(&["lastTimestamp"], crate::clock::time(now));
    event.set(&["message"], message);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_was_not_used_lately_is_forgotten() {
        let mut recent = Recent::default();
        for number in 0..=REMEMBERED {
            recent.entry(number, || number);
        }
        assert_eq!(recent.values.len(), REMEMBERED);
        assert!(!recent.values.contains_key(&0));
    }

    #[test]
    fn many_texts_of_one_reason_become_one_event() {
        let mut told = Told::default();
        let group: Group = ("test", "uid".to_owned(), "Normal", "Tested".to_owned());
        let alone = (0..20).filter(|number| !told.is_one_of_many(&group, &number.to_string(), at(1))).count();
        assert_eq!(alone, DIFFERENT - 1);
        assert!(!told.is_one_of_many(&group, "later", at(700)));
    }

    #[test]
    fn who_tells_too_much_is_not_listened_to() {
        let mut told = Told::default();
        let heard = (0..100).filter(|_| !told.is_too_much("test", "uid", at(1))).count();
        assert_eq!(heard, 25);
        assert!(told.is_too_much("test", "uid", at(300)));
        assert!(!told.is_too_much("test", "uid", at(301)));
        assert!(told.is_too_much("test", "uid", at(302)));
        assert!(!told.is_too_much("test", "other", at(302)));
    }

    #[test]
    fn names_sort_by_time() {
        let mut told = Told::default();
        let names = [told.name(at(5)), told.name(at(5)), told.name(at(9))];
        assert!(names.is_sorted() && names[0] != names[1]);
    }
}
