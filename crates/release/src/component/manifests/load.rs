//! The objects of a component's files, checked before anything is applied.

use super::identity::Identity;
use crate::component::files;
use crate::component::kinds::Resource;
use crate::record::ObjectKey;
use jobwright_engine::Failure;
use jobwright_yaml::{Node, Value as Yaml};
use k8s_openapi::ByteString;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// An object of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    /// All of it.
    pub(crate) object: Map<String, Value>,
    /// The file and line it begins at.
    pub(crate) place: String,
}

/// Kinds that others need come first; the others follow.
const FIRST: [&str; 13] = [
    "Namespace",
    "PriorityClass",
    "ResourceQuota",
    "LimitRange",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
];
/// How many problems are reported together.
const MOST_PROBLEMS: usize = 10;

/// The position of a kind in the order in which objects are applied.
pub(crate) fn rank(kind: &str) -> usize {
    FIRST.iter().position(|first| *first == kind).unwrap_or(FIRST.len())
}

/// The objects of a file or directory, in the order in which they are applied.
pub(crate) fn load(path: &Path) -> Result<Vec<Manifest>, Failure> {
    let mut loader = Loader::default();
    for file in files::list(path)? {
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if matches!(extension, "yaml" | "yml" | "json") {
            loader.read(&file)?;
        }
    }
    loader.finish(path)
}

#[derive(Default)]
struct Loader {
    manifests: Vec<Manifest>,
    problems: Vec<String>,
}

/// A document of a file.
struct Source<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn place(&self, node: &Node) -> String {
        format!("`{}`, line {}", self.file.display(), jobwright_yaml::position(self.text, node.span.start).line)
    }
}

impl Loader {
    fn read(&mut self, file: &Path) -> Result<(), Failure> {
        let bytes = std::fs::read(file)
            .map_err(|error| Failure::new(format!("cannot read `{}`", file.display())).because(error).for_good())?;
        let Ok(text) = String::from_utf8(bytes) else {
            self.problems.push(format!("`{}` is not UTF-8", file.display()));
            return Ok(());
        };
        match jobwright_yaml::parse(&text) {
            Ok(documents) => {
                let source = Source { file, text: &text };
                for document in &documents {
                    self.add(&source, &document.root);
                }
            }
            Err(error) => {
                let place = jobwright_yaml::position(&text, error.offset);
                let (line, column) = (place.line, place.column);
                self.problems.push(format!("`{}`, line {line}, column {column}: {error}", file.display()));
            }
        }
        Ok(())
    }

    /// Adds a document: an object, or a list of objects.
    fn add(&mut self, source: &Source<'_>, node: &Node) {
        if node.value == Yaml::Null {
            return;
        }
        for entry in node.duplicates() {
            let line = jobwright_yaml::position(source.text, entry.key_span.start).line;
            self.problems.push(format!("`{}`, line {line}: duplicate field `{}`", source.file.display(), entry.key));
        }
        self.add_object(source, node);
    }

    fn add_object(&mut self, source: &Source<'_>, node: &Node) {
        let kind = node.get("kind").and_then(Node::as_str);
        if kind.is_some_and(|kind| kind.ends_with("List"))
            && let Some(Yaml::List(items)) = node.get("items").map(|items| &items.value)
        {
            for item in items {
                self.add_object(source, item);
            }
            return;
        }
        match parse(node, source.place(node)) {
            Ok(manifest) => self.manifests.push(manifest),
            Err(problem) => self.problems.push(format!("{}: {problem}", source.place(node))),
        }
    }

    fn finish(mut self, path: &Path) -> Result<Vec<Manifest>, Failure> {
        let mut seen: BTreeMap<Identity, &Manifest> = BTreeMap::new();
        for manifest in &self.manifests {
            if let Some(first) = seen.insert(manifest.identity(), manifest) {
                let Manifest { kind, name, place, .. } = manifest;
                self.problems.push(format!("{place}: {kind} `{name}` is a duplicate of {}", first.place));
            }
        }
        if !self.problems.is_empty() {
            let more = self.problems.len().saturating_sub(MOST_PROBLEMS);
            self.problems.truncate(MOST_PROBLEMS);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            return Err(Failure::new(format!("{}{more}", self.problems.join("; "))).for_good());
        }
        if self.manifests.is_empty() {
            return Err(Failure::new(format!("no manifests in `{}`", path.display())).for_good());
        }
        self.manifests.sort_by_key(|manifest| rank(&manifest.kind));
        Ok(self.manifests)
    }
}

