//! The parts in which two objects differ, so that the books need not look at the others.

use crate::object::Object;
use serde_json::{Map, Value};

/// What of an object differs before and after, books aside.
pub(super) fn differing(old: &Object, new: &Object) -> (Value, Value) {
    let (mut before, mut after) = divide(old.fields(), new.fields(), &["metadata"]);
    let metadata = |object| Object::get(object, "metadata").and_then(Value::as_object);
    let none = Map::new();
    let of_metadata = divide(metadata(old).unwrap_or(&none), metadata(new).unwrap_or(&none), &["managedFields"]);
    before.insert("metadata".to_owned(), Value::Object(of_metadata.0));
    after.insert("metadata".to_owned(), Value::Object(of_metadata.1));
    (Value::Object(before), Value::Object(after))
}

/// The entries that differ, each as far as it does. Lists are taken whole, since their items belong together.
fn divide(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    without: &[&str],
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut before, mut after) = (Map::new(), Map::new());
    let counts = |entry: &(&String, &Value)| !without.contains(&entry.0.as_str());
    for (name, value) in old.iter().filter(counts) {
        match (value, new.get(name)) {
            (Value::Object(value), Some(Value::Object(other))) => {
                if value != other {
                    let (value, other) = divide(value, other, &[]);
                    before.insert(name.clone(), Value::Object(value));
                    after.insert(name.clone(), Value::Object(other));
                }
            }
            (value, Some(other)) if value == other => {}
            (value, other) => {
                before.insert(name.clone(), value.clone());
                after.extend(other.map(|other| (name.clone(), other.clone())));
            }
        }
    }
    let added = new.iter().filter(counts).filter(|(name, _)| !old.contains_key(*name));
    after.extend(added.map(|(name, value)| (name.clone(), value.clone())));
    (before, after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_the_same_is_left_out() {
        let object = |value: Value| Object::from_value(value).unwrap();
        let old = object(json!({"metadata": {"name": "a", "labels": {"a": "1", "b": "2"}, "managedFields": [1]},
            "spec": {"list": [1, 2], "same": {"x": 1}, "gone": true}, "status": {}}));
        let new = object(json!({"metadata": {"name": "a", "labels": {"a": "1", "b": "3"}},
            "spec": {"list": [1, 3], "same": {"x": 1}}, "status": {"phase": "Running"}}));
        let (before, after) = differing(&old, &new);
        assert_eq!(
            before,
            json!({"metadata": {"labels": {"b": "2"}}, "spec": {"list": [1, 2], "gone": true}, "status": {}})
        );
        assert_eq!(
            after,
            json!({"metadata": {"labels": {"b": "3"}}, "spec": {"list": [1, 3]}, "status": {"phase": "Running"}})
        );
        assert_eq!(differing(&old, &old).0, json!({"metadata": {}}));
    }
}
