//! What changes of services mean, and what may not change.

use super::{check_class, is_exposed, is_headless, needs_health_check};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{At, Errors};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

fn needs_node_ports(spec: &At<'_>) -> bool {
    let allocates = spec.field("allocateLoadBalancerNodePorts").value != &Value::Bool(false);
    match spec.text_of("type") {
        "NodePort" => true,
        "LoadBalancer" => allocates,
        _ => false,
    }
}

fn node_ports(spec: &At<'_>) -> BTreeSet<i64> {
    let ports = spec.field("ports");
    ports.items().filter_map(|port| port.field("nodePort").number()).filter(|number| *number != 0).collect()
}

fn take(new: &mut Object, old: &Object, field: &str) {
    if let Some(value) = old.at(&["spec", field]) {
        new.set(&["spec", field], value.clone());
    }
}

/// Keeps the addresses and ports that were allocated where an update leaves them out. Admission calls this before it
/// allocates what is still missing.
pub(crate) fn carry_allocated(new: &mut Object, old: &Object) {
    let (spec, old_spec) = (At::top(new, "spec"), At::top(old, "spec"));
    let has_address = |spec: &At<'_>| spec.text_of("type") != "ExternalName";
    let keeps_address = has_address(&spec) && has_address(&old_spec);
    let keeps_ports = needs_node_ports(&spec) && needs_node_ports(&old_spec);
    let keeps_health = needs_health_check(&spec) && needs_health_check(&old_spec);
    let lacks = |field: &str| spec.field(field).is_empty();
    let (lacks_single, lacks_plural) = (lacks("clusterIP"), lacks("clusterIPs"));
    let lacks_health = spec.field("healthCheckNodePort").number().unwrap_or_default() == 0;
    let used: BTreeSet<i64> = node_ports(&spec).intersection(&node_ports(&old_spec)).copied().collect();
    if keeps_address && lacks_single {
        take(new, old, "clusterIP");
    }
    if keeps_address && lacks_plural {
        take(new, old, "clusterIPs");
    }
    if keeps_ports {
        let known: Vec<(String, i64)> = old_spec
            .field("ports")
            .items()
            .map(|port| (port.text_of("name").to_owned(), port.field("nodePort").number().unwrap_or_default()))
            .collect();
        let ports = new.map_at(&["spec"]).get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            carry_port(port, &known, &used);
        }
    }
    if keeps_health && lacks_health {
        take(new, old, "healthCheckNodePort");
    }
    follow_address(new, old);
}

fn carry_port(port: &mut Map<String, Value>, known: &[(String, i64)], used: &BTreeSet<i64>) {
    if port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() != 0 {
        return;
    }
    let name = port.get("name").and_then(Value::as_str).unwrap_or_default();
    // Of ports with one name, the last counts.
    let before = known.iter().rev().find(|(known, _)| known == name).map(|(_, number)| *number);
    if let Some(number) = before.filter(|number| *number != 0 && !used.contains(number)) {
        port.insert("nodePort".to_owned(), Value::from(number));
    }
}

/// `clusterIPs` follows `clusterIP` where only that changed.
fn follow_address(new: &mut Object, old: &Object) {
    let now = new.text(&["spec", "clusterIP"]).to_owned();
    let before = old.text(&["spec", "clusterIP"]);
    let same_plural = new.at(&["spec", "clusterIPs"]) == old.at(&["spec", "clusterIPs"]);
    if now == before || !same_plural {
        return;
    }
    if now.is_empty() {
        new.remove(&["spec", "clusterIPs"]);
    } else {
        new.set(&["spec", "clusterIPs"], serde_json::json!([now]));
    }
}

