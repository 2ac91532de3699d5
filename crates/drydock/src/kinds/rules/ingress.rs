//! Ingresses and IngressClasses (`pkg/apis/networking/validation/validation.go`).

use super::fill::{inside, or};
use super::{Generation, PLAIN, Rules, WITH_STATUS};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{self, At, Errors, format, ip};

const CLASS: &str = "kubernetes.io/ingress.class";
const NO_ADDRESS: &str = "must be a DNS name, not an IP address";

pub(crate) static INGRESS: Rules = Rules {
    generation: Generation::WithSpec,
    check: |ingress| {
        let mut errors = check(ingress);
        let class = ingress.annotation(CLASS);
        let named = ingress.at(&["spec", "ingressClassName"]).and_then(serde_json::Value::as_str);
        if let (Some(class), Some(named)) = (class, named)
            && class != named
        {
            let path = crate::field::Path::new("annotations").child(CLASS);
            let why = "must match `ingressClassName` when both are specified";
            errors.push(FieldError::invalid(&path, class, why));
        }
        errors
    },
    check_update: |new, _| check(new),
    check_status: |new, _| {
        let mut errors = Vec::new();
        for point in At::top(new, "status").below(&["loadBalancer", "ingress"]).items() {
            let (address, host) = (point.field("ip"), point.field("hostname"));
            if !address.text().is_empty() {
                errors.extend(address.all_invalid(ip::address(address.text())));
            }
            if !host.text().is_empty() {
                errors.extend(host.all_invalid(format::dns_subdomain(host.text())));
                if ip::parse(host.text()).is_some() {
                    errors.push(host.invalid(NO_ADDRESS));
                }
            }
        }
        errors
    },
    warnings: |ingress, old| {
        let is_old_way = ingress.annotation(CLASS).is_some() && ingress.at(&["spec", "ingressClassName"]).is_none();
        if old.is_none() && is_old_way {
            return vec![format!("annotation {CLASS:?} is deprecated, please use 'spec.ingressClassName' instead")];
        }
        Vec::new()
    },
    ..WITH_STATUS
};

pub(crate) static INGRESS_CLASS: Rules = Rules {
    generation: Generation::WithSpec,
    default: |class| {
        let parameters = inside(class.fields_mut(), "spec").and_then(|spec| inside(spec, "parameters"));
        if let Some(parameters) = parameters {
            or(parameters, "scope", "Cluster");
        }
    },
    check: check_class,
    check_update: |new, old| {
        let mut errors = Vec::new();
        let controller = At::top(new, "spec").field("controller");
        controller.check_text_unchanged(&At::top(old, "spec").field("controller"), &mut errors);
        errors.extend(validate::metadata(new, super::NameRule::Subdomain, false));
        errors.extend(check_class(new));
        errors
    },
    ..PLAIN
};

fn check(ingress: &Object) -> Errors {
    let mut errors = Vec::new();
    let spec = At::top(ingress, "spec");
    let (rules, default) = (spec.field("rules"), spec.field("defaultBackend"));
    if rules.is_empty() && !default.is_set() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.push(rules.called(spec.path.clone()).invalid(why));
    }
    if default.is_set() {
        check_backend(&default, &mut errors);
    }
    for rule in rules.items() {
        check_rule(&rule, &mut errors);
    }
    for entry in spec.field("tls").items() {
        for host in entry.field("hosts").items() {
            check_host(&host, &mut errors);
        }
        let secret = entry.field("secretName");
        if !secret.text().is_empty() {
            errors.extend(secret.all_invalid(format::dns_subdomain(secret.text())));
        }
    }
    let class = spec.field("ingressClassName");
    if class.is_set() {
        errors.extend(class.all_invalid(format::dns_subdomain(class.text())));
    }
    errors
}

fn check_host(host: &At<'_>, errors: &mut Errors) {
    let messages = if host.text().contains('*') {
        format::wildcard_subdomain(host.text())
    } else {
        format::dns_subdomain(host.text())
    };
    errors.extend(host.all_invalid(messages));
}

