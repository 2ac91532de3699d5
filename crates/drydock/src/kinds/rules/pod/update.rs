//! What may change in a pod that is there.

use super::{scheduling, spec};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{At, Errors, diff, format, pretty, printed, printed_list};
use serde_json::{Map, Value};

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n";
const NODE_TERMS: [&str; 4] =
    ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];

/// A change of anything but the status.
pub(super) fn check(new: &Object, old: &Object) -> Errors {
    let mut errors = crate::validate::metadata(new, super::super::NameRule::Subdomain, true);
    errors.extend(crate::validate::standard_finalizers(new));
    spec::check_pod(new, &mut errors);
    check_mirror(new, old, &mut errors);
    spec::check_annotations(&At::top(new, "metadata").field("annotations"), &At::top(new, "spec"), &mut errors);
    let (spec, old_spec) = (At::top(new, "spec"), At::top(old, "spec"));
    for list in ["containers", "initContainers"] {
        if check_containers(&spec.field(list), &old_spec.field(list), &mut errors) {
            return errors;
        }
    }
    if check_deadline(&spec.field("activeDeadlineSeconds"), &old_spec.field("activeDeadlineSeconds"), &mut errors) {
        return errors;
    }
    check_tolerations(&spec.field("tolerations"), &old_spec.field("tolerations"), &mut errors);
    check_gates(&spec.field("schedulingGates"), &old_spec.field("schedulingGates"), &mut errors);
    check_the_rest(&spec, &old_spec, &mut errors);
    errors
}

fn check_mirror(new: &Object, old: &Object, errors: &mut Errors) {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    let path = At::top(new, "metadata").field("annotations").path.key(MIRROR);
    match (new.annotation(MIRROR), old.annotation(MIRROR)) {
        (Some(_), None) => errors.push(FieldError::forbidden(&path, "may not add mirror pod annotation")),
        (new, Some(old)) if new != Some(old) => {
            errors.push(FieldError::forbidden(&path, "may not remove or update mirror pod annotation"));
        }
        _ => {}
    }
}

/// Images may change, containers may not come or go; says whether to stop here.
fn check_containers(new: &At<'_>, old: &At<'_>, errors: &mut Errors) -> bool {
    if new.len() != old.len() {
        errors.push(new.forbidden("pod updates may not add or remove containers"));
        return true;
    }
    for container in new.items() {
        if container.text_of("image").is_empty() {
            errors.push(container.field("image").required(""));
        }
        super::container::check_image_of_pod(&container, errors);
    }
    false
}

/// A deadline may come nearer; says whether to stop here.
fn check_deadline(new: &At<'_>, old: &At<'_>, errors: &mut Errors) -> bool {
    let highest = i64::from(i32::MAX);
    match (new.number(), old.number()) {
        (Some(seconds), _) if !(0..=highest).contains(&seconds) => {
            errors.push(new.invalid(format::out_of_range(0, highest)));
            true
        }
        (Some(seconds), Some(before)) if before < seconds => {
            errors.push(new.invalid("must be less than or equal to previous value"));
            true
        }
        (None, Some(_)) => {
            errors.push(new.invalid("must not update from a positive integer to nil value"));
            false
        }
        _ => false,
    }
}

fn check_tolerations(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let without_time = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Value::Object(fields) = &mut toleration {
            fields.remove("tolerationSeconds");
        }
        toleration
    };
    let kept = |before: &At<'_>| new.items().any(|now| without_time(now.value) == without_time(before.value));
    if !old.items().all(|before| kept(&before)) {
        errors.push(new.forbidden("existing toleration can not be modified except its tolerationSeconds"));
        return;
    }
    scheduling::check_tolerations(new, errors);
}

fn check_gates(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    for gate in new.items() {
        let name = gate.field("name");
        if !old.items().any(|known| known.text_of("name") == name.text()) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{}'", name.text());
            errors.push(name.forbidden(why));
        }
    }
}

/// Everything else is what it was, but for a gated pod's nodes.
fn check_the_rest(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (Some(new_fields), Some(old_fields)) = (new.value.as_object(), old.value.as_object()) else { return };
    if new_fields == old_fields {
        return;
    }
    let mut munged = new_fields.clone();
    for list in ["containers", "initContainers"] {
        restore_images(&mut munged, old_fields, list);
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(&mut munged, old_fields, field);
    }
    let grace = "terminationGracePeriodSeconds";
    let was_negative = old_fields.get(grace).and_then(Value::as_i64).is_some_and(|seconds| seconds < 0);
    if was_negative && munged.get(grace).and_then(Value::as_i64) == Some(1) {
        restore(&mut munged, old_fields, grace);
    }
    if !old.field("schedulingGates").is_empty() {
        check_nodes_of_gated(new, old, errors);
        restore(&mut munged, old_fields, "nodeSelector");
        restore_node_affinity(&mut munged, old_fields);
    }
    if &munged != old_fields {
        let before = pretty("core.PodSpec", old.value);
        let after = pretty("core.PodSpec", &Value::Object(munged));
        errors.push(FieldError::forbidden(&new.path, format!("{UPDATABLE}{}", diff::unified(&before, &after))));
    }
}

fn restore(fields: &mut Map<String, Value>, old: &Map<String, Value>, name: &str) {
    match old.get(name) {
        Some(value) => fields.insert(name.to_owned(), value.clone()),
        None => fields.remove(name),
    };
}

fn restore_images(fields: &mut Map<String, Value>, old: &Map<String, Value>, list: &str) {
    let before = old.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let now = fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    for (container, before) in now.zip(before) {
        if let (Some(container), Some(before)) = (container.as_object_mut(), before.as_object()) {
            restore(container, before, "image");
        }
    }
}

