//! Time zones of CronJobs (`pkg/apis/batch/validation/validation.go`).

use jobwright_cron::is_zone;

/// What is wrong with a time zone.
pub(super) fn check(zone: &str) -> Vec<String> {
    if zone.is_empty() {
        return vec!["timeZone must be nil or non-empty string".to_owned()];
    }
    let is_part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.len() <= 14
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+'))
    };
    if !zone.split('/').all(is_part) {
        return vec![format!("unknown time zone {zone}")];
    }
    let mut messages = Vec::new();
    if zone.eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        messages.push(why.to_owned());
    }
    if zone != "Local" && !is_zone(zone) {
        messages.push(format!("unknown time zone {zone}"));
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_zones_are_explicit_names_of_the_database() {
        for zone in ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Etc/GMT+5"] {
            assert!(check(zone).is_empty(), "{zone}");
        }
        for zone in ["Mars/Base", "europe/berlin", "../etc", "a//b"] {
            assert_eq!(check(zone), [format!("unknown time zone {zone}")]);
        }
    }
}
