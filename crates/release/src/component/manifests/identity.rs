//! What makes two objects the same: group, kind, namespace and name, in whichever version they are written.

use crate::component::kinds::group_of;
use crate::record::ObjectKey;
use std::fmt;

/// The identity of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    group: String,
    kind: String,
    namespace: Option<String>,
    name: String,
}

impl From<&ObjectKey> for Identity {
    fn from(key: &ObjectKey) -> Self {
        Self {
            group: group_of(&key.api_version).to_owned(),
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        }
    }
}

impl Identity {
    pub(crate) fn new(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        Self {
            group: group_of(api_version).to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    /// Whether it is the namespace of this name.
    pub(crate) fn is_namespace(&self, name: &str) -> bool {
        (self.group.as_str(), self.kind.as_str()) == ("", "Namespace") && self.name == name
    }

    /// Whether another object goes with it: one of a namespace, or one of the kinds of a definition. An object without a
    /// namespace may be in `default`.
    pub(crate) fn contains(&self, other: &Self, default: &str) -> bool {
        let is_definition = self.group == "apiextensions.k8s.io" && self.kind == "CustomResourceDefinition";
        // A definition is called PLURAL.GROUP.
        let defines = is_definition && self.name.split_once('.').is_some_and(|(_, group)| group == other.group);
        defines || self.is_namespace(other.namespace.as_deref().unwrap_or(default))
    }

    /// Whether both may be the same object, where it is not known of one whether its kind has namespaces.
    pub(crate) fn may_be(&self, other: &Self) -> bool {
        (&self.group, &self.kind, &self.name) == (&other.group, &other.kind, &other.name)
            && (self.namespace == other.namespace || self.namespace.is_none() || other.namespace.is_none())
    }
}

/// How the record names it.
impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, kind, namespace, name } = self;
        write!(formatter, "{group}/{kind}/{}/{name}", namespace.as_deref().unwrap_or_default())
    }
}

/// The objects of both, each once; of those that are in both, the later ones.
pub(crate) fn union(before: &[ObjectKey], now: &[ObjectKey]) -> Vec<ObjectKey> {
    let mut objects: Vec<ObjectKey> = without(before, now);
    objects.extend_from_slice(now);
    objects
}

/// The objects of the first that are not in the second.
pub(crate) fn without(before: &[ObjectKey], now: &[ObjectKey]) -> Vec<ObjectKey> {
    let now: std::collections::BTreeSet<Identity> = now.iter().map(Identity::from).collect();
    before.iter().filter(|key| !now.contains(&Identity::from(*key))).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(api_version: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
        let namespace = namespace.map(str::to_owned);
        ObjectKey { api_version: api_version.to_owned(), kind: "K".to_owned(), namespace, name: name.to_owned() }
    }

    #[test]
    fn the_version_is_no_part_of_an_identity() {
        let (old, new) = (key("a/v1", Some("one"), "x"), key("a/v2", Some("one"), "x"));
        let slice = std::slice::from_ref;
        assert_eq!(union(slice(&old), slice(&new)), slice(&new));
        assert_eq!(without(slice(&old), slice(&new)), []);
        for other in [key("b/v1", Some("one"), "x"), key("a/v1", Some("two"), "x"), key("a/v1", Some("one"), "y")] {
            assert_eq!(without(slice(&old), slice(&other)), slice(&old));
        }
        assert!(Identity::from(&old).may_be(&Identity::from(&key("a/v2", None, "x"))));
        let definition = Identity::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "ks.a");
        assert!(definition.contains(&Identity::from(&old), "default"));
        assert!(!definition.contains(&Identity::from(&key("b/v1", None, "x")), "default"));
        let namespace = Identity::new("v1", "Namespace", None, "one");
        assert!(namespace.contains(&Identity::from(&old), "default"));
        assert!(!namespace.contains(&Identity::from(&key("a/v1", Some("two"), "x")), "default"));
        assert!(namespace.contains(&Identity::from(&key("a/v1", None, "x")), "one"));
        assert!(!Identity::from(&old).may_be(&Identity::from(&key("a/v1", Some("two"), "x"))));
    }
}
