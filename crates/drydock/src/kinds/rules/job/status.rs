//! The status of a Job, which is judged so strictly that only a real controller can write it.

use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::validate::{At, Errors, IMMUTABLE};
use serde_json::Value;
use std::collections::BTreeSet;

/// Intervals of indexes: `1,3-5`.
pub(super) fn parse_indexes(text: &str, completions: i64) -> Result<Vec<(i64, i64)>, String> {
    let mut intervals: Vec<(i64, i64)> = Vec::new();
    if text.is_empty() {
        return Ok(intervals);
    }
    for part in text.split(',') {
        let (first, last) = parse_interval(part, completions)?;
        if let Some((_, before)) = intervals.last()
            && *before >= first
        {
            return Err(format!("non-increasing order, previous: {before}, current: {first}"));
        }
        intervals.push((first, last));
    }
    Ok(intervals)
}

fn parse_interval(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let limits: Vec<&str> = part.split('-').collect();
    let index = |text: &str| {
        let number: i64 = text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if number >= completions { Err(format!("too large index: {text:?}")) } else { Ok(number) }
    };
    match limits.as_slice() {
        [one] => index(one).map(|one| (one, one)),
        [first, last] => {
            let (first, last) = (index(first)?, index(last)?);
            if first >= last {
                return Err(format!("non-increasing order, previous: {first}, current: {last}"));
            }
            Ok((first, last))
        }
        _ => Err(format!(
            "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        )),
    }
}

/// What of a status changed, as far as rules ask for it.
struct Change<'a> {
    new: &'a Object,
    old: &'a Object,
}

impl Change<'_> {
    fn has(object: &Object, condition: &str) -> bool {
        object
            .list(&["status", "conditions"])
            .iter()
            .any(|found| found["type"] == condition && found["status"] == "True")
    }

    fn is(&self, condition: &str) -> bool {
        Self::has(self.new, condition)
    }

    fn was(&self, condition: &str) -> bool {
        Self::has(self.old, condition)
    }

    fn turned(&self, condition: &str) -> bool {
        self.is(condition) != self.was(condition)
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn finished_turned(&self) -> bool {
        self.is_finished() != (self.was("Complete") || self.was("Failed"))
    }

    fn differs(&self, field: &str) -> bool {
        self.new.at(&["status", field]) != self.old.at(&["status", field])
    }

    fn count(&self, field: &str) -> i64 {
        self.new.integer(&["status", field]).unwrap_or_default()
    }

    fn counted(&self, field: &str) -> i64 {
        self.old.integer(&["status", field]).unwrap_or_default()
    }
}

/// A change through `/status`.
pub(super) fn check(new: &Object, old: &Object) -> Errors {
    let change = Change { new, old };
    let status = At::top(new, "status");
    let mut errors = Vec::new();
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        status.field(field).check_not_negative(&mut errors);
    }
    check_uncounted(&status.field("uncountedTerminatedPods"), &mut errors);
    check_end(&change, &status, &mut errors);
    check_finished(&change, &status, &mut errors);
    check_indexes(&change, &status, &mut errors);
    let terminating = status.field("terminating");
    if (change.finished_turned() || change.differs("terminating"))
        && change.count("terminating") > 0
        && change.is_finished()
    {
        errors.push(terminating.invalid("terminating>0 is invalid for finished job"));
    }
    let ready = status.field("ready");
    if (change.differs("ready") || change.differs("active")) && change.count("ready") > change.count("active") {
        errors.push(ready.invalid("cannot set more ready pods than active"));
    }
    for other in ["Failed", "FailureTarget"] {
        if change.is("SuccessCriteriaMet") && change.is(other) {
            refuse(&status, format!("cannot set SuccessCriteriaMet=True and {other}=true conditions"), &mut errors);
        }
    }
    if new.at(&["spec", "successPolicy"]).is_some() && !change.is("SuccessCriteriaMet") && change.is("Complete") {
        refuse(
            &status,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True".to_owned(),
            &mut errors,
        );
    }
    check_progress(&change, &status, &mut errors);
    errors
}

fn refuse(status: &At<'_>, why: String, errors: &mut Errors) {
    errors.push(FieldError::invalid_omitted(&status.path.child("conditions"), why));
}

fn check_uncounted(pods: &At<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        for uid in pods.field(list).items() {
            if uid.text().is_empty() {
                errors.push(uid.invalid("must not be empty"));
            } else if !seen.insert(uid.text()) {
                errors.push(uid.duplicate());
            }
        }
    }
}

/// Conditions and times that go together when a Job ends.
fn check_end(change: &Change<'_>, status: &At<'_>, errors: &mut Errors) {
    let completion = status.field("completionTime");
    let start = status.text_of("startTime");
    let completed = change.turned("Complete") || change.differs("completionTime");
    if (change.turned("Complete") || change.turned("Failed")) && change.is("Complete") && change.is("Failed") {
        refuse(status, "cannot set Complete=True and Failed=true conditions".to_owned(), errors);
    }
    if (change.turned("Complete") || change.turned("FailureTarget"))
        && change.is("Complete")
        && change.is("FailureTarget")
    {
        refuse(status, "cannot set Complete=True and FailureTarget=true conditions".to_owned(), errors);
    }
    if completed && completion.is_set() && !change.is("Complete") {
        errors.push(completion.invalid("cannot set completionTime when there is no Complete=True condition"));
    }
    if completed && !completion.is_set() && change.is("Complete") {
        errors.push(completion.required("completionTime is required for Complete jobs"));
    }
    // Times are in one zone and of one length, and so their texts are in order.
    if (change.differs("startTime") || change.differs("completionTime"))
        && !start.is_empty()
        && completion.is_set()
        && completion.text() < start
    {
        errors.push(completion.invalid("must be equal to or after `startTime`"));
    }
    if (change.turned("Failed") || change.differs("failedIndexes"))
        && change.is("Failed")
        && !change.is("FailureTarget")
    {
        refuse(status, "cannot set Failed=True condition without the FailureTarget=true condition".to_owned(), errors);
    }
    if (change.turned("Complete") || change.turned("SuccessCriteriaMet"))
        && change.is("Complete")
        && !change.is("SuccessCriteriaMet")
    {
        refuse(
            status,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition".to_owned(),
            errors,
        );
    }
}

