//! Security contexts of pods and containers.

use super::volume::check_descending;
use crate::field::FieldError;
use crate::validate::{At, Errors, format, printed};

const SYSCTL: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// The context of a container.
pub(super) fn check_container(context: &At<'_>, host_users: bool, errors: &mut Errors) {
    if !context.is_set() {
        return;
    }
    check_ids(context, &["runAsUser", "runAsGroup"], errors);
    let proc_mount = context.field("procMount");
    proc_mount.check_optional(&["Default", "Unmasked"], errors);
    if host_users && proc_mount.text() == "Unmasked" {
        errors.push(proc_mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    check_seccomp(&context.field("seccompProfile"), errors);
    if context.field("allowPrivilegeEscalation").value == &serde_json::Value::Bool(false) {
        let mut refuse = |what: &str| {
            let why = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
            errors.push(FieldError::invalid_printed(
                &context.path,
                printed("core.SecurityContext", context.value),
                why,
            ));
        };
        if context.field("privileged").is_true() {
            refuse("`privileged` to true");
        }
        for _ in context.below(&["capabilities", "add"]).texts().filter(|name| *name == "CAP_SYS_ADMIN") {
            refuse("`capabilities.Add` CAP_SYS_ADMIN");
        }
    }
    check_app_armor(&context.field("appArmorProfile"), errors);
}

/// The context of a pod. What the pod shares with its host stands in its spec.
pub(super) fn check_pod(spec: &At<'_>, errors: &mut Errors) {
    let context = spec.field("securityContext");
    if !context.is_set() {
        return;
    }
    check_ids(&context, &["fsGroup", "runAsUser", "runAsGroup"], errors);
    for group in context.field("supplementalGroups").items() {
        errors.extend(group.all_invalid(format::user_or_group(group.number().unwrap_or_default())));
    }
    let shared = spec.field("shareProcessNamespace");
    if shared.is_true() && spec.field("hostPID").is_true() {
        let shared = shared.called(context.path.child("shareProcessNamespace"));
        errors.push(shared.invalid("ShareProcessNamespace and HostPID cannot both be enabled"));
    }
    check_sysctls(spec, &context.field("sysctls"), errors);
    context.field("fsGroupChangePolicy").check_optional(&["Always", "OnRootMismatch"], errors);
    check_seccomp(&context.field("seccompProfile"), errors);
    check_app_armor(&context.field("appArmorProfile"), errors);
    context.field("supplementalGroupsPolicy").check_optional(&["Merge", "Strict"], errors);
    context.field("seLinuxChangePolicy").check_optional(&["MountOption", "Recursive"], errors);
}

fn check_ids(context: &At<'_>, fields: &[&str], errors: &mut Errors) {
    for field in fields {
        let id = context.field(field);
        if let Some(number) = id.number() {
            errors.extend(id.all_invalid(format::user_or_group(number)));
        }
    }
}

fn check_sysctls(spec: &At<'_>, sysctls: &At<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for sysctl in sysctls.items() {
        let name = sysctl.field("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else if !is_sysctl(name.text()) {
            errors.push(name.invalid(format!("must have at most 253 characters and match regex {SYSCTL}")));
        } else if seen.contains(&name.text()) {
            errors.push(name.duplicate());
        }
        let plain = name.text().replace('/', ".");
        if spec.field("hostNetwork").is_true() && plain.starts_with("net.") {
            errors.push(name.invalid("may not be specified when 'hostNetwork' is true"));
        } else if spec.field("hostIPC").is_true() && is_of_ipc(&plain) {
            errors.push(name.invalid("may not be specified when 'hostIPC' is true"));
        }
        seen.push(name.text());
    }
}

fn is_of_ipc(name: &str) -> bool {
    name.starts_with("kernel.msg")
        || name.starts_with("kernel.shm")
        || name == "kernel.sem"
        || name.starts_with("fs.mqueue.")
}

fn is_sysctl(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_segment = |segment: &str| {
        let bytes = segment.as_bytes();
        let ends = bytes.first().zip(bytes.last());
        ends.is_some_and(|(first, last)| is_plain(*first) && is_plain(*last))
            && bytes.iter().all(|byte| is_plain(*byte) || matches!(byte, b'-' | b'_'))
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_segment)
}

fn check_seccomp(profile: &At<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let kind = profile.field("type");
    match kind.text() {
        "Localhost" | "RuntimeDefault" | "Unconfined" => {}
        "" => errors.push(kind.required("type is required when seccompProfile is set")),
        _ => errors.push(kind.not_supported(&["Localhost", "RuntimeDefault", "Unconfined"])),
    }
    let local = profile.field("localhostProfile");
    if kind.text() == "Localhost" {
        if local.is_set() {
            check_descending(&local, errors);
        } else {
            errors.push(local.required("must be set when seccomp type is Localhost"));
        }
    } else if local.is_set() {
        let shown = printed("core.SeccompProfile", profile.value);
        errors.push(FieldError::invalid_printed(&local.path, shown, "can only be set when seccomp type is Localhost"));
    }
}

fn check_app_armor(profile: &At<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (kind, local) = (profile.field("type"), profile.field("localhostProfile"));
    match kind.text() {
        "Localhost" => {
            let text = local.text();
            if local.is_set() && text.trim() != text {
                errors.push(local.invalid("must not be padded with whitespace"));
            } else if text.is_empty() {
                errors.push(local.required("must be set when AppArmor type is Localhost"));
            }
            if text.len() > 4095 {
                errors.push(FieldError::too_long(&local.path, 4095));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if local.is_set() {
                errors.push(local.invalid("can only be set when AppArmor type is Localhost"));
            }
        }
        "" => errors.push(kind.required("type is required when appArmorProfile is set")),
        _ => errors.push(kind.not_supported(&["Localhost", "RuntimeDefault", "Unconfined"])),
    }
}
