//! Volumes and where they come from.

use super::{AGE, CREATED, Column, NAME, column, length, text, text_or};
use crate::object::Object;
use serde_json::{Value, json};

static CLAIM: &[Column] = &[
    NAME,
    column("Status", |claim, _| json!(phase(claim))),
    column("Volume", |claim, _| text(claim, &["spec", "volumeName"])),
    column("Capacity", |claim, _| text(claim, &["status", "capacity", "storage"])),
    column("Access Modes", |claim, _| json!(access_modes(claim.list(&["status", "accessModes"])))),
    column("StorageClass", |claim, _| text(claim, &["spec", "storageClassName"])),
    column("VolumeAttributesClass", |claim, _| text_or(claim, &["spec", "volumeAttributesClassName"], "<unset>")),
    AGE,
    column("VolumeMode", |claim, _| text_or(claim, &["spec", "volumeMode"], "<unset>")).wide(),
];

static VOLUME: &[Column] = &[
    NAME,
    column("Capacity", |volume, _| text(volume, &["spec", "capacity", "storage"])),
    column("Access Modes", |volume, _| json!(access_modes(volume.list(&["spec", "accessModes"])))),
    column("Reclaim Policy", |volume, _| text(volume, &["spec", "persistentVolumeReclaimPolicy"])),
    column("Status", |volume, _| json!(phase(volume))),
    column("Claim", |volume, _| {
        let claim = |field| volume.text(&["spec", "claimRef", field]);
        json!(if claim("name").is_empty() {
            String::new()
        } else {
            format!("{}/{}", claim("namespace"), claim("name"))
        })
    }),
    column("StorageClass", |volume, _| text(volume, &["spec", "storageClassName"])),
    column("VolumeAttributesClass", |volume, _| text_or(volume, &["spec", "volumeAttributesClassName"], "<unset>")),
    column("Reason", |volume, _| text(volume, &["status", "reason"])),
    AGE,
    column("VolumeMode", |volume, _| text_or(volume, &["spec", "volumeMode"], "<unset>")).wide(),
];

static STORAGE_CLASS: &[Column] = &[
    column("Name", |class, _| {
        let default = class.annotation("storageclass.kubernetes.io/is-default-class") == Some("true");
        json!(if default { format!("{} (default)", class.name()) } else { class.name().to_owned() })
    }),
    column("Provisioner", |class, _| text(class, &["provisioner"])),
    column("ReclaimPolicy", |class, _| text_or(class, &["reclaimPolicy"], "Delete")),
    column("VolumeBindingMode", |class, _| text_or(class, &["volumeBindingMode"], "Immediate")),
    column("AllowVolumeExpansion", |class, _| json!(class.at(&["allowVolumeExpansion"]) == Some(&json!(true)))),
    AGE,
];

static DRIVER: &[Column] = &[
    NAME,
    column("AttachRequired", |driver, _| json!(driver.at(&["spec", "attachRequired"]) != Some(&json!(false))))
        .typed("boolean"),
    column("PodInfoOnMount", |driver, _| json!(driver.at(&["spec", "podInfoOnMount"]) == Some(&json!(true))))
        .typed("boolean"),
    column("StorageCapacity", |driver, _| json!(driver.at(&["spec", "storageCapacity"]) == Some(&json!(true))))
        .typed("boolean"),
    column("TokenRequests", |driver, _| json!(list_or(driver.list(&["spec", "tokenRequests"]), "audience", "<unset>"))),
    column("RequiresRepublish", |driver, _| json!(driver.at(&["spec", "requiresRepublish"]) == Some(&json!(true))))
        .typed("boolean"),
    column("Modes", |driver, _| {
        let modes: Vec<&str> =
            driver.list(&["spec", "volumeLifecycleModes"]).iter().filter_map(Value::as_str).collect();
        json!(if modes.is_empty() { "<none>".to_owned() } else { modes.join(",") })
    }),
    AGE,
];

static NODE_DRIVERS: &[Column] =
    &[NAME, column("Drivers", |object, _| json!(length(object, &["spec", "drivers"]))).typed("integer"), AGE];

static ATTACHMENT: &[Column] = &[
    NAME,
    column("Attacher", |object, _| text(object, &["spec", "attacher"])),
    column("PV", |object, _| text(object, &["spec", "source", "persistentVolumeName"])),
    column("Node", |object, _| text(object, &["spec", "nodeName"])),
    column("Attached", |object, _| json!(object.at(&["status", "attached"]) == Some(&json!(true)))).typed("boolean"),
    AGE,
];

static ATTRIBUTES_CLASS: &[Column] = &[NAME, column("DriverName", |object, _| text(object, &["driverName"])), AGE];

static CREATED_ONLY: &[Column] = &[NAME, CREATED];

pub(super) fn of(plural: &str) -> Option<&'static [Column]> {
    Some(match plural {
        "persistentvolumeclaims" => CLAIM,
        "persistentvolumes" => VOLUME,
        "storageclasses" => STORAGE_CLASS,
        "csidrivers" => DRIVER,
        "csinodes" => NODE_DRIVERS,
        "volumeattachments" => ATTACHMENT,
        "volumeattributesclasses" => ATTRIBUTES_CLASS,
        "csistoragecapacities" => CREATED_ONLY,
        _ => return None,
    })
}

fn phase(object: &Object) -> &str {
    if object.is_being_deleted() { "Terminating" } else { object.text(&["status", "phase"]) }
}

fn access_modes(modes: &[Value]) -> String {
    let short = |mode: &Value| match mode.as_str().unwrap_or_default() {
        "ReadWriteOnce" => "RWO".to_owned(),
        "ReadOnlyMany" => "ROX".to_owned(),
        "ReadWriteMany" => "RWX".to_owned(),
        "ReadWriteOncePod" => "RWOP".to_owned(),
        other => other.to_owned(),
    };
    modes.iter().map(short).collect::<Vec<_>>().join(",")
}

fn list_or(items: &[Value], field: &str, absent: &str) -> String {
    let text = super::joined(items, field);
    if text.is_empty() { absent.to_owned() } else { text }
}
