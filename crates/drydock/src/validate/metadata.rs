//! The metadata of an object (apimachinery v0.34 `api/validation/objectmeta.go`).

use super::at::{At, Errors};
use super::{format, ip, printed, printed_list};
use crate::field::{FieldError, Path};
use crate::kinds::rules::NameRule;
use crate::object::Object;

/// All annotations together, keys and values.
const ANNOTATIONS_LENGTH: usize = 256 * 1024;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What is wrong with a name, or with the prefix of one.
pub(crate) fn names(rule: NameRule, text: &str, prefix: bool) -> Vec<String> {
    let masked;
    let text = if prefix && matches!(rule, NameRule::Subdomain | NameRule::Label | NameRule::ServiceLabel) {
        masked = mask_trailing_dash(text);
        &masked
    } else {
        text
    };
    match rule {
        NameRule::Subdomain => format::dns_subdomain(text),
        NameRule::Label => format::dns_label(text),
        NameRule::ServiceLabel => format::dns_1035_label(text),
        NameRule::Address => ip::strict_address(text),
        NameRule::PathSegment | NameRule::Late => format::path_segment(text, prefix),
    }
}

/// A prefix may end with a dash, as more will follow.
fn mask_trailing_dash(prefix: &str) -> String {
    let mut text = prefix.to_owned();
    if prefix.len() > 1 && text.pop() == Some('-') {
        if text.ends_with(|last: char| last.is_ascii()) {
            text.pop();
        }
        text.push('a');
        return text;
    }
    prefix.to_owned()
}

/// What is wrong with the metadata of a new object.
pub(crate) fn metadata(object: &Object, rule: NameRule, namespaced: bool) -> Errors {
    let metadata = At::top(object, "metadata");
    let mut errors = Vec::new();
    let prefix = metadata.field("generateName");
    if !prefix.text().is_empty() {
        errors.extend(prefix.all_invalid(names(rule, prefix.text(), true)));
    }
    let name = metadata.field("name");
    if name.text().is_empty() {
        errors.push(name.required("name or generateName is required"));
    } else {
        errors.extend(name.all_invalid(names(rule, name.text(), false)));
    }
    let namespace = metadata.field("namespace");
    match (namespaced, namespace.text().is_empty()) {
        (true, true) => errors.push(namespace.required("")),
        (true, false) => errors.extend(namespace.all_invalid(format::dns_label(namespace.text()))),
        (false, true) => {}
        (false, false) => errors.push(namespace.forbidden("not allowed on this type")),
    }
    metadata.field("generation").check_not_negative(&mut errors);
    labels(&metadata.field("labels"), &mut errors);
    annotations(&metadata.field("annotations"), &mut errors);
    owners(&metadata.field("ownerReferences"), &mut errors);
    finalizers(&metadata.field("finalizers"), &mut errors);
    managed_fields(&metadata.field("managedFields"), &mut errors);
    errors
}

