//! Conditions of workloads: found, set and taken away.

use jiff::Timestamp;
use serde_json::{Value, json};

/// The condition of a type.
pub(crate) fn find<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| condition["type"] == kind)
}

/// Whether the condition of a type is true.
pub(crate) fn holds(conditions: &[Value], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition["status"] == "True")
}

/// A condition that has come to be now.
pub(crate) fn new(kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": crate::clock::time(now)})
}

/// Puts a condition last, unless there is one with the same status and reason.
pub(crate) fn set(conditions: &mut Vec<Value>, mut condition: Value) {
    let known = conditions.iter().find(|known| known["type"] == condition["type"]);
    if let Some(known) = known {
        if known["status"] == condition["status"] {
            if known["reason"] == condition["reason"] {
                return;
            }
            condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
        }
        let kind = condition["type"].clone();
        conditions.retain(|known| known["type"] != kind);
    }
    conditions.push(condition);
}

pub(crate) fn remove(conditions: &mut Vec<Value>, kind: &str) {
    conditions.retain(|condition| condition["type"] != kind);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_moves_to_the_end_when_it_says_something_else() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut conditions = vec![new("A", "True", "Good", "", at(0)), new("B", "True", "Good", "", at(0))];
        set(&mut conditions, new("A", "True", "Good", "other words", at(9)));
        assert_eq!(conditions[0]["message"], "");
        set(&mut conditions, new("A", "True", "Better", "", at(9)));
        assert_eq!(
            (&conditions[1]["type"], &conditions[1]["lastTransitionTime"]),
            (&json!("A"), &json!("1970-01-01T00:00:00Z"))
        );
        set(&mut conditions, new("A", "False", "Worse", "", at(9)));
        assert_eq!(conditions[1]["lastTransitionTime"], "1970-01-01T00:00:09Z");
    }
}
