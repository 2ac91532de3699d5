//! Whether a CronJob is due, and when it is next (Kubernetes v1.34 `cronjob/utils.go`).

use crate::object::Object;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use jobwright_cron::{Missed, Schedule, TooOften};
use serde_json::Value;

/// A CronJob is looked at so long after it is due, to be sure that it is.
const MARGIN: SignedDuration = SignedDuration::from_millis(100);
/// From so many missed times on somebody is told.
const MANY: i64 = 100;

/// The times from which a CronJob's next one follows.
#[derive(Clone, Debug)]
pub(super) struct Times<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) zone: &'a TimeZone,
    created: Timestamp,
    pub(super) last: Option<Timestamp>,
    pub(super) starting_deadline: Option<SignedDuration>,
    now: Timestamp,
}

impl<'a> Times<'a> {
    pub(super) fn read(cron: &Object, schedule: &'a Schedule, zone: &'a TimeZone, now: Timestamp) -> Self {
        let time = |path: &[&str]| cron.at(path).and_then(Value::as_str)?.parse().ok();
        Self {
            schedule,
            zone,
            created: time(&["metadata", "creationTimestamp"]).unwrap_or(now),
            last: time(&["status", "lastScheduleTime"]),
            starting_deadline: cron.integer(&["spec", "startingDeadlineSeconds"]).map(SignedDuration::from_secs),
            now,
        }
    }

    /// The most recent time, if it was not too long ago to start a Job for it.
    pub(super) fn recent(&self) -> Result<Missed, TooOften> {
        let limit = self.starting_deadline.and_then(|deadline| self.now.checked_sub(deadline).ok());
        self.schedule.missed(self.zone, limit.map_or(self.earliest(), |limit| limit.max(self.earliest())), self.now)
    }

    fn earliest(&self) -> Timestamp {
        self.last.unwrap_or(self.created)
    }

    /// How long it takes until the CronJob is to be looked at again.
    pub(super) fn next_in(&self) -> Option<SignedDuration> {
        let from = match self.schedule.missed(self.zone, self.earliest(), self.now) {
            Ok(Missed { last: Some(time), .. }) => time,
            Ok(Missed { count: 0, .. }) => self.earliest(),
            _ => self.now,
        };
        let due = self.schedule.next_after(self.zone, from)?.checked_add(MARGIN).ok()?;
        Some(due.duration_since(self.now).max(SignedDuration::from_millis(1)))
    }
}

/// Whether so many times were missed that somebody is told.
pub(super) fn are_many(missed: &Missed) -> bool {
    missed.count > MANY
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The time that is due, how many were missed and the seconds until the next look.
    fn due(schedule: &str, last: Value, deadline: Value, now: &str) -> (Option<String>, i64, f64) {
        let cron = json!({"metadata": {"creationTimestamp": "2026-11-16T10:00:30Z"},
            "spec": {"startingDeadlineSeconds": deadline}, "status": {"lastScheduleTime": last}});
        let schedule: Schedule = schedule.parse().unwrap();
        let cron = Object::from_value(cron).unwrap();
        let zone = TimeZone::UTC;
        let times = Times::read(&cron, &schedule, &zone, now.parse().unwrap());
        let recent = times.recent().unwrap();
        (recent.last.map(|time| time.to_string()), recent.count, times.next_in().unwrap().as_secs_f64())
    }

    #[test]
    fn the_most_recent_time_is_due() {
        let every_minute = |last: Value, now: &str| due("* * * * *", last, Value::Null, now);
        let time = |time: &str| Some(format!("2026-11-16T{time}Z"));
        assert_eq!(every_minute(Value::Null, "2026-11-16T10:00:40Z"), (None, 0, 20.1));
        assert_eq!(every_minute(Value::Null, "2026-11-16T10:01:00.1Z"), (time("10:01:00"), 0, 60.0));
        assert_eq!(every_minute(json!("2026-11-16T10:01:00Z"), "2026-11-16T10:01:00.1Z"), (None, 0, 60.0));
        assert_eq!(every_minute(Value::Null, "2026-11-16T10:05:10Z"), (time("10:05:00"), 5, 50.1));
        assert_eq!(every_minute(Value::Null, "2026-11-16T12:05:10Z"), (time("12:05:00"), 125, 50.1));
    }

    #[test]
    fn a_deadline_forgets_what_is_older() {
        let hourly = |now: &str| due("@hourly", Value::Null, json!(600), now).0;
        assert_eq!(hourly("2026-11-16T11:05:00Z").as_deref(), Some("2026-11-16T11:00:00Z"));
        assert_eq!(hourly("2026-11-16T11:15:00Z"), None);
    }

    #[test]
    fn a_schedule_that_is_never_due_is_no_schedule() {
        let schedule: Schedule = "0 0 30 2 *".parse().unwrap();
        let cron = Object::from_value(json!({"metadata": {"creationTimestamp": "2026-11-16T10:00:30Z"}})).unwrap();
        let zone = TimeZone::UTC;
        let times = Times::read(&cron, &schedule, &zone, "2026-11-16T10:00:30Z".parse().unwrap());
        assert!(times.recent().is_err());
        assert_eq!(times.next_in(), None);
    }
}
