//! CronJobs.

use super::super::fill::{make, or, or_text};
use super::super::pod::template;
use super::super::{Generation, Rules, WITH_STATUS, clear_status, keep_status};
use super::{check_spec, default_spec, invalid_selector, name_warning, spec_warnings, zone};
use crate::object::Object;
use crate::validate::{At, Errors};
use jobwright_cron::Schedule;

const TEMPLATE: [&str; 4] = ["spec", "jobTemplate", "spec", "template"];
/// What a name may have, for the names of Jobs add a time to it.
const NAME_LENGTH: usize = 52;

pub(crate) static CRON_JOB: Rules = Rules {
    generation: Generation::WithSpec,
    default,
    prepare_create: |cron| {
        clear_status(cron);
        template::drop_disabled(cron, &TEMPLATE);
    },
    prepare_update: |new, old| {
        keep_status(new, old);
        template::drop_disabled(new, &TEMPLATE);
    },
    check: |cron| {
        let mut errors = check_cron(cron, None);
        if cron.name().len() > NAME_LENGTH {
            errors.push(At::top(cron, "metadata").field("name").invalid("must be no more than 52 characters"));
        }
        errors
    },
    check_update: |new, old| check_cron(new, Some(old)),
    warnings,
    ..WITH_STATUS
};

fn default(cron: &mut Object) {
    let spec = make(cron.fields_mut(), "spec");
    or_text(spec, "concurrencyPolicy", "Allow");
    or(spec, "suspend", false);
    or(spec, "successfulJobsHistoryLimit", 3);
    or(spec, "failedJobsHistoryLimit", 1);
    default_spec(make(make(spec, "jobTemplate"), "spec"), false);
}

fn check_cron(cron: &Object, old: Option<&Object>) -> Errors {
    let mut errors = Vec::new();
    let spec = At::top(cron, "spec");
    let when = spec.field("schedule");
    if when.text().is_empty() {
        errors.push(when.required(""));
    } else {
        let had_zone = old.is_some_and(|old| old.text(&["spec", "schedule"]).contains("TZ"));
        check_schedule(&when, had_zone, spec.has("timeZone"), &mut errors);
    }
    spec.field("startingDeadlineSeconds").check_not_negative(&mut errors);
    let named = spec.field("timeZone");
    if named.is_set() && old.is_none_or(|old| old.at(&["spec", "timeZone"]) != Some(named.value)) {
        errors.extend(named.all_invalid(zone::check(named.text())));
    }
    spec.field("concurrencyPolicy").check_one_of(&["Allow", "Forbid", "Replace"], &mut errors);
    check_template(&spec.below(&["jobTemplate", "spec"]), &mut errors);
    spec.field("successfulJobsHistoryLimit").check_not_negative(&mut errors);
    spec.field("failedJobsHistoryLimit").check_not_negative(&mut errors);
    errors
}

fn check_schedule(when: &At<'_>, had_zone: bool, has_zone_field: bool, errors: &mut Errors) {
    if let Err(why) = when.text().parse::<Schedule>() {
        errors.push(when.invalid(why.to_string()));
    }
    if !when.text().contains("TZ") {
        return;
    }
    if !had_zone {
        errors.push(when.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
    } else if has_zone_field {
        errors.push(when.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
    }
}

fn check_template(spec: &At<'_>, errors: &mut Errors) {
    check_spec(spec, errors);
    let selector = spec.field("selector");
    if selector.is_set() {
        errors.push(invalid_selector(&selector, "`selector` will be auto-generated"));
    }
    let manual = spec.field("manualSelector");
    if manual.is_true() {
        errors.push(manual.not_supported(&["nil", "false"]));
    }
}

fn warnings(cron: &Object, old: Option<&Object>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() {
        warnings.extend(name_warning(cron.name()));
    }
    if old.is_none_or(|old| old.get("spec") != cron.get("spec")) {
        warnings.extend(spec_warnings(&At::top(cron, "spec").below(&["jobTemplate", "spec"])));
    }
    if old.is_some() && cron.text(&["spec", "schedule"]).contains("TZ") {
        warnings.push("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details".to_owned());
    }
    warnings
}
