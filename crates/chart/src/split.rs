//! From printed templates to manifests and hooks, in Helm's order (helm v3.17 `pkg/releaseutil`).

use jobwright_yaml::Value;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// An object of a chart, as it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The template that printed it.
    pub source: String,
    /// Its text.
    pub text: String,
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// An object that Helm runs before or after others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The object.
    pub manifest: Manifest,
    /// When it runs: `pre-install`, `test` and their kin.
    pub events: Vec<String>,
    /// Lighter ones run first.
    pub weight: i64,
    /// When it is deleted.
    pub delete_policies: Vec<String>,
}

/// What a chart's templates print.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Objects in the order in which they are installed.
    pub manifests: Vec<Manifest>,
    /// Hooks, by kind.
    pub hooks: Vec<Hook>,
    /// Objects that Helm drops, because it knows none of the events that they name.
    pub dropped: Vec<Manifest>,
}

const EVENTS: &[(&str, &str)] = &[
    ("pre-install", "pre-install"),
    ("post-install", "post-install"),
    ("pre-delete", "pre-delete"),
    ("post-delete", "post-delete"),
    ("pre-upgrade", "pre-upgrade"),
    ("post-upgrade", "post-upgrade"),
    ("pre-rollback", "pre-rollback"),
    ("post-rollback", "post-rollback"),
    ("test", "test"),
    ("test-success", "test"),
];

/// Kinds in the order in which Helm installs them; others follow by their names.
const ORDER: &[&str] = &[
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// Space in Go's sense.
fn is_space(character: char) -> bool {
    character.is_whitespace()
}

/// The documents of a text, without the lines between them.
pub(crate) fn documents(text: &str) -> Vec<String> {
    static SEPARATOR: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?:^|[\t\n\f\r ]*\n)---[\t\n\f\r ]*").ok());
    let text = text.trim_matches(is_space);
    let parts: Vec<&str> = match &*SEPARATOR {
        Some(separator) => separator.split(text).collect(),
        None => vec![text],
    };
    parts.into_iter().filter(|part| !part.is_empty()).map(|part| part.trim_matches(is_space).to_owned()).collect()
}

/// Splits what files print, by their names; `Err` has Helm's message.
pub(crate) fn split(files: &BTreeMap<String, String>) -> Result<Split, String> {
    let mut split = Split::default();
    for (source, text) in files {
        let base = source.rsplit('/').next().unwrap_or_default();
        if base.starts_with('_') || text.trim_matches(is_space).is_empty() {
            continue;
        }
        for text in documents(text) {
            let head = Head::read(&text).map_err(|error| format!("YAML parse error on {source}: {error}"))?;
            split.add(source, text, head);
        }
    }
    split.manifests.sort_by(|one, other| rank(&one.kind).cmp(&rank(&other.kind)));
    split.hooks.sort_by(|one, other| rank(&one.manifest.kind).cmp(&rank(&other.manifest.kind)));
    Ok(split)
}

/// The place of a kind: known ones first, then others by their names.
fn rank(kind: &str) -> (usize, &str) {
    match ORDER.iter().position(|known| *known == kind) {
        Some(position) => (position, ""),
        None => (ORDER.len(), kind),
    }
}

/// What decides what an object is.
#[derive(Default)]
struct Head {
    api_version: String,
    kind: String,
    name: String,
    annotations: BTreeMap<String, String>,
}

