//! StorageClasses, VolumeAttributesClasses and what CSI drivers register.

use super::fill::{is_empty, make, or};
use super::pod::volume::{check_csi_driver, require};
use super::{Generation, PLAIN, Rules, WITH_STATUS, keep_all_but_bare_status, keep_status};
use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::quantity;
use crate::validate::{At, Errors, IMMUTABLE, format, printed, selector};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) static STORAGE_CLASS: Rules = Rules {
    default: |class| {
        or(class.fields_mut(), "reclaimPolicy", "Delete");
        or(class.fields_mut(), "volumeBindingMode", "Immediate");
    },
    check: check_class,
    check_update: |new, old| {
        let mut errors = check_class(new);
        refuse_updates(&["parameters", "provisioner", "reclaimPolicy"], new, old, &mut errors);
        At::top(new, "volumeBindingMode").check_unchanged(&At::top(old, "volumeBindingMode"), &mut errors);
        errors
    },
    ..PLAIN
};

pub(crate) static ATTRIBUTES_CLASS: Rules = Rules {
    check: check_attributes_class,
    check_update: |new, old| {
        let mut errors = check_attributes_class(new);
        refuse_updates(&["driverName", "parameters"], new, old, &mut errors);
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
    check_update: |new, old| {
        let mut errors = check_driver_node(new);
        let drivers = At::top(new, "spec").field("drivers");
        for before in At::top(old, "spec").field("drivers").items() {
            for driver in drivers.items().filter(|driver| driver.text_of("name") == before.text_of("name")) {
                if driver.value != before.value {
                    let shown = printed("storage.CSINodeDriver", driver.value);
                    errors.push(FieldError::invalid_printed(&drivers.path, shown, IMMUTABLE));
                }
            }
        }
        errors
    },
    unconditional_update: false,
    ..PLAIN
};

pub(crate) static CAPACITY: Rules = Rules {
    check: check_capacity,
    check_update: |new, old| {
        let mut errors = check_capacity(new);
        let topology = At::top(new, "nodeTopology");
        if Some(topology.value) != old.get("nodeTopology") && (topology.is_set() || old.get("nodeTopology").is_some()) {
            let shown = printed("meta.LabelSelector", topology.value);
            errors.push(FieldError::invalid_printed(&topology.path, shown, IMMUTABLE));
        }
        At::top(new, "storageClassName").check_text_unchanged(&At::top(old, "storageClassName"), &mut errors);
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

/// Fields that may not change, in the words of the classes.
fn refuse_updates(fields: &[&str], new: &Object, old: &Object, errors: &mut Errors) {
    for field in fields.iter().filter(|field| new.get(field) != old.get(field)) {
        errors.push(At::top(new, field).forbidden(format!("updates to {field} are forbidden.")));
    }
}

fn check_class(class: &Object) -> Errors {
    let mut errors = Vec::new();
    check_provisioner(&At::top(class, "provisioner"), &mut errors);
    check_parameters(&At::top(class, "parameters"), &mut errors);
    At::top(class, "reclaimPolicy").check_optional(&["Delete", "Retain"], &mut errors);
    At::top(class, "volumeBindingMode").check_optional(&["Immediate", "WaitForFirstConsumer"], &mut errors);
    check_topologies(&At::top(class, "allowedTopologies"), &mut errors);
    errors
}

fn check_attributes_class(class: &Object) -> Errors {
    let mut errors = Vec::new();
    check_provisioner(&At::top(class, "driverName"), &mut errors);
    let parameters = At::top(class, "parameters");
    check_parameters(&parameters, &mut errors);
    if parameters.is_empty() {
        errors.push(parameters.required("must contain at least one key/value pair"));
    }
    errors
}

fn check_provisioner(provisioner: &At<'_>, errors: &mut Errors) {
    if provisioner.text().is_empty() {
        errors.push(provisioner.required(""));
    } else {
        let lower = provisioner.text().to_lowercase();
        errors.extend(crate::validate::all_invalid(&provisioner.path, &lower, format::qualified_name(&lower)));
    }
}

fn check_parameters(parameters: &At<'_>, errors: &mut Errors) {
    if parameters.len() > 512 {
        errors.push(FieldError::too_long(&parameters.path, 512));
        return;
    }
    for (key, _) in parameters.entries().filter(|(key, _)| key.is_empty()) {
        errors.push(FieldError::invalid(&parameters.path, key, "field can not be empty."));
    }
    let length: usize = parameters.entries().map(|(key, value)| key.len() + value.text().len()).sum();
    if length > 256 * 1024 {
        errors.push(FieldError::too_long(&parameters.path, 256 * 1024));
    }
}

fn check_topologies(terms: &At<'_>, errors: &mut Errors) {
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = vec![BTreeMap::new()];
    for term in terms.items() {
        let mut found = BTreeMap::new();
        for expression in term.field("matchLabelExpressions").items() {
            let (values, key) = (expression.field("values"), expression.field("key"));
            if values.is_empty() {
                errors.push(values.required(""));
            }
            let mut known = BTreeSet::new();
            for value in values.items() {
                if !known.insert(value.text()) {
                    errors.push(value.duplicate());
                }
            }
            errors.extend(key.all_invalid(format::qualified_name(key.text())));
            if found.insert(key.text(), known).is_some() {
                errors.push(key.duplicate());
            }
        }
        if seen.contains(&found) {
            errors.push(FieldError::duplicate(&term.path.child("matchLabelExpressions"), ""));
        }
        seen.push(found);
    }
}

fn check_capacity(capacity: &Object) -> Errors {
    let mut errors = Vec::new();
    selector::check(&At::top(capacity, "nodeTopology"), &mut errors);
    let class = At::top(capacity, "storageClassName");
    errors.extend(class.all_invalid(format::dns_subdomain(class.text())));
    let amount = At::top(capacity, "capacity");
    if quantity::nano_units(amount.text()).is_some_and(|nano| nano < 0) {
        errors.push(amount.invalid("must be greater than or equal to 0"));
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
        let mut keys = BTreeSet::new();
        for key in driver.field("topologyKeys").items() {
            let key = key.called(driver.path.clone());
            if key.text().is_empty() {
                errors.push(key.required(""));
            }
            if !keys.insert(key.text()) {
                errors.push(key.duplicate());
            }
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
    let (volume, node) = (source.field("persistentVolumeName"), spec.field("nodeName"));
    if volume.is_set() && volume.text().is_empty() && !source.has("inlineVolumeSpec") {
        errors.push(volume.required("must specify non empty persistentVolumeName"));
    }
    errors.extend(node.all_invalid(format::dns_subdomain(node.text())));
    check_csi_driver(&spec.field("attacher"), &mut errors);
    if volume.is_set() {
        errors.extend(volume.all_invalid(format::dns_subdomain(volume.text())));
    }
    errors
}
