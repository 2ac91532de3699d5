//! CustomResourceDefinitions (`apiextensions-apiserver/pkg/apis/apiextensions/validation`).
//!
//! The server keeps what all versions have in common at the top of the spec, in fields of an older version of this
//! kind, and says so in its messages: `spec.validation.openAPIV3Schema.type`.

mod schema;

use super::fill::{inside, make, or, or_text, text};
use super::webhook::check_client;
use super::{Generation, Rules, WITH_STATUS, clear_status, keep_status};
use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::validate::{At, Errors, format, printed_list};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const APPROVAL: &str = "api-approved.kubernetes.io";
const COLUMN_TYPES: &str = "boolean,date,integer,number,string";
const COLUMN_FORMATS: &str = "byte,date,date-time,double,float,int32,int64,password";
/// What versions may have in common, and what that is called at the top of the spec.
const SHARED: [(&str, &str); 4] = [
    ("schema", "validation"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

pub(crate) static DEFINITION: Rules = Rules {
    generation: Generation::WithSpec,
    default,
    prepare_create: |definition| {
        clear_status(definition);
        note_stored(definition);
    },
    prepare_update: |new, old| {
        keep_status(new, old);
        note_stored(new);
    },
    check: |definition| {
        let spec = At::top(definition, "spec");
        let mut errors = Vec::new();
        let required = format!("{}.{}", spec.below(&["names", "plural"]).text(), spec.text_of("group"));
        let name = At::top(definition, "metadata").field("name");
        if name.text() != required && !name.text().is_empty() {
            errors.push(name.invalid("must be spec.names.plural+\".\"+spec.group"));
        }
        errors.extend(check_all(definition, None));
        errors
    },
    check_update: |new, old| check_all(new, Some(old)),
    check_status: |new, _| {
        let mut errors = Vec::new();
        check_names(&At::top(new, "status").field("acceptedNames"), &mut errors);
        errors
    },
    standard_finalizers: false,
    unconditional_update: false,
    ..WITH_STATUS
};

fn default(definition: &mut Object) {
    let spec = make(definition.fields_mut(), "spec");
    let names = make(spec, "names");
    let kind = text(names, "kind").to_owned();
    if !kind.is_empty() {
        or_text(names, "singular", &kind.to_lowercase());
        or_text(names, "listKind", &format!("{kind}List"));
    }
    or(spec, "conversion", json!({"strategy": "None"}));
    let webhook = inside(spec, "conversion").and_then(|conversion| inside(conversion, "webhook"));
    let service =
        webhook.and_then(|webhook| inside(webhook, "clientConfig")).and_then(|client| inside(client, "service"));
    if let Some(service) = service {
        or(service, "port", 443);
    }
    if definition.list(&["status", "storedVersions"]).is_empty() {
        note_stored(definition);
    }
}

/// The storage version is one of those that objects were stored in.
fn note_stored(definition: &mut Object) {
    let versions = At::top(definition, "spec").field("versions");
    let storage = versions
        .items()
        .find(|version| version.field("storage").is_true())
        .map(|version| version.text_of("name").to_owned());
    if let Some(name) = storage {
        let mut stored = definition.list(&["status", "storedVersions"]).to_vec();
        if !stored.iter().any(|version| version == &name) {
            stored.push(Value::from(name));
        }
        definition.set(&["status", "storedVersions"], stored);
    }
}

fn check_all(definition: &Object, old: Option<&Object>) -> Errors {
    let mut errors = Vec::new();
    let spec = At::top(definition, "spec");
    check_spec(&spec, &mut errors);
    if let Some(old) = old {
        check_unchanged(&spec, old, &mut errors);
    }
    check_names(&At::top(definition, "status").field("acceptedNames"), &mut errors);
    check_stored(definition, &spec, &mut errors);
    check_approval(definition, old, &mut errors);
    let preserve = spec.field("preserveUnknownFields");
    if preserve.is_true()
        && old.is_none_or(|old| old.at(&["spec", "preserveUnknownFields"]) != Some(&Value::Bool(true)))
    {
        let why =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(preserve.invalid(why));
    }
    errors
}

fn check_unchanged(spec: &At<'_>, old: &Object, errors: &mut Errors) {
    let before = At::top(old, "spec");
    let is_established = old
        .list(&["status", "conditions"])
        .iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    if is_established {
        spec.field("scope").check_text_unchanged(&before.field("scope"), errors);
        spec.below(&["names", "kind"]).check_text_unchanged(&before.below(&["names", "kind"]), errors);
    }
    spec.field("group").check_text_unchanged(&before.field("group"), errors);
    spec.below(&["names", "plural"]).check_text_unchanged(&before.below(&["names", "plural"]), errors);
}

fn check_spec(spec: &At<'_>, errors: &mut Errors) {
    let group = spec.field("group");
    let messages = format::dns_subdomain(group.text());
    if group.text().is_empty() {
        errors.push(group.required(""));
    } else if !messages.is_empty() {
        errors.push(group.invalid(messages.join(",")));
    } else if !group.text().contains('.') {
        errors.push(group.invalid("should be a domain with at least one dot"));
    }
    spec.field("scope").check_one_of(&["Cluster", "Namespaced"], errors);
    check_versions(spec, errors);
    let names = spec.field("names");
    for field in ["plural", "singular", "kind", "listKind"] {
        if names.text_of(field).is_empty() {
            errors.push(names.field(field).required(""));
        }
    }
    check_names(&names, errors);
    check_shared(spec, errors);
    let strategy = spec.below(&["conversion", "strategy"]);
    if strategy.is_set() && strategy.text() != "None" && spec.field("preserveUnknownFields").is_true() {
        errors.push(strategy.invalid("must be None if spec.preserveUnknownFields is true"));
    }
    check_conversion(&spec.field("conversion"), errors);
}

/// What all versions have in common.
fn shared<'a>(spec: &At<'a>, field: &str) -> Option<&'a Value> {
    let versions = spec.value.get("versions")?.as_array()?;
    let first = versions.first()?.get(field);
    versions.iter().all(|version| version.get(field) == first).then_some(first).flatten()
}