fn restore_node_affinity(fields: &mut Map<String, Value>, old: &Map<String, Value>) {
    let before = old.get("affinity").and_then(|affinity| affinity.get("nodeAffinity")).cloned();
    let had_affinity = old.contains_key("affinity");
    if let Some(affinity) = fields.get_mut("affinity").and_then(Value::as_object_mut) {
        match before {
            Some(before) => affinity.insert("nodeAffinity".to_owned(), before),
            None => affinity.remove("nodeAffinity"),
        };
        if affinity.is_empty() && !had_affinity {
            fields.remove("affinity");
        }
    } else if let Some(before) = before {
        fields.insert("affinity".to_owned(), serde_json::json!({"nodeAffinity": before}));
    }
}

/// A pod that waits at a gate may only get narrower.
fn check_nodes_of_gated(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let selector = new.field("nodeSelector");
    let lost = |(key, value): (&str, At<'_>)| selector.value.get(key) != Some(value.value);
    if old.field("nodeSelector").entries().any(lost) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(selector.invalid(why));
    }
    let (terms, old_terms) = (new.below(&NODE_TERMS), old.below(&NODE_TERMS));
    if !old_terms.is_empty() && old_terms.len() != terms.len() {
        let list = terms.value.as_array().map_or(&[][..], Vec::as_slice);
        let shown = if terms.is_set() { printed_list("core.NodeSelectorTerm", list) } else { "null".to_owned() };
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError::invalid_printed(&terms.path, shown, why));
        return;
    }
    for (term, before) in terms.items().zip(old_terms.items()) {
        if !only_adds(&term, &before) {
            let shown = printed("core.NodeSelectorTerm", term.value);
            let why = "only additions are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid_printed(&term.path, shown, why));
        }
    }
}

fn only_adds(new: &At<'_>, old: &At<'_>) -> bool {
    let list = |at: &At<'_>, field: &str| at.field(field).value.as_array().cloned().unwrap_or_default();
    let lists = ["matchExpressions", "matchFields"];
    if lists.iter().all(|field| list(old, field).is_empty()) {
        return lists.iter().all(|field| list(new, field).is_empty());
    }
    lists.iter().all(|field| list(new, field).starts_with(&list(old, field)))
}

/// `/status` keeps the spec and the owners, and the class of the pod where it is left out.
pub(super) fn prepare_status(new: &mut Object, old: &Object) {
    super::super::keep_all_but_status(new, old);
    match old.at(&["metadata", "ownerReferences"]) {
        Some(owners) => new.set(&["metadata", "ownerReferences"], owners.clone()),
        None => {
            new.remove(&["metadata", "ownerReferences"]);
        }
    }
    for field in ["qosClass", "observedGeneration"] {
        let path = ["status", field];
        if let (None, Some(before)) = (new.at(&path), old.at(&path)) {
            new.set(&path, before.clone());
        }
    }
    mirror_addresses(new);
}

/// `podIP` is the first of `podIPs`.
fn mirror_addresses(pod: &mut Object) {
    let single = pod.text(&["status", "podIP"]).to_owned();
    let first = pod.list(&["status", "podIPs"]).first().and_then(|first| first.get("ip")).cloned();
    match (single.as_str(), first) {
        ("", Some(first)) => pod.set(&["status", "podIP"], first),
        (single, first) if !single.is_empty() && first.as_ref().is_none_or(|first| first != single) => {
            pod.set(&["status", "podIPs"], serde_json::json!([{"ip": single}]));
        }
        _ => {}
    }
}

/// A change of the status.
pub(super) fn check_status(new: &Object, old: &Object) -> Errors {
    let mut errors = Vec::new();
    check_mirror(new, old, &mut errors);
    spec::check_annotations(&At::top(new, "metadata").field("annotations"), &At::top(new, "spec"), &mut errors);
    let (status, old_status) = (At::top(new, "status"), At::top(old, "status"));
    for condition in status.field("conditions").items() {
        let kind = condition.field("type").called(condition.path.child("Type"));
        if !matches!(kind.text(), "PodScheduled" | "Ready" | "Initialized") {
            errors.extend(kind.all_invalid(format::qualified_name(kind.text())));
        }
    }
    let nominated = status.field("nominatedNodeName");
    if nominated.value != old_status.field("nominatedNodeName").value && !nominated.text().is_empty() {
        errors.extend(nominated.all_invalid(format::dns_subdomain(nominated.text())));
    }
    status.field("qosClass").check_unchanged(&old_status.field("qosClass"), &mut errors);
    let policy = At::top(old, "spec").field("restartPolicy");
    let sidecars: Vec<String> = At::top(old, "spec")
        .field("initContainers")
        .items()
        .filter(|container| container.text_of("restartPolicy") == "Always")
        .map(|container| container.text_of("name").to_owned())
        .collect();
    for (list, policy) in [
        ("containerStatuses", policy.text()),
        ("initContainerStatuses", policy.text()),
        ("ephemeralContainerStatuses", "Never"),
    ] {
        let before = old_status.field(list);
        for (index, ended) in before.items().enumerate() {
            let code = ended.below(&["state", "terminated", "exitCode"]).number().unwrap_or_default();
            let may_restart = policy == "Always"
                || (policy == "OnFailure" && code != 0)
                || (list == "initContainerStatuses" && sidecars.iter().any(|name| name == ended.text_of("name")));
            if !ended.below(&["state", "terminated"]).is_set() || may_restart {
                continue;
            }
            let lives = |now: &At<'_>| {
                now.text_of("name") == ended.text_of("name") && !now.below(&["state", "terminated"]).is_set()
            };
            for _ in status.field(list).items().filter(lives) {
                let path = status.field(list).path.index(index).child("state");
                errors.push(FieldError::forbidden(&path, "may not be transitioned to non-terminated state"));
            }
        }
    }
    errors
}
