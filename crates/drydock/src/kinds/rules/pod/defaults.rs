//! Defaults of pods and of pod templates (`pkg/apis/core/v1/defaults.go` and `conversion.go`).

use super::super::fill::{
    Fields, each, has, inside, is_empty, make, or, or_number, or_text, round_requirements, round_resources, text,
};
use super::image;
use crate::quantity;
use serde_json::Value;

const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Annotations of a time before init containers.
const FORGOTTEN_ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

/// A pod template; its `metadata` and `spec` are always there.
pub(in super::super) fn template(template: &mut Fields) {
    forget_annotations(make(template, "metadata"));
    spec(make(template, "spec"));
}

/// What only pods have filled in, not templates.
pub(super) fn pod(fields: &mut Fields) {
    if let Some(metadata) = inside(fields, "metadata") {
        forget_annotations(metadata);
    }
    let spec_fields = make(fields, "spec");
    for list in ["containers", "initContainers"] {
        each(spec_fields, list, request_what_is_limited);
    }
    pod_resources(spec_fields);
    or(spec_fields, "enableServiceLinks", true);
    if spec_fields.get("hostNetwork") == Some(&Value::Bool(true)) {
        for list in ["containers", "initContainers"] {
            each(spec_fields, list, |container| each(container, "ports", open_on_host));
        }
    }
    spec(spec_fields);
    if spec_fields.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec_fields.insert("terminationGracePeriodSeconds".to_owned(), Value::from(1));
    }
}

fn forget_annotations(metadata: &mut Fields) {
    let Some(annotations) = inside(metadata, "annotations") else { return };
    let before = annotations.len();
    annotations.retain(|key, _| !FORGOTTEN_ANNOTATIONS.contains(&key.as_str()));
    if annotations.is_empty() && before > 0 {
        metadata.remove("annotations");
    }
}

fn open_on_host(port: &mut Fields) {
    if let Some(number) = port.get("containerPort").and_then(Value::as_i64) {
        or_number(port, "hostPort", number);
    }
}

fn request_what_is_limited(container: &mut Fields) {
    let Some(resources) = inside(container, "resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let requests = make(resources, "requests");
    for (name, quantity) in limits {
        requests.entry(name).or_insert(quantity);
    }
    if requests.is_empty() {
        resources.remove("requests");
    }
}

/// Requests of the whole pod follow its limits and what its containers request.
fn pod_resources(spec: &mut Fields) {
    let is_supported = |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    let Some(resources) = spec.get("resources").and_then(Value::as_object) else { return };
    let mut limits = resources.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut requests = resources.get("requests").and_then(Value::as_object).cloned().unwrap_or_default();
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    for (name, quantity) in super::resources::of_containers(spec, "limits") {
        if name.starts_with("hugepages-") && !requests.contains_key(&name) {
            limits.entry(name).or_insert_with(|| Value::from(quantity));
        }
    }
    if !limits.is_empty() {
        for (name, quantity) in super::resources::of_containers(spec, "requests") {
            if matches!(name.as_str(), "cpu" | "memory") {
                requests.entry(name).or_insert_with(|| Value::from(quantity));
            }
        }
        for (name, quantity) in limits.iter().filter(|(name, _)| is_supported(name)) {
            requests.entry(name.clone()).or_insert_with(|| quantity.clone());
        }
    }
    let resources = make(spec, "resources");
    for (field, list) in [("limits", limits), ("requests", requests)] {
        if !list.is_empty() {
            resources.insert(field.to_owned(), Value::Object(list));
        }
    }
}

/// What pods and templates have in common.
fn spec(spec: &mut Fields) {
    or_text(spec, "dnsPolicy", "ClusterFirst");
    or_text(spec, "restartPolicy", "Always");
    make(spec, "securityContext");
    or(spec, "terminationGracePeriodSeconds", 30);
    or_text(spec, "schedulerName", "default-scheduler");
    mirror_service_account(spec);
    each(spec, "volumes", volume);
    for list in CONTAINER_LISTS {
        each(spec, list, container);
    }
    round_resources(spec, "overhead");
    if let Some(resources) = inside(spec, "resources") {
        round_requirements(resources);
    }
    if let Some(affinity) = inside(spec, "affinity") {
        for kind in ["podAffinity", "podAntiAffinity"] {
            if let Some(terms) = inside(affinity, kind) {
                each(terms, "preferredDuringSchedulingIgnoredDuringExecution", |term| {
                    make(term, "podAffinityTerm");
                });
            }
        }
        if let Some(terms) = inside(affinity, "nodeAffinity") {
            each(terms, "preferredDuringSchedulingIgnoredDuringExecution", |term| {
                make(term, "preference");
            });
        }
    }
}

/// `serviceAccount` is an old name of `serviceAccountName`; both are written.
fn mirror_service_account(spec: &mut Fields) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    let name = name.to_owned();
    for field in ["serviceAccountName", "serviceAccount"] {
        if name.is_empty() {
            spec.remove(field);
        } else {
            spec.insert(field.to_owned(), Value::from(name.as_str()));
        }
    }
}

fn container(container: &mut Fields) {
    if text(container, "imagePullPolicy").is_empty() {
        let policy = pull_policy(text(container, "image"));
        container.insert("imagePullPolicy".to_owned(), Value::from(policy));
    }
    or_text(container, "terminationMessagePath", "/dev/termination-log");
    or_text(container, "terminationMessagePolicy", "File");
    each(container, "ports", |port| or_text(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        if let Some(source) = inside(variable, "valueFrom") {
            field_reference(source);
            resource_reference(source);
        }
    });
    round_requirements(make(container, "resources"));
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(fields) = inside(container, name) {
            probe(fields);
        }
    }
    if let Some(lifecycle) = inside(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(action) = inside(lifecycle, hook).and_then(|hook| inside(hook, "httpGet")) {
                http_get(action);
            }
        }
    }
}