fn is_shared(spec: &At<'_>, field: &str) -> bool {
    let versions = spec.value.get("versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    versions.iter().all(|version| version.get(field) == versions.first().and_then(|first| first.get(field)))
}

/// Whether any version has a status of its own.
fn has_status(spec: &At<'_>) -> bool {
    spec.field("versions").items().any(|version| version.below(&["subresources", "status"]).is_set())
}

fn check_shared(spec: &At<'_>, errors: &mut Errors) {
    for (field, name) in SHARED {
        let Some(value) = shared(spec, field) else { continue };
        let at = At::new(value, spec.path.child(name));
        match field {
            "schema" => schema::check(&at, has_status(spec), errors),
            "subresources" => check_scale(&at, errors),
            "additionalPrinterColumns" => at.items().for_each(|column| check_column(&column, errors)),
            _ => {}
        }
    }
}

fn check_versions(spec: &At<'_>, errors: &mut Errors) {
    let versions = spec.field("versions");
    for version in versions.items() {
        let schema = version.below(&["schema", "openAPIV3Schema"]);
        if !schema.is_set() {
            errors.push(schema.required(""));
        }
    }
    let mut names = BTreeSet::new();
    let mut unique = true;
    for version in versions.items() {
        let name = version.field("name");
        unique &= names.insert(name.text());
        let messages = format::dns_1035_label(name.text());
        if !messages.is_empty() {
            errors.extend(name.all_invalid(vec![messages.join(",")]));
        }
        check_version(spec, &version, errors);
    }
    let refuse = |why: &str| FieldError::invalid_printed(&versions.path, shown_versions(spec), why);
    if !unique {
        errors.push(refuse("must contain unique version names"));
    }
    if versions.items().filter(|version| version.field("storage").is_true()).count() != 1 {
        errors.push(refuse("must have exactly one version marked as storage version"));
    }
    if let Some(first) = versions.items().next() {
        let name = first.field("name").called(spec.path.child("version"));
        let messages = format::dns_1035_label(name.text());
        if !name.text().is_empty() && !messages.is_empty() {
            errors.push(name.invalid(messages.join(",")));
        }
    }
}

/// The versions without what they have in common.
fn shown_versions(spec: &At<'_>) -> String {
    let Some(versions) = spec.value.get("versions").and_then(Value::as_array) else { return "null".to_owned() };
    let mut versions = versions.clone();
    for version in versions.iter_mut().filter_map(Value::as_object_mut) {
        for (field, _) in SHARED.iter().filter(|(field, _)| is_shared(spec, field)) {
            version.remove(*field);
        }
    }
    printed_list("apiextensions.CustomResourceDefinitionVersion", &versions)
}

fn check_version(spec: &At<'_>, version: &At<'_>, errors: &mut Errors) {
    let warning = version.field("deprecationWarning");
    if warning.is_set() {
        if !version.field("deprecated").is_true() {
            errors.push(warning.invalid("can only be set for deprecated versions"));
        } else if warning.text().is_empty() {
            errors.push(warning.invalid("must not be an empty string"));
        } else if warning.text().len() > 256 {
            errors.push(warning.invalid("must be <= 256 characters long"));
        }
    }
    if !is_shared(spec, "schema") {
        schema::check(&version.field("schema"), version.below(&["subresources", "status"]).is_set(), errors);
    }
    if !is_shared(spec, "subresources") {
        check_scale(&version.field("subresources"), errors);
    }
    if !is_shared(spec, "additionalPrinterColumns") {
        version.field("additionalPrinterColumns").items().for_each(|column| check_column(&column, errors));
    }
}

fn check_names(names: &At<'_>, errors: &mut Errors) {
    let judge = |at: &At<'_>, text: &str, before: &str| {
        let messages = format::dns_1035_label(text);
        (!messages.is_empty()).then(|| at.invalid(format!("{before}{}", messages.join(","))))
    };
    for field in ["plural", "singular"] {
        let name = names.field(field);
        if !name.text().is_empty() {
            errors.extend(judge(&name, name.text(), ""));
        }
    }
    for field in ["kind", "listKind"] {
        let name = names.field(field);
        if !name.text().is_empty() {
            let before = "may have mixed case, but should otherwise match: ";
            errors.extend(judge(&name, &name.text().to_lowercase(), before));
        }
    }
    errors.extend(names.field("shortNames").items().filter_map(|name| judge(&name, name.text(), "")));
    let list = names.field("listKind");
    if !list.text().is_empty() && list.text() == names.text_of("kind") {
        errors.push(list.invalid("kind and listKind may not be the same"));
    }
    errors.extend(names.field("categories").items().filter_map(|name| judge(&name, name.text(), "")));
}

