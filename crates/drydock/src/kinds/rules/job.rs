//! Jobs (`pkg/apis/batch/validation/validation.go`, `pkg/registry/batch/job/strategy.go`).

pub(super) mod cron;
mod policy;
mod status;
mod zone;

use super::fill::{Fields, each, inside, make, or, or_text};
use super::pod::{defaults, template};
use super::{Generation, NameRule, Rules, WITH_STATUS, keep_status};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{self, At, Errors, IMMUTABLE, format, printed, selector};
use serde_json::{Map, Value};

/// The most that an indexed Job has of anything.
const MOST: i64 = 100_000;
/// The most pods at a time, and failed indexes, of an indexed Job beyond [`MOST`] completions.
const MOST_OF_MANY: i64 = 10_000;

const JOB_NAME: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const CONTROLLER: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

pub(crate) static JOB: Rules = Rules {
    generation: Generation::WithSpec,
    default,
    prepare_create,
    prepare_update: |new, old| {
        keep_status(new, old);
        template::drop_disabled(new, &["spec", "template"]);
        forget_placeholders(new);
    },
    check,
    check_update,
    check_status: status::check,
    warnings,
    ..WITH_STATUS
};

fn default(job: &mut Object) {
    let spec = make(job.fields_mut(), "spec");
    default_spec(spec, true);
    let labels = spec.get("template").and_then(|template| template.get("metadata")?.get("labels")).cloned();
    let is_manual = spec.get("manualSelector") == Some(&Value::Bool(true));
    let has_labels = job.labels().next().is_some();
    if let (false, Some(Value::Object(mut labels))) = (has_labels, labels) {
        // The Job also gets the labels that are generated for its template. Until then their place is held, so that
        // these labels can be told from such as the client wrote.
        if !is_manual {
            for key in JOB_NAME.iter().chain(&CONTROLLER) {
                or(&mut labels, key, "");
            }
        }
        job.set(&["metadata", "labels"], labels);
    }
}

/// Defaults of a Job's spec; those of a CronJob's template are fewer.
fn default_spec(spec: &mut Fields, is_job: bool) {
    if is_job {
        if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
            or(spec, "completions", 1);
        }
        or(spec, "parallelism", 1);
        let limit = if spec.contains_key("backoffLimitPerIndex") { i64::from(i32::MAX) } else { 6 };
        or(spec, "backoffLimit", limit);
        or(spec, "completionMode", "NonIndexed");
        or(spec, "suspend", false);
        let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
        or(spec, "podReplacementPolicy", replacement);
        or(spec, "manualSelector", false);
    }
    if let Some(policy) = inside(spec, "podFailurePolicy") {
        each(policy, "rules", |rule| each(rule, "onPodConditions", |pattern| or_text(pattern, "status", "True")));
    }
    defaults::template(make(spec, "template"));
}

fn prepare_create(job: &mut Object) {
    super::clear_status(job);
    template::drop_disabled(job, &["spec", "template"]);
    if job.at(&["spec", "manualSelector"]) == Some(&Value::Bool(true)) {
        return;
    }
    let (name, uid) = (job.name().to_owned(), job.uid().to_owned());
    for path in [&["spec", "template", "metadata", "labels"][..], &["metadata", "labels"]] {
        let is_template = path.len() > 2;
        let generated = JOB_NAME.map(|key| (key, &name)).into_iter().chain(CONTROLLER.map(|key| (key, &uid)));
        for (key, value) in generated {
            let path: Vec<&str> = path.iter().copied().chain([key]).collect();
            let current = job.at(&path).and_then(Value::as_str);
            if (is_template && current.is_none()) || (!is_template && current == Some("")) {
                job.set(&path, value.as_str());
            }
        }
    }
    let path = ["spec", "selector", "matchLabels", CONTROLLER[1]];
    if job.at(&path).is_none() {
        job.set(&path, uid);
    }
    // A Job without labels has those of its template as soon as it is read back, that is if it was not refused.
    let is_right = format::label_value(&name).is_empty();
    let labels = job.at(&["spec", "template", "metadata", "labels"]).cloned();
    let has_labels = job.labels().next().is_some();
    if let (true, false, Some(labels)) = (is_right, has_labels, labels) {
        job.set(&["metadata", "labels"], labels);
    }
}