/// A finished Job has nothing that still runs.
fn check_finished(change: &Change<'_>, status: &At<'_>, errors: &mut Errors) {
    if !change.is_finished() {
        return;
    }
    let turned = change.finished_turned();
    if (turned || change.differs("active")) && change.count("active") > 0 {
        errors.push(status.field("active").invalid("active>0 is invalid for finished job"));
    }
    let is_empty_and_suspended = change.new.at(&["spec", "suspend"]) == Some(&Value::Bool(true))
        && change.new.integer(&["spec", "completions"]) == Some(0);
    let start = status.field("startTime");
    if (turned || change.differs("startTime")) && !is_empty_and_suspended && !start.is_set() {
        errors.push(start.required("startTime is required for finished job"));
    }
    let pods = status.field("uncountedTerminatedPods");
    let uncounted = pods.field("failed").len() + pods.field("succeeded").len();
    if (turned || change.differs("uncountedTerminatedPods")) && uncounted > 0 {
        let shown = crate::validate::printed("batch.UncountedTerminatedPods", pods.value);
        errors.push(FieldError::invalid_printed(&pods.path, shown, "must be empty for finished job"));
    }
}

fn check_indexes(change: &Change<'_>, status: &At<'_>, errors: &mut Errors) {
    let spec = At::top(change.new, "spec");
    let (completed, failed) = (status.field("completedIndexes"), status.field("failedIndexes"));
    let completions = spec.field("completions").number();
    let (completed_differ, failed_differ) = (change.differs("completedIndexes"), change.differs("failedIndexes"));
    if let (true, Some(completions)) = (completed_differ, completions)
        && let Err(why) = parse_indexes(completed.text(), completions)
    {
        errors.extend(completed.all_invalid(vec![format!("error parsing completedIndexes: {why}")]));
    }
    if let (true, Some(completions), true, true) =
        (failed_differ, completions, spec.has("backoffLimitPerIndex"), failed.is_set())
        && let Err(why) = parse_indexes(failed.text(), completions)
    {
        errors.push(failed.invalid(format!("error parsing failedIndexes: {why}")));
    }
    if completed_differ && !completed.text().is_empty() && spec.text_of("completionMode") != "Indexed" {
        errors.push(completed.invalid("cannot set non-empty completedIndexes when non-indexed completion mode"));
    }
    if failed_differ && failed.is_set() && !spec.has("backoffLimitPerIndex") {
        errors.push(failed.invalid("cannot set non-null failedIndexes when backoffLimitPerIndex is null"));
    }
    if let (true, Some(completions), true) = (completed_differ || failed_differ, completions, failed.is_set())
        && let Some(index) = overlap(completed.text(), failed.text(), completions)
    {
        errors.push(failed.invalid(format!("failedIndexes and completedIndexes overlap at index: {index}")));
    }
}

/// The first index that is in both; what cannot be read is passed over.
fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|part| parse_interval(part, completions).ok()).collect()
    };
    let failed = intervals(failed);
    let common = |(first, last): (i64, i64)| {
        failed.iter().find(|(other, end)| first <= *end && *other <= last).map(|(other, _)| first.max(*other))
    };
    intervals(completed).into_iter().find_map(common)
}

/// What has happened has happened.
fn check_progress(change: &Change<'_>, status: &At<'_>, errors: &mut Errors) {
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if change.was(condition) && !change.is(condition) {
            refuse(status, format!("cannot disable the terminal {condition}=True condition"), errors);
        }
    }
    let spec = |field: &str| change.new.at(&["spec", field]);
    let may_shrink =
        spec("completionMode") == Some(&Value::from("Indexed")) && spec("completions") == spec("parallelism");
    for (field, applies) in [("failed", true), ("succeeded", !may_shrink)] {
        if applies && change.count(field) < change.counted(field) {
            let path: Path = status.path.child(field);
            let why = format!("cannot decrease the {field} counter");
            errors.push(FieldError::invalid(&path, change.count(field), why));
        }
    }
    let completion = status.field("completionTime");
    let had_completion = !change.old.text(&["status", "completionTime"]).is_empty();
    if completion.is_set() && had_completion && change.differs("completionTime") {
        errors.push(completion.invalid(IMMUTABLE));
    }
    let resumes = change.was("Suspended")
        && change
            .new
            .list(&["status", "conditions"])
            .iter()
            .any(|found| found["type"] == "Suspended" && found["status"] == "False");
    let had_start = !change.old.text(&["status", "startTime"]).is_empty();
    let is_suspended = spec("suspend") == Some(&Value::Bool(true));
    if change.differs("startTime") && !resumes && had_start && !is_suspended {
        errors.push(status.field("startTime").required("startTime cannot be removed for unsuspended job"));
    }
    if change.was("SuccessCriteriaMet") && !change.is("SuccessCriteriaMet") {
        refuse(status, "cannot disable the SuccessCriteriaMet=True condition".to_owned(), errors);
    }
    if change.was("Complete") && !change.was("SuccessCriteriaMet") && change.is("SuccessCriteriaMet") {
        refuse(
            status,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions".to_owned(),
            errors,
        );
    }
}
