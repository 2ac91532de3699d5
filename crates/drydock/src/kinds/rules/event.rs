//! Events, in the words of the core group and of their own.

use super::{NameRule, PLAIN, Rules};
use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::validate::{self, At, Errors, format};

pub(crate) static EVENT: Rules = Rules {
    name: NameRule::Late,
    check: |event| check_common(event, &OLD),
    check_update: |new, _| check_common(new, &OLD),
    standard_finalizers: false,
    create_on_update: true,
    ..PLAIN
};

pub(crate) static NEW_EVENT: Rules = Rules {
    check: |event| {
        let mut errors = check_common(event, &NEW);
        errors.extend(check_new(event));
        errors
    },
    check_update: |new, old| {
        let mut errors = check_common(new, &NEW);
        for (field, shown) in [
            ("regarding", "involvedObject"),
            ("reason", "reason"),
            ("note", "message"),
            ("type", "type"),
            ("eventTime", "eventTime"),
            ("action", "action"),
            ("related", "related"),
            ("reportingController", "reportingController"),
            ("reportingInstance", "reportingInstance"),
        ] {
            At::top(new, field).called(Path::new(shown)).check_unchanged(&At::top(old, field), &mut errors);
        }
        errors
    },
    create_on_update: true,
    ..PLAIN
};

/// What fields are called.
struct Words {
    object: &'static str,
    controller: &'static str,
    message: &'static str,
}

const OLD: Words = Words { object: "involvedObject", controller: "reportingComponent", message: "message" };
const NEW: Words = Words { object: "regarding", controller: "reportingController", message: "note" };

fn check_common(event: &Object, words: &Words) -> Errors {
    let mut errors = Vec::new();
    let namespace = event.namespace();
    let of_object = event.text(&[words.object, "namespace"]);
    let is_new = !event.text(&["eventTime"]).is_empty();
    let fits = if is_new {
        !of_object.is_empty() || matches!(namespace, "default" | "kube-system")
    } else if of_object.is_empty() {
        matches!(namespace, "" | "default")
    } else {
        namespace == of_object
    };
    if !fits {
        let path = Path::new("involvedObject").child("namespace");
        errors.push(FieldError::invalid(&path, of_object, "does not match event.namespace"));
    }
    if is_new {
        check_new_fields(event, words, &mut errors);
    }
    errors.extend(validate::all_invalid(&Path::new("namespace"), namespace, format::dns_subdomain(namespace)));
    errors
}

fn check_new_fields(event: &Object, words: &Words, errors: &mut Errors) {
    let controller = At::top(event, words.controller);
    if controller.text().is_empty() {
        errors.push(controller.required(""));
    }
    errors.extend(controller.all_invalid(format::qualified_name(controller.text())));
    for (field, shown, limit) in [
        ("reportingInstance", "reportingInstance", 128),
        ("action", "action", 128),
        ("reason", "reason", 128),
        (words.message, "message", 1024),
    ] {
        let text = event.text(&[field]);
        let path = Path::new(shown);
        if text.is_empty() && limit == 128 {
            errors.push(FieldError::required(&path, ""));
        }
        if text.len() > limit {
            errors.push(FieldError::invalid(&path, "", format!("can have at most {limit} characters")));
        }
    }
}

fn check_new(event: &Object) -> Errors {
    let mut errors = validate::metadata(event, NameRule::Subdomain, true);
    if event.at(&["series"]).is_some() {
        if event.integer(&["series", "count"]).unwrap_or_default() < 2 {
            errors.push(FieldError::invalid(&Path::new("series.count"), "", "should be at least 2"));
        }
        if event.text(&["series", "lastObservedTime"]).is_empty() {
            errors.push(FieldError::required(&Path::new("series.lastObservedTime"), ""));
        }
    }
    if event.text(&["eventTime"]).is_empty() {
        errors.push(FieldError::required(&Path::new("eventTime"), ""));
    }
    let kind = event.text(&["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid(&Path::new("type"), "", format!("has invalid value: {kind}")));
    }
    for (field, shown) in [("deprecatedFirstTimestamp", "firstTimestamp"), ("deprecatedLastTimestamp", "lastTimestamp")]
    {
        if !event.text(&[field]).is_empty() {
            errors.push(FieldError::invalid(&Path::new(shown), "", "needs to be unset"));
        }
    }
    if event.integer(&["deprecatedCount"]).unwrap_or_default() != 0 {
        errors.push(FieldError::invalid(&Path::new("count"), "", "needs to be unset"));
    }
    if !event.text(&["deprecatedSource", "component"]).is_empty() {
        errors.push(FieldError::invalid(&Path::new("source"), "", "needs to be unset"));
    }
    errors
}