/// Labels whose place was held and that nobody generated.
fn forget_placeholders(job: &mut Object) {
    for key in JOB_NAME.into_iter().chain(CONTROLLER) {
        let path = ["metadata", "labels", key];
        if job.text(&path).is_empty() && job.at(&["spec", "template", "metadata", "labels", key]).is_none() {
            job.remove(&path);
        }
    }
}

fn check(job: &Object) -> Errors {
    let mut errors = Vec::new();
    check_generated(job, true, &mut errors);
    check_with_selector(&At::top(job, "spec"), &mut errors);
    let completions = job.integer(&["spec", "completions"]).unwrap_or_default();
    if job.text(&["spec", "completionMode"]) == "Indexed" && completions > 0 {
        let last = format!("{}-{}", job.name(), completions - 1);
        if !format::dns_label(&last).is_empty() {
            let name = At::top(job, "metadata").field("name");
            errors.push(name.invalid(format!("will not able to create pod with invalid DNS label: {last}")));
        }
    }
    errors
}

/// The selector and the labels of the template are those that were generated.
fn check_generated(job: &Object, with_prefix: bool, errors: &mut Errors) {
    let spec = At::top(job, "spec");
    let selector = spec.field("selector");
    if spec.field("manualSelector").is_true() || !selector.is_set() {
        return;
    }
    if job.uid().is_empty() {
        errors.push(At::top(job, "metadata").field("uid").required(""));
    }
    let labels = spec.below(&["template", "metadata", "labels"]);
    let mut expected = Map::new();
    let pairs =
        [(CONTROLLER[0], job.uid()), (JOB_NAME[0], job.name()), (CONTROLLER[1], job.uid()), (JOB_NAME[1], job.name())];
    for (key, value) in pairs.into_iter().take(if with_prefix { 4 } else { 2 }) {
        expected.insert(key.to_owned(), Value::from(value));
        let path = labels.path.key(key);
        match labels.value.get(key).and_then(Value::as_str) {
            None => errors.push(FieldError::required(&path, format!("must be '{value}'"))),
            Some(found) if found != value => {
                errors.push(labels.called(path).invalid(format!("must be '{value}'")));
            }
            Some(_) => {}
        }
    }
    if selector::matches(selector.value, Some(&Value::Object(expected))) == Some(false) {
        errors.push(invalid_selector(&selector, "`selector` not auto-generated"));
    }
}

fn invalid_selector(selector: &At<'_>, why: &str) -> FieldError {
    FieldError::invalid_printed(&selector.path, printed("meta.LabelSelector", selector.value), why)
}

/// The spec of a Job, which has a selector.
fn check_with_selector(spec: &At<'_>, errors: &mut Errors) {
    check_spec(spec, errors);
    let selector = spec.field("selector");
    if selector.is_set() {
        selector::check(&selector, errors);
    } else {
        errors.push(selector.required(""));
    }
    template::check_selected(&selector, &spec.field("template"), errors);
}

