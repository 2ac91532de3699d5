//! What a Job makes of failed pods, and when it has succeeded.

use super::status::parse_indexes;
use crate::field::FieldError;
use crate::validate::{At, Errors, format};
use std::collections::BTreeSet;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const RULES: usize = 20;

/// `podFailurePolicy`.
pub(super) fn check_failure(spec: &At<'_>, errors: &mut Errors) {
    let rules = spec.below(&["podFailurePolicy", "rules"]);
    if rules.len() > RULES {
        errors.push(FieldError::too_many(&rules.path, rules.len(), RULES));
    }
    let pod = spec.below(&["template", "spec"]);
    let containers: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| pod.field(list).items().map(|container| container.text_of("name")).collect::<Vec<_>>())
        .collect();
    for rule in rules.items() {
        check_action(&rule.field("action"), spec.has("backoffLimitPerIndex"), errors);
        let (codes, conditions) = (rule.field("onExitCodes"), rule.field("onPodConditions"));
        if codes.is_set() {
            check_codes(&codes, &containers, errors);
        }
        check_conditions(&conditions, errors);
        let why = match (codes.is_set(), !conditions.is_empty()) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        errors.push(FieldError::invalid_omitted(&rule.path, why));
    }
}

fn check_action(action: &At<'_>, counts_per_index: bool, errors: &mut Errors) {
    match action.text() {
        "" => errors.push(action.required(format!("valid values: {}", quoted(&ACTIONS)))),
        "FailIndex" if !counts_per_index => {
            errors.push(action.invalid("requires the backoffLimitPerIndex to be set"));
        }
        other if !ACTIONS.contains(&other) => errors.push(action.not_supported(&ACTIONS)),
        _ => {}
    }
}

/// A list as Go prints one.
fn quoted(texts: &[&str]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}

fn check_codes(codes: &At<'_>, containers: &BTreeSet<&str>, errors: &mut Errors) {
    const OPERATORS: [&str; 2] = ["In", "NotIn"];
    let operator = codes.field("operator");
    if operator.text().is_empty() {
        errors.push(operator.required(format!("valid values: {}", quoted(&OPERATORS))));
    } else if !OPERATORS.contains(&operator.text()) {
        errors.push(operator.not_supported(&OPERATORS));
    }
    let name = codes.field("containerName");
    if name.is_set() && !containers.contains(name.text()) {
        errors.push(name.invalid("must be one of the container or initContainer names in the pod template"));
    }
    let values = codes.field("values");
    if values.is_empty() {
        errors.push(values.invalid("at least one value is required"));
    } else if values.len() > 255 {
        errors.push(FieldError::too_many(&values.path, values.len(), 255));
    }
    let mut seen = BTreeSet::new();
    let mut highest = i64::MIN;
    let mut ordered = true;
    for value in values.items() {
        let number = value.number().unwrap_or_default();
        if operator.text() == "In" && number == 0 {
            errors.push(FieldError::invalid(&value.path, number, "must not be 0 for the In operator"));
        }
        if !seen.insert(number) {
            errors.push(FieldError::duplicate(&value.path, number));
        }
        ordered &= highest <= number;
        highest = number;
    }
    if !ordered {
        errors.push(values.invalid("must be ordered"));
    }
}

fn check_conditions(conditions: &At<'_>, errors: &mut Errors) {
    const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
    if conditions.len() > RULES {
        errors.push(FieldError::too_many(&conditions.path, conditions.len(), RULES));
    }
    for pattern in conditions.items() {
        let (kind, status) = (pattern.field("type"), pattern.field("status"));
        errors.extend(kind.all_invalid(format::qualified_name(kind.text())));
        if status.text().is_empty() {
            errors.push(status.required(format!("valid values: {}", quoted(&STATUSES))));
        } else if !STATUSES.contains(&status.text()) {
            errors.push(status.not_supported(&STATUSES));
        }
    }
}

/// `successPolicy`.
pub(super) fn check_success(spec: &At<'_>, errors: &mut Errors) {
    let rules = spec.below(&["successPolicy", "rules"]);
    let completions = spec.field("completions").number().unwrap_or_default();
    if rules.is_empty() {
        errors.push(rules.required("at least one rules must be specified when the successPolicy is specified"));
    }
    if rules.len() > RULES {
        errors.push(FieldError::too_many(&rules.path, rules.len(), RULES));
    }
    for rule in rules.items() {
        let (indexes, count) = (rule.field("succeededIndexes"), rule.field("succeededCount"));
        if !indexes.is_set() && !count.is_set() {
            errors.push(rule.required("at least one of succeededCount or succeededIndexes must be specified"));
        }
        let mut total = 0;
        if indexes.is_set() {
            if indexes.text().len() > 64 * 1024 {
                errors.push(FieldError::too_long(&indexes.path, 64 * 1024));
            }
            match parse_indexes(indexes.text(), completions) {
                Ok(parsed) => total = parsed.iter().map(|(first, last)| last - first + 1).sum(),
                Err(why) => errors.push(indexes.invalid(format!("error parsing succeededIndexes: {why}"))),
            }
        }
        count.check_not_negative(errors);
        let number = count.number().unwrap_or_default();
        if count.is_set() && number > completions {
            let why = format!("must be less than or equal to {completions} (the number of specified completions)");
            errors.push(count.invalid(why));
        }
        if count.is_set() && indexes.is_set() && number > total {
            let why = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            errors.push(count.invalid(why));
        }
    }
}
