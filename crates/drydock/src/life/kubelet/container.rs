//! A container of a pod: waiting, running or ended.

use super::probes::Probes;
use super::{NOTICE_AFTER_START, NOTICE_EXIT, REPORT_START, after, since};
use crate::cluster::Cluster;
use crate::containers::logs::{Line, Log};
use crate::containers::process::{Process, What};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// What a container is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Runs to its end before the others start.
    Init,
    /// Starts with the init containers and goes on beside the others.
    Sidecar,
    Main,
}

/// A container as the kubelet knows it.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) spec: Value,
    pub(super) role: Role,
    pub(super) state: State,
    /// How it ended before.
    pub(super) last: Option<Exit>,
    pub(super) restarts: i64,
    /// How long it has to wait before it starts again, and until when.
    pub(super) backoff: Option<Backoff>,
    /// Nothing is tried before.
    pub(super) not_before: Option<Timestamp>,
    pub(super) probes: Probes,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    pub(super) delay: Duration,
    pub(super) until: Timestamp,
}

#[derive(Debug)]
pub(super) enum State {
    Waiting { reason: &'static str, message: String },
    Running(Box<Running>),
    Ended(Exit),
}

#[derive(Debug)]
pub(super) struct Running {
    pub(super) id: String,
    pub(super) since: Timestamp,
    pub(super) process: Process,
    /// It has ended, and nobody has noticed yet.
    pub(super) exit: Option<Exit>,
    /// What is reported until the start is.
    pub(super) before: Value,
    /// What it leaves behind when it ends.
    pub(super) message: Option<String>,
    /// It gets ready by the script, not by its probe.
    pub(super) ready_from: Option<Timestamp>,
    pub(super) never_ready: bool,
}

/// How a container ended.
#[derive(Clone, Debug)]
pub(super) struct Exit {
    pub(super) id: String,
    pub(super) code: i32,
    pub(super) reason: &'static str,
    pub(super) message: Option<String>,
    pub(super) started: Timestamp,
    pub(super) finished: Timestamp,
    /// When the kubelet notices.
    pub(super) noticed: Timestamp,
}

impl Container {
    /// Where it is in its pod, as events say it.
    pub(super) fn place(&self) -> String {
        match self.role {
            Role::Main => format!("spec.containers{{{}}}", self.name),
            Role::Init | Role::Sidecar => format!("spec.initContainers{{{}}}", self.name),
        }
    }

    pub(super) fn new(spec: &Value, role: Role, initialising: bool) -> Self {
        let reason = if initialising { "PodInitializing" } else { "ContainerCreating" };
        Self {
            name: spec.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            spec: spec.clone(),
            role,
            state: State::Waiting { reason, message: String::new() },
            last: None,
            restarts: 0,
            backoff: None,
            not_before: None,
            probes: Probes::default(),
        }
    }

    pub(super) fn running(&self) -> Option<&Running> {
        match &self.state {
            State::Running(running) => Some(running),
            _ => None,
        }
    }

    pub(super) fn ended(&self) -> Option<&Exit> {
        match &self.state {
            State::Ended(exit) => Some(exit),
            _ => None,
        }
    }

    /// Lets a running container go on to now.
    pub(super) fn go_on(&mut self, cluster: &mut Cluster, pod_uid: &str) {
        let now = cluster.now;
        let State::Running(running) = &mut self.state else { return };
        if running.exit.is_none() {
            for effect in running.process.run_until(since(running.since, now)) {
                let at = after(running.since, effect.at);
                match effect.what {
                    What::Printed(text) => cluster.logs.add(pod_uid, &self.name, Line { at, text }),
                    What::Exited(code) => {
                        let message = termination_message(
                            &self.spec,
                            running,
                            code,
                            cluster.logs.get(pod_uid, &self.name, false),
                        );
                        running.exit = Some(Exit { message, ..running.end(code, at) });
                        cluster.logs.close(pod_uid, &self.name);
                        cluster.witness.note_end(pod_uid, &self.name, at, code);
                    }
                }
            }
        }
        if let Some(exit) = running.exit.take_if(|exit| exit.noticed <= now) {
            self.state = State::Ended(exit);
            self.probes = Probes::default();
        }
    }

    /// Sends a signal to a running container.
    pub(super) fn signal(&mut self, cluster: &mut Cluster, pod_uid: &str) {
        let now = cluster.now;
        if let State::Running(running) = &mut self.state {
            running.process.run_until(since(running.since, now));
            running.process.signal("TERM");
        }
        self.go_on(cluster, pod_uid);
    }

