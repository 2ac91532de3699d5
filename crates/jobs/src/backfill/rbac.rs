//! The least that whoever runs a backfill has to be allowed, as YAML that can be applied.

use super::checkpoint::IDENTITY;
use super::kind::Kind;
use super::secrets;
use crate::access::{Rule, role};
use jobwright_engine::record_name;
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
    /// Whether it asks which cluster it is.
    pub identity: bool,
    /// The ConfigMap that shows whether a deploy was forced.
    pub mark: Option<String>,
    /// The Lease of its lock.
    pub lock: Option<String>,
    /// Whether it has to list Secrets where it lists anything, to know their values.
    pub secret_values: bool,
    /// Secrets that it reads its credentials from.
    pub secrets: BTreeSet<String>,
}

/// What the names of the roles begin with.
const NAME: &str = "backfill";

impl Needs {
    /// Roles that allow all of it and nothing else. Their name tells what they allow: those of two backfills differ.
    pub fn to_yaml(&self) -> String {
        let secrets = self.secret_values.then(secrets::kind).filter(|kind| !self.kinds.contains(kind));
        let kinds: Vec<&Kind> = self.kinds.iter().chain(&secrets).collect();
        let (inside, outside): (Vec<&Kind>, Vec<&Kind>) =
            kinds.into_iter().partition(|kind| kind.namespaced && !self.namespaces.is_empty());
        let mut everywhere = list_rules(&outside);
        if self.identity {
            let (resources, names) = (vec!["namespaces"], vec![IDENTITY]);
            everywhere.push(Rule { group: "", resources, names, verbs: vec!["get"] });
        }
        let mut places: BTreeMap<&str, Vec<Rule<'_>>> = BTreeMap::new();
        for namespace in &self.namespaces {
            places.entry(namespace).or_default().extend(list_rules(&inside));
        }
        places.entry(&self.namespace).or_default().extend(self.keep_rules());
        let name = name(&self.namespace, &everywhere, &places);
        let somewhere = places.iter().filter_map(|(namespace, rules)| role(&name, Some(namespace), rules));
        role(&name, None, &everywhere).into_iter().chain(somewhere).collect::<Vec<_>>().join("---\n")
    }

    fn keep_rules(&self) -> Vec<Rule<'_>> {
        let mut rules = Vec::new();
        let kept = [("", "configmaps", &self.checkpoint), ("coordination.k8s.io", "leases", &self.lock)];
        for (group, resource, name) in kept {
            if let Some(name) = name {
                rules.push(Rule { group, resources: vec![resource], names: vec![name], verbs: vec!["get", "update"] });
                // Nobody can be allowed to create by name.
                rules.push(Rule { group, resources: vec![resource], names: Vec::new(), verbs: vec!["create"] });
            }
        }
        if let Some(name) = &self.mark {
            let (resources, verbs) = (vec!["configmaps"], vec!["get", "patch"]);
            rules.push(Rule { group: "", resources, names: vec![name], verbs });
        }
        let names: Vec<&str> = self.secrets.iter().map(String::as_str).collect();
        if !names.is_empty() {
            rules.push(Rule { group: "", resources: vec!["secrets"], names, verbs: vec!["get"] });
        }
        rules
    }
}

/// What the roles are called. Those of no namespace are everywhere, so another backfill must not have the same ones.
fn name(namespace: &str, everywhere: &[Rule<'_>], places: &BTreeMap<&str, Vec<Rule<'_>>>) -> String {
    let show = |rules: &[Rule<'_>]| rules.iter().map(ToString::to_string).collect::<String>();
    let places = places.iter().map(|(place, rules)| format!("{place}\n{}", show(rules)));
    record_name(NAME, &[NAME, namespace, &show(everywhere), &places.collect::<String>()])
}

fn list_rules<'a>(kinds: &[&'a Kind]) -> Vec<Rule<'a>> {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for kind in kinds {
        groups.entry(&kind.group).or_default().insert(&kind.plural);
    }
    let rule = |(group, resources): (&'a str, BTreeSet<&'a str>)| Rule {
        group,
        resources: resources.into_iter().collect(),
        names: Vec::new(),
        verbs: vec!["list"],
    };
    groups.into_iter().map(rule).collect()
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
        let yaml = needs.to_yaml();
        let (head, rules) = yaml.split_once("rules:\n").unwrap();
        assert!(
            head.starts_with(
                "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: jobwright-backfill-"
            ),
            "{head}"
        );
        assert_eq!(
            rules,
            "- apiGroups: [\"\"]\n  resources: [nodes, pods]\n  verbs: [list]\n\
             - apiGroups: [\"apps\"]\n  resources: [deployments]\n  verbs: [list]\n"
        );
    }

    #[test]
    fn all_secrets_may_be_listed_only_where_their_values_are_required() {
        let kinds = vec![kind("", "pods", true)];
        let needs = Needs { kinds, namespaces: vec!["shop".to_owned()], ..Needs::default() };
        assert!(!needs.to_yaml().contains("secrets"));
        let yaml = Needs { secret_values: true, ..needs }.to_yaml();
        assert!(yaml.contains("namespace: shop") && !yaml.contains("ClusterRole"), "{yaml}");
        assert!(yaml.contains("resources: [pods, secrets]\n  verbs: [list]"), "{yaml}");
    }

    #[test]
    fn roles_of_two_backfills_have_two_names_and_those_of_one_always_the_same() {
        let name = |namespace: &str, kind_name: &str| {
            let kinds = vec![kind("", kind_name, true)];
            let yaml = Needs { kinds, namespace: namespace.to_owned(), ..Needs::default() }.to_yaml();
            yaml.lines().find_map(|line| line.strip_prefix("  name: ")).unwrap().to_owned()
        };
        assert_eq!(name("shop", "pods"), name("shop", "pods"));
        assert_ne!(name("shop", "pods"), name("bank", "pods"));
        assert_ne!(name("shop", "pods"), name("shop", "nodes"));
    }

    #[test]
    fn namespaces_need_roles_of_their_own_and_what_is_kept_is_named() {
        let needs = Needs {
            kinds: vec![kind("", "pods", true), kind("", "nodes", false)],
            namespaces: vec!["shop".to_owned()],
            namespace: "jobs".to_owned(),
            checkpoint: Some("progress".to_owned()),
            identity: true,
            secret_values: false,
            mark: Some("release".to_owned()),
            lock: Some("jobwright-progress-x".to_owned()),
            secrets: BTreeSet::from(["api-key".to_owned()]),
        };
        let yaml = needs.to_yaml();
        let documents: Vec<&str> = yaml.split("---\n").collect();
        assert_eq!(documents.len(), 3, "{yaml}");
        assert!(
            documents[0].contains("ClusterRole") && documents[0].contains("[nodes]") && !documents[0].contains("pods")
        );
        let identity = "resources: [namespaces]\n  resourceNames: [kube-system]\n  verbs: [get]\n";
        assert!(documents[0].contains(identity), "{}", documents[0]);
        assert!(documents[1].contains("namespace: jobs") && documents[2].contains("namespace: shop"));
        for part in [
            "resourceNames: [progress]",
            "resources: [configmaps]\n  resourceNames: [release]\n  verbs: [get, patch]\n",
            "resourceNames: [api-key]\n  verbs: [get]",
            "resourceNames: [jobwright-progress-x]",
        ] {
            assert!(documents[1].contains(part), "{part} is not in\n{}", documents[1]);
        }
        assert!(documents[2].contains("resources: [pods]\n  verbs: [list]"));
    }
}