fn check_column(column: &At<'_>, errors: &mut Errors) {
    if column.text_of("name").is_empty() {
        errors.push(column.field("name").required(""));
    }
    let (kind, form) = (column.field("type"), column.field("format"));
    let why = format!("must be one of {COLUMN_TYPES}");
    if kind.text().is_empty() {
        errors.push(kind.required(why));
    } else if !COLUMN_TYPES.split(',').any(|known| known == kind.text()) {
        errors.push(kind.invalid(why));
    }
    if !form.text().is_empty() && !COLUMN_FORMATS.split(',').any(|known| known == form.text()) {
        errors.push(form.invalid(format!("must be one of {COLUMN_FORMATS}")));
    }
    let path = column.field("jsonPath").called(column.path.child("JSONPath"));
    if path.text().is_empty() {
        errors.push(path.required(""));
    } else if !path.text().starts_with('.') {
        errors.push(path.invalid("must be a simple json path starting with ."));
    }
}

fn check_scale(subresources: &At<'_>, errors: &mut Errors) {
    let scale = subresources.field("scale");
    if !scale.is_set() {
        return;
    }
    for (field, prefix) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let path = scale.field(field);
        if path.text().is_empty() {
            errors.push(path.required(""));
        } else if !path.text().starts_with('.') {
            errors.push(path.invalid("must be a simple json path starting with ."));
        } else if !path.text().starts_with(prefix) {
            errors.push(path.invalid(format!("should be a json path under {}", prefix.trim_end_matches('.'))));
        }
    }
    let path = scale.field("labelSelectorPath");
    if path.text().is_empty() {
        return;
    }
    if !path.text().starts_with('.') {
        errors.push(path.invalid("must be a simple json path starting with ."));
    } else if !path.text().starts_with(".spec.") && !path.text().starts_with(".status.") {
        errors.push(path.invalid("should be a json path under either .spec or .status"));
    }
}

