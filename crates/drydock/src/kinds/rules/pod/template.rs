//! Pod templates, which seven kinds have.

use super::super::fill::{Fields, inside};
use super::{defaults, spec, warnings};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{At, Errors, annotations, labels, selector};

/// Takes away what belongs to features that are off, in the template at a path.
pub(in super::super) fn drop_disabled(object: &mut Object, path: &[&str]) {
    let mut fields: Option<&mut Fields> = Some(object.fields_mut());
    for name in path.iter().chain(&["spec"]) {
        fields = fields.and_then(|fields| inside(fields, name));
    }
    if let Some(spec) = fields {
        defaults::drop_disabled(spec);
    }
}

/// What is wrong with a template.
pub(in super::super) fn check(template: &At<'_>, errors: &mut Errors) {
    let metadata = template.field("metadata");
    // The server says these without `metadata`.
    labels(&metadata.field("labels").called(template.path.child("labels")), errors);
    let notes = metadata.field("annotations").called(template.path.child("annotations"));
    annotations(&notes, errors);
    let pod_spec = template.field("spec");
    spec::check_annotations(&notes, &pod_spec, errors);
    spec::check(&pod_spec, None, errors);
    if !pod_spec.field("ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        errors.push(pod_spec.field("ephemeralContainers").forbidden(why));
    }
}

/// The selector of a controller selects the pods that its template makes.
pub(in super::super) fn check_selected(selector: &At<'_>, template: &At<'_>, errors: &mut Errors) {
    let labels = template.below(&["metadata", "labels"]);
    if selector::matches(selector.value, Some(labels.value)) == Some(false) {
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
}

/// Pods that run for ever are restarted and have no deadline.
pub(in super::super) fn check_runs_for_ever(template: &At<'_>, kind: &str, errors: &mut Errors) {
    let policy = template.below(&["spec", "restartPolicy"]);
    if policy.text() != "Always" {
        errors.push(FieldError::not_supported(&policy.path, policy.text(), &["Always"]));
    }
    let deadline = template.below(&["spec", "activeDeadlineSeconds"]);
    if deadline.is_set() {
        errors.push(deadline.forbidden(format!("activeDeadlineSeconds in {kind} is not Supported")));
    }
}

/// What the client is warned of in the template at a path.
pub(in super::super) fn warnings(new: &Object, _old: Option<&Object>, path: &[&str]) -> Vec<String> {
    let Some((first, rest)) = path.split_first() else { return Vec::new() };
    warnings_at(&At::top(new, first).below(rest))
}

/// What the client is warned of in a template.
pub(in super::super) fn warnings_at(template: &At<'_>) -> Vec<String> {
    warnings::of_template(template)
}
