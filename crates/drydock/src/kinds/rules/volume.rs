//! PersistentVolumes, StorageClasses and what CSI drivers register.

use super::claim::check_modes;
use super::fill::{is_empty, make, or, or_text, round_resources};
use super::pod::scheduling::check_node_selector;
use super::pod::volume::{check_csi_driver, check_no_backsteps, host_path, nfs, require};
use super::{Generation, NameRule, PLAIN, Rules, WITH_STATUS, keep_all_but_bare_status, keep_status};
use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::quantity;
use crate::validate::{At, Errors, IMMUTABLE, diff, format, pretty, printed};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const RECLAIM: [&str; 3] = ["Delete", "Recycle", "Retain"];

type Check = fn(&At<'_>, &mut Errors);

/// The sources of a volume in the order in which they are looked at, with their names in messages.
const SOURCES: [(&str, &str, Check); 22] = [
    ("hostPath", "hostPath", host_path),
    ("gcePersistentDisk", "persistentDisk", |at, errors| require(at, &["pdName"], errors)),
    ("awsElasticBlockStore", "awsElasticBlockStore", |at, errors| require(at, &["volumeID"], errors)),
    ("glusterfs", "glusterfs", |at, errors| require(at, &["endpoints", "path"], errors)),
    ("flocker", "flocker", |_, _| {}),
    ("nfs", "nfs", nfs),
    ("rbd", "rbd", |at, errors| require(at, &["monitors", "image"], errors)),
    ("quobyte", "quobyte", |at, errors| require(at, &["registry", "volume"], errors)),
    ("cephfs", "cephfs", |at, errors| require(at, &["monitors"], errors)),
    ("iscsi", "iscsi", |at, errors| require(at, &["targetPortal", "iqn"], errors)),
    ("cinder", "cinder", |at, errors| require(at, &["volumeID"], errors)),
    ("fc", "fc", |_, _| {}),
    ("flexVolume", "flexVolume", |at, errors| require(at, &["driver"], errors)),
    ("azureFile", "azureFile", |at, errors| require(at, &["secretName", "shareName"], errors)),
    ("vsphereVolume", "vsphereVolume", |at, errors| require(at, &["volumePath"], errors)),
    ("photonPersistentDisk", "photonPersistentDisk", |at, errors| require(at, &["pdID"], errors)),
    ("portworxVolume", "portworxVolume", |at, errors| require(at, &["volumeID"], errors)),
    ("azureDisk", "azureDisk", |at, errors| require(at, &["diskName", "diskURI"], errors)),
    ("scaleIO", "scaleIO", |at, errors| require(at, &["gateway", "system", "volumeName"], errors)),
    ("local", "local", |at, errors| {
        require(at, &["path"], errors);
        check_no_backsteps(&at.field("path"), errors);
    }),
    ("storageos", "storageos", |at, errors| require(at, &["volumeName"], errors)),
    ("csi", "csi", check_csi),
];

pub(crate) static VOLUME: Rules = Rules {
    default: |volume| {
        let spec = make(volume.fields_mut(), "spec");
        or_text(spec, "persistentVolumeReclaimPolicy", "Retain");
        or(spec, "volumeMode", "Filesystem");
        round_resources(spec, "capacity");
        if let Some(source) = super::fill::inside(spec, "hostPath") {
            or(source, "type", "");
        }
        or_text(make(volume.fields_mut(), "status"), "phase", "Pending");
    },
    prepare_create: |volume| {
        let now = volume.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or_default();
        volume.set(&["status"], json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
    },
    check: |volume| check_volume(&At::top(volume, "spec")),
    check_update: check_volume_update,
    ..WITH_STATUS
};

pub(crate) static STORAGE_CLASS: Rules = Rules {
    default: |class| {
        or(class.fields_mut(), "reclaimPolicy", "Delete");
        or(class.fields_mut(), "volumeBindingMode", "Immediate");
    },
    check: check_class,
    check_update: |new, old| {
        let mut errors = Vec::new();
        for field in ["parameters", "provisioner", "reclaimPolicy"] {
            if new.get(field) != old.get(field) {
                errors.push(At::top(new, field).forbidden(format!("updates to {field} are forbidden.")));
            }
        }
        At::top(new, "volumeBindingMode").check_unchanged(&At::top(old, "volumeBindingMode"), &mut errors);
        errors
    },
    ..PLAIN
};

pub(crate) static ATTRIBUTES_CLASS: Rules = Rules {
    check: |class| {
        let mut errors = Vec::new();
        let driver = At::top(class, "driverName");
        check_csi_driver(&driver, &mut errors);
        if At::top(class, "parameters").is_empty() {
            errors.push(At::top(class, "parameters").required("must contain at least one key/value pair"));
        }
        errors
    },
    check_update: |new, old| {
        let mut errors = Vec::new();
        for field in ["driverName", "parameters"] {
            if new.get(field) != old.get(field) {
                errors.push(At::top(new, field).forbidden("updates to parameters are forbidden."));
            }
        }
        errors
    },
    ..PLAIN
};

pub(crate) static DRIVER: Rules = Rules {
    generation: Generation::WithSpecLater,
    default: |driver| {
        let spec = make(driver.fields_mut(), "spec");
        or(spec, "attachRequired", true);
        for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
            or(spec, field, false);
        }
        or(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if is_empty(spec, "volumeLifecycleModes") {
            spec.insert("volumeLifecycleModes".to_owned(), json!(["Persistent"]));
        }
    },
    prepare_create: |driver| {
        driver.remove(&["spec", "nodeAllocatableUpdatePeriodSeconds"]);
    },
    check: |driver| check_driver(&At::top(driver, "spec")),
    check_update: |new, old| {
        let (spec, old_spec) = (At::top(new, "spec"), At::top(old, "spec"));
        let mut errors = check_driver(&spec);
        let attach = spec.field("attachRequired").called(spec.path.child("attachedRequired"));
        attach.check_unchanged(&old_spec.field("attachRequired"), &mut errors);
        spec.field("volumeLifecycleModes").check_unchanged(&old_spec.field("volumeLifecycleModes"), &mut errors);
        errors
    },
    unconditional_update: false,
    ..PLAIN
};

pub(crate) static DRIVER_NODE: Rules = Rules {
    check: check_driver_node,
    check_update: |new, _| check_driver_node(new),
    unconditional_update: false,
    ..PLAIN
};

pub(crate) static CAPACITY: Rules = Rules {
    check: |capacity| {
        let mut errors = Vec::new();
        let class = At::top(capacity, "storageClassName");
        errors.extend(class.all_invalid(format::dns_subdomain(class.text())));
        errors
    },
    check_update: |new, old| {
        let mut errors = Vec::new();
        for field in ["nodeTopology", "storageClassName"] {
            At::top(new, field).check_unchanged(&At::top(old, field), &mut errors);
        }
        errors
    },
    unconditional_update: false,
    ..PLAIN
};

pub(crate) static ATTACHMENT: Rules = Rules {
    prepare_update: keep_status,
    prepare_status: keep_all_but_bare_status,
    check: check_attachment,
    check_update: |new, old| {
        let mut errors = check_attachment(new);
        if new.get("spec") != old.get("spec") {
            let shown = printed("storage.VolumeAttachmentSpec", At::top(new, "spec").value);
            errors.push(FieldError::invalid_printed(&Path::new("spec"), shown, IMMUTABLE));
        }
        errors
    },
    unconditional_update: false,
    ..WITH_STATUS
};

fn check_volume(spec: &At<'_>) -> Errors {
    let mut errors = Vec::new();
    let modes = spec.field("accessModes");
    if modes.is_empty() {
        errors.push(modes.required(""));
    }
    check_modes(&modes, &mut errors);
    let capacity = spec.field("capacity");
    if capacity.is_empty() {
        errors.push(capacity.required(""));
    }
    if !capacity.has("storage") || capacity.len() > 1 {
        let shown = if capacity.is_set() { capacity.value.clone() } else { Value::Null };
        errors.push(FieldError::not_supported(&capacity.path, shown, &["storage"]));
    }
    for (_, amount) in capacity.entries() {
        let nano = quantity::nano_units(amount.text()).unwrap_or_default();
        if nano < 0 {
            let whole = i64::try_from(nano / 1_000_000_000).unwrap_or(i64::MIN);
            errors.push(FieldError::invalid(&amount.path, whole, "must be a valid resource quantity"));
        }
        if nano <= 0 {
            errors.push(amount.invalid("must be greater than zero"));
        }
    }
    let reclaim = spec.field("persistentVolumeReclaimPolicy");
    if !reclaim.text().is_empty() {
        reclaim.check_optional(&RECLAIM, &mut errors);
    }
    let affinity = spec.field("nodeAffinity");
    if affinity.is_set() {
        if affinity.has("required") {
            check_node_selector(&affinity.field("required"), &mut errors);
        } else {
            errors.push(affinity.field("required").required("must specify required node constraints"));
        }
    }
    check_source(spec, &mut errors);
    let root = spec.below(&["hostPath", "path"]);
    if root.is_set() && root.text().split('/').all(|part| matches!(part, "" | ".")) && reclaim.text() == "Recycle" {
        errors.push(reclaim.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
    let class = spec.field("storageClassName");
    if !class.text().is_empty() {
        errors.extend(class.all_invalid(format::dns_subdomain(class.text())));
    }
    spec.field("volumeMode").check_optional(&["Block", "Filesystem"], &mut errors);
    let attributes = spec.field("volumeAttributesClassName");
    if attributes.is_set() {
        if attributes.text().is_empty() {
            errors.push(attributes.required("an empty string is disallowed"));
        } else {
            errors.extend(attributes.all_invalid(format::dns_subdomain(attributes.text())));
        }
        if !spec.has("csi") {
            errors.push(spec.field("csi").required("has to be specified when using volumeAttributesClassName"));
        }
    }
    errors
}

fn check_source(spec: &At<'_>, errors: &mut Errors) {
    let mut found = false;
    for (field, name, check) in SOURCES {
        if !spec.has(field) {
            continue;
        }
        if found && field != "flexVolume" {
            let shown = if field == "cephfs" { "cephFS" } else { field };
            errors.push(FieldError::forbidden(&spec.path.child(shown), "may not specify more than 1 volume type"));
            continue;
        }
        found = true;
        check(&spec.field(field).called(spec.path.child(name)), errors);
        if field == "local" && !spec.has("nodeAffinity") {
            errors.push(spec.field("nodeAffinity").required("Local volume requires node affinity"));
        }
    }
    if !found {
        errors.push(spec.required("must specify a volume type"));
    }
}

fn check_csi(at: &At<'_>, errors: &mut Errors) {
    check_csi_driver(&at.field("driver"), errors);
    require(at, &["volumeHandle"], errors);
    for secret in
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"]
    {
        let secret = at.field(secret);
        if !secret.is_set() {
            continue;
        }
        for (field, check) in
            [("name", format::dns_subdomain as fn(&str) -> Vec<String>), ("namespace", format::dns_label)]
        {
            let part = secret.field(field);
            if part.text().is_empty() {
                errors.push(part.required(""));
            } else {
                errors.extend(part.all_invalid(check(part.text())));
            }
        }
    }
}

fn check_volume_update(new: &Object, old: &Object) -> Errors {
    let mut errors = crate::validate::metadata(new, NameRule::Subdomain, false);
    let (spec, old_spec) = (At::top(new, "spec"), At::top(old, "spec"));
    errors.extend(check_volume(&spec));
    let source = |spec: &At<'_>| {
        let mut fields = spec.value.as_object().cloned().unwrap_or_default();
        fields.retain(|field, _| SOURCES.iter().any(|(source, _, _)| source == field));
        Value::Object(fields)
    };
    let (mut now, before) = (source(&spec), source(&old_spec));
    let expand = "controllerExpandSecretRef";
    if before.get("csi").is_some_and(|csi| csi.get(expand).is_none())
        && let Some(Value::Object(csi)) = now.get_mut("csi")
    {
        csi.remove(expand);
    }
    if now != before {
        let change = diff::unified(
            &pretty("core.PersistentVolumeSource", &before),
            &pretty("core.PersistentVolumeSource", &now),
        );
        let path = spec.path.child("persistentvolumesource");
        let why = format!("spec.persistentvolumesource is immutable after creation\n{change}");
        errors.push(FieldError::forbidden(&path, why));
    }
    let mode = spec.field("volumeMode").called(Path::new("volumeMode"));
    mode.check_unchanged(&old_spec.field("volumeMode"), &mut errors);
    let affinity = spec.field("nodeAffinity");
    let before = old_spec.field("nodeAffinity");
    if before.is_set() && affinity.value != before.value {
        let shown = printed("core.VolumeNodeAffinity", affinity.value);
        let why = format!("{IMMUTABLE}, except for updating from beta label to GA");
        errors.push(FieldError::invalid_printed(&Path::new("nodeAffinity"), shown, why));
    }
    let attributes = spec.field("volumeAttributesClassName");
    if old_spec.has("volumeAttributesClassName") && !attributes.is_set() {
        errors.push(attributes.forbidden("update from non-nil value to nil is forbidden"));
    }
    errors
}

fn check_class(class: &Object) -> Errors {
    let mut errors = Vec::new();
    let provisioner = At::top(class, "provisioner");
    if provisioner.text().is_empty() {
        errors.push(provisioner.required(""));
    } else {
        let lower = provisioner.text().to_lowercase();
        errors.extend(crate::validate::all_invalid(&provisioner.path, &lower, format::qualified_name(&lower)));
    }
    let parameters = At::top(class, "parameters");
    if parameters.len() > 512 {
        errors.push(FieldError::too_long(&parameters.path, 512));
    }
    for (key, _) in parameters.entries().filter(|(key, _)| key.is_empty()) {
        errors.push(FieldError::invalid(&parameters.path, key, "field can not be empty."));
    }
    let length: usize = parameters.entries().map(|(key, value)| key.len() + value.text().len()).sum();
    if length > 256 * 1024 {
        errors.push(FieldError::too_long(&parameters.path, 256 * 1024));
    }
    At::top(class, "reclaimPolicy").check_optional(&["Delete", "Retain"], &mut errors);
    At::top(class, "volumeBindingMode").check_optional(&["Immediate", "WaitForFirstConsumer"], &mut errors);
    for term in At::top(class, "allowedTopologies").items() {
        let mut keys = BTreeSet::new();
        for expression in term.field("matchLabelExpressions").items() {
            let (values, key) = (expression.field("values"), expression.field("key"));
            if values.is_empty() {
                errors.push(values.required(""));
            }
            let mut seen = BTreeSet::new();
            for value in values.items() {
                if !seen.insert(value.text()) {
                    errors.push(value.duplicate());
                }
            }
            errors.extend(key.all_invalid(format::qualified_name(key.text())));
            if !keys.insert(key.text()) {
                errors.push(key.duplicate());
            }
        }
    }
    errors
}

fn check_driver(spec: &At<'_>) -> Errors {
    let mut errors = Vec::new();
    spec.field("fsGroupPolicy").check_optional(&["File", "None", "ReadWriteOnceWithFSType"], &mut errors);
    for mode in spec.field("volumeLifecycleModes").items() {
        if !matches!(mode.text(), "Ephemeral" | "Persistent") {
            let path = spec.path.child("volumeLifecycleModes");
            errors.push(FieldError::not_supported(&path, mode.text(), &["Persistent", "Ephemeral"]));
        }
    }
    errors
}

fn check_driver_node(node: &Object) -> Errors {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for driver in At::top(node, "spec").field("drivers").items() {
        let (name, id) = (driver.field("name"), driver.field("nodeID"));
        check_csi_driver(&name, &mut errors);
        if id.text().is_empty() {
            errors.push(id.required(""));
        }
        if id.text().len() > 256 {
            errors.push(id.invalid("must be 256 characters or less"));
        }
        driver.below(&["allocatable", "count"]).check_not_negative(&mut errors);
        if !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
        for key in driver.field("topologyKeys").items() {
            let key = key.called(driver.path.clone());
            errors.extend(key.all_invalid(format::qualified_name(key.text())));
        }
    }
    errors
}

fn check_attachment(attachment: &Object) -> Errors {
    let mut errors = Vec::new();
    let spec = At::top(attachment, "spec");
    require(&spec, &["attacher"], &mut errors);
    let source = spec.field("source");
    let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (source.has("inlineVolumeSpec"), source.has("persistentVolumeName")) {
        (false, false) => errors.push(source.required(why)),
        (true, true) => errors.push(source.forbidden(why)),
        _ => {}
    }
    let node = spec.field("nodeName");
    errors.extend(node.all_invalid(format::dns_subdomain(node.text())));
    errors
}
