//! Volumes of pods.

use super::super::claim;
use super::environment::{check_field_reference, check_resource_reference};
use crate::field::{FieldError, Path};
use crate::quantity;
use crate::validate::{At, Errors, annotations, format, labels};
use std::collections::{BTreeMap, BTreeSet};

/// The volumes that are right, by name.
pub(super) type Volumes<'a> = BTreeMap<&'a str, At<'a>>;

const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const DOWNWARD_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

type Check = fn(&At<'_>, &mut Errors);

/// The sources in the order in which they are looked at: the field, its name in messages, and what is checked.
/// Some names in messages differ from the fields, and so they do in Kubernetes.
const SOURCES: [(&str, &str, &str, Check); 30] = [
    ("emptyDir", "emptyDir", "emptyDir", empty_dir),
    ("hostPath", "hostPath", "hostPath", host_path),
    ("gitRepo", "gitRepo", "gitRepo", git_repo),
    ("gcePersistentDisk", "gcePersistentDisk", "persistentDisk", |at, errors| disk(at, "pdName", errors)),
    ("awsElasticBlockStore", "awsElasticBlockStore", "awsElasticBlockStore", |at, errors| disk(at, "volumeID", errors)),
    ("secret", "secret", "secret", |at, errors| files(at, "secretName", errors)),
    ("nfs", "nfs", "nfs", nfs),
    ("iscsi", "iscsi", "iscsi", iscsi),
    ("glusterfs", "glusterfs", "glusterfs", |at, errors| require(at, &["endpoints", "path"], errors)),
    ("flocker", "flocker", "flocker", flocker),
    ("persistentVolumeClaim", "persistentVolumeClaim", "persistentVolumeClaim", |at, errors| {
        require(at, &["claimName"], errors);
    }),
    ("rbd", "rbd", "rbd", |at, errors| require(at, &["monitors", "image"], errors)),
    ("cinder", "cinder", "cinder", |at, errors| {
        require(at, &["volumeID"], errors);
        require_secret_name(at, errors);
    }),
    ("cephfs", "cephFS", "cephfs", |at, errors| require(at, &["monitors"], errors)),
    ("quobyte", "quobyte", "quobyte", |at, errors| require(at, &["registry", "volume"], errors)),
    ("downwardAPI", "downwarAPI", "downwardAPI", downward),
    ("fc", "fc", "fc", fibre_channel),
    ("flexVolume", "flexVolume", "flexVolume", |at, errors| require(at, &["driver"], errors)),
    ("configMap", "configMap", "configMap", |at, errors| files(at, "name", errors)),
    ("azureFile", "azureFile", "azureFile", |at, errors| require(at, &["secretName", "shareName"], errors)),
    ("vsphereVolume", "vsphereVolume", "vsphereVolume", |at, errors| require(at, &["volumePath"], errors)),
    ("photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk", |at, errors| {
        require(at, &["pdID"], errors);
    }),
    ("portworxVolume", "portworxVolume", "portworxVolume", |at, errors| require(at, &["volumeID"], errors)),
    ("azureDisk", "azureDisk", "azureDisk", |at, errors| require(at, &["diskName", "diskURI"], errors)),
    ("storageos", "storageos", "storageos", |at, errors| {
        require(at, &["volumeName"], errors);
        require_secret_name(at, errors);
    }),
    ("projected", "projected", "projected", projected),
    ("scaleIO", "scaleIO", "scaleIO", |at, errors| require(at, &["gateway", "system", "volumeName"], errors)),
    ("csi", "csi", "csi", csi),
    ("ephemeral", "ephemeral", "ephemeral", ephemeral),
    ("image", "image", "image", |at, errors| pull_policy(&at.field("pullPolicy"), errors)),
];

/// What is wrong with the volumes of a pod, and those that are right. Templates have no name.
pub(super) fn check<'a>(volumes: &At<'a>, pod_name: &str, errors: &mut Errors) -> Volumes<'a> {
    let mut right: Volumes<'a> = BTreeMap::new();
    let made_for_pod = |volume: &At<'_>| format!("{pod_name}-{}", volume.text_of("name"));
    let made: BTreeSet<String> = volumes
        .items()
        .filter(|volume| !pod_name.is_empty() && volume.has("ephemeral"))
        .map(|v| made_for_pod(&v))
        .collect();
    for volume in volumes.items() {
        let mut wrong = Vec::new();
        check_source(&volume, &mut wrong);
        let name = volume.field("name");
        if !pod_name.is_empty() && !name.text().is_empty() && volume.has("ephemeral") {
            let claim = made_for_pod(&volume);
            let messages = format::dns_subdomain(&claim);
            wrong.extend(name.all_invalid(messages.iter().map(|m| format!("PVC name {claim:?}: {m}")).collect()));
        }
        if name.text().is_empty() {
            wrong.push(name.required(""));
        } else {
            wrong.extend(name.all_invalid(format::dns_label(name.text())));
        }
        if right.contains_key(name.text()) {
            wrong.push(name.duplicate());
        }
        if wrong.is_empty() {
            right.insert(name.text(), volume.clone());
        }
        errors.extend(wrong);
        let claim = volume.below(&["persistentVolumeClaim", "claimName"]);
        if made.contains(claim.text()) {
            errors.push(claim.invalid("must not reference a PVC that gets created for an ephemeral volume"));
        }
    }
    right
}

