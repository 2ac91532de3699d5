//! Probes, and hooks at the start and end of a container.

use crate::field::FieldError;
use crate::validate::{At, Errors, format};
use serde_json::Value;

/// What a probe may do.
pub(super) const PROBES: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
/// What a hook may do.
pub(super) const HOOKS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "sleep"];

/// A probe by its name.
pub(super) fn check(name: &str, probe: &At<'_>, grace_period: Option<i64>, errors: &mut Errors) {
    check_handler(probe, &PROBES, grace_period, errors);
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        probe.field(field).check_not_negative(errors);
    }
    let grace = probe.field("terminationGracePeriodSeconds");
    if grace.number().is_some_and(|seconds| seconds <= 0) {
        errors.push(grace.invalid("must be greater than 0"));
    }
    if name == "readinessProbe" {
        if grace.is_set() {
            errors.push(grace.invalid("must not be set for readinessProbes"));
        }
    } else if probe.field("successThreshold").number() != Some(1) {
        let threshold = probe.field("successThreshold");
        let number = threshold.number().unwrap_or_default();
        errors.push(FieldError::invalid(&threshold.path, number, "must be 1"));
    }
}

/// The one thing that a probe or hook does.
pub(super) fn check_handler(handler: &At<'_>, known: &[&str], grace_period: Option<i64>, errors: &mut Errors) {
    let mut found = false;
    for name in known {
        let action = handler.field(name);
        if !action.is_set() {
            continue;
        }
        if found {
            errors.push(action.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        found = true;
        match *name {
            "exec" => {
                if action.field("command").is_empty() {
                    errors.push(action.field("command").required(""));
                }
            }
            "httpGet" => check_http(&action, errors),
            "sleep" => check_sleep(&action, grace_period, errors),
            _ => check_port(&action.field("port"), errors),
        }
    }
    if !found {
        errors.push(handler.required("must specify a handler type"));
    }
}

fn check_http(action: &At<'_>, errors: &mut Errors) {
    if action.text_of("path").is_empty() {
        errors.push(action.field("path").required(""));
    }
    check_port(&action.field("port"), errors);
    let scheme = action.field("scheme");
    if !matches!(scheme.text(), "HTTP" | "HTTPS") {
        errors.push(scheme.not_supported(&["HTTP", "HTTPS"]));
    }
    for header in action.field("httpHeaders").items() {
        let name = header.field("name").called(action.path.child("httpHeaders"));
        errors.extend(name.all_invalid(format::http_header_name(name.text())));
    }
}

fn check_sleep(action: &At<'_>, grace_period: Option<i64>, errors: &mut Errors) {
    let seconds = action.field("seconds").number().unwrap_or_default();
    if let Some(period) = grace_period
        && (seconds < 0 || seconds > period)
    {
        let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({period})");
        errors.push(FieldError::invalid(&action.path, seconds, why));
    }
}

/// A port by number or name.
pub(in super::super) fn check_port(port: &At<'_>, errors: &mut Errors) {
    match port.value {
        Value::String(name) => errors.extend(port.all_invalid(format::port_name(name))),
        other => {
            let number = other.as_i64().unwrap_or_default();
            let messages = format::port_number(number);
            errors.extend(messages.into_iter().map(|message| FieldError::invalid(&port.path, number, message)));
        }
    }
}