/// What is wrong with the metadata of a changed object.
pub(crate) fn metadata_update(new: &Object, old: &Object) -> Errors {
    let (metadata, old_metadata) = (At::top(new, "metadata"), At::top(old, "metadata"));
    let mut errors = Vec::new();
    if old.is_being_deleted() {
        no_new_finalizers(&metadata.field("finalizers"), &old_metadata.field("finalizers"), &mut errors);
    }
    let version = metadata.field("resourceVersion");
    if version.text().is_empty() {
        errors.push(FieldError::invalid(&version.path, "", "must be specified for an update"));
    }
    if new.generation() < old.generation() {
        let path = metadata.path.child("generation");
        errors.push(FieldError::invalid(&path, new.generation(), "must not be decremented"));
    }
    for field in ["name", "namespace", "uid"] {
        let (now, before) = (metadata.field(field), old_metadata.field(field));
        if now.text() != before.text() {
            errors.push(FieldError::invalid(&now.path, now.text(), super::IMMUTABLE));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata.field(field).check_unchanged(&old_metadata.field(field), &mut errors);
    }
    labels(&metadata.field("labels"), &mut errors);
    annotations(&metadata.field("annotations"), &mut errors);
    owners(&metadata.field("ownerReferences"), &mut errors);
    managed_fields(&metadata.field("managedFields"), &mut errors);
    errors
}

/// The refusal of an update without a resourceVersion, where the kind takes none such. It comes from the store and is
/// about the resource, not the kind: `leases.coordination.k8s.io "x" is invalid`.
pub(crate) fn version_is_required() -> FieldError {
    FieldError::invalid(&Path::new("metadata").child("resourceVersion"), 0, "must be specified for an update")
}

/// Finalizers of built-in kinds have a domain, but for those that the server itself knows.
pub(crate) fn standard_finalizers(object: &Object) -> Errors {
    let finalizers = At::top(object, "metadata").field("finalizers");
    finalizers.items().filter_map(|finalizer| standard_finalizer(&finalizer)).collect()
}

/// A finalizer without a domain is one of the few that need none.
pub(crate) fn standard_finalizer(finalizer: &At<'_>) -> Option<FieldError> {
    let text = finalizer.text();
    let is_right = text.contains('/') || matches!(text, "kubernetes" | ORPHAN | FOREGROUND);
    (!is_right).then(|| finalizer.invalid("name is neither a standard finalizer name nor is it fully qualified"))
}

/// An error for each message about a text that is no value but a key or a part.
pub(crate) fn all_invalid(path: &Path, text: &str, messages: Vec<String>) -> impl Iterator<Item = FieldError> {
    messages.into_iter().map(move |message| FieldError::invalid(path, text, message))
}

/// Labels, of an object or of a template.
pub(crate) fn labels(labels: &At<'_>, errors: &mut Errors) {
    for (key, value) in labels.entries() {
        errors.extend(all_invalid(&labels.path, key, format::qualified_name(key)));
        errors.extend(value.called(labels.path.clone()).all_invalid(format::label_value(value.text())));
    }
}

/// Annotations, of an object or of a template.
pub(crate) fn annotations(annotations: &At<'_>, errors: &mut Errors) {
    let mut length = 0;
    for (key, value) in annotations.entries() {
        length += key.len() + value.text().len();
        errors.extend(all_invalid(&annotations.path, key, format::qualified_name(&key.to_lowercase())));
    }
    if length > ANNOTATIONS_LENGTH {
        errors.push(FieldError::too_long(&annotations.path, ANNOTATIONS_LENGTH));
    }
}

fn owners(owners: &At<'_>, errors: &mut Errors) {
    let mut controller: Option<String> = None;
    for owner in owners.items() {
        let owner = owner.called(owners.path.clone());
        check_owner(&owner, errors);
        if !owner.field("controller").is_true() {
            continue;
        }
        let this = format!("{}/{}", owner.text_of("kind"), owner.text_of("name"));
        match &controller {
            None => controller = Some(this),
            Some(first) => {
                let list = owners.value.as_array().map_or(&[][..], Vec::as_slice);
                errors.push(FieldError::invalid_printed(
                    &owners.path,
                    printed_list("meta.OwnerReference", list),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    ),
                ));
            }
        }
    }
}

fn check_owner(owner: &At<'_>, errors: &mut Errors) {
    let api_version = owner.text_of("apiVersion");
    // What is no group and version has neither.
    let (group, version) = match api_version.split_once('/') {
        None => ("", api_version),
        Some((group, version)) if !version.contains('/') => (group, version),
        Some(_) => ("", ""),
    };
    let kind = owner.text_of("kind");
    if version.is_empty() {
        let path = owner.path.child("apiVersion");
        errors.push(FieldError::invalid(&path, api_version, "version must not be empty"));
    }
    for field in ["kind", "name", "uid"] {
        let text = owner.text_of(field);
        if text.is_empty() {
            errors.push(FieldError::invalid(&owner.path.child(field), text, "must not be empty"));
        }
    }
    if (group, version, kind) == ("", "v1", "Event") {
        let shown = printed("meta.OwnerReference", owner.value);
        let why = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid_printed(&owner.path, shown, why));
    }
}

