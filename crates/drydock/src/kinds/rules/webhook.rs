//! Webhook configurations (`pkg/apis/admissionregistration/validation/validation.go`).

use super::fill::{Fields, each, inside, make, or};
use super::{Generation, PLAIN, Rules};
use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::validate::{At, Errors, format, selector};
use std::collections::BTreeSet;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const FORM: &str = "; desired format: https://host[/path]";

pub(crate) static VALIDATING_WEBHOOKS: Rules =
    Rules { default: |object| each(object.fields_mut(), "webhooks", default_webhook), ..WEBHOOKS };

pub(crate) static MUTATING_WEBHOOKS: Rules = Rules {
    default: |object| {
        each(object.fields_mut(), "webhooks", |webhook| {
            default_webhook(webhook);
            or(webhook, "reinvocationPolicy", "Never");
        });
    },
    ..WEBHOOKS
};

const WEBHOOKS: Rules = Rules {
    generation: Generation::WithContent,
    check,
    check_update: |new, _| check(new),
    standard_finalizers: false,
    unconditional_update: false,
    ..PLAIN
};

fn default_webhook(webhook: &mut Fields) {
    or(webhook, "failurePolicy", "Fail");
    or(webhook, "matchPolicy", "Equivalent");
    make(webhook, "namespaceSelector");
    make(webhook, "objectSelector");
    or(webhook, "timeoutSeconds", 10);
    each(webhook, "rules", default_rule);
    if let Some(service) = inside(make(webhook, "clientConfig"), "service") {
        or(service, "port", 443);
    }
}

/// A rule is about all scopes unless it says which.
pub(super) fn default_rule(rule: &mut Fields) {
    or(rule, "scope", "*");
}

