//! PersistentVolumeClaims, and the templates of claims that pods and StatefulSets have.

use super::fill::{Fields, make, or, round_requirements};
use super::{PLAIN, Rules, keep_all_but_status, keep_status};
use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::quantity;
use crate::validate::{At, Errors, IMMUTABLE, diff, format, pretty, selector};
use serde_json::{Map, Value, json};

pub(super) const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const UPDATABLE: &str =
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";

pub(crate) static CLAIM: Rules = Rules {
    default: |claim| {
        default_spec(make(claim.fields_mut(), "spec"));
        super::fill::or_text(make(claim.fields_mut(), "status"), "phase", "Pending");
    },
    prepare_create: |claim| {
        claim.set(&["status"], json!({"phase": "Pending"}));
        normalize_sources(make(claim.fields_mut(), "spec"));
    },
    prepare_update: |new, old| {
        keep_status(new, old);
        normalize_sources(make(new.fields_mut(), "spec"));
    },
    prepare_status: keep_all_but_status,
    check: |claim| {
        let mut errors = Vec::new();
        check_spec(&At::top(claim, "spec"), &mut errors);
        errors
    },
    check_update,
    check_status,
    warnings: |claim, _| warnings(claim),
    ..PLAIN
};

/// Defaults of a claim's spec.
pub(super) fn default_spec(spec: &mut Fields) {
    or(spec, "volumeMode", "Filesystem");
    round_requirements(make(spec, "resources"));
}

/// `dataSource` and `dataSourceRef` say the same where they can.
fn normalize_sources(spec: &mut Fields) {
    let kind = |source: &Value| {
        let text = |field: &str| source.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("apiGroup"), text("kind"))
    };
    let has_namespace =
        |source: &Value| source.get("namespace").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    if spec.get("dataSourceRef").is_some_and(has_namespace) {
        spec.remove("dataSourceRef");
    }
    if let (Some(source), None) = (spec.get("dataSource"), spec.get("dataSourceRef")) {
        let (group, name) = kind(source);
        let is_known = (group.is_empty() && name == "PersistentVolumeClaim")
            || (group == "snapshot.storage.k8s.io" && name == "VolumeSnapshot");
        if !is_known {
            spec.remove("dataSource");
        }
    }
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => spec.insert("dataSourceRef".to_owned(), source),
        (None, Some(source)) => spec.insert("dataSource".to_owned(), source),
        _ => None,
    };
}

/// What is wrong with a claim's spec.
pub(super) fn check_spec(spec: &At<'_>, errors: &mut Errors) {
    let modes = spec.field("accessModes");
    if modes.is_empty() {
        errors.push(modes.required("at least 1 access mode is required"));
    }
    selector::check(&spec.field("selector"), errors);
    check_modes(&modes, errors);
    let resources = spec.field("resources");
    let size = At::new(resources.below(&["requests", "storage"]).value, resources.path.key("storage"));
    if !size.is_set() {
        errors.push(size.required(""));
    } else if quantity::nano_units(size.text()).is_none_or(|nano| nano <= 0) {
        errors.push(size.invalid("must be greater than zero"));
    }
    check_class(&spec.field("storageClassName"), errors);
    spec.field("volumeMode").check_optional(&["Block", "Filesystem"], errors);
    for field in ["dataSource", "dataSourceRef"] {
        if spec.has(field) {
            check_source(&spec.field(field), errors);
        }
    }
    let (source, reference) = (spec.field("dataSource"), spec.field("dataSourceRef"));
    let same = ["apiGroup", "kind", "name"].iter().all(|field| source.text_of(field) == reference.text_of(field));
    if source.is_set() && reference.is_set() && !same {
        errors.push(FieldError::invalid(&spec.path, Map::new(), "must match dataSourceRef"));
    }
    check_class(&spec.field("volumeAttributesClassName"), errors);
}

fn check_class(class: &At<'_>, errors: &mut Errors) {
    if !class.text().is_empty() {
        errors.extend(class.all_invalid(format::dns_subdomain(class.text())));
    }
}