fn finalizers(finalizers: &At<'_>, errors: &mut Errors) {
    for finalizer in finalizers.items() {
        let messages = format::qualified_name(finalizer.text());
        errors.extend(finalizer.called(finalizers.path.clone()).all_invalid(messages));
    }
    if finalizers.texts().any(|name| name == ORPHAN) && finalizers.texts().any(|name| name == FOREGROUND) {
        errors.push(finalizers.invalid(format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set")));
    }
}

fn no_new_finalizers(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let mut added: Vec<&str> = new.texts().filter(|name| old.texts().all(|known| known != *name)).collect();
    added.sort_unstable();
    added.dedup();
    if !added.is_empty() {
        let shown: Vec<String> = added.iter().map(|name| crate::field::quote(name)).collect();
        errors.push(new.forbidden(format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            shown.join(", ")
        )));
    }
}

fn managed_fields(managed: &At<'_>, errors: &mut Errors) {
    for entry in managed.items() {
        if !matches!(entry.text_of("operation"), "Apply" | "Update") {
            let path = entry.path.child("operation");
            errors.push(FieldError::invalid(&path, entry.text_of("operation"), "must be `Apply` or `Update`"));
        }
        if !matches!(entry.text_of("fieldsType"), "" | "FieldsV1") {
            errors.push(entry.field("fieldsType").invalid("must be `FieldsV1`"));
        }
        if entry.text_of("manager").len() > 128 {
            errors.push(FieldError::too_long(&entry.path.child("manager"), 128));
        }
        if entry.text_of("subresource").len() > 256 {
            errors.push(FieldError::too_long(&entry.path.child("subresource"), 256));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

    fn object(metadata: Value) -> Object {
        Object::from_value(json!({"metadata": metadata})).unwrap()
    }

    fn texts(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn prefixes_may_end_with_a_dash() {
        for (prefix, is_right) in [("a-", true), ("a", true), ("a.-", true), ("-", false), ("A-", true), ("AA-", false)]
        {
            assert_eq!(names(NameRule::Subdomain, prefix, true).is_empty(), is_right, "{prefix}");
        }
        assert_eq!(names(NameRule::Label, "é-", true).len(), 1);
    }

    #[test]
    fn new_metadata_is_judged_in_the_order_of_the_server() {
        let wrong = object(json!({
            "generateName": "BB-", "name": "C", "generation": -5,
            "labels": {"a": "-"}, "annotations": {"/X": ""},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Event", "name": "x", "uid": "y", "controller": true},
                {"controller": true},
            ],
            "finalizers": ["x", "foregroundDeletion", "orphan"],
        }));
        let errors = texts(&metadata(&wrong, NameRule::Subdomain, true));
        assert_eq!(
            errors,
            [
                format!("metadata.generateName: Invalid value: \"BB-\": {SUBDOMAIN}"),
                format!("metadata.name: Invalid value: \"C\": {SUBDOMAIN}"),
                "metadata.namespace: Required value".to_owned(),
                "metadata.generation: Invalid value: -5: must be greater than or equal to 0".to_owned(),
                format!("metadata.labels: Invalid value: \"-\": {}", format::label_value("-")[0]),
                "metadata.annotations: Invalid value: \"/X\": prefix part must be non-empty".to_owned(),
                r#"metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"x","uid":"y","controller":true}: /v1, Kind=Event is disallowed from being an owner"#.to_owned(),
                r#"metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty"#.to_owned(),
                r#"metadata.ownerReferences.kind: Invalid value: "": must not be empty"#.to_owned(),
                r#"metadata.ownerReferences.name: Invalid value: "": must not be empty"#.to_owned(),
                r#"metadata.ownerReferences.uid: Invalid value: "": must not be empty"#.to_owned(),
                r#"metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Event","name":"x","uid":"y","controller":true},{"apiVersion":"","kind":"","name":"","uid":"","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for Event/x and /"#.to_owned(),
                r#"metadata.finalizers: Invalid value: ["x","foregroundDeletion","orphan"]: finalizer orphan and foregroundDeletion cannot be both set"#.to_owned(),
            ]
        );
        assert_eq!(
            texts(&standard_finalizers(&wrong)),
            [
                r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#
            ]
        );
        assert_eq!(
            texts(&metadata(&object(json!({"namespace": "x"})), NameRule::Subdomain, false)),
            [
                "metadata.name: Required value: name or generateName is required",
                "metadata.namespace: Forbidden: not allowed on this type",
            ]
        );
    }

    #[test]
    fn annotations_are_limited_in_all() {
        let long = object(json!({"name": "a", "annotations": {"a": "x".repeat(256 * 1024)}}));
        assert_eq!(
            texts(&metadata(&long, NameRule::Subdomain, false)),
            ["metadata.annotations: Too long: may not be more than 262144 bytes"]
        );
    }

    #[test]
    fn what_may_not_change() {
        let old = object(json!({
            "name": "a", "uid": "u", "resourceVersion": "1", "generation": 2, "finalizers": ["a/b"],
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 0,
        }));
        let new = object(json!({
            "name": "b", "uid": "v", "generation": 1, "finalizers": ["a/b", "c/e", "c/d"],
            "creationTimestamp": "2026-01-02T00:00:00Z", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 3,
        }));
        assert_eq!(
            texts(&metadata_update(&new, &old)),
            [
                r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c/d", "c/e"}"#,
                r#"metadata.resourceVersion: Invalid value: "": must be specified for an update"#,
                "metadata.generation: Invalid value: 1: must not be decremented",
                r#"metadata.name: Invalid value: "b": field is immutable"#,
                r#"metadata.uid: Invalid value: "v": field is immutable"#,
                r#"metadata.creationTimestamp: Invalid value: "2026-01-02T00:00:00Z": field is immutable"#,
                "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
            ]
        );
        assert!(metadata_update(&old, &old).is_empty());
    }
}
