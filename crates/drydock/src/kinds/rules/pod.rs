//! Pods and pod templates (`pkg/apis/core/validation/validation.go`, `pkg/registry/core/pod/strategy.go`).

mod container;
pub(super) mod defaults;
mod environment;
mod image;
pub(super) mod probe;
pub(super) mod resources;
pub(super) mod scheduling;
mod security;
mod spec;
pub(super) mod template;
mod update;
pub(super) mod volume;
mod warnings;

use super::fill::make;
use super::{Generation, PLAIN, Rules};
use crate::object::Object;
use crate::validate::{At, Errors};
use serde_json::{Value, json};

pub(crate) static POD: Rules = Rules {
    generation: Generation::WithSpec,
    default: |pod| defaults::pod(pod.fields_mut()),
    prepare_create,
    prepare_update,
    prepare_status: update::prepare_status,
    check,
    check_update: update::check,
    check_status: update::check_status,
    warnings: warnings::of_pod,
    ..PLAIN
};

pub(crate) static POD_TEMPLATE: Rules = Rules {
    generation: Generation::WithContent,
    default: |object| defaults::template(make(object.fields_mut(), "template")),
    prepare_create: |object| template::drop_disabled(object, &["template"]),
    prepare_update: |object, _| template::drop_disabled(object, &["template"]),
    check: check_template,
    check_update: |new, _| check_template(new),
    warnings: |new, old| template::warnings(new, old, &["template"]),
    ..PLAIN
};

fn check_template(object: &Object) -> Errors {
    let mut errors = Vec::new();
    template::check(&At::top(object, "template"), &mut errors);
    errors
}

fn prepare_create(pod: &mut Object) {
    let labels = pod.at(&["metadata", "labels"]).cloned().unwrap_or_default();
    let now = pod.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or_default();
    let spec = make(pod.fields_mut(), "spec");
    let quality = resources::quality(spec);
    let is_gated = spec.get("schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty());
    defaults::drop_disabled(spec);
    scheduling::merge_label_keys(spec, &labels);
    let mut status = json!({"phase": "Pending", "qosClass": quality});
    if is_gated {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastTransitionTime": now,
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    pod.set(&["status"], status);
}

fn prepare_update(new: &mut Object, old: &Object) {
    super::keep_status(new, old);
    defaults::drop_disabled(make(new.fields_mut(), "spec"));
}

fn check(pod: &Object) -> Errors {
    let mut errors = Vec::new();
    spec::check_pod(pod, &mut errors);
    let spec = At::top(pod, "spec");
    if !spec.field("ephemeralContainers").is_empty() {
        errors.push(spec.field("ephemeralContainers").forbidden("cannot be set on create"));
    }
    if !spec.text_of("nodeName").is_empty() && !spec.field("schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.push(spec.field("nodeName").forbidden(why));
    }
    errors
}