fn check(object: &Object) -> Errors {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for webhook in At::top(object, "webhooks").items() {
        check_webhook(&webhook, &mut errors);
        check_review_versions(&webhook.field("admissionReviewVersions"), &mut errors);
        let name = webhook.field("name");
        if !name.text().is_empty() && !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
    errors
}

fn check_webhook(webhook: &At<'_>, errors: &mut Errors) {
    check_full_name(&webhook.field("name"), errors);
    for rule in webhook.field("rules").items() {
        check_rule(&rule, errors);
    }
    webhook.field("failurePolicy").check_optional(&["Fail", "Ignore"], errors);
    webhook.field("matchPolicy").check_optional(&["Equivalent", "Exact"], errors);
    let effects = webhook.field("sideEffects");
    if effects.is_set() {
        effects.check_optional(&["None", "NoneOnDryRun"], errors);
    } else {
        errors.push(effects.required("must specify one of None, NoneOnDryRun"));
    }
    let timeout = webhook.field("timeoutSeconds");
    if timeout.number().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    selector::check(&webhook.field("namespaceSelector"), errors);
    selector::check(&webhook.field("objectSelector"), errors);
    webhook.field("reinvocationPolicy").check_optional(&["IfNeeded", "Never"], errors);
    check_client(&webhook.field("clientConfig"), errors);
    check_conditions(&webhook.field("matchConditions"), errors);
}

/// A name of three parts at least.
fn check_full_name(name: &At<'_>, errors: &mut Errors) {
    let messages = format::dns_subdomain(name.text());
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else if !messages.is_empty() {
        errors.push(name.invalid(messages.join(",")));
    } else if name.text().split('.').count() < 3 {
        errors.push(name.invalid("should be a domain with at least three segments separated by dots"));
    }
}

/// What requests a webhook or policy is about.
pub(super) fn check_rule(rule: &At<'_>, errors: &mut Errors) {
    let operations = rule.field("operations");
    if operations.is_empty() {
        errors.push(operations.required(""));
    }
    check_wildcard(&operations, "operations", errors);
    for operation in operations.items() {
        if !OPERATIONS.contains(&operation.text()) {
            errors.push(operation.not_supported(&OPERATIONS));
        }
    }
    for (field, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.field(field);
        if list.is_empty() {
            errors.push(list.required(""));
        }
        check_wildcard(&list, what, errors);
        for item in list.items().filter(|item| field == "apiVersions" && item.text().is_empty()) {
            errors.push(item.required(""));
        }
    }
    check_resources(&rule.field("resources"), errors);
    rule.field("scope").check_optional(&["*", "Cluster", "Namespaced"], errors);
}

fn check_wildcard(list: &At<'_>, what: &str, errors: &mut Errors) {
    if list.len() > 1 && list.texts().any(|text| text == "*") {
        errors.push(list.invalid(format!("if '*' is present, must not specify other {what}")));
    }
}

fn check_resources(resources: &At<'_>, errors: &mut Errors) {
    if resources.is_empty() {
        errors.push(resources.required(""));
    }
    let (mut all_below, mut below_all) = (BTreeSet::new(), BTreeSet::new());
    let mut has_plain = false;
    for item in resources.items() {
        let text = item.text();
        if text.is_empty() {
            errors.push(item.required(""));
            continue;
        }
        let Some((resource, below)) = text.split_once('/') else {
            has_plain = text != "*";
            continue;
        };
        if all_below.contains(resource) {
            errors.push(item.invalid(format!("if '{resource}/*' is present, must not specify {text}")));
        }
        if below_all.contains(below) {
            errors.push(item.invalid(format!("if '*/{below}' is present, must not specify {text}")));
        }
        if below == "*" {
            all_below.insert(resource);
        }
        if resource == "*" {
            below_all.insert(below);
        }
    }
    if resources.len() > 1 && resources.texts().any(|text| text == "*/*") {
        errors.push(resources.invalid("if '*/*' is present, must not specify other resources"));
    }
    if has_plain && resources.texts().any(|text| text == "*") {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.push(resources.invalid(why));
    }
}

/// Where a webhook is.
pub(super) fn check_client(client: &At<'_>, errors: &mut Errors) {
    let (url, service) = (client.field("url"), client.field("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => check_url(&url, errors),
        (false, true) => check_service(&service, errors),
        _ => errors.push(client.required("exactly one of url or service is required")),
    }
}

fn check_url(url: &At<'_>, errors: &mut Errors) {
    let text = url.text();
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let mut refuse = |shown: &str, why: String| errors.push(FieldError::invalid(&url.path, shown, why));
    if scheme.to_lowercase() != "https" {
        refuse(scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        refuse("", format!("host must be specified{FORM}"));
    }
    if !user.is_empty() {
        refuse(user, "user information is not permitted in the URL".to_owned());
    }
    if !fragment.is_empty() {
        refuse(fragment, "fragments are not permitted in the URL".to_owned());
    }
    if !query.is_empty() {
        refuse(query, "query parameters are not permitted in the URL".to_owned());
    }
}

fn check_service(service: &At<'_>, errors: &mut Errors) {
    // The server takes the one for the other here.
    for (missing, shown) in [("namespace", "name"), ("name", "namespace")] {
        if service.text_of(missing).is_empty() {
            errors.push(service.field(shown).required(""));
        }
    }
    let port = service.field("port");
    let number = port.number().unwrap_or_default();
    let messages = format::port_number(number);
    if !messages.is_empty() {
        let why = format!("port is not valid: {}", messages.join(", "));
        errors.push(FieldError::invalid(&port.path, number, why));
    }
    check_path(&service.field("path"), errors);
}

fn check_path(path: &At<'_>, errors: &mut Errors) {
    let text = path.text();
    match text {
        "" | "/" => return,
        "//" => {
            errors.push(path.invalid("segment[0] may not be empty"));
            return;
        }
        _ => {}
    }
    if !text.starts_with('/') {
        errors.push(path.invalid("must start with a '/'"));
    }
    let mut rest = text.chars();
    rest.next();
    let rest = rest.as_str();
    for (index, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            errors.push(path.invalid(format!("segment[{index}] may not be empty")));
            continue;
        }
        for message in format::dns_subdomain(step) {
            errors.push(path.invalid(format!("segment[{index}]: {message}")));
        }
    }
}

fn check_review_versions(versions: &At<'_>, errors: &mut Errors) {
    if versions.is_empty() {
        errors.push(versions.required("must specify one of v1, v1beta1"));
        return;
    }
    let mut seen = BTreeSet::new();
    for version in versions.items() {
        if !seen.insert(version.text()) {
            errors.push(version.invalid("duplicate version"));
            continue;
        }
        errors.extend(version.all_invalid(format::dns_1035_label(version.text())));
    }
    if !versions.texts().any(|version| matches!(version, "v1" | "v1beta1")) {
        errors.push(versions.invalid("must include at least one of v1, v1beta1"));
    }
}

/// Conditions in CEL, by their names; their expressions are not compiled here.
pub(super) fn check_conditions(conditions: &At<'_>, errors: &mut Errors) {
    if conditions.len() > 64 {
        errors.push(FieldError::too_many(&conditions.path, conditions.len(), 64));
    }
    let mut names = BTreeSet::new();
    for condition in conditions.items() {
        if condition.text_of("expression").trim().is_empty() {
            errors.push(condition.field("expression").required(""));
        }
        let name = condition.field("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else {
            errors.extend(name.all_invalid(format::qualified_name(name.text())));
            if !names.insert(name.text()) {
                errors.push(name.duplicate());
            }
        }
    }
}

/// A version of the API that a policy or definition names.
pub(super) fn check_api_version(path: &Path, text: &str, errors: &mut Errors) {
    let (group, version) = text.split_once('/').unwrap_or(("", text));
    if version.contains('/') {
        let why = format!("unexpected GroupVersion string: {text}");
        errors.push(FieldError::invalid(path, text, why));
        return;
    }
    let group_messages = format::dns_subdomain(group);
    if !group.is_empty() && !group_messages.is_empty() {
        errors.push(FieldError::invalid(path, group, group_messages.join(",")));
    }
    let version_messages = format::dns_1035_label(version);
    if version.is_empty() {
        errors.push(FieldError::invalid(path, text, "version must be specified"));
    } else if !version_messages.is_empty() {
        errors.push(FieldError::invalid(path, version, version_messages.join(",")));
    }
}
