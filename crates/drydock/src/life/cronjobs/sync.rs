//! Brings a CronJob to where it should be: notes which of its Jobs have ended, deletes old ones, makes the one that is due.

use super::due::{Times, are_many};
use crate::clock;
use crate::kinds::Storage;
use crate::life::client::{Client, Tone};
use crate::life::jobs::finish;
use crate::object::Object;
use crate::status::Status;
use crate::store::Key;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use jobwright_cron::Schedule;
use serde_json::{Map, Value, json};
use std::sync::Arc;

const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

pub(super) fn cron_jobs() -> Storage {
    Storage::new("batch", "cronjobs")
}

fn jobs() -> Storage {
    Storage::new("batch", "jobs")
}

/// The status of a CronJob.
struct Progress {
    /// References to the Jobs that run.
    active: Vec<Value>,
    last: Option<Value>,
    last_success: Option<Value>,
}

impl Progress {
    fn read(cron: &Object) -> Self {
        let time = |field: &str| cron.at(&["status", field]).filter(|time| time.is_string()).cloned();
        Self {
            active: cron.list(&["status", "active"]).to_vec(),
            last: time("lastScheduleTime"),
            last_success: time("lastSuccessfulTime"),
        }
    }

    fn write(&self, cron: &mut Object) {
        let mut status = Map::new();
        if !self.active.is_empty() {
            status.insert("active".to_owned(), Value::from(self.active.clone()));
        }
        for (field, time) in [("lastScheduleTime", &self.last), ("lastSuccessfulTime", &self.last_success)] {
            time.as_ref().map(|time| status.insert(field.to_owned(), time.clone()));
        }
        cron.set(&["status"], status);
    }

    fn has(&self, uid: &str) -> bool {
        self.active.iter().any(|job| job["uid"] == uid)
    }

    fn drop(&mut self, uid: &str) {
        self.active.retain(|job| job["uid"] != uid);
    }
}

/// Looks at a CronJob. Says when to look again.
pub(super) fn sync(client: &mut Client<'_>, cron: &Object) -> Result<Option<SignedDuration>, Status> {
    let owned = client.owned(&jobs(), cron).into_iter();
    let owned: Vec<_> = owned.filter(|job| job.owners().any(|it| it.controller && it.uid == cron.uid())).collect();
    let mut progress = Progress::read(cron);
    clean_up(client, cron, &owned, &mut progress);
    note_ends(client, cron, &owned, &mut progress);
    let next = if cron.is_being_deleted() { Ok(None) } else { start_what_is_due(client, cron, &mut progress) };
    client.change_status(&cron_jobs(), &Key::of(cron), |cron| progress.write(cron))?;
    next
}

/// Deletes the oldest Jobs beyond the limits of the history.
fn clean_up(client: &mut Client<'_>, cron: &Object, owned: &[Arc<Object>], progress: &mut Progress) {
    for (field, end) in [("successfulJobsHistoryLimit", "Complete"), ("failedJobsHistoryLimit", "Failed")] {
        let Some(limit) = cron.integer(&["spec", field]).and_then(|limit| usize::try_from(limit).ok()) else {
            continue;
        };
        let mut ended: Vec<&Arc<Object>> =
            owned.iter().filter(|job| finish(job).is_some_and(|condition| condition["type"] == end)).collect();
        ended.sort_by_key(|job| {
            let started = job.text(&["status", "startTime"]);
            (started.is_empty(), started.to_owned(), job.name().to_owned())
        });
        let surplus = ended.len().saturating_sub(limit);
        for job in ended.into_iter().take(surplus) {
            delete(client, cron, job, progress);
        }
    }
}

fn delete(client: &mut Client<'_>, cron: &Object, job: &Object, progress: &mut Progress) -> bool {
    match client.delete(&jobs(), &Key::of(job)) {
        Ok(_) => {
            progress.drop(job.uid());
            client.tell(cron, Tone::Normal, "SuccessfulDelete", &format!("Deleted job {}", job.name()));
            true
        }
        Err(status) => {
            client.tell(cron, Tone::Warning, "FailedDelete", &format!("Deleted job: {status}"));
            false
        }
    }
}

