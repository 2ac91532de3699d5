//! What is wrong with the spec of a pod or template.

use super::container::{self, Surroundings};
use super::{resources, scheduling, security, volume};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{At, Errors, format, ip, labels, printed};
use std::collections::BTreeSet;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Annotations that mean something to the server.
pub(super) fn check_annotations(annotations: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    let value = |key: &str| At::new(annotations.field(key).value, annotations.path.key(key));
    let mirror = value(MIRROR);
    if mirror.is_set() && spec.text_of("nodeName").is_empty() {
        errors.push(mirror.invalid("must set spec.nodeName if mirror pod annotation is set"));
    }
    let cost = value(DELETION_COST);
    if cost.is_set() && !is_cost(cost.text()) {
        errors.push(cost.invalid("must be a 32bit integer"));
    }
}

fn is_cost(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = !digits.starts_with('+') && (digits == "0" && text == "0" || !digits.starts_with('0'));
    is_plain && text.parse::<i32>().is_ok()
}

/// A pod with its annotations; templates have their own way.
pub(super) fn check_pod(pod: &Object, errors: &mut Errors) {
    let (metadata, spec) = (At::top(pod, "metadata"), At::top(pod, "spec"));
    check_annotations(&metadata.field("annotations"), &spec, errors);
    check(&spec, Some(pod), errors);
    if spec.text_of("serviceAccountName").is_empty() {
        for volume in spec.field("volumes").items() {
            for source in volume.below(&["projected", "sources"]).items() {
                if source.has("serviceAccountToken") {
                    let why = "must not be specified when serviceAccountName is not set";
                    errors.push(source.field("serviceAccountToken").forbidden(why));
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for container in spec.field(list).items() {
            container::check_image_of_pod(&container, errors);
        }
    }
}

/// A spec, of a pod or of a template.
pub(super) fn check(spec: &At<'_>, pod: Option<&Object>, errors: &mut Errors) {
    let grace = spec.field("terminationGracePeriodSeconds");
    if !grace.is_set() {
        errors.push(grace.required(""));
    }
    let volumes = volume::check(&spec.field("volumes"), pod.map(Object::name).unwrap_or_default(), errors);
    let claims = spec.field("resourceClaims");
    let around = Surroundings {
        volumes,
        claims: claims.items().map(|claim| claim.text_of("name")).filter(|name| !name.is_empty()).collect(),
        grace_period: grace.number(),
        restart_policy: spec.text_of("restartPolicy"),
        host_users: spec.field("hostUsers").value != &serde_json::Value::Bool(false),
    };
    check_claims(&claims, errors);
    container::check_all(&spec.field("containers"), &around, errors);
    container::check_init(&spec.field("initContainers"), &spec.field("containers"), &around, errors);
    container::check_ephemeral(spec, &around, errors);
    resources::check_pod(spec, &around.claims, errors);
    check_host_network(spec, pod.is_some(), errors);
    spec.field("restartPolicy").check_one_of(&["Always", "OnFailure", "Never"], errors);
    spec.field("dnsPolicy").check_one_of(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
    labels(&spec.field("nodeSelector"), errors);
    security::check_pod(spec, errors);
    scheduling::check_affinity(&spec.field("affinity"), errors);
    check_dns(&spec.field("dnsConfig"), spec.text_of("dnsPolicy"), errors);
    for gate in spec.field("readinessGates").items() {
        let kind = gate.field("conditionType");
        errors.extend(kind.all_invalid(format::qualified_name(kind.text())));
    }
    check_gates(&spec.field("schedulingGates"), errors);
    scheduling::check_spread(&spec.field("topologySpreadConstraints"), errors);
    check_host_users(spec, &around, errors);
    check_names(spec, errors);
}

fn check_claims(claims: &At<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for claim in claims.items() {
        let name = claim.field("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else if !names.insert(name.text()) {
            errors.push(name.duplicate());
        } else {
            errors.extend(name.all_invalid(format::dns_label(name.text())));
        }
        let references = [claim.field("resourceClaimName"), claim.field("resourceClaimTemplateName")];
        let why = match references.iter().filter(|reference| reference.is_set()).count() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
        };
        if let Some(why) = why {
            let shown = printed("core.PodResourceClaim", claim.value);
            errors.push(FieldError::invalid_printed(&claim.path, shown, why));
        }
        for reference in references.iter().filter(|reference| reference.is_set()) {
            errors.extend(reference.all_invalid(format::dns_subdomain(reference.text())));
        }
    }
}

/// On the network of the host, a port is the same inside and outside.
fn check_host_network(spec: &At<'_>, is_pod: bool, errors: &mut Errors) {
    if !spec.field("hostNetwork").is_true() {
        return;
    }
    for container in spec.field("containers").items() {
        for port in container.field("ports").items() {
            let number = |field: &str| port.field(field).number().unwrap_or_default();
            let (outside, inside) = (number("hostPort"), number("containerPort"));
            if (is_pod || outside != 0) && outside != inside {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&port.path.child("hostPort"), outside, why));
            }
        }
    }
}

fn check_dns(config: &At<'_>, policy: &str, errors: &mut Errors) {
    let (servers, searches) = (config.field("nameservers"), config.field("searches"));
    if policy == "None" {
        if !config.is_set() {
            errors.push(config.required("must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.is_empty() {
            errors.push(servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None"));
            return;
        }
    }
    if servers.len() > 3 {
        errors.push(servers.invalid("must not have more than 3 nameservers"));
    }
    for server in servers.items() {
        errors.extend(server.all_invalid(ip::address(server.text())));
    }
    if searches.len() > 32 {
        errors.push(searches.invalid("must not have more than 32 search paths"));
    }
    if searches.texts().collect::<Vec<_>>().join(" ").len() > 2048 {
        errors.push(searches.invalid("must not have more than 2048 characters (including spaces) in the search list"));
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let text = search.text().strip_suffix('.').unwrap_or(search.text());
        errors.extend(crate::validate::all_invalid(&search.path, text, format::dns_subdomain_with_underscores(text)));
    }
    for option in config.field("options").items() {
        if option.text_of("name").is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
}

fn check_gates(gates: &At<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for gate in gates.items() {
        let name = gate.field("name").called(gate.path.clone());
        errors.extend(name.all_invalid(format::qualified_name(name.text())));
        if !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
}

/// A pod with users of its own shares nothing else with its host.
fn check_host_users(spec: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    if around.host_users {
        return;
    }
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.field(field).is_true() {
            errors.push(FieldError::forbidden(&spec.path.child(shown), "when `hostUsers` is false"));
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.field(list).items() {
            if !container.field("volumeDevices").is_empty() {
                errors.push(container.field("volumeDevices").forbidden("when `hostUsers` is false"));
            }
        }
    }
}

fn check_names(spec: &At<'_>, errors: &mut Errors) {
    for field in ["serviceAccountName", "nodeName"] {
        let name = spec.field(field);
        if !name.text().is_empty() {
            errors.extend(name.all_invalid(format::dns_subdomain(name.text())));
        }
    }
    let deadline = spec.field("activeDeadlineSeconds");
    let highest = i64::from(i32::MAX);
    if deadline.number().is_some_and(|seconds| !(1..=highest).contains(&seconds)) {
        errors.push(deadline.invalid(format::out_of_range(1, highest)));
    }
    for field in ["hostname", "subdomain"] {
        let name = spec.field(field);
        if !name.text().is_empty() {
            errors.extend(name.all_invalid(format::dns_label(name.text())));
        }
    }
    scheduling::check_tolerations(&spec.field("tolerations"), errors);
    for alias in spec.field("hostAliases").items() {
        let address = alias.field("ip");
        errors.extend(address.all_invalid(ip::address(address.text())));
        for name in alias.field("hostnames").items() {
            errors.extend(name.all_invalid(format::dns_subdomain(name.text())));
        }
    }
    let class = spec.field("priorityClassName");
    if !class.text().is_empty() {
        errors.extend(class.all_invalid(format::dns_subdomain(class.text())));
    }
    let class = spec.field("runtimeClassName");
    if class.is_set() {
        errors.extend(class.all_invalid(format::dns_subdomain(class.text())));
    }
    let policy = spec.field("preemptionPolicy");
    if policy.is_set() {
        policy.check_one_of(&["PreemptLowerPriority", "Never"], errors);
    }
    let overhead = spec.field("overhead");
    if overhead.is_set() {
        let limits = serde_json::json!({"limits": overhead.value});
        resources::check_container(&At::new(&limits, overhead.path.clone()), &BTreeSet::new(), errors);
    }
    check_system(spec, errors);
}

fn check_system(spec: &At<'_>, errors: &mut Errors) {
    const OF_LINUX: [&str; 4] = ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"];
    let system = spec.field("os");
    if !system.is_set() {
        return;
    }
    let containers = || {
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|list| {
            spec.field(list).items().map(|container| container.field("securityContext")).collect::<Vec<_>>()
        })
    };
    let pod = spec.field("securityContext");
    match system.text_of("name") {
        "" => errors.push(system.field("name").required("")),
        "linux" => {
            for context in std::iter::once(pod).chain(containers()).filter(|context| context.has("windowsOptions")) {
                let why = "windows options cannot be set for a linux pod";
                errors.push(context.field("windowsOptions").forbidden(why));
            }
        }
        "windows" => {
            for field in OF_LINUX.iter().filter(|field| spec.field(field).is_true()) {
                errors.push(spec.field(field).forbidden("cannot be set for a windows pod"));
            }
            for context in std::iter::once(pod).chain(containers()) {
                let fields = context.value.as_object().into_iter().flatten().map(|(field, _)| field.as_str());
                for field in fields.filter(|field| !matches!(*field, "windowsOptions" | "runAsNonRoot")) {
                    errors.push(context.field(field).forbidden("cannot be set for a windows pod"));
                }
            }
        }
        other => errors.push(FieldError::not_supported(&system.path, other, &["linux", "windows"])),
    }
}
