//! Containers, init containers and ephemeral containers.

use super::volume::{Volumes, check_descending, check_no_backsteps, pull_policy};
use super::{environment, probe, resources, security};
use crate::field::FieldError;
use crate::validate::{At, Errors, format};
use std::collections::BTreeSet;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// What containers are judged by besides themselves.
pub(super) struct Surroundings<'a> {
    pub(super) volumes: Volumes<'a>,
    /// The names of the pod's resource claims.
    pub(super) claims: BTreeSet<&'a str>,
    pub(super) grace_period: Option<i64>,
    pub(super) restart_policy: &'a str,
    /// Containers share the users of the host.
    pub(super) host_users: bool,
}

/// The containers of a pod; there is at least one.
pub(super) fn check_all(containers: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    if containers.is_empty() {
        errors.push(containers.required(""));
        return;
    }
    let mut names = BTreeSet::new();
    for container in containers.items() {
        check_common(&container, around, errors);
        let name = container.field("name");
        if !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
        check_life(&container, around, errors);
    }
    let mut ports = BTreeSet::new();
    for container in containers.items() {
        check_host_ports(&container.field("ports"), &mut ports, errors);
    }
}

/// Containers that run before the others, or beside them if they are restarted.
pub(super) fn check_init(containers: &At<'_>, others: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    let mut names: BTreeSet<&str> = others.items().map(|container| container.text_of("name")).collect();
    for container in containers.items() {
        check_common(&container, around, errors);
        let policy = container.field("restartPolicy");
        let is_sidecar = policy.text() == "Always";
        if policy.is_set() && !is_sidecar {
            errors.push(policy.not_supported(&["Always"]));
        }
        let name = container.field("name");
        if !names.insert(name.text()) && !name.text().is_empty() {
            errors.push(name.duplicate());
        }
        check_host_ports(
            &container.field("ports").called(containers.path.index(0).child("ports")),
            &mut BTreeSet::new(),
            errors,
        );
        if is_sidecar {
            check_life(&container, around, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.has(field) {
                let why = "may not be set for init containers without restartPolicy=Always";
                errors.push(container.field(field).forbidden(why));
            }
        }
    }
}

/// Containers that were added to a running pod.
pub(super) fn check_ephemeral(spec: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    const FORBIDDEN: [&str; 8] = [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    let others: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| spec.field(list).items().map(|container| container.text_of("name")).collect::<Vec<_>>())
        .collect();
    let mut names = others.clone();
    for container in spec.field("ephemeralContainers").items() {
        check_common(&container, around, errors);
        check_image_of_pod(&container, errors);
        if !names.insert(container.text_of("name")) {
            errors.push(container.field("name").duplicate());
        }
        let target = container.field("targetContainerName");
        if !target.text().is_empty() && !others.contains(target.text()) {
            errors.push(target.not_found());
        }
        for field in FORBIDDEN {
            if !container.field(field).is_empty() {
                errors.push(container.field(field).forbidden("cannot be set for an Ephemeral Container"));
            }
        }
        for mount in container.field("volumeMounts").items() {
            for field in ["subPath", "subPathExpr"] {
                if !mount.text_of(field).is_empty() {
                    errors.push(mount.field(field).forbidden("cannot be set for an Ephemeral Container"));
                }
            }
        }
    }
}

/// Images of pods, not of templates, have no spaces around them.
pub(super) fn check_image_of_pod(container: &At<'_>, errors: &mut Errors) {
    let image = container.field("image");
    if image.text().trim() != image.text() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
}

fn check_common(container: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    let name = container.field("name");
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else {
        errors.extend(name.all_invalid(format::dns_label(name.text())));
    }
    if container.text_of("image").is_empty() {
        errors.push(container.field("image").required(""));
    }
    container.field("terminationMessagePolicy").check_one_of(&["File", "FallbackToLogsOnError"], errors);
    check_ports(&container.field("ports"), errors);
    environment::check(&container.field("env"), errors);
    environment::check_from(&container.field("envFrom"), errors);
    check_mounts(container, &around.volumes, errors);
    check_devices(container, &around.volumes, errors);
    pull_policy(&container.field("imagePullPolicy"), errors);
    resources::check_container(&container.field("resources"), &around.claims, errors);
    check_resize(&container.field("resizePolicy"), around.restart_policy, errors);
    security::check_container(&container.field("securityContext"), around.host_users, errors);
}

/// Probes and what happens at the start and at the end.
fn check_life(container: &At<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    for hook in ["postStart", "preStop"] {
        let hook = container.below(&["lifecycle", hook]);
        if hook.is_set() {
            probe::check_handler(&hook, &probe::HOOKS, around.grace_period, errors);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container.has(name) {
            probe::check(name, &container.field(name), around.grace_period, errors);
        }
    }
}

fn check_ports(ports: &At<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.field("name");
        if !name.text().is_empty() {
            let messages = format::port_name(name.text());
            if messages.is_empty() && !names.insert(name.text()) {
                errors.push(name.duplicate());
            }
            errors.extend(name.all_invalid(messages));
        }
        let number = port.field("containerPort");
        match number.number().unwrap_or_default() {
            0 => errors.push(number.required("")),
            other => errors.extend(number.all_invalid(format::port_number(other))),
        }
        let on_host = port.field("hostPort");
        if on_host.number().unwrap_or_default() != 0 {
            errors.extend(on_host.all_invalid(format::port_number(on_host.number().unwrap_or_default())));
        }
        port.field("protocol").check_one_of(&PROTOCOLS, errors);
    }
}

fn check_host_ports(ports: &At<'_>, taken: &mut BTreeSet<String>, errors: &mut Errors) {
    for port in ports.items() {
        let number = port.field("hostPort").number().unwrap_or_default();
        if number == 0 {
            continue;
        }
        let key = format!("{}/{}/{number}", port.text_of("protocol"), port.text_of("hostIP"));
        if !taken.insert(key.clone()) {
            errors.push(FieldError::duplicate(&port.path.child("hostPort"), key));
        }
    }
}

fn check_mounts(container: &At<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let (mounts, devices) = (container.field("volumeMounts"), container.field("volumeDevices"));
    let privileged = container.below(&["securityContext", "privileged"]).is_true();
    let mut paths = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        if name.text().is_empty() {
            errors.push(name.required(""));
        }
        if !volumes.contains_key(name.text()) {
            errors.push(name.not_found());
        }
        if path.text().is_empty() {
            errors.push(path.required(""));
        }
        if !paths.insert(path.text()) {
            errors.extend(path.all_invalid(vec!["must be unique".to_owned()]));
        }
        if devices.items().any(|device| device.text_of("name") == name.text()) {
            errors.push(name.invalid("must not already exist in volumeDevices"));
        }
        if devices.items().any(|device| device.text_of("devicePath") == path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeDevices"));
        }
        // These stand at the list, not at the item.
        let part = |field: &str| mount.field(field).called(mounts.path.child(field));
        let (sub_path, expression) = (mount.text_of("subPath"), mount.text_of("subPathExpr"));
        if !sub_path.is_empty() {
            check_descending(&part("subPath"), errors);
        }
        if !expression.is_empty() {
            if !sub_path.is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                errors.push(mount.field("subPathExpr").invalid(why));
            }
            check_descending(&part("subPathExpr"), errors);
        }
        check_propagation(&part("mountPropagation"), privileged, errors);
        check_recursive_read_only(&mount, &part("recursiveReadOnly"), errors);
    }
}

