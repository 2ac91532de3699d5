//! ValidatingAdmissionPolicies and their bindings. Their expressions are not compiled here.

use super::fill::{Fields, each, inside, make, or};
use super::webhook::{check_api_version, check_conditions, check_rule, default_rule};
use super::{Generation, PLAIN, Rules, WITH_STATUS, keep_all_but_bare_status};
use crate::object::Object;
use crate::validate::{At, Errors, format, selector};
use std::collections::BTreeSet;

const NOTHING: &str = "validations or auditAnnotations must contain at least one item";

pub(crate) static ADMISSION_POLICY: Rules = Rules {
    generation: Generation::WithSpec,
    default: |policy| {
        let spec = make(policy.fields_mut(), "spec");
        or(spec, "failurePolicy", "Fail");
        if let Some(constraints) = inside(spec, "matchConstraints") {
            default_match(constraints);
        }
    },
    prepare_status: keep_all_but_bare_status,
    check,
    check_update: |new, _| check(new),
    standard_finalizers: false,
    unconditional_update: false,
    ..WITH_STATUS
};

pub(crate) static POLICY_BINDING: Rules = Rules {
    generation: Generation::WithSpec,
    default: |binding| {
        let spec = make(binding.fields_mut(), "spec");
        if let Some(resources) = inside(spec, "matchResources") {
            default_match(resources);
        }
    },
    check: check_binding,
    check_update: |new, _| check_binding(new),
    standard_finalizers: false,
    unconditional_update: false,
    ..PLAIN
};

fn default_match(resources: &mut Fields) {
    or(resources, "matchPolicy", "Equivalent");
    make(resources, "namespaceSelector");
    make(resources, "objectSelector");
    for list in ["resourceRules", "excludeResourceRules"] {
        each(resources, list, default_rule);
    }
}

fn check(policy: &Object) -> Errors {
    let mut errors = Vec::new();
    let spec = At::top(policy, "spec");
    spec.field("failurePolicy").check_one_of(&["Fail", "Ignore"], &mut errors);
    let kind = spec.field("paramKind");
    if kind.is_set() {
        check_kind(&kind, &mut errors);
    }
    let constraints = spec.field("matchConstraints");
    if constraints.is_set() {
        check_match(&constraints, &mut errors);
        if constraints.field("resourceRules").is_empty() {
            errors.push(constraints.field("resourceRules").required(""));
        }
    } else {
        errors.push(constraints.required(""));
    }
    check_conditions(&spec.field("matchConditions"), &mut errors);
    for variable in spec.field("variables").items() {
        for field in ["name", "expression"] {
            if variable.text_of(field).trim().is_empty() {
                errors.push(variable.field(field).required(format!("{field} is not specified")));
            }
        }
    }
    let (validations, annotations) = (spec.field("validations"), spec.field("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        errors.push(validations.required(NOTHING));
        errors.push(annotations.required(NOTHING));
        return errors;
    }
    for validation in validations.items() {
        check_validation(&validation, &mut errors);
    }
    let mut keys = BTreeSet::new();
    for annotation in annotations.items() {
        let key = annotation.field("key");
        let full = format!("{}/{}", policy.name(), key.text());
        errors.extend(crate::validate::all_invalid(&key.path, &full, format::qualified_name(&full)));
        if annotation.text_of("valueExpression").trim().is_empty() {
            errors.push(annotation.field("valueExpression").required("valueExpression is not specified"));
        }
        if !keys.insert(key.text()) {
            errors.push(key.duplicate());
        }
    }
    errors
}

fn check_kind(kind: &At<'_>, errors: &mut Errors) {
    let (version, name) = (kind.field("apiVersion"), kind.field("kind"));
    if version.text().is_empty() {
        errors.push(version.required(""));
    } else {
        check_api_version(&version.path, version.text(), errors);
    }
    let messages = format::dns_1035_label(&name.text().to_lowercase());
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else if !messages.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", messages.join(","));
        errors.push(name.invalid(why));
    }
}

fn check_match(resources: &At<'_>, errors: &mut Errors) {
    resources.field("matchPolicy").check_one_of(&["Equivalent", "Exact"], errors);
    selector::check(&resources.field("namespaceSelector"), errors);
    selector::check(&resources.field("objectSelector"), errors);
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in resources.field(list).items() {
            let mut names = BTreeSet::new();
            for name in rule.field("resourceNames").items() {
                errors.extend(name.all_invalid(format::path_segment(name.text(), false)));
                if !names.insert(name.text()) {
                    errors.push(name.duplicate());
                }
            }
            check_rule(&rule, errors);
        }
    }
}

fn check_validation(validation: &At<'_>, errors: &mut Errors) {
    if validation.text_of("expression").trim().is_empty() {
        errors.push(validation.field("expression").required("expression is not specified"));
    }
    for field in ["messageExpression", "message"] {
        let text = validation.field(field);
        if !text.text().is_empty() && text.text().trim().is_empty() {
            errors.push(text.invalid("must be non-empty if specified"));
        } else if field == "message" && text.text().trim().contains('\n') {
            errors.push(text.invalid("must not contain line breaks"));
        }
    }
    validation.field("reason").check_optional(&["Forbidden", "Invalid", "RequestEntityTooLarge"], errors);
}

fn check_binding(binding: &Object) -> Errors {
    let mut errors = Vec::new();
    let spec = At::top(binding, "spec");
    let policy = spec.field("policyName");
    if policy.text().is_empty() {
        errors.push(policy.required(""));
    } else {
        errors.extend(policy.all_invalid(format::dns_subdomain(policy.text())));
    }
    let parameter = spec.field("paramRef");
    if parameter.is_set() {
        check_parameter(&parameter, &mut errors);
    }
    let resources = spec.field("matchResources");
    if resources.is_set() {
        check_match(&resources, &mut errors);
    }
    let actions = spec.field("validationActions");
    let mut seen = BTreeSet::new();
    for action in actions.items() {
        if !matches!(action.text(), "Audit" | "Deny" | "Warn") {
            errors.push(action.not_supported(&["Audit", "Deny", "Warn"]));
        }
        if !seen.insert(action.text()) {
            errors.push(action.duplicate());
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.push(actions.invalid(why));
    }
    if seen.is_empty() {
        errors.push(actions.required("at least one validation action is required"));
    }
    errors
}

fn check_parameter(parameter: &At<'_>, errors: &mut Errors) {
    let (name, labels) = (parameter.field("name"), parameter.field("selector"));
    let both = "name and selector are mutually exclusive";
    if !name.text().is_empty() {
        errors.extend(name.all_invalid(format::path_segment(name.text(), false)));
        if labels.is_set() {
            errors.push(name.forbidden(both));
        }
    }
    if labels.is_set() {
        selector::check(&labels, errors);
        if !name.text().is_empty() {
            errors.push(labels.forbidden(both));
        }
    }
    if name.text().is_empty() && !labels.is_set() {
        errors.push(parameter.required("one of name or selector must be specified"));
    }
    parameter.field("parameterNotFoundAction").check_one_of(&["Deny", "Allow"], errors);
}