fn parse(node: &Node, place: String) -> Result<Manifest, String> {
    let Value::Object(object) = node.to_json() else {
        return Err(format!("an object must be a map, not {}", describe(&node.to_json())));
    };
    let string = |path: &str, value: Option<&Value>| match value {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        None | Some(Value::Null) => Err(format!("`{path}` is missing")),
        Some(Value::String(_)) => Err(format!("`{path}` is empty")),
        Some(other) => Err(format!("`{path}` must be a string, not {}", describe(other))),
    };
    let api_version = string("apiVersion", object.get("apiVersion"))?;
    let kind = string("kind", object.get("kind"))?;
    let of = |problem: String| format!("{kind}: {problem}");
    if !is_api_version(&api_version) {
        return Err(of(format!("invalid `apiVersion` `{api_version}`: write `v1` or `GROUP/VERSION`")));
    }
    let metadata = match object.get("metadata") {
        Some(Value::Object(metadata)) => metadata,
        None | Some(Value::Null) => return Err(of("`metadata` is missing".to_owned())),
        Some(other) => return Err(of(format!("`metadata` must be a map, not {}", describe(other)))),
    };
    let name = string("metadata.name", metadata.get("name")).map_err(of)?;
    let of = |problem: String| format!("{kind} `{name}`: {problem}");
    let namespace = match metadata.get("namespace") {
        None | Some(Value::Null) => None,
        some => Some(string("metadata.namespace", some).map_err(of)?),
    };
    for field in ["labels", "annotations"] {
        match metadata.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::Object(pairs)) => {
                if let Some((key, value)) = pairs.iter().find(|(_, value)| !value.is_string()) {
                    let problem = format!("`metadata.{field}.{key}` must be a string, not {}", describe(value));
                    return Err(of(format!("{problem}: put it in quotes")));
                }
            }
            Some(other) => return Err(of(format!("`metadata.{field}` must be a map, not {}", describe(other)))),
        }
    }
    Ok(Manifest { api_version, kind: kind.clone(), name: name.clone(), namespace, object, place })
}

/// `v1`, or `GROUP/VERSION`: nothing that would change the path of a request.
fn is_api_version(text: &str) -> bool {
    let (group, version) = text.split_once('/').unwrap_or(("core", text));
    let is_word = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter))
    };
    is_word(group, "-.") && is_word(version, "")
}

fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

impl Manifest {
    /// Its key, in a release of this namespace.
    pub(super) fn key(&self, namespace: &str, is_namespaced: bool) -> ObjectKey {
        let namespace = self.namespace.as_deref().unwrap_or(namespace);
        ObjectKey {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            namespace: is_namespaced.then(|| namespace.to_owned()),
            name: self.name.clone(),
        }
    }

    /// The values of a Secret; none of another kind.
    pub(crate) fn secret_values(&self) -> Vec<Vec<u8>> {
        if (self.api_version.as_str(), self.kind.as_str()) != ("v1", "Secret") {
            return Vec::new();
        }
        let values = |key: &str| self.object.get(key).and_then(Value::as_object).into_iter().flat_map(Map::values);
        let plain = values("stringData").filter_map(Value::as_str).map(|text| text.as_bytes().to_vec());
        let decoded = values("data").filter_map(|value| serde_json::from_value::<ByteString>(value.clone()).ok());
        plain.chain(decoded.map(|bytes| bytes.0)).collect()
    }

    /// Its identity, as far as it is known without the cluster.
    pub(crate) fn identity(&self) -> Identity {
        Identity::new(&self.api_version, &self.kind, self.namespace.as_deref(), &self.name)
    }

    pub(crate) fn is_definition(&self) -> bool {
        self.kind == "CustomResourceDefinition" && self.api_version.starts_with("apiextensions.k8s.io/")
    }

