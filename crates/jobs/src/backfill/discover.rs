//! Which kinds there are: every listable one at its preferred version, once.

mod select;

pub use select::{KindName, UnknownKind};

use super::kind::Kind;
use kube::Client;
use kube::client::{APIGroupDiscovery, APIGroupDiscoveryList, APIResourceDiscovery};

/// What a cluster serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    /// Listable kinds in the order of the cluster's preference, each at every version that it has, the preferred one
    /// first.
    entries: Vec<Entry>,
    /// Groups and versions whose own server does not answer: `metrics.k8s.io/v1beta1`.
    pub unreachable: Vec<String>,
}

/// A kind, and what else it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    kind: Kind,
    singular: String,
    short_names: Vec<String>,
    is_preferred: bool,
}

/// The same objects under another group: they are listed under the second.
const ALIASES: &[(&str, &str)] = &[
    ("events.k8s.io/events", "/events"),
    ("extensions/daemonsets", "apps/daemonsets"),
    ("extensions/deployments", "apps/deployments"),
    ("extensions/ingresses", "networking.k8s.io/ingresses"),
    ("extensions/networkpolicies", "networking.k8s.io/networkpolicies"),
    ("extensions/podsecuritypolicies", "policy/podsecuritypolicies"),
    ("extensions/replicasets", "apps/replicasets"),
];

/// What is worked out when somebody asks, and is nobody's state.
const NO_STATE: &[&str] = &["metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"];

impl Catalogue {
    /// Asks a cluster what it serves, in two calls.
    pub async fn read(client: &Client) -> kube::Result<Self> {
        let (core, others) =
            tokio::try_join!(client.list_core_api_versions_aggregated(), client.list_api_groups_aggregated())?;
        Ok(Self::of(&core, &others))
    }

    fn of(core: &APIGroupDiscoveryList, others: &APIGroupDiscoveryList) -> Self {
        let mut catalogue = Self::default();
        for group in core.items.iter().chain(&others.items) {
            catalogue.add_group(group);
        }
        catalogue
    }

    fn add_group(&mut self, group: &APIGroupDiscovery) {
        let name = group.metadata.as_ref().and_then(|metadata| metadata.name.clone()).unwrap_or_default();
        for version in &group.versions {
            let version_name = version.version.clone().unwrap_or_default();
            if version.freshness.as_deref() == Some("Stale") {
                self.unreachable.push(format!("{name}/{version_name}"));
            }
            for resource in &version.resources {
                self.add(&name, &version_name, resource);
            }
        }
    }

    fn add(&mut self, group: &str, version: &str, resource: &APIResourceDiscovery) {
        let Some(plural) = resource.resource.clone() else { return };
        if !resource.verbs.iter().any(|verb| verb == "list") {
            return;
        }
        let kind = resource.response_kind.as_ref().and_then(|kind| kind.kind.clone());
        // The versions of a group come in the order of preference.
        let is_preferred = !self.entries.iter().any(|entry| entry.kind.group == group && entry.kind.plural == plural);
        self.entries.push(Entry {
            kind: Kind {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: kind.unwrap_or_else(|| plural.clone()),
                plural,
                namespaced: resource.scope.as_deref() != Some("Cluster"),
            },
            singular: resource.singular_resource.clone().unwrap_or_default(),
            short_names: resource.short_names.clone(),
            is_preferred,
        });
    }

    /// Whether there is nothing in it: the server cannot be asked in this way.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every listable kind at every version, whether it is captured or not.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Kind> + Clone {
        self.entries.iter().map(|entry| &entry.kind)
    }

    /// Every kind at its preferred version, once; without what is no state.
    pub fn all(&self) -> Vec<Kind> {
        let preferred = self.entries.iter().filter(|entry| entry.is_preferred);
        preferred.map(|entry| &entry.kind).filter(|kind| !self.is_left_out(kind)).cloned().collect()
    }

    /// Whether a kind is only listed for those who name it.
    fn is_left_out(&self, kind: &Kind) -> bool {
        if NO_STATE.contains(&kind.group.as_str()) || kind.is_core("ComponentStatus") {
            return true;
        }
        let place = |kind: &Kind| format!("{}/{}", kind.group, kind.plural);
        let original = ALIASES.iter().find(|(alias, _)| *alias == place(kind)).map(|(_, original)| *original);
        original.is_some_and(|original| self.entries.iter().any(|entry| place(&entry.kind) == original))
    }

    /// Groups that do not answer and whose kinds would have been listed.
    pub fn missed(&self) -> impl Iterator<Item = &str> {
        let counts = |name: &&str| !NO_STATE.iter().any(|group| name.starts_with(&format!("{group}/")));
        self.unreachable.iter().map(String::as_str).filter(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    pub(super) fn resource(plural: &str, kind: &str, scope: &str, short: &[&str]) -> Value {
        json!({"resource": plural, "singularResource": kind.to_lowercase(), "scope": scope, "shortNames": short,
            "responseKind": {"kind": kind}, "verbs": ["get", "list"]})
    }

    pub(super) fn catalogue() -> Catalogue {
        let mut review = resource("tokenreviews", "TokenReview", "Cluster", &[]);
        review["verbs"] = json!(["create"]);
        let core = json!({"items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [
            resource("pods", "Pod", "Namespaced", &["po"]), resource("events", "Event", "Namespaced", &["ev"]),
            resource("services", "Service", "Namespaced", &["svc"]), resource("nodes", "Node", "Cluster", &["no"]),
            resource("componentstatuses", "ComponentStatus", "Cluster", &["cs"]), review,
        ]}]}]});
        let group = |name: &str, versions: Value| json!({"metadata": {"name": name}, "versions": versions});
        let others = json!({"items": [
            group("events.k8s.io", json!([{"version": "v1", "resources": [resource("events", "Event", "Namespaced", &[])]}])),
            group("autoscaling", json!([
                {"version": "v2", "resources": [resource("horizontalpodautoscalers", "HorizontalPodAutoscaler", "Namespaced", &["hpa"])]},
                {"version": "v1", "resources": [resource("horizontalpodautoscalers", "HorizontalPodAutoscaler", "Namespaced", &["hpa"])]},
            ])),
            group("serving.example", json!([{"version": "v1", "resources": [resource("services", "Service", "Namespaced", &["ksvc"])]}])),
            group("metrics.k8s.io", json!([{"version": "v1beta1", "freshness": "Current", "resources": [resource("pods", "PodMetrics", "Namespaced", &[])]}])),
            group("broken.example", json!([{"version": "v1", "freshness": "Stale"}])),
        ]});
        let read = |value: Value| serde_json::from_value(value).unwrap();
        Catalogue::of(&read(core), &read(others))
    }

    #[test]
    fn every_listable_kind_comes_once_at_its_preferred_version() {
        let names: Vec<String> =
            catalogue().all().iter().map(|kind| format!("{} {}", kind.full_name(), kind.version)).collect();
        assert_eq!(
            names,
            [
                "pods v1",
                "events v1",
                "services v1",
                "nodes v1",
                "horizontalpodautoscalers.autoscaling v2",
                "services.serving.example v1"
            ]
        );
    }

    #[test]
    fn a_group_whose_server_does_not_answer_is_told() {
        assert_eq!(catalogue().missed().collect::<Vec<_>>(), ["broken.example/v1"]);
    }

    #[test]
    fn a_server_that_cannot_be_asked_in_this_way_shows_nothing() {
        let nothing = APIGroupDiscoveryList::default();
        assert!(Catalogue::of(&nothing, &nothing).is_empty());
    }
}