fn check_source(volume: &At<'_>, errors: &mut Errors) {
    let mut found = false;
    for (field, extra, name, check) in SOURCES {
        if !volume.has(field) {
            continue;
        }
        if found {
            let path = volume.path.child(extra);
            errors.push(FieldError::forbidden(&path, "may not specify more than 1 volume type"));
        } else {
            found = true;
            check(&volume.field(field).called(volume.path.child(name)), errors);
        }
    }
    if !found {
        errors.push(volume.required("must specify a volume type"));
    }
}

/// Fields that must be there.
pub(in super::super) fn require(at: &At<'_>, fields: &[&str], errors: &mut Errors) {
    for field in fields {
        if at.field(field).is_empty() {
            errors.push(at.field(field).required(""));
        }
    }
}

fn require_secret_name(at: &At<'_>, errors: &mut Errors) {
    if at.has("secretRef") {
        require(&at.field("secretRef"), &["name"], errors);
    }
}

fn empty_dir(at: &At<'_>, errors: &mut Errors) {
    let limit = at.field("sizeLimit");
    if quantity::nano_units(limit.text()).is_some_and(|nano| nano < 0) {
        errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

pub(in super::super) fn host_path(at: &At<'_>, errors: &mut Errors) {
    let path = at.field("path");
    if path.text().is_empty() {
        errors.push(path.required(""));
        return;
    }
    check_no_backsteps(&path, errors);
    at.field("type").check_optional(&HOST_PATH_TYPES, errors);
}

fn git_repo(at: &At<'_>, errors: &mut Errors) {
    require(at, &["repository"], errors);
    check_descending(&at.field("directory"), errors);
}

fn disk(at: &At<'_>, name: &str, errors: &mut Errors) {
    require(at, &[name], errors);
    let partition = at.field("partition");
    if partition.number().is_some_and(|number| !(0..=255).contains(&number)) {
        errors.push(partition.invalid(format::out_of_range(1, 255)));
    }
}

/// A Secret or ConfigMap as files.
fn files(at: &At<'_>, name: &str, errors: &mut Errors) {
    require(at, &[name], errors);
    check_mode(&at.field("defaultMode"), errors);
    for item in at.field("items").items() {
        check_item(&item, errors);
    }
}

fn check_mode(mode: &At<'_>, errors: &mut Errors) {
    if mode.number().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.push(mode.invalid(FILE_MODE));
    }
}

fn check_item(item: &At<'_>, errors: &mut Errors) {
    require(item, &["key", "path"], errors);
    check_local_path(&item.field("path"), errors);
    check_mode(&item.field("mode"), errors);
}

pub(in super::super) fn nfs(at: &At<'_>, errors: &mut Errors) {
    require(at, &["server", "path"], errors);
    let path = at.field("path");
    if !path.text().starts_with('/') {
        errors.extend(path.all_invalid(vec!["must be an absolute path".to_owned()]));
    }
}

fn iscsi(at: &At<'_>, errors: &mut Errors) {
    require(at, &["targetPortal", "iqn"], errors);
    let name = at.field("iqn");
    if !name.text().is_empty() && !["iqn", "eui", "naa"].iter().any(|start| name.text().starts_with(start)) {
        errors.push(name.invalid("must be valid format starting with iqn, eui, or naa"));
    }
    let unit = at.field("lun");
    if unit.number().is_some_and(|number| !(0..=255).contains(&number)) {
        errors.push(unit.invalid(format::out_of_range(0, 255)));
    }
    if (at.field("chapAuthDiscovery").is_true() || at.field("chapAuthSession").is_true()) && !at.has("secretRef") {
        errors.push(at.field("secretRef").required(""));
    }
}

fn flocker(at: &At<'_>, errors: &mut Errors) {
    match (at.text_of("datasetName").is_empty(), at.text_of("datasetUUID").is_empty()) {
        (true, true) => errors.push(at.required("one of datasetName and datasetUUID is required")),
        (false, false) => {
            let why = "datasetName and datasetUUID can not be specified simultaneously";
            errors.push(FieldError::invalid(&at.path, "resource", why));
        }
        _ => {}
    }
    let name = at.field("datasetName");
    if name.text().contains('/') {
        errors.push(name.invalid("must not contain '/'"));
    }
}

fn fibre_channel(at: &At<'_>, errors: &mut Errors) {
    let (names, unit) = (at.field("targetWWNs"), at.field("lun"));
    match (names.is_empty(), at.field("wwids").is_empty()) {
        (true, true) => errors.push(names.required("must specify either targetWWNs or wwids, but not both")),
        (false, false) => errors.push(names.invalid("targetWWNs and wwids can not be specified simultaneously")),
        _ => {}
    }
    if !names.is_empty() {
        match unit.number() {
            None => errors.push(unit.required("lun is required if targetWWNs is specified")),
            Some(number) if !(0..=255).contains(&number) => errors.push(unit.invalid(format::out_of_range(0, 255))),
            Some(_) => {}
        }
    }
}

fn downward(at: &At<'_>, errors: &mut Errors) {
    check_mode(&at.field("defaultMode"), errors);
    for item in at.field("items").items() {
        downward_item(&item.called(at.path.clone()), errors);
    }
}

fn downward_item(item: &At<'_>, errors: &mut Errors) {
    require(item, &["path"], errors);
    check_local_path(&item.field("path"), errors);
    let (field, resource) = (item.field("fieldRef"), item.field("resourceFieldRef"));
    if field.is_set() {
        check_field_reference(&field, &DOWNWARD_FIELDS, errors);
        if resource.is_set() {
            let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(FieldError::invalid(&item.path, "resource", why));
        }
    } else if resource.is_set() {
        check_resource_reference(&resource, true, errors);
    } else {
        errors.push(item.required("one of fieldRef and resourceFieldRef is required"));
    }
    check_mode(&item.field("mode"), errors);
}

fn projected(at: &At<'_>, errors: &mut Errors) {
    check_mode(&at.field("defaultMode"), errors);
    let mut paths = BTreeSet::new();
    for source in at.field("sources").items() {
        let mut found = 0;
        for kind in ["secret", "configMap"] {
            let files = source.field(kind);
            if !files.is_set() {
                continue;
            }
            found += 1;
            require(&files, &["name"], errors);
            for item in files.field("items").items() {
                check_item(&item, errors);
                note_path(&mut paths, item.text_of("path"), &at.path, files.text_of("name"), errors);
            }
        }
        let downward = source.field("downwardAPI");
        if downward.is_set() {
            found += 1;
            for item in downward.field("items").items() {
                downward_item(&item.called(downward.path.clone()), errors);
                note_path(&mut paths, item.text_of("path"), &at.path, item.text_of("path"), errors);
            }
        }
        let token = source.field("serviceAccountToken");
        if token.is_set() {
            found += 1;
            check_token(&token, &at.path, errors);
        }
        if found > 1 {
            errors.push(source.forbidden("may not specify more than 1 volume type per source"));
        }
    }
}

/// No two files of a volume have the same path.
fn note_path<'a>(paths: &mut BTreeSet<&'a str>, path: &'a str, volume: &Path, shown: &str, errors: &mut Errors) {
    if !path.is_empty() && !paths.insert(path) {
        errors.push(FieldError::invalid(volume, shown, "conflicting duplicate paths"));
    }
}