    /// The kinds that it defines, if it is a CustomResourceDefinition.
    pub(crate) fn defines(&self) -> Vec<Resource> {
        if !self.is_definition() {
            return Vec::new();
        }
        let spec = self.object.get("spec").unwrap_or(&Value::Null);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
        let (plural, is_namespaced) = (text(&spec["names"]["plural"]), spec["scope"] == "Namespaced");
        let versions = spec["versions"].as_array().into_iter().flatten();
        versions
            .map(|version| format!("{group}/{}", text(&version["name"])))
            .map(|api_version| Resource::defined(&api_version, &kind, &plural, is_namespaced))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.yaml"), text).unwrap();
        let loaded = load(directory.path());
        let short = |text: String| text.replace(&format!("{}/", directory.path().display()), "");
        match loaded {
            Ok(manifests) => Ok(manifests.iter().map(|one| format!("{} {}", one.kind, one.name)).collect()),
            Err(failure) => Err(short(failure.to_string())),
        }
    }

    #[test]
    fn wrong_types_are_reported_with_file_line_and_object() {
        for (text, expected) in [
            ("kind: 3\napiVersion: v1", "`a.yaml`, line 1: `kind` must be a string, not a number"),
            ("- 1", "`a.yaml`, line 1: an object must be a map, not a list"),
            ("\n---\nkind: A\nmetadata: {name: x}", "`a.yaml`, line 3: `apiVersion` is missing"),
            ("{kind: A, apiVersion: v1, metadata: 5}", "`a.yaml`, line 1: A: `metadata` must be a map, not a number"),
            (
                "{kind: A, apiVersion: v1, metadata: {name: 5}}",
                "`a.yaml`, line 1: A: `metadata.name` must be a string, not a number",
            ),
            (
                "{kind: A, apiVersion: v1, metadata: {generateName: x-}}",
                "`a.yaml`, line 1: A: `metadata.name` is missing",
            ),
            (
                "{kind: A, apiVersion: v1, metadata: {name: x, labels: 5}}",
                "`a.yaml`, line 1: A `x`: `metadata.labels` must be a map, not a number",
            ),
            (
                "{kind: A, apiVersion: v1, metadata: {name: x, labels: {a: 1}}}",
                "`a.yaml`, line 1: A `x`: `metadata.labels.a` must be a string, not a number: put it in quotes",
            ),
            (
                "{kind: A, apiVersion: v1, metadata: {name: x, namespace: [a]}}",
                "`a.yaml`, line 1: A `x`: `metadata.namespace` must be a string, not a list",
            ),
            (
                "{kind: A, apiVersion: ../../v1, metadata: {name: x}}",
                "`a.yaml`, line 1: A: invalid `apiVersion` `../../v1`: write `v1` or `GROUP/VERSION`",
            ),
            ("{kind: A, kind: B, apiVersion: v1, metadata: {name: x}}", "`a.yaml`, line 1: duplicate field `kind`"),
            ("kind: List\nitems:\n- 5", "`a.yaml`, line 3: an object must be a map, not a number"),
            ("# nothing", "no manifests in `"),
        ] {
            let problem = loaded(text).unwrap_err();
            assert!(problem.starts_with(expected), "{text}\n{problem}\n{expected}");
        }
        let deep = format!("a: {}1{}", "[".repeat(5000), "]".repeat(5000));
        assert!(loaded(&deep).unwrap_err().starts_with("`a.yaml`, line 1, column "));
    }

    #[test]
    fn an_object_that_is_declared_twice_is_reported_with_both_places() {
        let twice =
            "{kind: A, apiVersion: a/v1, metadata: {name: x}}\n---\n{kind: A, apiVersion: a/v2, metadata: {name: x}}\n";
        assert_eq!(loaded(twice).unwrap_err(), "`a.yaml`, line 3: A `x` is a duplicate of `a.yaml`, line 1");
        let two = "{kind: A, apiVersion: a/v1, metadata: {name: x, namespace: one}}\n---\n{kind: A, apiVersion: a/v1, metadata: {name: x, namespace: two}}\n";
        assert_eq!(loaded(two).unwrap().len(), 2);
    }

    #[test]
    fn lists_are_unfolded_and_objects_are_put_in_order() {
        let text = "kind: List\napiVersion: v1\nitems:\n- {kind: Deployment, apiVersion: apps/v1, metadata: {name: d}}\n\
            - {kind: List, items: [{kind: ConfigMap, apiVersion: v1, metadata: {name: c}}]}\n---\n\
            {kind: Namespace, apiVersion: v1, metadata: {name: space}}\n";
        assert_eq!(loaded(text).unwrap(), ["Namespace space", "ConfigMap c", "Deployment d"]);
    }
}
