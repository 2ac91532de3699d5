//! Probes: whether a container has started, is ready, is alive.

use super::container::{Container, Running, State};
use super::{after, since};
use jiff::Timestamp;
use serde_json::Value;
use std::time::Duration;

/// From when on a server answers that no script speaks of.
const SERVER_ANSWERS_AFTER: Duration = Duration::from_secs(1);

/// The probes of a container that runs.
#[derive(Debug, Default)]
pub(super) struct Probes {
    startup: Option<Probe>,
    readiness: Option<Probe>,
    liveness: Option<Probe>,
}

/// A probe and how it went so far.
#[derive(Debug)]
struct Probe {
    next: Timestamp,
    period: Duration,
    wanted_successes: i64,
    allowed_failures: i64,
    successes: i64,
    failures: i64,
    passed: bool,
}

/// What the probes of a container have found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Fine,
    /// It has to be restarted, for failing this probe.
    Dead(&'static str),
}

impl Probe {
    fn new(spec: Option<&Value>, started: Timestamp) -> Option<Self> {
        let spec = spec.filter(|spec| spec.is_object())?;
        let number =
            |field: &str, absent: i64| spec.get(field).and_then(Value::as_i64).filter(|n| *n > 0).unwrap_or(absent);
        let seconds = |field: &str, absent: i64| Duration::from_secs(number(field, absent).unsigned_abs());
        Some(Self {
            next: after(started, seconds("initialDelaySeconds", 0)),
            period: seconds("periodSeconds", 10),
            wanted_successes: number("successThreshold", 1),
            allowed_failures: number("failureThreshold", 3),
            successes: 0,
            failures: 0,
            passed: false,
        })
    }

    /// Takes the next result. Says whether the probe has failed for good.
    fn take(&mut self, good: bool) -> bool {
        self.next = after(self.next, self.period);
        if good {
            self.failures = 0;
            self.successes += 1;
            self.passed |= self.successes >= self.wanted_successes;
            return false;
        }
        self.successes = 0;
        self.failures += 1;
        let failed = self.failures >= self.allowed_failures;
        self.passed &= !failed;
        failed
    }
}

impl Probes {
    /// The probes of a container that has just started.
    pub(super) fn new(spec: &Value, started: Timestamp) -> Self {
        Self {
            startup: Probe::new(spec.get("startupProbe"), started),
            readiness: Probe::new(spec.get("readinessProbe"), started),
            liveness: Probe::new(spec.get("livenessProbe"), started),
        }
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        let startup = self.startup.as_ref().filter(|probe| !probe.passed);
        match startup {
            Some(probe) => Some(probe.next),
            None => [&self.readiness, &self.liveness].into_iter().flatten().map(|probe| probe.next).min(),
        }
    }
}

impl Container {
    /// Probes a running container as far as it is due.
    pub(super) fn probe(&mut self, now: Timestamp) -> Verdict {
        let State::Running(running) = &self.state else { return Verdict::Fine };
        while let Some(due) = self.probes.next_due().filter(|due| *due <= now) {
            let starting = self.probes.startup.as_mut().filter(|probe| !probe.passed);
            if let Some(probe) = starting {
                let good = answers(running, self.spec.get("startupProbe"), due);
                if probe.take(good) {
                    return Verdict::Dead("Startup");
                }
                continue;
            }
            if let Some(probe) = self.probes.readiness.as_mut().filter(|probe| probe.next <= due) {
                let good = answers(running, self.spec.get("readinessProbe"), due);
                probe.take(good);
            }
            if let Some(probe) = self.probes.liveness.as_mut().filter(|probe| probe.next <= due) {
                let good = answers(running, self.spec.get("livenessProbe"), due);
                if probe.take(good) {
                    return Verdict::Dead("Liveness");
                }
            }
        }
        Verdict::Fine
    }

    /// Whether a running container has started up.
    pub(super) fn has_started(&self, now: Timestamp) -> bool {
        self.running().is_some_and(|running| running.is_reported(now))
            && self.probes.startup.as_ref().is_none_or(|probe| probe.passed)
    }

    /// Whether a running container is ready.
    pub(super) fn is_ready(&self, now: Timestamp) -> bool {
        let Some(running) = self.running().filter(|_| self.has_started(now)) else { return false };
        match &self.probes.readiness {
            Some(probe) => probe.passed,
            None => !running.never_ready && running.ready_from.is_none_or(|from| from <= now),
        }
    }
}

/// What a probe of a running container finds.
fn answers(running: &Running, spec: Option<&Value>, now: Timestamp) -> bool {
    if running.never_ready || running.exit.is_some() {
        return false;
    }
    if let Some(from) = running.ready_from {
        return from <= now;
    }
    let command = spec.and_then(|spec| spec.pointer("/exec/command")).and_then(Value::as_array);
    match command {
        Some(words) => {
            let words: Vec<String> = words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            running.process.probe(&words)
        }
        None => since(running.since, now) >= SERVER_ANSWERS_AFTER,
    }
}
