//! The least that whoever runs a backfill has to be allowed, as YAML that can be applied.

use super::kind::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// What a backfill does in a cluster.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// What it lists.
    pub kinds: Vec<Kind>,
    /// Where; everywhere if there are none.
    pub namespaces: Vec<String>,
    /// The namespace of what it keeps.
    pub namespace: String,
    /// The ConfigMap of its checkpoint.
    pub checkpoint: Option<String>,
    /// The Lease of its lock.
    pub lock: Option<String>,
    /// Secrets that it reads its credentials from.
    pub secrets: BTreeSet<String>,
}

/// What the roles are called.
const NAME: &str = "jobwright-backfill";

impl Needs {
    /// Roles that allow all of it and nothing else.
    pub fn to_yaml(&self) -> String {
        let mut documents = Vec::new();
        let (inside, outside): (Vec<&Kind>, Vec<&Kind>) =
            self.kinds.iter().partition(|kind| kind.namespaced && !self.namespaces.is_empty());
        if !outside.is_empty() {
            documents.push(role("ClusterRole", None, &list_rules(&outside)));
        }
        let kept = self.keep_rules();
        let mut places: BTreeMap<&str, String> = BTreeMap::new();
        for namespace in self.namespaces.iter().filter(|_| !inside.is_empty()) {
            places.entry(namespace).or_default().push_str(&list_rules(&inside));
        }
        if !kept.is_empty() {
            places.entry(&self.namespace).or_default().push_str(&kept);
        }
        documents.extend(places.iter().map(|(namespace, rules)| role("Role", Some(namespace), rules)));
        documents.join("---\n")
    }

    fn keep_rules(&self) -> String {
        let mut rules = String::new();
        let mut keep = |group: &str, resource: &str, name: &str| {
            // Nobody can be allowed to create by name.
            rules.push_str(&rule(group, &[resource], Some(name), &["get", "update"]));
            rules.push_str(&rule(group, &[resource], None, &["create"]));
        };
        if let Some(name) = &self.checkpoint {
            keep("", "configmaps", name);
        }
        if let Some(name) = &self.lock {
            keep("coordination.k8s.io", "leases", name);
        }
        for name in &self.secrets {
            rules.push_str(&rule("", &["secrets"], Some(name), &["get"]));
        }
        rules
    }
}

fn list_rules(kinds: &[&Kind]) -> String {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for kind in kinds {
        groups.entry(&kind.group).or_default().insert(&kind.plural);
    }
    let rules = groups
        .iter()
        .map(|(group, resources)| rule(group, &resources.iter().copied().collect::<Vec<_>>(), None, &["list"]));
    rules.collect()
}

fn rule(group: &str, resources: &[&str], name: Option<&str>, verbs: &[&str]) -> String {
    let names = name.map(|name| format!("  resourceNames: [{name}]\n")).unwrap_or_default();
    format!(
        "- apiGroups: [\"{group}\"]\n  resources: [{}]\n{names}  verbs: [{}]\n",
        resources.join(", "),
        verbs.join(", ")
    )
}

fn role(kind: &str, namespace: Option<&str>, rules: &str) -> String {
    let place = namespace.map(|namespace| format!("  namespace: {namespace}\n")).unwrap_or_default();
    format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {NAME}\n{place}rules:\n{rules}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(group: &str, plural: &str, namespaced: bool) -> Kind {
        Kind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: plural.to_owned(),
            plural: plural.to_owned(),
            namespaced,
        }
    }

    #[test]
    fn kinds_are_listed_and_nothing_else() {
        let kinds = vec![kind("", "pods", true), kind("apps", "deployments", true), kind("", "nodes", false)];
        let needs = Needs { kinds, ..Needs::default() };
        assert_eq!(
            needs.to_yaml(),
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: jobwright-backfill\nrules:\n\
             - apiGroups: [\"\"]\n  resources: [nodes, pods]\n  verbs: [list]\n\
             - apiGroups: [\"apps\"]\n  resources: [deployments]\n  verbs: [list]\n"
        );
    }

    #[test]
    fn namespaces_need_roles_of_their_own_and_what_is_kept_is_named() {
        let needs = Needs {
            kinds: vec![kind("", "pods", true), kind("", "nodes", false)],
            namespaces: vec!["shop".to_owned()],
            namespace: "jobs".to_owned(),
            checkpoint: Some("progress".to_owned()),
            lock: Some("jobwright-progress-x".to_owned()),
            secrets: BTreeSet::from(["api-key".to_owned()]),
        };
        let yaml = needs.to_yaml();
        let documents: Vec<&str> = yaml.split("---\n").collect();
        assert_eq!(documents.len(), 3, "{yaml}");
        assert!(
            documents[0].contains("ClusterRole") && documents[0].contains("[nodes]") && !documents[0].contains("pods")
        );
        assert!(documents[1].contains("namespace: jobs") && documents[2].contains("namespace: shop"));
        for part in [
            "resourceNames: [progress]",
            "resourceNames: [api-key]\n  verbs: [get]",
            "resourceNames: [jobwright-progress-x]",
        ] {
            assert!(documents[1].contains(part), "{part} is not in\n{}", documents[1]);
        }
        assert!(documents[2].contains("resources: [pods]\n  verbs: [list]"));
    }
}
