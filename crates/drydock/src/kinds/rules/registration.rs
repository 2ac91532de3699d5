//! APIServices, CertificateSigningRequests and RuntimeClasses.

use super::fill::{inside, make, or};
use super::pod::resources::check_container;
use super::pod::scheduling::check_tolerations;
use super::{NameRule, PLAIN, Rules, WITH_STATUS, keep, keep_status};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{At, Errors, format, labels};
use serde_json::json;
use std::collections::BTreeSet;

pub(crate) static API_SERVICE: Rules = Rules {
    name: NameRule::PathSegment,
    default: |service| {
        if let Some(reference) = inside(make(service.fields_mut(), "spec"), "service") {
            or(reference, "port", 443);
        }
    },
    prepare_create: |service| {
        super::clear_status(service);
        if service.at(&["spec", "service"]).is_none() {
            let now = service.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or_default();
            service.set(
                &["status", "conditions"],
                json!([{
                    "type": "Available", "status": "True", "lastTransitionTime": now, "reason": "Local",
                    "message": "Local APIServices are always available",
                }]),
            );
        }
    },
    check: check_service,
    check_update: |new, _| check_service(new),
    standard_finalizers: false,
    unconditional_update: false,
    ..WITH_STATUS
};

/// Whose request it is and whether that is right, admission knows.
pub(crate) static CERTIFICATE_REQUEST: Rules = Rules {
    name: NameRule::PathSegment,
    prepare_update: |new, old| {
        keep_status(new, old);
        keep(new, old, "spec");
    },
    check: |request| {
        let mut errors = Vec::new();
        let spec = At::top(request, "spec");
        if spec.field("usages").is_empty() {
            errors.push(spec.field("usages").required(""));
        }
        if spec.text_of("signerName").is_empty() {
            errors.push(spec.field("signerName").required(""));
        }
        errors
    },
    ..WITH_STATUS
};

pub(crate) static RUNTIME_CLASS: Rules = Rules {
    check: check_runtime_class,
    check_update: |new, old| {
        let mut errors = check_runtime_class(new);
        At::top(new, "handler").check_text_unchanged(&At::top(old, "handler"), &mut errors);
        errors
    },
    standard_finalizers: false,
    create_on_update: true,
    unconditional_update: false,
    ..PLAIN
};

fn check_service(service: &Object) -> Errors {
    let mut errors = Vec::new();
    let spec = At::top(service, "spec");
    let (group, version) = (spec.field("group"), spec.field("version"));
    let required = format!("{}.{}", version.text(), group.text());
    let name = At::top(service, "metadata").field("name");
    if name.text() != required && format::path_segment(name.text(), false).is_empty() && !name.text().is_empty() {
        errors.push(name.invalid(format!("must be `spec.version+\".\"+spec.group`: {required:?}")));
    }
    if group.text().is_empty() {
        if version.text() != "v1" {
            errors.push(group.required("only v1 may have an empty group and it better be legacy kube"));
        }
    } else {
        errors.extend(group.all_invalid(format::dns_subdomain(group.text())));
    }
    errors.extend(version.all_invalid(format::dns_1035_label(version.text())));
    for (field, highest) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = spec.field(field);
        let number = priority.number().unwrap_or_default();
        if number <= 0 || number > highest {
            let why = format!("must be positive and less than {highest}");
            errors.push(FieldError::invalid(&priority.path, number, why));
        }
    }
    let reference = spec.field("service");
    let insecure = spec.field("insecureSkipTLSVerify");
    if !reference.is_set() {
        if insecure.is_true() {
            errors.push(insecure.invalid("local APIServices may not have insecureSkipTLSVerify"));
        }
        return errors;
    }
    for field in ["namespace", "name"] {
        if reference.text_of(field).is_empty() {
            errors.push(reference.field(field).required(""));
        }
    }
    let port = reference.field("port");
    let messages = format::port_number(port.number().unwrap_or_default());
    if !messages.is_empty() {
        errors.push(port.invalid(format!("port is not valid: {}", messages.join(", "))));
    }
    if insecure.is_true() && !spec.text_of("caBundle").is_empty() {
        errors.push(insecure.invalid("may not be true if caBundle is present"));
    }
    errors
}

fn check_runtime_class(class: &Object) -> Errors {
    let mut errors = Vec::new();
    let handler = At::top(class, "handler");
    errors.extend(handler.all_invalid(format::dns_label(handler.text())));
    let overhead = At::top(class, "overhead");
    if overhead.is_set() {
        let limits = json!({"limits": overhead.field("podFixed").value});
        check_container(&At::new(&limits, overhead.path), &BTreeSet::new(), &mut errors);
    }
    let scheduling = At::top(class, "scheduling");
    labels(&scheduling.field("nodeSelector"), &mut errors);
    let tolerations = scheduling.field("tolerations");
    check_tolerations(&tolerations.called(tolerations.path.child("tolerations")), &mut errors);
    errors
}