fn check_rule(rule: &At<'_>, errors: &mut Errors) {
    let host = rule.field("host");
    if !host.text().is_empty() {
        if ip::parse(host.text()).is_some() {
            errors.push(host.invalid(NO_ADDRESS));
        }
        check_host(&host, errors);
    }
    if rule.has("http") {
        let paths = rule.below(&["http", "paths"]);
        if paths.is_empty() {
            errors.push(paths.required(""));
        }
        for path in paths.items() {
            check_path(&path, errors);
        }
    }
}

fn check_path(rule: &At<'_>, errors: &mut Errors) {
    let (kind, path) = (rule.field("pathType"), rule.field("path"));
    if !kind.is_set() {
        errors.push(kind.required("pathType must be specified"));
        return;
    }
    let text = path.text();
    let refuse = |why: String| FieldError::invalid(&path.path, text, why);
    match kind.text() {
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                errors.push(refuse("must be an absolute path".to_owned()));
            }
            for sequence in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|sequence| text.contains(**sequence)) {
                errors.push(refuse(format!("must not contain '{sequence}'")));
            }
            for end in ["/..", "/."].iter().filter(|end| text.ends_with(**end)) {
                errors.push(refuse(format!("cannot end with '{end}'")));
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                errors.push(refuse("must be an absolute path".to_owned()));
            }
        }
        _ => errors.push(kind.not_supported(&["Exact", "ImplementationSpecific", "Prefix"])),
    }
    check_backend(&rule.field("backend"), errors);
}

fn check_backend(backend: &At<'_>, errors: &mut Errors) {
    let (resource, service) = (backend.field("resource"), backend.field("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => {
            errors.push(FieldError::invalid(&backend.path, "", "cannot set both resource and service backends"));
        }
        (true, false) => check_reference(&resource, errors),
        (false, true) => check_service(backend, &service, errors),
        (false, false) => {
            errors.push(FieldError::invalid(&backend.path, "", "resource or service backend is required"));
        }
    }
}

fn check_service(backend: &At<'_>, service: &At<'_>, errors: &mut Errors) {
    let name = service.field("name");
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else {
        errors.extend(name.all_invalid(format::dns_1035_label(name.text())));
    }
    let (port_name, number) = (service.below(&["port", "name"]), service.below(&["port", "number"]));
    match (port_name.text().is_empty(), number.number().unwrap_or_default()) {
        (true, 0) => errors.push(backend.required("port name or number is required")),
        (true, port) => errors.extend(number.all_invalid(format::port_number(port))),
        (false, 0) => errors.extend(port_name.all_invalid(format::port_name(port_name.text()))),
        (false, _) => {
            errors.push(FieldError::invalid(&backend.path, "", "cannot set both port name & port number"));
        }
    }
}

/// A reference to an object in the same namespace.
fn check_reference(reference: &At<'_>, errors: &mut Errors) {
    let group = reference.field("apiGroup");
    if group.is_set() {
        errors.extend(group.all_invalid(format::dns_subdomain(group.text())));
    }
    for field in ["kind", "name"] {
        let part = reference.field(field);
        if part.text().is_empty() {
            errors.push(part.required(""));
        } else {
            errors.extend(part.all_invalid(format::path_segment(part.text(), false)));
        }
    }
}

fn check_class(class: &Object) -> Errors {
    let mut errors = Vec::new();
    let spec = At::top(class, "spec");
    let controller = spec.field("controller");
    if controller.text().len() > 250 {
        errors.push(FieldError::too_long(&controller.path, 250));
    }
    controller.check_domain_path(&mut errors);
    let parameters = spec.field("parameters");
    if !parameters.is_set() {
        return errors;
    }
    check_reference(&parameters, &mut errors);
    let (scope, namespace) = (parameters.field("scope"), parameters.field("namespace"));
    match scope.text() {
        "Namespace" if !namespace.is_set() => {
            errors.push(namespace.required("`parameters.scope` is set to 'Namespace'"));
        }
        "Namespace" => errors.extend(namespace.all_invalid(format::dns_label(namespace.text()))),
        "Cluster" if namespace.is_set() => {
            errors.push(namespace.forbidden("`parameters.scope` is set to 'Cluster'"));
        }
        "Cluster" => {}
        _ => errors.push(scope.not_supported(&["Cluster", "Namespace"])),
    }
    errors
}