impl Head {
    fn read(text: &str) -> Result<Self, String> {
        let documents = jobwright_yaml::parse(text)
            .map_err(|error| format!("error converting YAML to JSON: yaml: {}", error.in_go(text)))?;
        let Some(document) = documents.into_iter().next() else { return Ok(Self::default()) };
        let root = document.root;
        let mismatch = |what: &str, field: &str, wanted: &str| {
            format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {what} into Go {field} of type {wanted}"
            )
        };
        match &root.value {
            Value::Null | Value::Map(_) => {}
            other => return Err(mismatch(kind_of(other), "value", "releaseutil.SimpleHead")),
        }
        let text = |node: Option<&jobwright_yaml::Node>, field: &str| match node.map(|node| &node.value) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Bool(value)) => Ok(value.to_string()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            Some(other) => Err(mismatch(kind_of(other), &format!("struct field {field}"), "string")),
        };
        let mut head = Self {
            api_version: text(root.get("apiVersion"), "SimpleHead.apiVersion")?,
            kind: text(root.get("kind"), "SimpleHead.kind")?,
            ..Self::default()
        };
        let Some(metadata) = root.get("metadata") else { return Ok(head) };
        match &metadata.value {
            Value::Null | Value::Map(_) => {}
            other => {
                let wanted = "struct { Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }";
                return Err(mismatch(kind_of(other), "struct field SimpleHead.metadata", wanted));
            }
        }
        head.name = text(metadata.get("name"), "SimpleHead.metadata.name")?;
        if let Some(annotations) = metadata.get("annotations") {
            match &annotations.value {
                Value::Null | Value::Map(_) => {}
                other => {
                    let field = "struct field SimpleHead.metadata.annotations";
                    return Err(mismatch(kind_of(other), field, "map[string]string"));
                }
            }
            for entry in annotations.entries() {
                let value = text(Some(&entry.value), "SimpleHead.metadata.annotations")?;
                head.annotations.insert(entry.key.clone(), value);
            }
        }
        Ok(head)
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
    }
}

impl Split {
    fn add(&mut self, source: &str, text: String, head: Head) {
        let annotation = |name: &str| head.annotations.get(&format!("helm.sh/{name}"));
        let words = |text: &str| -> Vec<String> { text.split(',').map(|word| word.trim().to_lowercase()).collect() };
        let hook = annotation("hook").cloned();
        let weight = annotation("hook-weight").and_then(|weight| weight.parse().ok()).unwrap_or(0);
        let delete_policies = annotation("hook-delete-policy").map(|text| words(text)).unwrap_or_default();
        let manifest = Manifest {
            source: source.to_owned(),
            text,
            api_version: head.api_version,
            kind: head.kind,
            name: head.name,
        };
        let Some(hook) = hook else { return self.manifests.push(manifest) };
        let known = |word: String| EVENTS.iter().find(|(name, _)| *name == word).map(|(_, event)| (*event).to_owned());
        match words(&hook).into_iter().map(known).collect::<Option<Vec<String>>>() {
            Some(events) => self.hooks.push(Hook { manifest, events, weight, delete_policies }),
            None => self.dropped.push(manifest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_cut_where_helm_cuts_them() {
        for (text, expected) in [
            ("a: 1\n---\nb: 2\n", vec!["a: 1", "b: 2"]),
            ("---\na: 1\n--- \n\n---\nb: 2", vec!["a: 1", "---\nb: 2"]),
            ("a: |\n  x\n  --- y\nb: 1", vec!["a: |\n  x\n  --- y\nb: 1"]),
            ("a: 1\n---b: 2", vec!["a: 1", "b: 2"]),
            ("a: x---\nb: y", vec!["a: x---\nb: y"]),
        ] {
            let found = documents(text);
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn hooks_are_told_apart_and_kinds_are_sorted() {
        let object = |kind: &str, annotations: &str| {
            format!("apiVersion: v1\nkind: {kind}\nmetadata:\n  name: x\n  annotations: {{{annotations}}}\n")
        };
        let files = BTreeMap::from([
            (
                "c/templates/a.yaml".to_owned(),
                [object("Zebra", ""), object("Deployment", ""), object("Secret", "")].join("---\n"),
            ),
            (
                "c/templates/b.yaml".to_owned(),
                object("Job", "helm.sh/hook: 'pre-install, Post-Upgrade', helm.sh/hook-weight: \"-5\""),
            ),
            ("c/templates/c.yaml".to_owned(), object("Job", "helm.sh/hook: nonsense")),
            ("c/templates/_d.yaml".to_owned(), "not: [yaml".to_owned()),
            ("c/templates/e.yaml".to_owned(), "\n  \n".to_owned()),
        ]);
        let split = split(&files).expect("manifests");
        let kinds: Vec<&str> = split.manifests.iter().map(|manifest| manifest.kind.as_str()).collect();
        assert_eq!(kinds, ["Secret", "Deployment", "Zebra"]);
        assert_eq!(split.hooks[0].events, ["pre-install", "post-upgrade"]);
        assert_eq!(split.hooks[0].weight, -5);
        assert_eq!(split.dropped.len(), 1);
    }
}
