//! What a chart says of itself, as templates see it.

use serde_json::Value;
use std::collections::BTreeMap;

/// A `Chart.yaml`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PackageMetadata {
    /// Its name.
    pub name: String,
    /// Where it is at home.
    pub home: String,
    /// Where its sources are.
    pub sources: Vec<String>,
    /// Its version.
    pub version: String,
    /// What it is.
    pub description: String,
    /// What it is found by.
    pub keywords: Vec<String>,
    /// Who keeps it.
    pub maintainers: Vec<Maintainer>,
    /// Where its icon is.
    pub icon: String,
    /// `v1` or `v2`.
    pub api_version: String,
    /// The condition under which it is enabled.
    pub condition: String,
    /// Tags, comma-separated.
    pub tags: String,
    /// The version of what it deploys.
    pub app_version: String,
    /// Whether it should not be used any more.
    pub deprecated: bool,
    /// What others note on it.
    pub annotations: BTreeMap<String, String>,
    /// The versions of Kubernetes that it runs on.
    pub kube_version: String,
    /// The charts that it needs.
    pub dependencies: Vec<Requirement>,
    /// `application` or `library`.
    pub kind: String,
}

/// Somebody who keeps a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintainer {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
    /// The page.
    pub url: String,
}

/// A chart that another one needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requirement {
    /// Its name; its alias once it has been resolved.
    pub name: String,
    /// The versions that are taken.
    pub version: String,
    /// Where it comes from.
    pub repository: String,
    /// Paths of values, comma-separated, the first boolean of which decides whether it is enabled.
    pub condition: String,
    /// Tags that enable and disable it.
    pub tags: Vec<String>,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Values that its parent takes over.
    pub import_values: Vec<Value>,
    /// Another name for it.
    pub alias: String,
}

/// Reads fields as Go's JSON decoder does, which refuses other types.
struct Fields<'a>(&'a Value, &'static str);

impl Fields<'_> {
    fn mismatch(&self, key: &str, value: &Value, wanted: &str) -> String {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let field = format!("{}.{key}", self.1);
        format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go struct field {field} of type {wanted}"
        )
    }

    fn text(&self, key: &str) -> Result<String, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            // sigs.k8s.io/yaml turns numbers and booleans into texts where texts are wanted.
            Some(Value::Bool(value)) => Ok(value.to_string()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            Some(other) => Err(self.mismatch(key, other, "string")),
        }
    }

    fn bool(&self, key: &str) -> Result<bool, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(other) => Err(self.mismatch(key, other, "bool")),
        }
    }

    fn items(&self, key: &str, wanted: &str) -> Result<&[Value], String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(self.mismatch(key, other, wanted)),
        }
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let items = self.items(key, "[]string")?.iter();
        items.map(|item| scalar(item).ok_or_else(|| self.mismatch(key, item, "string"))).collect()
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Reads YAML; `Err` has a message with the line.
fn read(data: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(super::without_mark(data));
    let documents = jobwright_yaml::parse(&text)
        .map_err(|error| format!("error converting YAML to JSON: yaml: {}", error.in_go(&text)))?;
    Ok(documents.first().map_or(Value::Null, |document| document.root.to_json()))
}

impl PackageMetadata {
    /// Reads a `Chart.yaml`; `Err` has Helm's message.
    pub(crate) fn read(data: &[u8]) -> Result<Self, String> {
        let root = read(data)?;
        let fields = Fields(&root, "Metadata");
        let mut metadata = Self {
            name: fields.text("name")?,
            home: fields.text("home")?,
            sources: fields.texts("sources")?,
            version: fields.text("version")?,
            description: fields.text("description")?,
            keywords: fields.texts("keywords")?,
            icon: fields.text("icon")?,
            api_version: fields.text("apiVersion")?,
            condition: fields.text("condition")?,
            tags: fields.text("tags")?,
            app_version: fields.text("appVersion")?,
            deprecated: fields.bool("deprecated")?,
            kube_version: fields.text("kubeVersion")?,
            kind: fields.text("type")?,
            ..Self::default()
        };
        for item in fields.items("maintainers", "[]*chart.Maintainer")? {
            let fields = Fields(item, "Maintainer");
            let maintainer =
                Maintainer { name: fields.text("name")?, email: fields.text("email")?, url: fields.text("url")? };
            metadata.maintainers.push(maintainer);
        }
        if let Some(Value::Object(annotations)) = root.get("annotations") {
            for (key, value) in annotations {
                let text = scalar(value).ok_or_else(|| fields.mismatch("annotations", value, "string"))?;
                metadata.annotations.insert(key.clone(), text);
            }
        }
        metadata.dependencies = read_requirements(&root)?;
        if metadata.api_version.is_empty() {
            "v1".clone_into(&mut metadata.api_version);
        }
        Ok(metadata)
    }

    /// What Helm refuses when it loads a chart.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let refuse = |what: &str| Err(format!("validation: {what}"));
        if self.name.is_empty() {
            return refuse("chart.metadata.name is required");
        }
        if self.name.contains(['/', '\\']) {
            let name = format!("{:?}", self.name);
            return refuse(&format!("chart.metadata.name {name} is invalid"));
        }
        if self.version.is_empty() {
            return refuse("chart.metadata.version is required");
        }
        if self.version.parse::<crate::Version>().is_err() {
            return refuse(&format!("chart.metadata.version {:?} is invalid", self.version));
        }
        if !matches!(self.kind.as_str(), "" | "application" | "library") {
            return refuse("chart.metadata.type must be application or library");
        }
        for (index, dependency) in self.dependencies.iter().enumerate() {
            let known =
                |alias: &str| alias.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
            if !known(&dependency.alias) {
                return refuse(&format!("dependency {:?} has disallowed characters in the alias", dependency.name));
            }
            let key = |dependency: &Requirement| {
                if dependency.alias.is_empty() { dependency.name.clone() } else { dependency.alias.clone() }
            };
            if self.dependencies[..index].iter().any(|other| key(other) == key(dependency)) {
                return refuse(&format!("more than one dependency with name or alias {:?}", key(dependency)));
            }
        }
        Ok(())
    }
}

fn read_requirements(root: &Value) -> Result<Vec<Requirement>, String> {
    let fields = Fields(root, "Metadata");
    let read = |item: &Value| {
        let fields = Fields(item, "Dependency");
        Ok(Requirement {
            name: fields.text("name")?,
            version: fields.text("version")?,
            repository: fields.text("repository")?,
            condition: fields.text("condition")?,
            tags: fields.texts("tags")?,
            enabled: fields.bool("enabled")?,
            import_values: fields.items("import-values", "[]interface {}")?.to_vec(),
            alias: fields.text("alias")?,
        })
    };
    fields.items("dependencies", "[]*chart.Dependency")?.iter().map(read).collect()
}

/// Reads a `requirements.yaml`, which charts of version 1 have.
pub(crate) fn requirements(data: &[u8]) -> Result<Vec<Requirement>, String> {
    read_requirements(&read(data)?)
}
