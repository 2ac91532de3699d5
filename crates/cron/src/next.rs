//! When a schedule is due next, as the library that Kubernetes uses reckons it (robfig/cron v3 `spec.go`).

use crate::parse::{Fields, Schedule, Timing};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _, Zoned};

/// A schedule that is not due within so many years never is.
const YEARS: i16 = 5;

impl Schedule {
    /// The first time after another at which it is due in a time zone; none if that is not within five years.
    pub fn next_after(&self, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        let whole = Timestamp::from_second(after.as_second()).ok()?;
        match &self.timing {
            Timing::Every(delay) => whole.checked_add(*delay).ok(),
            Timing::At(fields) => {
                let start = whole.checked_add(SignedDuration::from_secs(1)).ok()?;
                next_match(fields, start.to_zoned(zone.clone()))
            }
        }
    }
}

fn next_match(fields: &Fields, start: Zoned) -> Option<Timestamp> {
    let Fields { minutes, hours, days, months, weekdays } = fields;
    if [minutes, hours, days, months, weekdays].iter().any(|field| field.is_empty()) {
        return None;
    }
    let last_year = start.year().checked_add(YEARS)?;
    let mut time = start;
    while time.year() <= last_year {
        if !months.contains(time.month()) {
            time = begin(&time, time.date().first_of_month().checked_add(1.month()).ok()?)?;
        } else if !is_day(fields, time.date()) {
            time = begin(&time, time.date().tomorrow().ok()?)?;
        } else if !hours.contains(time.hour()) {
            // Hours and minutes go on as the clock does: one that is skipped in spring is not due that day.
            let passed = i64::from(time.minute()) * 60 + i64::from(time.second());
            time = later(&time, 3600 - passed)?;
        } else if !minutes.contains(time.minute()) || time.second() != 0 {
            time = later(&time, 60 - i64::from(time.second()))?;
        } else {
            return Some(time.timestamp());
        }
    }
    None
}

/// Both days must fit; where neither is `*`, one of them.
fn is_day(fields: &Fields, date: Date) -> bool {
    let day = fields.days.contains(date.day());
    let weekday = fields.weekdays.contains(date.weekday().to_sunday_zero_offset());
    if fields.days.is_star || fields.weekdays.is_star { day && weekday } else { day || weekday }
}

fn begin(time: &Zoned, date: Date) -> Option<Zoned> {
    date.to_zoned(time.time_zone().clone()).ok()
}

fn later(time: &Zoned, seconds: i64) -> Option<Zoned> {
    time.checked_add(SignedDuration::from_secs(seconds)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(schedule: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let zone = TimeZone::get(zone).unwrap();
        let schedule: Schedule = schedule.parse().unwrap();
        let mut time: Timestamp = after.parse().unwrap();
        let mut times = Vec::new();
        while times.len() < count
            && let Some(next) = schedule.next_after(&zone, time)
        {
            times.push(next.to_zoned(zone.clone()).strftime("%a %Y-%m-%dT%H:%M:%S%:z").to_string());
            time = next;
        }
        times
    }

    #[test]
    fn schedules_are_due_when_their_fields_fit() {
        for (schedule, wanted) in [
            ("* * * * *", "Mon 2026-11-16T03:05:00+00:00"),
            ("*/20 * * * *", "Mon 2026-11-16T03:20:00+00:00"),
            ("4 3 * * *", "Tue 2026-11-17T03:04:00+00:00"),
            ("30 8-17/3 * * mon-fri", "Mon 2026-11-16T08:30:00+00:00"),
            ("0 0 29 2 *", "Tue 2028-02-29T00:00:00+00:00"),
            ("0 0 31 * *", "Thu 2026-12-31T00:00:00+00:00"),
            ("@hourly", "Mon 2026-11-16T04:00:00+00:00"),
            ("@weekly", "Sun 2026-11-22T00:00:00+00:00"),
            ("@every 90m", "Mon 2026-11-16T04:34:56+00:00"),
            ("@every 10ms", "Mon 2026-11-16T03:04:57+00:00"),
        ] {
            assert_eq!(times(schedule, "UTC", "2026-11-16T03:04:56.7Z", 1), [wanted], "{schedule}");
        }
        assert_eq!(times("0 0 30 2 *", "UTC", "2026-11-16T03:04:56Z", 1), [""; 0]);
        assert_eq!(times(", * * * *", "UTC", "2026-11-16T03:04:56Z", 1), [""; 0]);
    }

    #[test]
    fn one_of_two_days_is_enough_unless_the_other_is_a_star() {
        let days = |schedule: &str| {
            let times = times(schedule, "UTC", "2026-11-16T00:00:00Z", 3);
            times.iter().map(|time| time[..14].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(days("0 0 20 * fri"), ["Fri 2026-11-20", "Fri 2026-11-27", "Fri 2026-12-04"]);
        assert_eq!(days("0 0 18 * fri"), ["Wed 2026-11-18", "Fri 2026-11-20", "Fri 2026-11-27"]);
        assert_eq!(days("0 0 18 * *"), ["Wed 2026-11-18", "Fri 2026-12-18", "Mon 2027-01-18"]);
        assert_eq!(days("0 0 */10 * fri"), ["Fri 2026-11-20", "Sat 2026-11-21", "Fri 2026-11-27"]);
        assert_eq!(days("0 0 */1 * fri"), ["Fri 2026-11-20", "Fri 2026-11-27", "Fri 2026-12-04"]);
    }

    #[test]
    fn time_zones_and_their_changes_count() {
        let times = |schedule: &str, after: &str, count: usize| times(schedule, "Europe/Berlin", after, count);
        assert_eq!(times("0 9 * * *", "2026-07-01T00:00:00Z", 1), ["Wed 2026-07-01T09:00:00+02:00"]);
        // What the clock skips is not due.
        assert_eq!(times("30 2 * * *", "2026-03-28T12:00:00Z", 1), ["Mon 2026-03-30T02:30:00+02:00"]);
        // What it shows twice is due twice.
        let twice = ["Sun 2026-10-25T02:30:00+02:00", "Sun 2026-10-25T02:30:00+01:00"];
        assert_eq!(times("30 2 * * *", "2026-10-24T12:00:00Z", 2), twice);
    }

    proptest! {
        #[test]
        fn what_is_due_next_is_later_and_nothing_is_between(
            fields in proptest::collection::vec("[*]|[1-6]|[*]/[1-9]|1,5|2-4", 5),
            second in 1_700_000_000_i64..1_900_000_000,
        ) {
            let schedule: Schedule = fields.join(" ").parse().unwrap();
            let zone = TimeZone::get("America/New_York").unwrap();
            let start = Timestamp::from_second(second).unwrap();
            if let Some(due) = schedule.next_after(&zone, start) {
                prop_assert!(due > start);
                prop_assert_eq!(due.as_second() % 60, 0);
                let middle = Timestamp::from_second(i64::midpoint(second, due.as_second() - 1)).unwrap();
                prop_assert_eq!(schedule.next_after(&zone, middle), Some(due));
            }
        }
    }
}