    /// Ends a running container now.
    pub(super) fn kill(&mut self, cluster: &mut Cluster, pod_uid: &str) {
        let now = cluster.now;
        if let State::Running(running) = &mut self.state
            && running.exit.is_none()
        {
            running.exit = Some(Exit { noticed: after(now, super::REMOVE), ..running.end(137, now) });
            cluster.logs.close(pod_uid, &self.name);
            cluster.witness.note_end(pod_uid, &self.name, now, 137);
        }
    }

    /// When something happens to the container by itself.
    pub(super) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let State::Running(running) = &self.state else { return None };
        let reported = after(running.since, REPORT_START);
        let next = match &running.exit {
            Some(exit) => Some(exit.noticed),
            None => running.process.next_wake().map(|wake| after(running.since, wake)),
        };
        let times = [next, Some(reported), running.ready_from, self.probes.next_due()];
        times.into_iter().flatten().filter(|time| *time > now).min()
    }

    /// The status as the kubelet reports it.
    pub(super) fn status(&self, now: Timestamp) -> Value {
        let state = match &self.state {
            State::Running(running) if !running.is_reported(now) => return running.before.clone(),
            State::Running(running) => json!({"running": {"startedAt": crate::clock::time(running.since)}}),
            State::Waiting { reason, message } if message.is_empty() => json!({"waiting": {"reason": reason}}),
            State::Waiting { reason, message } => json!({"waiting": {"reason": reason, "message": message}}),
            State::Ended(exit) => json!({"terminated": exit.to_value()}),
        };
        let id = match &self.state {
            State::Running(running) => Some(&running.id),
            State::Waiting { .. } => self.last.as_ref().map(|exit| &exit.id),
            State::Ended(exit) => Some(&exit.id),
        };
        let ready = match (&self.state, self.role) {
            (State::Ended(exit), Role::Init) => exit.code == 0,
            _ => self.is_ready(now),
        };
        let mut status = json!({
            "name": self.name,
            "state": state,
            "lastState": self.last.as_ref().map_or(json!({}), |exit| json!({"terminated": exit.to_value()})),
            "ready": ready,
            "restartCount": self.restarts,
            "image": self.spec.get("image"),
            "imageID": if id.is_some() { "drydock://image" } else { "" },
            "started": self.has_started(now),
        });
        if let Some(id) = id {
            status["containerID"] = json!(id);
        }
        status
    }
}

/// What a container leaves behind: what the script says, what it wrote, or the end of its log if it is told so.
fn termination_message(spec: &Value, running: &Running, code: i32, log: Option<&Log>) -> Option<String> {
    let text = |field: &str| spec.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let path = text("terminationMessagePath").unwrap_or("/dev/termination-log");
    let written = || running.process.file(path).filter(|text| !text.is_empty()).map(|text| cut(text, 4096));
    let falls_back = code != 0 && text("terminationMessagePolicy") == Some("FallbackToLogsOnError");
    let logged = || {
        let lines = log.filter(|_| falls_back)?.lines();
        let tail = &lines[lines.len().saturating_sub(80)..];
        let tail: String = tail.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
        Some(tail[tail.len() - cut_from_end(&tail, 2048)..].to_owned())
    };
    running.message.clone().or_else(written).or_else(logged)
}

/// The beginning of a text, at most so many bytes.
fn cut(text: &str, limit: usize) -> String {
    let end = (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text[..end].to_owned()
}

/// How many bytes the end of a text has, at most so many.
fn cut_from_end(text: &str, limit: usize) -> usize {
    let start = text.len().saturating_sub(limit);
    let start = (start..=text.len()).find(|start| text.is_char_boundary(*start)).unwrap_or(text.len());
    text.len() - start
}

impl Running {
    pub(super) fn is_reported(&self, now: Timestamp) -> bool {
        after(self.since, REPORT_START) <= now
    }

    fn end(&self, code: i32, at: Timestamp) -> Exit {
        Exit {
            id: self.id.clone(),
            code,
            reason: if code == 0 { "Completed" } else { "Error" },
            message: self.message.clone(),
            started: self.since,
            finished: at,
            noticed: after(at, NOTICE_EXIT).max(after(self.since, NOTICE_AFTER_START)),
        }
    }
}

impl Exit {
    pub(super) fn to_value(&self) -> Value {
        let mut value = json!({
            "exitCode": self.code, "reason": self.reason, "containerID": self.id,
            "startedAt": crate::clock::time(self.started), "finishedAt": crate::clock::time(self.finished),
        });
        if let Some(message) = &self.message {
            value["message"] = json!(message);
        }
        value
    }
}
