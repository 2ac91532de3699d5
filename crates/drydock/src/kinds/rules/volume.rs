//! PersistentVolumes.

use super::claim::check_modes;
use super::fill::{make, or, or_text, round_resources};
use super::pod::scheduling::check_node_selector;
use super::pod::volume::{check_csi_driver, check_no_backsteps, host_path, nfs, require};
use super::{NameRule, Rules, WITH_STATUS};
use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::quantity;
use crate::validate::{At, Errors, IMMUTABLE, diff, format, pretty, printed};
use serde_json::{Value, json};

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
    if root.text().starts_with('/')
        && root.text().split('/').all(|part| matches!(part, "" | "."))
        && reclaim.text() == "Recycle"
    {
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