fn check_token(token: &At<'_>, volume: &Path, errors: &mut Errors) {
    let expiration = token.field("expirationSeconds");
    let seconds = expiration.number().unwrap_or_default();
    if seconds < 600 {
        errors.push(FieldError::invalid(&expiration.path, seconds, "may not specify a duration less than 10 minutes"));
    }
    if seconds > 1 << 32 {
        errors.push(expiration.invalid("may not specify a duration larger than 2^32 seconds"));
    }
    let path = token.field("path").called(volume.child("path"));
    if path.text().is_empty() {
        errors.push(path.required(""));
    } else {
        check_local_path(&path, errors);
    }
}

fn csi(at: &At<'_>, errors: &mut Errors) {
    check_csi_driver(&at.field("driver"), errors);
    if at.has("nodePublishSecretRef") {
        let name = at.field("nodePublishSecretRef").field("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else {
            errors.extend(name.called(at.path.child("name")).all_invalid(format::dns_subdomain(name.text())));
        }
    }
}

/// The name of a CSI driver.
pub(in super::super) fn check_csi_driver(driver: &At<'_>, errors: &mut Errors) {
    if driver.text().is_empty() {
        errors.push(driver.required(""));
    }
    if driver.text().len() > 63 {
        errors.push(FieldError::too_long(&driver.path, 63));
    }
    errors.extend(driver.all_invalid(format::dns_subdomain(&driver.text().to_lowercase())));
}

