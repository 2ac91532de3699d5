//! What became of a certificate: as data, in words, and for Prometheus.

use jiff::Timestamp;
use serde_json::{Value, json};
use std::fmt;

/// What became of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It stays.
    Kept,
    /// There was none.
    Created,
    /// Another took its place.
    Renewed,
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Kept => "kept",
            Self::Created => "created",
            Self::Renewed => "renewed",
        })
    }
}

/// What became of a certificate, or what would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What became of the pair.
    pub action: Action,
    /// Why.
    pub reason: String,
    /// When it ends; none if there is none that works.
    pub not_after: Option<Timestamp>,
    /// The time of the report.
    pub at: Timestamp,
    /// Who has to trust it.
    pub targets: Vec<TargetReport>,
    /// The Deployments that were restarted.
    pub restarted: Vec<String>,
    /// What else there is to say.
    pub notes: Vec<String>,
    /// What is left to do; empty when everything was done.
    pub open: Vec<String>,
}

/// What became of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetReport {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Whether its bundles trust the certificate.
    pub injected: bool,
    /// Whether they were changed for that.
    pub changed: bool,
}

impl Report {
    /// How many whole days are left; fewer than none when it has ended.
    pub fn days_left(&self) -> Option<i64> {
        let left = self.not_after?.duration_since(self.at);
        Some(left.as_secs().div_euclid(86_400))
    }

    /// Whether nothing is to be done.
    pub fn is_good(&self) -> bool {
        self.action == Action::Kept && self.open.is_empty()
    }

    /// The reason, with everything that should be known besides.
    pub fn whole_reason(&self) -> String {
        let parts = std::iter::once(&self.reason).chain(&self.open).chain(&self.notes);
        parts.map(String::as_str).collect::<Vec<_>>().join("; ")
    }

    /// The one document of `-o json`.
    pub fn to_json(&self) -> Value {
        let target = |target: &TargetReport| {
            json!({
                "kind": target.kind, "name": target.name, "injected": target.injected, "changed": target.changed,
            })
        };
        json!({
            "action": self.action.to_string(),
            "reason": self.whole_reason(),
            "notAfter": self.not_after.map(|time| time.to_string()),
            "daysLeft": self.days_left(),
            "targets": self.targets.iter().map(target).collect::<Vec<_>>(),
            "restarted": self.restarted,
        })
    }
}

/// What Prometheus is told of a run, in its text format. `report` is none if the run failed.
pub fn metrics(namespace: &str, secret: &str, report: Option<&Report>, now: Timestamp) -> String {
    let labels = format!("{{namespace={},secret={}}}", quote(namespace), quote(secret));
    let mut text = String::new();
    let mut gauge = |name: &str, about: &str, value: i64| {
        text.push_str(&format!("# HELP {name} {about}\n# TYPE {name} gauge\n{name}{labels} {value}\n"));
    };
    if let Some(not_after) = report.and_then(|report| report.not_after) {
        gauge("jobwright_certificate_not_after_seconds", "When the certificate ends.", not_after.as_second());
    }
    if let Some(days) = report.and_then(Report::days_left) {
        gauge("jobwright_certificate_days_left", "Whole days that are left of the certificate.", days);
    }
    gauge("jobwright_certificate_last_run_seconds", "When init-cert has last run.", now.as_second());
    gauge("jobwright_certificate_last_run_succeeded", "Whether that went well.", i64::from(report.is_some()));
    text
}

/// A label's value. Names of objects need no more.
fn quote(text: &str) -> String {
    format!("{text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(not_after: &str) -> Report {
        Report {
            action: Action::Kept,
            reason: "valid until then".to_owned(),
            not_after: not_after.parse().ok(),
            at: "2026-01-01T00:00:00Z".parse().unwrap(),
            targets: vec![TargetReport {
                kind: "APIService".to_owned(),
                name: "v1.shop".to_owned(),
                injected: true,
                changed: false,
            }],
            restarted: vec!["hook".to_owned()],
            notes: vec!["seen by nobody".to_owned()],
            open: Vec::new(),
        }
    }

    #[test]
    fn a_report_is_data() {
        assert_eq!(
            report("2026-01-31T12:00:00Z").to_json(),
            json!({
                "action": "kept", "reason": "valid until then; seen by nobody", "notAfter": "2026-01-31T12:00:00Z",
                "daysLeft": 30, "restarted": ["hook"],
                "targets": [{"kind": "APIService", "name": "v1.shop", "injected": true, "changed": false}],
            })
        );
    }

    #[test]
    fn days_are_whole_and_may_be_over() {
        for (not_after, days) in
            [("2026-01-01T23:00:00Z", 0), ("2026-01-02T00:00:00Z", 1), ("2025-12-31T23:00:00Z", -1)]
        {
            assert_eq!(report(not_after).days_left(), Some(days), "{not_after}");
        }
    }

    #[test]
    fn prometheus_hears_of_runs_that_failed_too() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let told = metrics("shop", "hook-tls", Some(&report("2026-01-31T00:00:00Z")), now);
        let labels = "{namespace=\"shop\",secret=\"hook-tls\"}";
        assert!(told.contains(&format!("\njobwright_certificate_days_left{labels} 30\n")), "{told}");
        assert!(told.contains(&format!("\njobwright_certificate_not_after_seconds{labels} 1769817600\n")), "{told}");
        assert!(told.contains(&format!("\njobwright_certificate_last_run_succeeded{labels} 1\n")), "{told}");
        let told = metrics("shop", "hook-tls", None, now);
        assert!(told.contains(&format!("\njobwright_certificate_last_run_succeeded{labels} 0\n")), "{told}");
        assert!(!told.contains("days_left"), "{told}");
    }
}
