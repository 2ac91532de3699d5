//! Conditions in the status of objects: one of a type, with the time of its last change.

use crate::object::Object;
use serde_json::{Value, json};

/// A condition as it stands now.
pub(crate) fn condition(kind: &str, status: bool, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": if status { "True" } else { "False" }, "reason": reason, "message": message})
}

/// Sets the condition of a type. Its time changes only with its status.
pub(crate) fn set_condition(object: &mut Object, mut condition: Value, now: &str) {
    let conditions = object.map_at(&["status"]).entry("conditions").or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) if known["status"] == condition["status"] => {
            condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            *known = condition;
        }
        Some(known) => {
            condition["lastTransitionTime"] = json!(now);
            *known = condition;
        }
        None => {
            condition["lastTransitionTime"] = json!(now);
            conditions.push(condition);
        }
    }
}