fn check_propagation(propagation: &At<'_>, privileged: bool, errors: &mut Errors) {
    propagation.check_optional(&["Bidirectional", "HostToContainer", "None"], errors);
    if propagation.text() == "Bidirectional" && !privileged {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(propagation.forbidden(why));
    }
}

fn check_recursive_read_only(mount: &At<'_>, recursive: &At<'_>, errors: &mut Errors) {
    recursive.check_optional(&["Disabled", "Enabled", "IfPossible"], errors);
    if matches!(recursive.text(), "Enabled" | "IfPossible") {
        if !mount.field("readOnly").is_true() {
            errors.push(recursive.forbidden("may only be specified when readOnly is true"));
        }
        if !matches!(mount.text_of("mountPropagation"), "" | "None") {
            let why = "may only be specified when mountPropagation is None or not specified";
            errors.push(recursive.forbidden(why));
        }
    }
}

fn check_devices(container: &At<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let mounts = container.field("volumeMounts");
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for device in container.field("volumeDevices").items() {
        let (name, path) = (device.field("name"), device.field("devicePath"));
        let volume = volumes.get(name.text());
        if name.text().is_empty() {
            errors.push(name.required(""));
        }
        if names.contains(name.text()) {
            errors.push(name.invalid("must be unique"));
        }
        match volume {
            None => errors.push(name.not_found()),
            Some(volume) if !volume.has("persistentVolumeClaim") && !volume.has("ephemeral") => errors.push(
                name.invalid("can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"),
            ),
            Some(_) => {}
        }
        if path.text().is_empty() {
            errors.push(path.required(""));
        }
        if paths.contains(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        let mut backsteps = Vec::new();
        check_no_backsteps(&path, &mut backsteps);
        if backsteps.is_empty() {
            paths.insert(path.text());
        } else {
            errors.push(path.invalid("can not contain backsteps ('..')"));
        }
        if mounts.items().any(|mount| mount.text_of("name") == name.text()) {
            errors.push(name.invalid("must not already exist in volumeMounts"));
        }
        if mounts.items().any(|mount| mount.text_of("mountPath") == path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeMounts"));
        }
        if !name.text().is_empty() {
            names.insert(name.text());
        }
    }
}

fn check_resize(policies: &At<'_>, restart_policy: &str, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for policy in policies.items() {
        let resource = policy.field("resourceName");
        if !seen.insert(resource.text()) {
            errors.push(FieldError::duplicate(&policy.path, resource.text()));
        }
        resource.called(policies.path.clone()).check_one_of(&["cpu", "memory"], errors);
        let restart = policy.field("restartPolicy").called(policies.path.clone());
        restart.check_one_of(&["NotRequired", "RestartContainer"], errors);
        if restart_policy == "Never" && restart.text() != "NotRequired" {
            errors
                .extend(restart.all_invalid(vec!["must be 'NotRequired' when `restartPolicy` is 'Never'".to_owned()]));
        }
    }
}