/// The spec of a Job or of a CronJob's template.
fn check_spec(spec: &At<'_>, errors: &mut Errors) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        spec.field(field).check_not_negative(errors);
    }
    let per_index = spec.field("backoffLimitPerIndex");
    if spec.has("maxFailedIndexes") && !per_index.is_set() {
        errors.push(per_index.required("when maxFailedIndexes is specified"));
    }
    check_manager(&spec.field("managedBy"), errors);
    check_mode(spec, errors);
    if spec.has("podFailurePolicy") {
        policy::check_failure(spec, errors);
    }
    let success = spec.field("successPolicy");
    if success.is_set() {
        if spec.text_of("completionMode") == "Indexed" {
            policy::check_success(spec, errors);
        } else {
            let shown = printed("batch.SuccessPolicy", success.value);
            errors.push(FieldError::invalid_printed(&success.path, shown, "requires indexed completion mode"));
        }
    }
    let replacement = spec.field("podReplacementPolicy");
    let supported: &[&str] =
        if spec.has("podFailurePolicy") { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    replacement.check_optional(supported, errors);
    let template = spec.field("template");
    template::check(&template, errors);
    check_restart(spec, &template.below(&["spec", "restartPolicy"]), errors);
}

fn check_restart(spec: &At<'_>, policy: &At<'_>, errors: &mut Errors) {
    match policy.text() {
        "Always" | "" => errors.push(policy.required("valid values: \"OnFailure\", \"Never\"")),
        "Never" => {}
        "OnFailure" => {
            if spec.has("podFailurePolicy") {
                errors.push(policy.invalid("only \"Never\" is supported when podFailurePolicy is specified"));
            }
        }
        _ => errors.push(policy.not_supported(&["OnFailure", "Never"])),
    }
}

fn check_manager(manager: &At<'_>, errors: &mut Errors) {
    if manager.is_set() {
        manager.check_domain_path(errors);
        if manager.text().len() > 63 {
            errors.push(FieldError::too_long(&manager.path, 63));
        }
    }
}

fn check_mode(spec: &At<'_>, errors: &mut Errors) {
    let mode = spec.field("completionMode");
    mode.check_optional(&["NonIndexed", "Indexed"], errors);
    let (completions, parallelism) = (spec.field("completions"), spec.field("parallelism"));
    let (failed, per_index) = (spec.field("maxFailedIndexes"), spec.field("backoffLimitPerIndex"));
    if mode.text() == "Indexed" {
        if !completions.is_set() {
            errors.push(completions.required("when completion mode is Indexed"));
        }
        let limit = |at: &At<'_>, most: i64, rest: &str, errors: &mut Errors| {
            if at.number().is_some_and(|number| number > most) {
                errors.push(at.invalid(format!("must be less than or equal to {most}{rest}")));
            }
        };
        limit(&parallelism, MOST, " when completion mode is Indexed", errors);
        if let (Some(completions), Some(number)) = (completions.number(), failed.number())
            && number > completions
        {
            errors.push(failed.invalid("must be less than or equal to completions"));
        }
        limit(&failed, MOST, "", errors);
        if completions.number().is_some_and(|number| number > MOST) && per_index.is_set() {
            if !failed.is_set() {
                errors.push(failed.required(format!("must be specified when completions is above {MOST}")));
            }
            let rest = format!(" when completions are above {MOST} and used with backoff limit per index");
            limit(&parallelism, MOST_OF_MANY, &rest, errors);
            limit(&failed, MOST_OF_MANY, &rest, errors);
        }
    }
    if matches!(mode.text(), "" | "NonIndexed") {
        for field in [per_index, failed] {
            if field.is_set() {
                errors.push(field.invalid("requires indexed completion mode"));
            }
        }
    }
}