fn check_conversion(conversion: &At<'_>, errors: &mut Errors) {
    let strategy = conversion.field("strategy");
    strategy.check_one_of(&["None", "Webhook"], errors);
    let webhook = conversion.field("webhook");
    let client = webhook.field("clientConfig").called(conversion.path.child("webhookClientConfig"));
    let versions = webhook.field("conversionReviewVersions").called(conversion.path.child("conversionReviewVersions"));
    if strategy.text() != "Webhook" {
        for (field, is_given) in [(&client, client.is_set()), (&versions, !versions.is_empty())] {
            if is_given {
                errors.push(field.forbidden("should not be set when strategy is not set to Webhook"));
            }
        }
        return;
    }
    if client.is_set() {
        check_client(&client, errors);
    } else {
        errors.push(client.required("required when strategy is set to Webhook"));
    }
    if versions.is_empty() {
        errors.push(versions.required(""));
        return;
    }
    let mut seen = BTreeSet::new();
    for version in versions.items() {
        if seen.insert(version.text()) {
            errors.extend(version.all_invalid(format::dns_1035_label(version.text())));
        } else {
            errors.push(version.invalid("duplicate version"));
        }
    }
    if !versions.texts().any(|version| matches!(version, "v1" | "v1beta1")) {
        errors.push(versions.invalid("must include at least one of v1, v1beta1"));
    }
}

fn check_stored(definition: &Object, spec: &At<'_>, errors: &mut Errors) {
    let stored = At::top(definition, "status").field("storedVersions");
    if stored.is_empty() {
        errors.push(stored.invalid("must have at least one stored version"));
        return;
    }
    let mut missing: BTreeSet<&str> = stored.texts().collect();
    for version in spec.field("versions").items() {
        let name = version.text_of("name");
        if !missing.remove(name) && version.field("storage").is_true() {
            errors.push(stored.invalid(format!("must have the storage version {name}")));
        }
    }
    for version in stored.items() {
        let name = version.text();
        if missing.contains(name) {
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(version.invalid(why));
        }
    }
}

/// Groups of the Kubernetes community need an approval.
fn check_approval(definition: &Object, old: Option<&Object>, errors: &mut Errors) {
    let group = definition.text(&["spec", "group"]);
    let is_protected =
        ["k8s.io", "kubernetes.io"].iter().any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    let annotation = definition.annotation(APPROVAL).unwrap_or_default();
    let unchanged = old.is_some_and(|old| old.annotation(APPROVAL).unwrap_or_default() == annotation);
    if !is_protected || unchanged || annotation.starts_with("unapproved") || annotation.contains("://") {
        return;
    }
    let path = Path::new("metadata").child("annotations").key(APPROVAL);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let needs = format!("protected groups must have approval annotation {APPROVAL:?}");
    errors.push(if annotation.is_empty() {
        FieldError::required(&path, format!("{needs}, {see}"))
    } else {
        let why = format!("{needs} with either a URL or a reason starting with \"unapproved\", {see}");
        FieldError::invalid(&path, annotation, why)
    });
}
