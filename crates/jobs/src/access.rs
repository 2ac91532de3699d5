//! What somebody has to be allowed to do, whether they are, and the roles that would allow it.

use futures::StreamExt as _;
use jobwright_engine::{Refusal, bounded};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How many questions are asked at once.
const AT_ONCE: usize = 8;

/// Something that somebody may have to be allowed to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// Whether it is about objects of no namespace.
    pub is_cluster_wide: bool,
    /// `batch`; empty for the core group.
    pub group: String,
    /// `jobs`, or `pods/log`.
    pub resource: String,
    /// `create`.
    pub verb: String,
    /// Only the object of this name; any if none. Nobody can be allowed to create only what has a certain name.
    pub name: Option<String>,
}

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.verb, self.resource)?;
        match &self.name {
            Some(name) => write!(formatter, "/{name}"),
            None => Ok(()),
        }
    }
}

/// Permissions in the making.
#[derive(Clone, Debug, Default)]
pub struct Permissions(BTreeSet<Permission>);

impl Permissions {
    /// Adds verbs on everything of a kind in the namespace.
    pub fn add(&mut self, group: &str, resource: &str, verbs: &[&str]) {
        self.extend(false, group, resource, verbs, None);
    }

    /// Adds verbs on some objects of the namespace.
    pub fn add_named(&mut self, group: &str, resource: &str, verbs: &[&str], names: &[&str]) {
        for name in names {
            self.extend(false, group, resource, verbs, Some(name));
        }
    }

    /// Adds verbs on objects of no namespace: on one, or on all of a kind.
    pub fn add_cluster_wide(&mut self, group: &str, resource: &str, verbs: &[&str], name: Option<&str>) {
        self.extend(true, group, resource, verbs, name);
    }

    /// Adds all of these.
    pub fn add_all(&mut self, others: BTreeSet<Permission>) {
        self.0.extend(others);
    }

    /// All of them.
    pub fn into_set(self) -> BTreeSet<Permission> {
        self.0
    }

    fn extend(&mut self, is_cluster_wide: bool, group: &str, resource: &str, verbs: &[&str], name: Option<&str>) {
        self.0.extend(verbs.iter().map(|verb| Permission {
            is_cluster_wide,
            group: group.to_owned(),
            resource: resource.to_owned(),
            verb: (*verb).to_owned(),
            name: name.map(str::to_owned),
        }));
    }
}

/// The permissions that the cluster says we do not have.
pub async fn missing(
    client: &Client,
    namespace: &str,
    permissions: BTreeSet<Permission>,
) -> Result<BTreeSet<Permission>, Refusal> {
    let reviews = Api::<SelfSubjectAccessReview>::all(bounded(client));
    let ask = |permission: Permission| {
        let reviews = reviews.clone();
        async move {
            let (resource, subresource) = match permission.resource.split_once('/') {
                Some((resource, sub)) => (resource.to_owned(), Some(sub.to_owned())),
                None => (permission.resource.clone(), None),
            };
            let attributes = ResourceAttributes {
                group: Some(permission.group.clone()),
                namespace: (!permission.is_cluster_wide).then(|| namespace.to_owned()),
                resource: Some(resource),
                subresource,
                verb: Some(permission.verb.clone()),
                name: permission.name.clone(),
                ..ResourceAttributes::default()
            };
            let spec = SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            };
            let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
            let answer = reviews.create(&PostParams::default(), &review).await.map_err(Refusal::from)?;
            let allowed = answer.status.is_some_and(|status| status.allowed);
            Ok::<_, Refusal>((!allowed).then_some(permission))
        }
    };
    let mut answers = futures::stream::iter(permissions.into_iter().map(ask)).buffer_unordered(AT_ONCE);
    let mut found = BTreeSet::new();
    while let Some(answer) = answers.next().await {
        found.extend(answer?);
    }
    Ok(found)
}

