//! Discovery: which groups, versions and resources there are, one by one and all at once.

use crate::kinds::subresource::{self, Subresource};
use crate::kinds::{Kind, Kinds};
use serde_json::{Map, Value, json};

/// `/api`.
pub(crate) fn core_versions(address: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]})
}

/// `/apis`.
pub(crate) fn groups(kinds: &Kinds) -> Value {
    let groups = kinds.groups();
    let named = groups.iter().filter(|(group, _)| !group.is_empty());
    let groups: Vec<Value> = named.map(|(group, versions)| group_value(group, versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`.
pub(crate) fn group(kinds: &Kinds, group: &str) -> Option<Value> {
    let (name, versions) = kinds.groups().into_iter().find(|(name, _)| name == group && !name.is_empty())?;
    let mut value = group_value(&name, &versions);
    value["kind"] = json!("APIGroup");
    value["apiVersion"] = json!("v1");
    Some(value)
}

fn group_value(group: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "versions": versions, "preferredVersion": versions.first()})
}

/// `/api/v1`, `/apis/GROUP/VERSION`.
pub(crate) fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    let mut group_version = None;
    for kind in kinds.in_version(group, version) {
        group_version.get_or_insert_with(|| kind.api_version());
        resources.push(resource(kind));
        resources.extend(
            kind.subresources.iter().filter_map(|name| Some(subresource_value(kind, subresource::named(name)?))),
        );
    }
    let group_version = group_version?;
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}))
}

fn verbs(verbs: &[crate::request::Verb]) -> Vec<&'static str> {
    verbs.iter().map(|verb| verb.name()).collect()
}

fn resource(kind: &Kind) -> Value {
    let mut value = json!({
        "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind,
        "verbs": verbs(subresource::verbs(kind.verbs)),
    });
    add_names(&mut value, kind);
    value
}

fn add_names(value: &mut Value, kind: &Kind) {
    if !kind.short_names.is_empty() {
        value["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        value["categories"] = json!(kind.categories);
    }
}

fn subresource_value(kind: &Kind, subresource: &Subresource) -> Value {
    let mut value = json!({
        "name": format!("{}/{}", kind.plural, subresource.name), "singularName": "", "namespaced": kind.namespaced,
        "kind": kind.kind, "verbs": verbs(subresource.verbs),
    });
    if let Some((group, version, other)) = subresource.other {
        value["kind"] = json!(other);
        if !group.is_empty() {
            value["group"] = json!(group);
            value["version"] = json!(version);
        }
    }
    value
}

/// Everything at once: what `/api` (the core group) or `/apis` (the others) say to clients that ask for it.
pub(crate) fn aggregated(kinds: &Kinds, core: bool, beta: bool) -> Value {
    let api_version = if beta { "apidiscovery.k8s.io/v2beta1" } else { "apidiscovery.k8s.io/v2" };
    let groups = kinds.groups();
    let items: Vec<Value> = groups
        .iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> =
                versions.iter().map(|version| aggregated_version(kinds, group, version)).collect();
            let mut metadata = Map::new();
            metadata.insert("creationTimestamp".to_owned(), Value::Null);
            if !group.is_empty() {
                metadata.insert("name".to_owned(), json!(group));
            }
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items})
}

fn aggregated_version(kinds: &Kinds, group: &str, version: &str) -> Value {
    let resources: Vec<Value> = kinds.in_version(group, version).map(|kind| aggregated_resource(kind)).collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

fn aggregated_resource(kind: &Kind) -> Value {
    let mut value = json!({
        "resource": kind.plural, "singularResource": kind.singular,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "verbs": verbs(subresource::verbs(kind.verbs)),
    });
    add_names(&mut value, kind);
    let subresources: Vec<Value> = kind
        .subresources
        .iter()
        .filter_map(|name| subresource::named(name))
        .map(|subresource| {
            let own = (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str());
            let (group, version, name) = subresource.other.unwrap_or(own);
            json!({"subresource": subresource.name, "verbs": verbs(subresource.verbs),
                "responseKind": {"group": group, "version": version, "kind": name}})
        })
        .collect();
    if !subresources.is_empty() {
        value["subresources"] = json!(subresources);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_listed_with_their_subresources() {
        let list = resources(&Kinds::default(), "batch", "v1").unwrap();
        assert_eq!(list["groupVersion"], "batch/v1");
        let names: Vec<&str> =
            list["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["cronjobs", "cronjobs/status", "jobs", "jobs/status"]);
        assert!(resources(&Kinds::default(), "batch", "v9").is_none());
    }

    #[test]
    fn the_core_group_stands_apart() {
        let kinds = Kinds::default();
        assert_eq!(aggregated(&kinds, true, false)["items"].as_array().unwrap().len(), 1);
        let others = aggregated(&kinds, false, false);
        assert!(others["items"].as_array().unwrap().iter().all(|group| group["metadata"]["name"] != ""));
        assert_eq!(groups(&kinds)["groups"][0]["name"], "apiregistration.k8s.io");
        assert!(group(&kinds, "").is_none());
    }
}