/// Carries over what was allocated and takes away what another type has no use for.
pub(super) fn prepare(new: &mut Object, old: &Object) {
    carry_allocated(new, old);
    super::super::keep_status(new, old);
    let (spec, old_spec) = (At::top(new, "spec"), At::top(old, "spec"));
    let same = |field: &str| spec.field(field).value == old_spec.field(field).value;
    let (kind, old_kind) = (spec.text_of("type"), old_spec.text_of("type"));
    let mut dropped: Vec<&str> = Vec::new();
    if kind == "ExternalName" && old_kind != "ExternalName" {
        if same("clusterIP") && same("clusterIPs") {
            dropped.extend(["clusterIP", "clusterIPs"]);
        }
        dropped.extend(["ipFamilies", "ipFamilyPolicy"].into_iter().filter(|field| same(field)));
    }
    let needs_ports = |kind: &str| matches!(kind, "NodePort" | "LoadBalancer");
    let drops_ports =
        needs_ports(old_kind) && !needs_ports(kind) && node_ports(&old_spec).is_superset(&node_ports(&spec));
    if needs_health_check(&old_spec) && !needs_health_check(&spec) && same("healthCheckNodePort") {
        dropped.push("healthCheckNodePort");
    }
    let was_balancer = old_kind == "LoadBalancer" && kind != "LoadBalancer";
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if was_balancer && same(field) {
            dropped.push(field);
        }
    }
    let exposed = |spec: &At<'_>| is_exposed(spec.text_of("type"), !spec.field("externalIPs").is_empty());
    if exposed(&old_spec) && !exposed(&spec) && same("externalTrafficPolicy") {
        dropped.push("externalTrafficPolicy");
    }
    let is_balancer = kind == "LoadBalancer";
    let fields = new.map_at(&["spec"]);
    for field in dropped {
        fields.remove(field);
    }
    if drops_ports {
        super::each(fields, "ports", |port| {
            port.remove("nodePort");
        });
    }
    if !is_balancer {
        new.set(&["status", "loadBalancer"], Map::new());
    }
    super::drop_unused(new);
}

/// What may not change.
pub(super) fn check(new: &Object, old: &Object) -> Errors {
    let mut errors = Vec::new();
    let (spec, old_spec) = (At::top(new, "spec"), At::top(old, "spec"));
    let has_address = spec.text_of("type") != "ExternalName" && old_spec.text_of("type") != "ExternalName";
    if has_address && !(is_headless(&spec) && is_headless(&old_spec)) {
        check_addresses(&spec, &old_spec, &mut errors);
    }
    if has_address && !is_headless(&spec) && !is_headless(&old_spec) {
        check_families(&spec, &old_spec, &mut errors);
    }
    let is_balancer = |spec: &At<'_>| spec.text_of("type") == "LoadBalancer";
    let class = spec.field("loadBalancerClass");
    if is_balancer(&spec) && is_balancer(&old_spec) && class.value != old_spec.field("loadBalancerClass").value {
        errors.push(class.invalid("may not change once set"));
    }
    check_class(&spec, &mut errors);
    let health = spec.field("healthCheckNodePort");
    if needs_health_check(&spec)
        && needs_health_check(&old_spec)
        && health.value != old_spec.field("healthCheckNodePort").value
    {
        errors.push(health.forbidden(crate::validate::IMMUTABLE));
    }
    errors
}

fn check_addresses(spec: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (now, before) = (spec.field("clusterIPs"), old.field("clusterIPs"));
    let changed = "may not change once set";
    if now.len() == before.len() {
        for (index, (now_text, before_text)) in now.texts().zip(before.texts()).enumerate() {
            if now_text != before_text {
                errors.push(now.called(now.path.index(index)).invalid(changed));
            }
        }
        return;
    }
    let first = now.called(now.path.index(0));
    if now.is_empty() {
        errors.push(first.invalid("primary clusterIP can not be unset"));
    } else if !before.is_empty() && now.texts().next() != before.texts().next() {
        errors.push(first.invalid(changed));
    }
    check_released(spec, now.len() < before.len() && now.len() == 1, "clusterIP", errors);
}

fn check_families(spec: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (now, before) = (spec.field("ipFamilies"), old.field("ipFamilies"));
    let first = now.path.index(0);
    let changed = "may not change once set";
    if now.len() == before.len() {
        for (now_text, before_text) in now.texts().zip(before.texts()) {
            if now_text != before_text {
                errors.push(now.called(first.clone()).invalid(changed));
            }
        }
        return;
    }
    if now.len() < before.len() && spec.field("clusterIPs").is_empty() {
        errors.push(now.called(first.clone()).invalid("primary ipFamily can not be unset"));
    }
    if !now.is_empty() && !before.is_empty() && now.texts().next() != before.texts().next() {
        errors.push(spec.field("clusterIPs").called(first).invalid(changed));
    }
    check_released(spec, now.len() < before.len() && now.len() == 1, "ipFamily", errors);
}

fn check_released(spec: &At<'_>, is_released: bool, what: &str, errors: &mut Errors) {
    let policy = spec.field("ipFamilyPolicy");
    if is_released && policy.text() != "SingleStack" {
        let why = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        errors.push(FieldError::invalid(&policy.path, policy.value.clone(), why));
    }
}