/// Takes Jobs off the list that have ended or are gone.
fn note_ends(client: &mut Client<'_>, cron: &Object, owned: &[Arc<Object>], progress: &mut Progress) {
    for job in owned {
        let is_active = progress.has(job.uid());
        let Some(end) = finish(job) else {
            if !is_active {
                let message = format!("Saw a job that the controller did not create or forgot: {}", job.name());
                client.tell(cron, Tone::Warning, "UnexpectedJob", &message);
            }
            continue;
        };
        let end = end["type"].as_str().unwrap_or_default();
        if is_active {
            progress.drop(job.uid());
            let message = format!("Saw completed job: {}, condition: {end}", job.name());
            client.tell(cron, Tone::Normal, "SawCompletedJob", &message);
        }
        let completed = job.at(&["status", "completionTime"]).filter(|_| end == "Complete");
        // Times of the API are all written alike, so that the later one is the greater text.
        if let Some(Value::String(time)) = completed
            && progress.last_success.as_ref().and_then(Value::as_str).is_none_or(|known| known < time.as_str())
        {
            progress.last_success = Some(json!(time));
        }
    }
    for reference in progress.active.clone() {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let key = Key::new(text("namespace"), text("name"));
        if owned.iter().all(|job| job.uid() != text("uid")) && client.get(&jobs(), &key).is_none() {
            client.tell(cron, Tone::Normal, "MissingJob", &format!("Active job went missing: {}", text("name")));
            progress.drop(text("uid"));
        }
    }
}

/// The schedule of a CronJob and the zone in which it counts.
fn schedule_of(cron: &Object) -> Result<(Schedule, TimeZone), (&'static str, String)> {
    let zone = cron.at(&["spec", "timeZone"]).and_then(Value::as_str);
    let unknown = |zone: &str| ("UnknownTimeZone", format!("invalid timeZone: {zone:?}: unknown time zone {zone}"));
    let zone = match zone {
        Some(zone) => TimeZone::get(zone).map_err(|_| unknown(zone))?,
        None => TimeZone::UTC,
    };
    let text = cron.text(&["spec", "schedule"]);
    let schedule: Schedule = text.parse().map_err(|why: jobwright_cron::ParseError| {
        ("UnparseableSchedule", format!("unparseable schedule: {text:?} : {why}"))
    })?;
    let zone = match schedule.zone() {
        Some(own) => TimeZone::get(own).map_err(|_| unknown(own))?,
        None => zone,
    };
    Ok((schedule, zone))
}

/// How long it takes until a CronJob is due.
pub(super) fn next_in(cron: &Object, now: Timestamp) -> Option<SignedDuration> {
    let (schedule, zone) = schedule_of(cron).ok()?;
    Times::read(cron, &schedule, &zone, now).next_in()
}

fn start_what_is_due(
    client: &mut Client<'_>,
    cron: &Object,
    progress: &mut Progress,
) -> Result<Option<SignedDuration>, Status> {
    if cron.at(&["spec", "suspend"]) == Some(&Value::Bool(true)) {
        return Ok(None);
    }
    let now = client.now();
    let (schedule, zone) = match schedule_of(cron) {
        Ok(read) => read,
        Err((reason, message)) => {
            client.tell(cron, Tone::Warning, reason, &message);
            return Ok(None);
        }
    };
    let text = cron.text(&["spec", "schedule"]);
    if text.contains("TZ") {
        let message = format!(
            "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        );
        client.tell(cron, Tone::Warning, "UnsupportedSchedule", &message);
    }
    let mut times = Times::read(cron, &schedule, &zone, now);
    let recent = match times.recent() {
        Ok(recent) => recent,
        Err(why) => {
            client.tell(cron, Tone::Warning, "InvalidSchedule", &format!("invalid schedule: {text} : {why}"));
            return Ok(None);
        }
    };
    let Some(due) = recent.last else { return Ok(times.next_in()) };
    if are_many(&recent) {
        let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        client.tell(cron, Tone::Warning, "TooManyMissedTimes", message);
    }
    if times.starting_deadline.is_some_and(|deadline| due.checked_add(deadline).is_ok_and(|end| end < now)) {
        let shown = due.strftime("%a, %d %b %Y %H:%M:%S +0000");
        let message = format!("Missed scheduled time to start a job: {shown}");
        client.tell(cron, Tone::Warning, "MissSchedule", &message);
        return Ok(times.next_in());
    }
    let name = format!("{}-{}", cron.name(), due.as_second().div_euclid(60));
    if times.last == Some(due) || progress.active.iter().any(|job| job["name"] == name.as_str()) {
        return Ok(times.next_in());
    }
    match cron.text(&["spec", "concurrencyPolicy"]) {
        "Forbid" if !progress.active.is_empty() => {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            client.tell(cron, Tone::Normal, "JobAlreadyActive", message);
            return Ok(times.next_in());
        }
        "Replace" => replace(client, cron, progress)?,
        _ => {}
    }
    let Some(job) = create(client, cron, &name, due, &zone, progress)? else { return Ok(None) };
    progress.active.push(json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": job.namespace(),
        "name": job.name(), "uid": job.uid(), "resourceVersion": job.resource_version()}));
    progress.last = Some(json!(clock::time(due)));
    times.last = Some(due);
    Ok(times.next_in())
}

