//! Names of metrics and labels: those of the CloudZero agent, or what Prometheus takes.

use std::collections::BTreeSet;

/// What kinds are called in names of metrics, where that is not their own name in lower case. The last one is a slip
/// of the agent's, and what its users have.
const KINDS: &[(&str, &str)] =
    &[("CustomResourceDefinition", "crd"), ("PersistentVolume", "pv"), ("PersistentVolumeClaim", "pcv")];

/// What a kind is called in names of metrics.
pub(super) fn kind_name(kind: &str) -> String {
    let known = KINDS.iter().find(|(name, _)| *name == kind);
    known.map_or_else(|| kind.to_lowercase(), |(_, name)| (*name).to_owned())
}

/// The name of a label that holds the key of an object's label: `label_app_kubernetes_io_name`, or as it is.
pub(super) fn label_name(key: &str, is_legal: bool, taken: &mut BTreeSet<String>) -> String {
    let name = if is_legal { legal(&format!("label_{key}")) } else { format!("label_{key}") };
    // Two keys may become one name: `a.b` and `a/b`. Keys come in order, so the same one gets the same number.
    let mut unique = name.clone();
    let mut number = 0;
    while !taken.insert(unique.clone()) {
        number += 1;
        unique = format!("{name}_conflict{number}");
    }
    unique
}

/// A name with nothing in it but what a name may have.
pub(super) fn legal(name: &str) -> String {
    let fit = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let name: String = name.chars().map(fit).collect();
    if name.starts_with(|character: char| character.is_ascii_digit()) { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_names_that_the_agent_gave_them() {
        for (kind, name) in [
            ("Pod", "pod"),
            ("StatefulSet", "statefulset"),
            ("CustomResourceDefinition", "crd"),
            ("PersistentVolume", "pv"),
            ("PersistentVolumeClaim", "pcv"),
        ] {
            assert_eq!(kind_name(kind), name);
        }
    }

    #[test]
    fn labels_get_legal_names_and_no_two_the_same() {
        let mut taken = BTreeSet::new();
        let mut name = |key| label_name(key, true, &mut taken);
        assert_eq!(name("app.kubernetes.io/name"), "label_app_kubernetes_io_name");
        assert_eq!(name("a.b"), "label_a_b");
        assert_eq!(name("a/b"), "label_a_b_conflict1");
        assert_eq!(name("a_b"), "label_a_b_conflict2");
        assert_eq!(name("é"), "label__");
        assert_eq!(name(""), "label_");
        assert_eq!(label_name("a.b/c", false, &mut BTreeSet::new()), "label_a.b/c");
        assert_eq!(legal("9lives"), "_9lives");
    }
}
