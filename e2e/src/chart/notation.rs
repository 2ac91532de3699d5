//! The notation of objects: `{job: x, hook: pre-upgrade, command: "exit 1"}`.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An object as it is written; exactly one of the first seven is given.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawObject {
    job: Option<String>,
    pod: Option<String>,
    deployment: Option<String>,
    configmap: Option<String>,
    serviceaccount: Option<String>,
    text: Option<String>,

    path: Option<String>,
    hook: Option<String>,
    weight: Option<String>,
    delete: Option<String>,
    log: Option<String>,
    labels: BTreeMap<String, String>,
    annotations: Map<String, Value>,
    command: Option<String>,
    ttl: Option<u32>,
    spec: Map<String, Value>,
    grace: Option<u32>,
    account: Option<String>,
    v: Option<String>,
    data: BTreeMap<String, String>,
    ready: Option<u32>,
}

/// A file of a chart.
#[derive(Clone, Debug)]
pub(crate) enum Template {
    /// The next template: an object.
    Object(Object),
    /// The next template: a text.
    Text(String),
    /// A file with a path of its own.
    File { path: String, text: String },
}

/// An object with what all kinds have.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    /// Annotations are strings, except where a scenario is about what happens otherwise.
    pub(super) annotations: Map<String, Value>,
    pub(super) kind: Kind,
}

/// What an object is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Job { pod: Pod, ttl: Option<u32>, spec: Map<String, Value> },
    Pod(Pod),
    Deployment { v: String, ready: Option<u32> },
    ConfigMap { data: BTreeMap<String, String> },
    ServiceAccount,
}

/// What runs in a Pod.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(super) command: String,
    pub(super) grace: u32,
    pub(super) account: Option<String>,
}

impl TryFrom<RawObject> for Template {
    type Error = String;

    fn try_from(mut raw: RawObject) -> Result<Self, Self::Error> {
        let template = if let Some(text) = raw.text.take() {
            match raw.path.take() {
                Some(path) => Self::File { path, text },
                None => Self::Text(text),
            }
        } else {
            Self::Object(object(&mut raw)?)
        };
        let left = raw.leftover();
        if left.is_empty() { Ok(template) } else { Err(format!("{} does not belong there", left.join(", "))) }
    }
}

fn object(raw: &mut RawObject) -> Result<Object, String> {
    let (name, kind) = if let Some(name) = raw.job.take() {
        (name, Kind::Job { pod: raw.take_pod(), ttl: raw.ttl.take(), spec: std::mem::take(&mut raw.spec) })
    } else if let Some(name) = raw.pod.take() {
        (name, Kind::Pod(raw.take_pod()))
    } else if let Some(name) = raw.deployment.take() {
        (name, Kind::Deployment { v: raw.take_v(), ready: raw.ready.take() })
    } else if let Some(name) = raw.configmap.take() {
        let mut data = std::mem::take(&mut raw.data);
        if data.is_empty() {
            data.insert("v".to_owned(), raw.take_v());
        }
        (name, Kind::ConfigMap { data })
    } else if let Some(name) = raw.serviceaccount.take() {
        (name, Kind::ServiceAccount)
    } else {
        return Err("an object is a job, pod, deployment, configmap, serviceaccount or text".to_owned());
    };
    let mut annotations = std::mem::take(&mut raw.annotations);
    for (key, value) in [
        ("helm.sh/hook", raw.hook.take()),
        ("helm.sh/hook-weight", raw.weight.take()),
        ("helm.sh/hook-delete-policy", raw.delete.take()),
        ("helm.sh/hook-output-log-policy", raw.log.take()),
    ] {
        if let Some(value) = value {
            annotations.insert(key.to_owned(), Value::String(value));
        }
    }
    Ok(Object { name, labels: std::mem::take(&mut raw.labels), annotations, kind })
}

impl RawObject {
    fn take_pod(&mut self) -> Pod {
        Pod {
            command: self.command.take().unwrap_or_else(|| "echo hi".to_owned()),
            grace: self.grace.take().unwrap_or(1),
            account: self.account.take(),
        }
    }

    fn take_v(&mut self) -> String {
        self.v.take().unwrap_or_else(|| "1".to_owned())
    }

    /// What is still there after the object took what it understands.
    fn leftover(&self) -> Vec<&'static str> {
        let fields = [
            ("job", self.job.is_some()),
            ("pod", self.pod.is_some()),
            ("deployment", self.deployment.is_some()),
            ("configmap", self.configmap.is_some()),
            ("serviceaccount", self.serviceaccount.is_some()),
            ("path", self.path.is_some()),
            ("hook", self.hook.is_some()),
            ("weight", self.weight.is_some()),
            ("delete", self.delete.is_some()),
            ("log", self.log.is_some()),
            ("labels", !self.labels.is_empty()),
            ("annotations", !self.annotations.is_empty()),
            ("command", self.command.is_some()),
            ("ttl", self.ttl.is_some()),
            ("spec", !self.spec.is_empty()),
            ("grace", self.grace.is_some()),
            ("account", self.account.is_some()),
            ("v", self.v.is_some()),
            ("data", !self.data.is_empty()),
            ("ready", self.ready.is_some()),
        ];
        fields.into_iter().filter(|(_, present)| *present).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(yaml: &str) -> Result<Template, String> {
        let raw: RawObject = serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
        raw.try_into()
    }

    #[test]
    fn an_object_takes_only_what_it_understands() {
        assert!(parse("{configmap: m, v: 2, hook: test}").is_ok());
        assert_eq!(parse("{configmap: m, ttl: 0}").unwrap_err(), "ttl does not belong there");
        assert_eq!(parse("{job: x, pod: y}").unwrap_err(), "pod does not belong there");
        assert_eq!(parse("{text: x, hook: test}").unwrap_err(), "hook does not belong there");
        assert!(parse("{v: 2}").is_err());
    }

    #[test]
    fn hooks_are_annotations() {
        let Ok(Template::Object(object)) = parse("{job: x, hook: test, weight: ' 5', delete: ''}") else {
            panic!("not an object")
        };
        assert_eq!(object.annotations["helm.sh/hook-weight"], " 5");
        assert_eq!(object.annotations["helm.sh/hook-delete-policy"], "");
    }
}