fn replace(client: &mut Client<'_>, cron: &Object, progress: &mut Progress) -> Result<(), Status> {
    for reference in progress.active.clone() {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let key = Key::new(text("namespace"), text("name"));
        let Some(job) = client.get(&jobs(), &key) else {
            let why = format!("jobs.batch {:?} not found", text("name"));
            client.tell(cron, Tone::Warning, "FailedGet", &format!("Get job: {why}"));
            return Err(Status::new(404, "NotFound", why));
        };
        if !delete(client, cron, &job, progress) {
            return Err(Status::internal(&format!("could not replace job {}/{}", key.namespace, key.name)));
        }
    }
    Ok(())
}

/// Makes the Job of a time, or finds it if it was made before. None if there is nothing to note.
fn create(
    client: &mut Client<'_>,
    cron: &Object,
    name: &str,
    due: Timestamp,
    zone: &TimeZone,
    progress: &Progress,
) -> Result<Option<Arc<Object>>, Status> {
    match client.create(&jobs(), job(cron, name, due, zone)) {
        Ok(job) => {
            client.tell(cron, Tone::Normal, "SuccessfulCreate", &format!("Created job {name}"));
            Ok(Some(job))
        }
        Err(status) if status.reason == "AlreadyExists" => {
            let known = client.get(&jobs(), &Key::new(cron.namespace(), name));
            let is_own = |job: &Arc<Object>| job.owners().any(|owner| owner.controller && owner.uid == cron.uid());
            Ok(known.filter(is_own).filter(|job| !progress.has(job.uid())))
        }
        Err(status) => {
            if !status.is_because_namespace_goes() {
                client.tell(cron, Tone::Warning, "FailedCreate", &format!("Error creating job: {status}"));
            }
            Err(status)
        }
    }
}

fn job(cron: &Object, name: &str, due: Timestamp, zone: &TimeZone) -> Object {
    let mut job = Object::default();
    job.set(&["apiVersion"], "batch/v1");
    job.set(&["kind"], "Job");
    for field in ["labels", "annotations"] {
        let given = cron.at(&["spec", "jobTemplate", "metadata", field]);
        if let Some(given) = given.filter(|given| given.is_object()) {
            job.set(&["metadata", field], given.clone());
        }
    }
    job.set(&["metadata", "namespace"], cron.namespace());
    job.set(&["metadata", "name"], name);
    let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": cron.name(), "uid": cron.uid(),
        "controller": true, "blockOwnerDeletion": true}]);
    job.set(&["metadata", "ownerReferences"], owner);
    let local = due.to_zoned(zone.clone());
    let format = if local.offset().is_zero() { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" };
    job.set(&["metadata", "annotations", SCHEDULED], local.strftime(format).to_string());
    if let Some(spec) = cron.at(&["spec", "jobTemplate", "spec"]) {
        job.set(&["spec"], spec.clone());
    }
    job
}