fn check_update(new: &Object, old: &Object) -> Errors {
    let mut errors = validate::metadata(new, NameRule::Subdomain, true);
    errors.extend(validate::standard_finalizers(new));
    let had = |key: &str| old.at(&["spec", "template", "metadata", "labels", key]).is_some();
    let mut own = Vec::new();
    check_generated(new, had(JOB_NAME[1]) && had(CONTROLLER[1]), &mut own);
    let (spec, old_spec) = (At::top(new, "spec"), At::top(old, "spec"));
    check_with_selector(&spec, &mut own);
    errors.extend(own);
    check_with_selector(&spec, &mut errors);
    check_completions(&spec, &old_spec, &mut errors);
    let unchanged = |field: &str, type_name: &str, errors: &mut Errors| {
        let now = spec.field(field);
        if now.value != old_spec.field(field).value {
            errors.push(FieldError::invalid_printed(&now.path, printed(type_name, now.value), IMMUTABLE));
        }
    };
    unchanged("selector", "meta.LabelSelector", &mut errors);
    check_template(&spec, &old_spec, old, &mut errors);
    unchanged("completionMode", "", &mut errors);
    unchanged("podFailurePolicy", "batch.PodFailurePolicy", &mut errors);
    unchanged("backoffLimitPerIndex", "", &mut errors);
    unchanged("managedBy", "", &mut errors);
    unchanged("successPolicy", "batch.SuccessPolicy", &mut errors);
    errors
}

fn check_completions(spec: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (now, before) = (spec.field("completions"), old.field("completions"));
    if spec.text_of("completionMode") != "Indexed" {
        now.check_unchanged(&before, errors);
    } else if now.value != before.value && now.is_set() && now.value != spec.field("parallelism").value {
        errors.push(now.invalid("can only be modified in tandem with spec.parallelism"));
    }
}

/// A template does not change, but for where its pods run while the Job is suspended and has not started.
fn check_template(spec: &At<'_>, old_spec: &At<'_>, old: &Object, errors: &mut Errors) {
    let template = spec.field("template");
    let mut before = old_spec.field("template").value.clone();
    let waits = old_spec.field("suspend").is_true() && old.text(&["status", "startTime"]).is_empty();
    if waits {
        take_directives(&mut before, template.value);
    }
    if template.value != &before {
        let shown = printed("core.PodTemplateSpec", template.value);
        errors.push(FieldError::invalid_printed(&template.path, shown, IMMUTABLE));
    }
}

fn take_directives(before: &mut Value, now: &Value) {
    let carry = |before: &mut Value, part: &str, fields: &[&str]| {
        let Some(to) = before.get_mut(part).and_then(Value::as_object_mut) else { return };
        for field in fields {
            match now.get(part).and_then(|from| from.get(field)) {
                Some(value) => to.insert((*field).to_owned(), value.clone()),
                None => to.remove(*field),
            };
        }
    };
    carry(before, "metadata", &["labels", "annotations"]);
    carry(before, "spec", &["nodeSelector", "tolerations", "schedulingGates"]);
    let nodes = |value: &Value| value.get("affinity").and_then(|affinity| affinity.get("nodeAffinity")).cloned();
    let now_spec = now.get("spec").unwrap_or(&Value::Null);
    let Some(spec) = before.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let has_affinity = now_spec.get("affinity").is_some();
    if has_affinity || spec.contains_key("affinity") {
        let affinity = make(spec, "affinity");
        match nodes(now_spec) {
            Some(nodes) => affinity.insert("nodeAffinity".to_owned(), nodes),
            None => affinity.remove("nodeAffinity"),
        };
        if affinity.is_empty() && !has_affinity {
            spec.remove("affinity");
        }
    }
}

fn warnings(job: &Object, old: Option<&Object>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() {
        warnings.extend(name_warning(job.name()));
    }
    if old.is_none_or(|old| old.get("spec") != job.get("spec")) {
        warnings.extend(spec_warnings(&At::top(job, "spec")));
    }
    warnings
}

pub(super) fn name_warning(name: &str) -> Option<String> {
    let messages = format::dns_label(name);
    (!messages.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [{}]",
            messages.join(" ")
        )
    })
}

fn spec_warnings(spec: &At<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let over = |field: &str, most: i64| spec.field(field).number().is_some_and(|number| number > most);
    if spec.text_of("completionMode") == "Indexed" && over("completions", MOST) && over("parallelism", MOST_OF_MANY) {
        warnings.push(format!("{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail", spec.path));
    }
    warnings.extend(template::warnings_at(&spec.field("template")));
    warnings
}