fn pull_policy(image: &str) -> &'static str {
    if image::is_latest(image) { "Always" } else { "IfNotPresent" }
}

fn probe(probe: &mut Fields) {
    or_number(probe, "timeoutSeconds", 1);
    or_number(probe, "periodSeconds", 10);
    or_number(probe, "successThreshold", 1);
    or_number(probe, "failureThreshold", 3);
    if let Some(action) = inside(probe, "httpGet") {
        http_get(action);
    }
    if let Some(action) = inside(probe, "grpc") {
        or(action, "service", "");
    }
}

fn http_get(action: &mut Fields) {
    or_text(action, "path", "/");
    or_text(action, "scheme", "HTTP");
}

fn field_reference(source: &mut Fields) {
    if let Some(reference) = inside(source, "fieldRef") {
        or_text(reference, "apiVersion", "v1");
    }
}

/// A divisor is always written.
fn resource_reference(source: &mut Fields) {
    if let Some(reference) = inside(source, "resourceFieldRef") {
        or(reference, "divisor", "0");
        if let Some(divisor) =
            reference.get("divisor").and_then(Value::as_str).and_then(|text| quantity::canonical(text).ok())
        {
            reference.insert("divisor".to_owned(), Value::from(divisor));
        }
    }
}

fn downward_item(item: &mut Fields) {
    field_reference(item);
    resource_reference(item);
}

fn volume(volume: &mut Fields) {
    if !volume.iter().any(|(field, value)| field != "name" && !value.is_null()) {
        make(volume, "emptyDir");
    }
    for (source, mode) in [("secret", 0o644), ("configMap", 0o644), ("downwardAPI", 0o644), ("projected", 0o644)] {
        if let Some(source) = inside(volume, source) {
            or(source, "defaultMode", mode);
        }
    }
    if let Some(source) = inside(volume, "hostPath") {
        or(source, "type", "");
    }
    if let Some(source) = inside(volume, "downwardAPI") {
        each(source, "items", downward_item);
    }
    if let Some(source) = inside(volume, "projected") {
        or(source, "sources", Value::Null);
        each(source, "sources", projection);
    }
    if let Some(template) = inside(volume, "ephemeral").and_then(|source| inside(source, "volumeClaimTemplate")) {
        make(template, "metadata");
        super::super::claim::default_spec(make(template, "spec"));
    }
    rare_volume(volume);
}

fn projection(source: &mut Fields) {
    if let Some(downward) = inside(source, "downwardAPI") {
        each(downward, "items", downward_item);
    }
    if let Some(token) = inside(source, "serviceAccountToken") {
        or(token, "expirationSeconds", 3600);
    }
}

/// Volumes that plugins of old provide.
fn rare_volume(volume: &mut Fields) {
    if let Some(source) = inside(volume, "iscsi") {
        or_text(source, "iscsiInterface", "default");
    }
    if let Some(source) = inside(volume, "rbd") {
        or_text(source, "pool", "rbd");
        or_text(source, "user", "admin");
        or_text(source, "keyring", "/etc/ceph/keyring");
    }
    if let Some(source) = inside(volume, "azureDisk") {
        or(source, "cachingMode", "ReadWrite");
        or(source, "fsType", "ext4");
        or(source, "readOnly", false);
        or(source, "kind", "Shared");
    }
    if let Some(source) = inside(volume, "scaleIO") {
        or_text(source, "storageMode", "ThinProvisioned");
        or_text(source, "fsType", "xfs");
    }
}

/// Takes away what belongs to features that are off in 1.34 (`pkg/api/pod/util.go`).
pub(in super::super) fn drop_disabled(spec: &mut Fields) {
    spec.remove("hostnameOverride");
    let mut images = Vec::new();
    if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
        volumes.retain(|volume| {
            let is_image = volume.get("image").is_some_and(|image| !image.is_null());
            if is_image {
                images.extend(volume.get("name").cloned());
            }
            !is_image
        });
    }
    drop_if_empty(spec, "volumes");
    each(spec, "volumes", |volume| {
        if let Some(projected) = inside(volume, "projected") {
            each(projected, "sources", |source| {
                source.remove("clusterTrustBundle");
                source.remove("podCertificate");
            });
        }
    });
    for list in CONTAINER_LISTS {
        let is_init = list == "initContainers";
        each(spec, list, |container| {
            container.remove("restartPolicyRules");
            if !is_init || text(container, "restartPolicy") != "Always" {
                container.remove("restartPolicy");
            }
            drop_disabled_in(container, &images);
        });
    }
}

fn drop_disabled_in(container: &mut Fields, images: &[Value]) {
    if let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) {
        mounts.retain(|mount| mount.get("name").is_none_or(|name| !images.contains(name)));
    }
    drop_if_empty(container, "volumeMounts");
    each(container, "env", |variable| {
        if let Some(source) = inside(variable, "valueFrom") {
            source.remove("fileKeyRef");
        }
    });
    if let Some(lifecycle) = inside(container, "lifecycle")
        && lifecycle.remove("stopSignal").is_some()
        && lifecycle.is_empty()
    {
        container.remove("lifecycle");
    }
}

fn drop_if_empty(fields: &mut Fields, name: &str) {
    if has(fields, name) && is_empty(fields, name) {
        fields.remove(name);
    }
}
