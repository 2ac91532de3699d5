//! Objects of a cluster for `lookup`, from a file of manifests.

use jobwright_template::Lookup;
use serde_json::{Value, json};

/// Objects that templates can look up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objects {
    objects: Vec<Value>,
}

impl Objects {
    /// Reads manifests, and `List`s of them; `Err` has a message with the line.
    pub fn read(text: &str) -> Result<Self, String> {
        let documents = jobwright_yaml::parse(text).map_err(|error| {
            format!("line {}: {}", jobwright_yaml::position(text, error.offset).line, error.message)
        })?;
        let mut objects = Vec::new();
        for document in documents {
            match document.root.to_json() {
                Value::Null => {}
                Value::Object(mut list) if list.get("items").is_some_and(Value::is_array) => {
                    if let Some(Value::Array(items)) = list.remove("items") {
                        objects.extend(items);
                    }
                }
                object @ Value::Object(_) => objects.push(object),
                other => return Err(format!("{other} is no object")),
            }
        }
        Ok(Self { objects })
    }
}

impl Lookup for Objects {
    fn lookup(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let text =
            |object: &Value, path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_meant = |object: &&Value| {
            text(object, "/apiVersion") == api_version
                && text(object, "/kind") == kind
                && (namespace.is_empty() || text(object, "/metadata/namespace") == namespace)
        };
        let mut meant = self.objects.iter().filter(is_meant);
        if name.is_empty() {
            let items: Vec<Value> = meant.cloned().collect();
            return Some(json!({"apiVersion": api_version, "kind": format!("{kind}List"), "items": items}));
        }
        meant.find(|object| text(object, "/metadata/name") == name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_by_name_and_listed() {
        let objects = Objects::read(
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: shop}\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b, namespace: shop}}\n",
        )
        .expect("objects");
        assert!(objects.lookup("v1", "Secret", "shop", "b").is_some());
        assert_eq!(objects.lookup("v1", "Secret", "other", "b"), None);
        let list = objects.lookup("v1", "Secret", "shop", "").expect("a list");
        assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
        assert!(Objects::read("a: [").is_err());
    }
}
