//! From client-side to server-side apply: `kubectl` may take what its annotation says it applied, and the annotation
//! follows (apimachinery v0.34 `managedfields/internal/lastapplied*.go`).

use crate::object::Object;
use crate::patch::fields::FieldSet;
use crate::patch::managers::{Conflict, Write};
use crate::patch::typed::{Duplicates, Type, compare, field_set, filled, validate};
use serde_json::{Value, json};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The only manager that is treated so.
const KUBECTL: &str = "kubectl";
/// All annotations of an object together (apimachinery v0.34 `api/validation/objectmeta.go`).
const LARGEST_ANNOTATIONS: usize = 256 * 1024;

/// Excuses conflicts over fields that still are as the annotation says; gives back the others.
pub(super) fn excuse(write: &Write<'_>, live: &Value, conflicts: Vec<Conflict>) -> Result<(), Vec<Conflict>> {
    let Some(excused) = applied_fields(write, live) else { return Err(conflicts) };
    let rest: Vec<Conflict> = conflicts.into_iter().filter(|conflict| !excused.contains(&conflict.path)).collect();
    if rest.is_empty() { Ok(()) } else { Err(rest) }
}

fn applied_fields(write: &Write<'_>, live: &Value) -> Option<FieldSet> {
    if write.manager.name != KUBECTL {
        return None;
    }
    let annotation = live.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    let last: Value = serde_json::from_str(annotation).ok()?;
    if last.get("apiVersion")?.as_str()? != write.manager.api_version {
        return None;
    }
    let root = Type::of(write.schema);
    validate(root, live, Duplicates::Refused).ok()?;
    validate(root, &last, Duplicates::Refused).ok()?;
    let changes = compare(root, &last, &filled(write.schema, live));
    Some(field_set(root, &last).difference(&changes.set().union(&changes.removed)))
}

/// Writes the configuration into the annotation, if there is one.
pub(super) fn renew(write: &Write<'_>, applied: &Object, object: &mut Object) {
    if write.manager.name != KUBECTL || object.annotation(ANNOTATION).is_none_or(str::is_empty) {
        return;
    }
    let mut configuration = applied.clone();
    configuration.remove(&["metadata", "annotations", ANNOTATION]);
    let text = format!("{}\n", configuration.into_value());
    object.set(&["metadata", "annotations", ANNOTATION], json!(text));
    let size: usize = crate::object::strings(object.at(&["metadata", "annotations"]))
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if size > LARGEST_ANNOTATIONS {
        object.remove(&["metadata", "annotations", ANNOTATION]);
    }
}
