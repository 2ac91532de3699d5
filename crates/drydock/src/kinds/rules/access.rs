//! Roles and bindings (`pkg/apis/rbac/validation/validation.go`).

use super::fill::{each, make, or_text, text};
use super::{NameRule, PLAIN, Rules};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{At, Errors, format, printed, selector};
use serde_json::Value;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(crate) static ROLE: Rules =
    Rules { check: |role| check_role(role, true), check_update: |new, _| check_role(new, true), ..NAMED_FREELY };

pub(crate) static CLUSTER_ROLE: Rules =
    Rules { check: |role| check_role(role, false), check_update: |new, _| check_role(new, false), ..NAMED_FREELY };

pub(crate) static ROLE_BINDING: Rules = Rules {
    check: |binding| check_binding(binding, true),
    check_update: |new, old| check_binding_update(new, old, true),
    ..BINDING
};

pub(crate) static CLUSTER_ROLE_BINDING: Rules = Rules {
    check: |binding| check_binding(binding, false),
    check_update: |new, old| check_binding_update(new, old, false),
    ..BINDING
};

const NAMED_FREELY: Rules = Rules { name: NameRule::PathSegment, create_on_update: true, ..PLAIN };
const BINDING: Rules = Rules { default: default_binding, ..NAMED_FREELY };

fn default_binding(binding: &mut Object) {
    or_text(make(binding.fields_mut(), "roleRef"), "apiGroup", GROUP);
    each(binding.fields_mut(), "subjects", |subject| {
        if matches!(text(subject, "kind"), "User" | "Group") {
            or_text(subject, "apiGroup", GROUP);
        }
    });
}

fn check_role(role: &Object, is_namespaced: bool) -> Errors {
    let mut errors = Vec::new();
    for rule in At::top(role, "rules").items() {
        check_rule(&rule, is_namespaced, &mut errors);
    }
    let aggregation = At::top(role, "aggregationRule");
    if !is_namespaced && aggregation.is_set() {
        let selectors = aggregation.field("clusterRoleSelectors");
        if selectors.is_empty() {
            let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            errors.push(selectors.required(why));
        }
        for one in selectors.items() {
            selector::check(&one, &mut errors);
            if selector::matches(one.value, None).is_none() {
                errors.push(FieldError::invalid(&one.path, Value::Null, "invalid label selector."));
            }
        }
    }
    errors
}

fn check_rule(rule: &At<'_>, is_namespaced: bool, errors: &mut Errors) {
    let require = |field: &str, why: &str| {
        let list = rule.field(field);
        list.is_empty().then(|| list.required(why))
    };
    errors.extend(require("verbs", "verbs must contain at least one value"));
    let urls = rule.field("nonResourceURLs");
    if urls.is_empty() {
        errors.extend(require("apiGroups", "resource rules must supply at least one api group"));
        errors.extend(require("resources", "resource rules must supply at least one resource"));
        return;
    }
    if is_namespaced {
        errors.push(urls.invalid("namespaced rules cannot apply to non-resource URLs"));
    }
    if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !rule.field(field).is_empty()) {
        errors.push(urls.invalid("rules cannot apply to both regular resources and non-resource URLs"));
    }
}

fn check_binding(binding: &Object, is_namespaced: bool) -> Errors {
    let mut errors = Vec::new();
    let role = At::top(binding, "roleRef");
    let (group, kind, name) = (role.field("apiGroup"), role.field("kind"), role.field("name"));
    if group.text() != GROUP {
        errors.push(group.not_supported(&[GROUP]));
    }
    let kinds: &[&str] = if is_namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&kind.text()) {
        errors.push(kind.not_supported(kinds));
    }
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else {
        errors.extend(name.all_invalid(format::path_segment(name.text(), false)));
    }
    for subject in At::top(binding, "subjects").items() {
        check_subject(&subject, is_namespaced, &mut errors);
    }
    errors
}

fn check_subject(subject: &At<'_>, is_namespaced: bool, errors: &mut Errors) {
    let (name, group) = (subject.field("name"), subject.field("apiGroup"));
    if name.text().is_empty() {
        errors.push(name.required(""));
    }
    match subject.text_of("kind") {
        "ServiceAccount" => {
            if !name.text().is_empty() {
                errors.extend(name.all_invalid(format::dns_subdomain(name.text())));
            }
            if !group.text().is_empty() {
                errors.push(group.not_supported(&[""]));
            }
            if !is_namespaced && subject.text_of("namespace").is_empty() {
                errors.push(subject.field("namespace").required(""));
            }
        }
        "User" | "Group" => {
            if group.text() != GROUP {
                errors.push(group.not_supported(&[GROUP]));
            }
        }
        _ => errors.push(subject.field("kind").not_supported(&["ServiceAccount", "User", "Group"])),
    }
}

fn check_binding_update(new: &Object, old: &Object, is_namespaced: bool) -> Errors {
    let mut errors = check_binding(new, is_namespaced);
    let role = At::top(new, "roleRef");
    if Some(role.value) != old.get("roleRef") {
        let shown = printed("rbac.RoleRef", role.value);
        errors.push(FieldError::invalid_printed(&role.path, shown, "cannot change roleRef"));
    }
    errors
}
