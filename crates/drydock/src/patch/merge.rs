//! JSON merge patch (RFC 7386) as the server applies it (evanphx/json-patch v4.12.0 `merge.go`): nulls are also taken
//! out of objects in lists that are new, but not of a list or value that replaces an object.

use super::go;
use crate::status::Status;
use serde_json::{Map, Value};

/// Merges a patch into a document.
pub(crate) fn apply(document: &mut Value, patch: &Value) -> Result<(), Status> {
    match patch {
        Value::Object(patch) => {
            match document {
                Value::Object(document) => merge(document, patch),
                other => *other = without_nulls(&Value::Object(patch.clone())),
            }
            Ok(())
        }
        Value::Null => Err(Status::bad_request("Invalid JSON Patch")),
        other => Err(Status::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go::json_name(other)
        ))),
    }
}

fn merge(document: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, change) in patch {
        if change.is_null() {
            document.remove(name);
            continue;
        }
        match (document.get_mut(name), change) {
            (Some(Value::Object(current)), Value::Object(change)) => merge(current, change),
            (Some(current @ Value::Object(_)), change) => *current = change.clone(),
            (_, change) => {
                document.insert(name.clone(), without_nulls(change));
            }
        }
    }
}

/// A value without the null fields of its objects; null items of lists stay.
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), without_nulls(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::testing::any_object;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn patches_merge_as_the_server_merges_them() {
        for (document, patch, merged) in [
            (json!({"a": "1", "b": "2"}), json!({"a": null, "c": "3"}), json!({"b": "2", "c": "3"})),
            (json!({"a": "1"}), json!({"a": {"b": null, "c": {"d": null}}}), json!({"a": {"c": {}}})),
            (json!({}), json!({"l": [null, {"a": null}]}), json!({"l": [null, {}]})),
            (json!({"l": [1]}), json!({"l": [{"a": null}]}), json!({"l": [{}]})),
            (json!({"o": {"x": 1}}), json!({"o": [{"a": null}]}), json!({"o": [{"a": null}]})),
            (json!({"o": null}), json!({"o": {"a": null}}), json!({"o": {}})),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": null}}), json!({"a": {"c": 2}})),
        ] {
            let mut document = document;
            apply(&mut document, &patch).unwrap();
            assert_eq!(document, merged, "{patch}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for (patch, message) in [
            (json!(null), "Invalid JSON Patch"),
            (
                json!([]),
                "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            (
                json!(3),
                "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}",
            ),
        ] {
            let status = apply(&mut json!({}), &patch).unwrap_err();
            assert_eq!((status.code, status.message.as_str()), (400, message));
        }
    }

    proptest! {
        #[test]
        fn merging_twice_is_merging_once(document in any_object(), patch in any_object()) {
            // Lists over objects keep their nulls the first time only.
            let patch = without_nulls(&patch);
            let mut once = document;
            apply(&mut once, &patch).unwrap();
            let mut twice = once.clone();
            apply(&mut twice, &patch).unwrap();
            prop_assert_eq!(once, twice);
        }
    }
}
