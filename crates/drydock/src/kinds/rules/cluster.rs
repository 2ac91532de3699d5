//! Namespaces, Nodes and ServiceAccounts.

use super::fill::{each, inside, make, or_text};
use super::pod::resources::check_amount;
use super::pod::scheduling::check_effect;
use super::{NameRule, PLAIN, Rules, keep, keep_status};
use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::validate::{self, At, Errors, format, ip, printed};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const NAME_LABEL: &str = "kubernetes.io/metadata.name";
const FINALIZER: &str = "kubernetes";
const POD_CIDR: &str = "node updates may not change podCIDR except from \"\" to valid";

pub(crate) static NAMESPACE: Rules = Rules {
    name: NameRule::Label,
    default: |namespace| {
        label_by_name(namespace);
        or_text(make(namespace.fields_mut(), "status"), "phase", "Active");
    },
    prepare_create: |namespace| {
        label_by_name(namespace);
        namespace.set(&["status"], json!({"phase": "Active"}));
        let mut finalizers = namespace.list(&["spec", "finalizers"]).to_vec();
        if !finalizers.iter().any(|name| name == FINALIZER) {
            finalizers.push(json!(FINALIZER));
        }
        namespace.set(&["spec", "finalizers"], finalizers);
    },
    prepare_update: |new, old| {
        keep_status(new, old);
        keep(new, old, "spec");
    },
    check: |namespace| {
        let finalizers = At::top(namespace, "spec").field("finalizers");
        let mut errors = Vec::new();
        for finalizer in finalizers.items() {
            let finalizer = finalizer.called(finalizers.path.clone());
            errors.extend(finalizer.all_invalid(format::qualified_name(finalizer.text())));
            errors.extend(validate::standard_finalizer(&finalizer));
        }
        errors
    },
    check_status: |new, _| {
        let path = Path::new("status").child("Phase");
        let phase = new.text(&["status", "phase"]);
        let why = match (new.is_being_deleted(), phase) {
            (false, "Active") | (true, "Terminating") => return Vec::new(),
            (false, _) => "may only be 'Active' if `deletionTimestamp` is empty",
            (true, _) => "may only be 'Terminating' if `deletionTimestamp` is not empty",
        };
        vec![FieldError::invalid(&path, phase, why)]
    },
    ..PLAIN
};

pub(crate) static NODE: Rules = Rules {
    default: default_node,
    prepare_update: keep_status,
    check: check_node,
    check_update: |new, old| {
        let mut errors = validate::metadata(new, NameRule::Subdomain, false);
        errors.extend(check_node(new));
        errors.extend(check_node_update(new, old));
        errors
    },
    check_status: check_node_update,
    ..PLAIN
};

pub(crate) static SERVICE_ACCOUNT: Rules = Rules {
    prepare_create: clean_secrets,
    prepare_update: |new, _| clean_secrets(new),
    check_update: |new, _| validate::metadata(new, NameRule::Subdomain, true),
    warnings: |account, old| {
        const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
        let is_new = old.is_none_or(|old| old.annotation(ENFORCE).is_none());
        if account.annotation(ENFORCE).is_some() && is_new {
            return vec![format!(
                "metadata.annotations[{ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
            )];
        }
        Vec::new()
    },
    ..PLAIN
};

fn label_by_name(namespace: &mut Object) {
    let name = namespace.name().to_owned();
    if !name.is_empty() {
        namespace.set(&["metadata", "labels", NAME_LABEL], name);
    }
}

/// References of accounts to secrets are only names.
fn clean_secrets(account: &mut Object) {
    each(account.fields_mut(), "secrets", |secret| secret.retain(|field, _| field == "name"));
}

fn default_node(node: &mut Object) {
    if let Some(status) = inside(node.fields_mut(), "status")
        && let (None, Some(capacity)) = (status.get("allocatable"), status.get("capacity").cloned())
    {
        status.insert("allocatable".to_owned(), capacity);
    }
    let single = node.text(&["spec", "podCIDR"]).to_owned();
    let first = node.list(&["spec", "podCIDRs"]).first().and_then(Value::as_str).map(str::to_owned);
    match (single.as_str(), first.as_deref()) {
        ("", Some(first)) => node.set(&["spec", "podCIDR"], first),
        (single, first) if !single.is_empty() && first != Some(single) => {
            node.set(&["spec", "podCIDRs"], json!([single]));
        }
        _ => {}
    }
}

fn check_node(node: &Object) -> Errors {
    let mut errors = Vec::new();
    check_taints(node, &mut errors);
    check_resources(node, &mut errors);
    let ranges = At::top(node, "spec").field("podCIDRs");
    for range in ranges.items() {
        errors.extend(range.all_invalid(ip::range(range.text())));
    }
    let families: BTreeSet<bool> =
        ranges.texts().filter_map(ip::parse_range).map(|(address, _)| address.is_ipv6()).collect();
    if ranges.len() > 2 || (ranges.len() == 2 && families.len() < 2) {
        errors.push(ranges.invalid("may specify no more than one CIDR for each IP family"));
    }
    errors
}

fn check_taints(node: &Object, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    let taints = At::top(node, "spec").field("taints").called(Path::new("metadata").child("taints"));
    for taint in taints.items() {
        let (key, value, effect) = (taint.field("key"), taint.field("value"), taint.field("effect"));
        errors.extend(key.all_invalid(format::qualified_name(key.text())));
        let messages = format::label_value(value.text());
        if !messages.is_empty() {
            errors.push(value.invalid(messages.join(";")));
        }
        check_effect(&effect, errors);
        if !seen.insert((effect.text(), key.text())) {
            let shown = printed("core.Taint", taint.value);
            let error = FieldError::duplicate(&taint.path, "").showing(shown);
            errors.push(error.because("taints must be unique by key and effect pair"));
        }
    }
}

fn check_resources(node: &Object, errors: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        let resources = At::top(node, "status").field(list);
        for (name, amount) in resources.entries() {
            check_amount(name, &amount.called(resources.path.child(name)), errors);
        }
    }
}

fn check_node_update(new: &Object, old: &Object) -> Errors {
    let mut errors = Vec::new();
    check_resources(new, &mut errors);
    let mut seen: Vec<&Value> = Vec::new();
    for address in At::top(new, "status").field("addresses").items() {
        if seen.contains(&address.value) {
            let shown = printed("core.NodeAddress", address.value);
            errors.push(FieldError::duplicate(&address.path, "").showing(shown));
        }
        seen.push(address.value);
    }
    let (spec, old_spec) = (At::top(new, "spec"), At::top(old, "spec"));
    let (ranges, before) = (spec.field("podCIDRs"), old_spec.field("podCIDRs"));
    if !before.is_empty() && ranges.value != before.value {
        errors.push(ranges.forbidden(POD_CIDR));
    }
    let (provider, before) = (spec.field("providerID"), old_spec.field("providerID"));
    if !before.text().is_empty() && provider.text() != before.text() {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(provider.forbidden(why));
    }
    check_taints(new, &mut errors);
    errors
}