/// A Role that grants permissions, and a ClusterRole for those about objects of no namespace, ready to be applied.
pub fn roles(name: &str, namespace: &str, permissions: &BTreeSet<Permission>) -> String {
    let (wide, local): (Vec<_>, Vec<_>) = permissions.iter().partition(|permission| permission.is_cluster_wide);
    let local = role(name, Some(namespace), &rules(&local));
    // Roles of one name in two namespaces do not meet, but these would.
    let wide = role(&format!("{name}-{namespace}"), None, &rules(&wide));
    [local, wide].into_iter().flatten().collect::<Vec<_>>().join("---\n")
}

/// A Role, or without a namespace a ClusterRole; none without rules.
pub(crate) fn role(name: &str, namespace: Option<&str>, rules: &[Rule<'_>]) -> Option<String> {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let place = namespace.map(|namespace| format!("  namespace: {namespace}\n")).unwrap_or_default();
    let head = format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n{place}");
    let rules: String = rules.iter().map(ToString::to_string).collect();
    (!rules.is_empty()).then(|| format!("{head}rules:\n{rules}"))
}

/// A rule of a role.
#[derive(Clone, Debug)]
pub(crate) struct Rule<'a> {
    pub(crate) group: &'a str,
    pub(crate) resources: Vec<&'a str>,
    /// Only the objects of these names; all if there are none.
    pub(crate) names: Vec<&'a str>,
    pub(crate) verbs: Vec<&'a str>,
}

impl fmt::Display for Rule<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "- apiGroups: [\"{}\"]\n  resources: [{}]", self.group, self.resources.join(", "))?;
        if !self.names.is_empty() {
            writeln!(formatter, "  resourceNames: [{}]", self.names.join(", "))?;
        }
        writeln!(formatter, "  verbs: [{}]", self.verbs.join(", "))
    }
}

/// The rules that grant permissions: what is allowed on the same objects is in one.
fn rules<'a>(permissions: &[&'a Permission]) -> Vec<Rule<'a>> {
    let mut names: BTreeMap<(&str, &str, &str), BTreeSet<Option<&str>>> = BTreeMap::new();
    for permission in permissions {
        let Permission { group, resource, verb, name, .. } = permission;
        names.entry((group, resource, verb)).or_default().insert(name.as_deref());
    }
    let mut verbs: BTreeMap<(&str, &str, Vec<&str>), Vec<&str>> = BTreeMap::new();
    for ((group, resource, verb), names) in names {
        // Whoever may do it to all may do it to each.
        let names = if names.contains(&None) { Vec::new() } else { names.into_iter().flatten().collect() };
        verbs.entry((group, resource, names)).or_default().push(verb);
    }
    let rule = |((group, resource, names), verbs)| Rule { group, resources: vec![resource], names, verbs };
    verbs.into_iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_say_what_is_allowed_on_which_objects() {
        let mut permissions = Permissions::default();
        permissions.add("", "secrets", &["create"]);
        permissions.add_named("", "secrets", &["get", "update"], &["tls", "tls-ca"]);
        permissions.add_named("apps", "deployments", &["get"], &["hook"]);
        permissions.add("apps", "deployments", &["get"]);
        permissions.add_cluster_wide("apiregistration.k8s.io", "apiservices", &["get", "patch"], Some("v1.shop"));
        let permissions = permissions.into_set();
        assert_eq!(
            roles("cert", "shop", &permissions),
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: cert\n  namespace: shop\nrules:\n\
             - apiGroups: [\"\"]\n  resources: [secrets]\n  verbs: [create]\n\
             - apiGroups: [\"\"]\n  resources: [secrets]\n  resourceNames: [tls, tls-ca]\n  verbs: [get, update]\n\
             - apiGroups: [\"apps\"]\n  resources: [deployments]\n  verbs: [get]\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: cert-shop\nrules:\n\
             - apiGroups: [\"apiregistration.k8s.io\"]\n  resources: [apiservices]\n  resourceNames: [v1.shop]\n  verbs: [get, patch]\n"
        );
        let told: Vec<String> = permissions.iter().map(ToString::to_string).take(3).collect();
        assert_eq!(told, ["create secrets", "get secrets/tls", "get secrets/tls-ca"]);
    }
}