fn ephemeral(at: &At<'_>, errors: &mut Errors) {
    let template = at.field("volumeClaimTemplate");
    if !template.is_set() {
        errors.push(template.required(""));
        return;
    }
    let metadata = template.field("metadata");
    annotations(&metadata.field("annotations"), errors);
    labels(&metadata.field("labels"), errors);
    for (field, value) in metadata.value.as_object().into_iter().flatten() {
        if !matches!(field.as_str(), "annotations" | "labels") && !value.is_null() {
            errors.push(FieldError::forbidden(&metadata.path.child(field), "cannot be set"));
        }
    }
    claim::check_spec(&template.field("spec"), errors);
}

/// When an image is pulled.
pub(super) fn pull_policy(policy: &At<'_>, errors: &mut Errors) {
    policy.check_one_of(&["Always", "IfNotPresent", "Never"], errors);
}

/// A path below where it starts.
pub(super) fn check_descending(path: &At<'_>, errors: &mut Errors) {
    if path.text().starts_with('/') {
        errors.push(path.invalid("must be a relative path"));
    }
    check_no_backsteps(path, errors);
}

pub(in super::super) fn check_no_backsteps(path: &At<'_>, errors: &mut Errors) {
    if path.text().split('/').any(|part| part == "..") {
        errors.push(path.invalid("must not contain '..'"));
    }
}

fn check_local_path(path: &At<'_>, errors: &mut Errors) {
    check_descending(path, errors);
    if path.text().starts_with("..") && !path.text().starts_with("../") {
        errors.push(path.invalid("must not start with '..'"));
    }
}
