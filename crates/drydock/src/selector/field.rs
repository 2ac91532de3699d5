//! Field selectors: `metadata.name=web,status.phase!=Running`.

use crate::kinds::Kind;
use crate::object::Object;
use serde_json::Value;

/// What fields an object must have. Empty: anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    field: String,
    value: String,
    equal: bool,
}

/// What a kind's objects can be selected by, besides name and namespace, and how the server words a refusal.
const SELECTABLE: &[(&str, &str, &[&str], Refusal)] = &[
    (
        "",
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        Refusal::Label,
    ),
    (
        "",
        "events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        Refusal::Label,
    ),
    ("", "namespaces", &["status.phase"], Refusal::Label),
    ("", "nodes", &["spec.unschedulable"], Refusal::Label),
    ("", "secrets", &["type"], Refusal::Label),
    ("", "services", &["spec.clusterIP", "spec.type"], Refusal::Label),
    ("", "replicationcontrollers", &["status.replicas"], Refusal::Label),
    ("apps", "replicasets", &["status.replicas"], Refusal::Label),
    ("batch", "jobs", &["status.successful"], Refusal::LabelForKind),
    ("certificates.k8s.io", "certificatesigningrequests", &["spec.signerName"], Refusal::Label),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// `field label not supported: x`
    Label,
    /// `field label "x" not supported for Job`
    LabelForKind,
    /// `"x" is not a known field selector: only "metadata.name", "metadata.namespace"`
    OnlyMetadata,
}

impl FieldSelector {
    /// Reads the text of a query parameter, for a kind.
    pub(crate) fn parse(text: &str, kind: &Kind) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in split(text) {
            if part.is_empty() {
                continue;
            }
            let term =
                parse_term(part).ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            supported(&term.field, kind)?;
            terms.push(term);
        }
        Ok(Self { terms })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether an object fits.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.terms.iter().all(|term| (value_of(object, &term.field) == term.value) == term.equal)
    }
}

fn supported(field: &str, kind: &Kind) -> Result<(), String> {
    if field == "metadata.name" || field == "metadata.namespace" {
        return Ok(());
    }
    if let Some(custom) = kind.custom() {
        return if custom.selectable_fields.iter().any(|known| known == field) {
            Ok(())
        } else {
            Err(format!("field label not supported: {field}"))
        };
    }
    let storage = &kind.storage;
    let known = SELECTABLE.iter().find(|(group, plural, ..)| *group == &*storage.group && *plural == &*storage.plural);
    let refusal = match known {
        Some((_, _, fields, _)) if fields.contains(&field) => return Ok(()),
        Some((.., refusal)) => *refusal,
        None => Refusal::OnlyMetadata,
    };
    Err(match refusal {
        Refusal::Label => format!("field label not supported: {field}"),
        Refusal::LabelForKind => format!("field label {field:?} not supported for {}", kind.kind),
        Refusal::OnlyMetadata => {
            format!(r#"{field:?} is not a known field selector: only "metadata.name", "metadata.namespace""#)
        }
    })
}

/// The value of a selectable field as text, empty when absent.
fn value_of(object: &Object, field: &str) -> String {
    if field == "source" && object.kind() == "Event" {
        let source = object.text(&["source", "component"]);
        return if source.is_empty() { object.text(&["reportingComponent"]) } else { source }.to_owned();
    }
    let field = if field == "status.successful" { "status.succeeded" } else { field };
    let path: Vec<&str> = field.trim_start_matches('.').split('.').collect();
    match object.at(&path) {
        None if matches!(field, "spec.hostNetwork" | "spec.unschedulable") => "false".to_owned(),
        None if field.starts_with("status.replicas") || field == "status.succeeded" => "0".to_owned(),
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The parts between commas that no backslash protects.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, character) in text.char_indices() {
        if character == ',' && !escaped {
            parts.push(&text[start..index]);
            start = index + 1;
        }
        escaped = character == '\\' && !escaped;
    }
    parts.push(&text[start..]);
    parts
}

fn parse_term(part: &str) -> Option<Term> {
    let index = part.find(['=', '!'])?;
    let (field, rest) = part.split_at(index);
    let (equal, value) = ["!=", "==", "="]
        .iter()
        .find_map(|operator| rest.strip_prefix(operator).map(|value| (*operator != "!=", value)))?;
    Some(Term { field: field.to_owned(), value: unescape(value)?, equal })
}

fn unescape(value: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.push(characters.next().filter(|next| "\\,=".contains(*next))?),
            ',' | '=' => return None,
            other => text.push(other),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;
    use serde_json::json;

    fn parse(plural: &str, group: &str, text: &str) -> Result<FieldSelector, String> {
        FieldSelector::parse(text, Kinds::default().by_resource(group, "v1", plural).unwrap())
    }

    #[test]
    fn selectors_match_as_in_kubernetes() {
        let pod = json!({"metadata": {"name": "a", "namespace": "n"}, "status": {"phase": "Running"}});
        let pod = Object::from_value(pod).unwrap();
        for (selector, expected) in [
            ("", true),
            ("metadata.name=a,metadata.namespace==n", true),
            ("status.phase!=Running", false),
            ("spec.nodeName=", true),
            ("spec.hostNetwork=false", true),
        ] {
            assert_eq!(parse("pods", "", selector).unwrap().matches(&pod), expected, "{selector}");
        }
    }

    #[test]
    fn wrong_selectors_are_refused_in_the_servers_words() {
        for (plural, group, selector, refusal) in [
            ("pods", "", "x=1", "field label not supported: x"),
            (
                "configmaps",
                "",
                "x=1",
                r#""x" is not a known field selector: only "metadata.name", "metadata.namespace""#,
            ),
            ("jobs", "batch", "x=1", r#"field label "x" not supported for Job"#),
            ("pods", "", "x", "invalid selector: 'x'; can't understand 'x'"),
        ] {
            assert_eq!(parse(plural, group, selector).unwrap_err(), refusal);
        }
    }
}
