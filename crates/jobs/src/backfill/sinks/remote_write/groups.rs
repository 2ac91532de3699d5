//! Which kinds need their API group in a series, because another group has a kind of the same name.

use super::names::kind_name;
use crate::backfill::kind::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// The groups of Kubernetes itself. Their kinds keep the series that they have always had, whatever else is installed.
const BUILT_IN: &[&str] = &[
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// The full names of the kinds whose series need the group. `kinds` are all that the cluster has, not only those that are
/// captured: a series must not depend on which others are.
pub(crate) fn find_ambiguous<'a>(kinds: impl Iterator<Item = &'a Kind> + Clone) -> BTreeSet<String> {
    let mut groups: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for kind in kinds.clone() {
        groups.entry(kind_name(&kind.kind)).or_default().insert(&kind.group);
    }
    let is_shared = |kind: &&Kind| groups.get(&kind_name(&kind.kind)).is_some_and(|groups| groups.len() > 1);
    let is_other = |kind: &&Kind| !BUILT_IN.contains(&kind.group.as_str());
    kinds.filter(is_other).filter(is_shared).map(Kind::full_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(kind: &str, group: &str) -> Kind {
        Kind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced: true,
        }
    }

    #[test]
    fn only_kinds_outside_kubernetes_that_share_a_name_need_their_group() {
        let kinds = [
            kind("Service", ""),
            kind("Event", ""),
            kind("Event", "events.k8s.io"),
            kind("Service", "serving.example"),
            kind("Cluster", "one.example"),
            kind("Cluster", "two.example"),
            kind("Widget", "one.example"),
            Kind { version: "v2".to_owned(), ..kind("Widget", "one.example") },
            kind("PV", "odd.example"),
            kind("PersistentVolume", ""),
        ];
        let found: Vec<String> = find_ambiguous(kinds.iter()).into_iter().collect();
        assert_eq!(
            found,
            ["clusters.one.example", "clusters.two.example", "pvs.odd.example", "services.serving.example"]
        );
    }
}
