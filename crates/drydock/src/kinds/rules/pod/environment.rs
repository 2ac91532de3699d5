//! Environment variables of containers, and references to fields and resources of the pod.

use crate::field::FieldError;
use crate::quantity;
use crate::validate::{At, Errors, all_invalid, format};

const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields that a reference may name at all.
const CONVERTIBLE: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const DIVISORS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// The variables of a container.
pub(super) fn check(variables: &At<'_>, errors: &mut Errors) {
    for variable in variables.items() {
        let name = variable.field("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else {
            errors.extend(name.all_invalid(format::environment_name(name.text())));
        }
        if variable.has("valueFrom") {
            check_source(&variable.field("valueFrom"), variable.text_of("value"), errors);
        }
    }
}

fn check_source(source: &At<'_>, value: &str, errors: &mut Errors) {
    let mut found = 0;
    if source.has("fieldRef") {
        found += 1;
        check_field_reference(&source.field("fieldRef"), &FIELDS, errors);
    }
    if source.has("resourceFieldRef") {
        found += 1;
        check_resource_reference(&source.field("resourceFieldRef"), false, errors);
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if source.has(kind) {
            found += 1;
            check_key(&source.field(kind), errors);
        }
    }
    let why = match found {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(&source.path, "", why));
}

fn check_key(reference: &At<'_>, errors: &mut Errors) {
    let name = reference.field("name");
    errors.extend(name.all_invalid(format::dns_subdomain(name.text())));
    let key = reference.field("key");
    if key.text().is_empty() {
        errors.push(key.required(""));
    } else {
        errors.extend(key.all_invalid(format::config_key(key.text())));
    }
}

/// What whole ConfigMaps and Secrets bring in.
pub(super) fn check_from(sources: &At<'_>, errors: &mut Errors) {
    for source in sources.items() {
        let prefix = source.field("prefix");
        if !prefix.text().is_empty() {
            errors.extend(prefix.all_invalid(format::environment_name(prefix.text())));
        }
        let mut found = 0;
        for kind in ["configMapRef", "secretRef"] {
            if !source.has(kind) {
                continue;
            }
            found += 1;
            let name = source.field(kind).field("name");
            if name.text().is_empty() {
                errors.push(name.required(""));
            } else {
                let rule = super::super::NameRule::Subdomain;
                errors.extend(name.all_invalid(crate::validate::names(rule, name.text(), true)));
            }
        }
        if found != 1 {
            let why = if found == 0 {
                "must specify one of: `configMapRef` or `secretRef`"
            } else {
                "may not have more than one field specified at a time"
            };
            errors.push(FieldError::invalid(&sources.path, "", why));
        }
    }
}

/// A reference to a field of the pod, one of those, or to one label or annotation.
pub(super) fn check_field_reference(reference: &At<'_>, supported: &[&str], errors: &mut Errors) {
    let (version, field) = (reference.field("apiVersion"), reference.field("fieldPath"));
    if version.text().is_empty() {
        errors.push(version.required(""));
        return;
    }
    if field.text().is_empty() {
        errors.push(field.required(""));
        return;
    }
    let refuse = |why: String| field.invalid(format!("error converting fieldPath: {why}"));
    if version.text() != "v1" {
        errors.push(refuse(format!("unsupported pod version: {}", version.text())));
        return;
    }
    if let Some((path, subscript)) = subscripted(field.text()) {
        match path {
            "metadata.annotations" => {
                let key = subscript.to_lowercase();
                errors.extend(all_invalid(&reference.path, &key, format::qualified_name(&key)));
            }
            "metadata.labels" => {
                errors.extend(all_invalid(&reference.path, subscript, format::qualified_name(subscript)));
            }
            _ => errors.push(refuse(format!("field label does not support subscript: {}", field.text()))),
        }
        return;
    }
    let path = if field.text() == "spec.host" { "spec.nodeName" } else { field.text() };
    if !CONVERTIBLE.contains(&path) {
        errors.push(refuse(format!("field label not supported: {path}")));
    } else if !supported.contains(&path) {
        errors.push(FieldError::not_supported(&field.path, path, supported));
    }
}

/// `metadata.labels['key']`.
fn subscripted(text: &str) -> Option<(&str, &str)> {
    let (path, rest) = text.strip_suffix("']")?.split_once("['")?;
    (!path.is_empty()).then_some((path, rest))
}

/// A reference to a resource of a container, which volumes name.
pub(super) fn check_resource_reference(reference: &At<'_>, in_volume: bool, errors: &mut Errors) {
    let resource = reference.field("resource");
    let name = resource.text();
    let is_huge_page = name.starts_with("limits.hugepages-") || name.starts_with("requests.hugepages-");
    if in_volume && reference.text_of("containerName").is_empty() {
        errors.push(reference.field("containerName").required(""));
    } else if name.is_empty() {
        errors.push(resource.required(""));
    } else if !RESOURCES.contains(&name) && !is_huge_page {
        errors.push(resource.not_supported(&RESOURCES));
    }
    let divisor = reference.field("divisor");
    if quantity::nano_units(divisor.text()).unwrap_or_default() == 0 {
        return;
    }
    let (divisors, shown, of): (&[&str], &str, &str) = match name {
        "limits.cpu" | "requests.cpu" => (&["1m", "1"], "1m and 1", "cpu"),
        "limits.memory" | "requests.memory" => (&DIVISORS, SIZES, "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (&DIVISORS, SIZES, "local ephemeral storage"),
        _ if is_huge_page => (&DIVISORS, SIZES, "hugepages"),
        _ => return,
    };
    if !divisors.contains(&divisor.text()) {
        let why = format!("only divisor's values {shown} are supported with the {of} resource");
        errors.push(FieldError::invalid(&divisor.path, name, why));
    }
}

const SIZES: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