/// The modes are known, and the one for a single pod stands alone.
pub(super) fn check_modes(modes: &At<'_>, errors: &mut Errors) {
    for mode in modes.texts().filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.push(FieldError::not_supported(&modes.path, mode, &ACCESS_MODES));
    }
    let for_one_pod = modes.texts().any(|mode| mode == "ReadWriteOncePod");
    if for_one_pod && modes.texts().any(|mode| mode != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode)) {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

fn check_source(source: &At<'_>, errors: &mut Errors) {
    for field in ["name", "kind"] {
        if source.text_of(field).is_empty() {
            errors.push(source.field(field).required(""));
        }
    }
    let (group, kind) = (source.field("apiGroup"), source.text_of("kind"));
    if group.text().is_empty() {
        if kind != "PersistentVolumeClaim" {
            let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(&source.path, kind, why));
        }
    } else {
        errors.extend(group.all_invalid(format::dns_subdomain(group.text())));
    }
}

fn check_update(new: &Object, old: &Object) -> Errors {
    let mut errors = crate::validate::metadata(new, super::NameRule::Subdomain, true);
    check_spec(&At::top(new, "spec"), &mut errors);
    let class = new.annotation(OLD_CLASS).unwrap_or_default();
    if class != old.annotation(OLD_CLASS).unwrap_or_default() {
        let path = Path::new("metadata").child("annotations").child(OLD_CLASS);
        errors.push(FieldError::invalid(&path, class, IMMUTABLE));
    }
    let spec = |object: &Object| object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let (mut munged, mut before) = (spec(new), spec(old));
    if !before.contains_key("volumeName") {
        carry(&mut before, &munged, "volumeName");
    }
    if !before.contains_key("storageClassName") {
        carry(&mut munged, &before, "storageClassName");
    }
    let size = ["resources", "requests", "storage"];
    if new.text(&["status", "phase"]) == "Bound" {
        carry(&mut munged, &before, "volumeAttributesClassName");
        let requests = munged.get_mut("resources").and_then(|resources| resources.get_mut("requests"));
        let was = before.get("resources").and_then(|resources| resources.get("requests"));
        if let (Some(Value::Object(requests)), Some(Value::Object(was))) = (requests, was) {
            carry(requests, was, "storage");
        }
    }
    if munged != before {
        let before = pretty("core.PersistentVolumeClaimSpec", &Value::Object(before));
        let after = pretty("core.PersistentVolumeClaimSpec", &Value::Object(munged));
        let why = format!("{UPDATABLE}{}", diff::unified(&before, &after));
        errors.push(FieldError::forbidden(&Path::new("spec"), why));
    }
    let amount = |object: &Object, path: &[&str]| quantity::nano_units(object.text(path)).unwrap_or_default();
    let (now, then) = (At::top(new, "spec").below(&size), At::top(old, "spec").below(&size));
    let (now_size, then_size) =
        (quantity::nano_units(now.text()).unwrap_or_default(), quantity::nano_units(then.text()).unwrap_or_default());
    if now_size < then_size && now_size <= amount(old, &["status", "capacity", "storage"]) {
        errors.push(now.forbidden("field can not be less than status.capacity"));
    }
    let mode = At::top(new, "spec").field("volumeMode").called(Path::new("volumeMode"));
    mode.check_unchanged(&At::top(old, "spec").field("volumeMode"), &mut errors);
    errors
}

fn carry(to: &mut Fields, from: &Fields, field: &str) {
    match from.get(field) {
        Some(value) => to.insert(field.to_owned(), value.clone()),
        None => to.remove(field),
    };
}

fn check_status(new: &Object, _old: &Object) -> Errors {
    let mut errors = Vec::new();
    if new.list(&["spec", "accessModes"]).is_empty() {
        errors.push(FieldError::required(&Path::new("Spec").child("accessModes"), ""));
    }
    for (_, amount) in At::top(new, "status").field("capacity").entries() {
        let nano = quantity::nano_units(amount.text()).unwrap_or_default();
        if nano < 0 {
            let whole = i64::try_from(nano / 1_000_000_000).unwrap_or(i64::MIN);
            errors.push(FieldError::invalid(&amount.path, whole, "must be a valid resource quantity"));
        }
    }
    errors
}

fn warnings(claim: &Object) -> Vec<String> {
    let mut warnings = Vec::new();
    if claim.annotation(OLD_CLASS).is_some() {
        warnings.push(format!(
            "metadata.annotations[{OLD_CLASS}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
        ));
    }
    for list in ["requests", "limits"] {
        let amount = claim.text(&["spec", "resources", list, "storage"]);
        if quantity::nano_units(amount).is_some_and(|nano| nano % 1_000_000_000 != 0) {
            warnings.push(format!(
                "spec.resources.{list}[storage]: fractional byte value {amount:?} is invalid, must be an integer"
            ));
        }
    }
    warnings
}
