//! A pod on a node: which of its containers runs when, and when it is over.

use super::container::{Backoff, Container, Role, State};
use super::needs;
use super::probes::Verdict;
use super::{ACCEPT, FINISH, REMOVE, SANDBOX, after};
use crate::kinds::Storage;
use crate::life::client::{Client, Tone};
use crate::object::Object;
use crate::store::Key;
use crate::verbs::delete::DeleteOptions;
use jiff::Timestamp;
use serde_json::Value;
use std::time::Duration;

/// The first wait of a container that keeps failing, and the longest.
const FIRST_BACKOFF: Duration = Duration::from_secs(10);
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);
/// A container that ran so long starts from the first wait again.
const FORGIVEN_AFTER: Duration = Duration::from_mins(10);
/// The first wait of a volume that cannot be mounted, and the longest.
const FIRST_MOUNT_RETRY: Duration = Duration::from_millis(500);
const LONGEST_MOUNT_RETRY: Duration = Duration::from_secs(122);

/// A pod that a node runs.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) key: Key,
    pub(super) containers: Vec<Container>,
    pub(super) accepted: Option<Timestamp>,
    pub(super) address: String,
    stopping: Option<Stopping>,
    mount: Option<Backoff>,
    /// Why it was ended before its time.
    pub(super) ended: Option<Ended>,
    /// When the last of its containers had ended.
    over: Option<Timestamp>,
}

/// A pod whose containers have been told to stop.
#[derive(Debug)]
struct Stopping {
    kill_at: Timestamp,
}

/// Why a pod was ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) reason: &'static str,
    pub(super) message: &'static str,
}

impl Run {
    pub(super) fn new(pod: &Object) -> Self {
        let init = pod.list(&["spec", "initContainers"]);
        let role = |spec: &Value| if spec["restartPolicy"] == "Always" { Role::Sidecar } else { Role::Init };
        let waits = !init.is_empty();
        let init = init.iter().map(|spec| Container::new(spec, role(spec), true));
        let main = pod.list(&["spec", "containers"]).iter().map(|spec| Container::new(spec, Role::Main, waits));
        Self {
            key: Key::of(pod),
            containers: init.chain(main).collect(),
            accepted: None,
            address: String::new(),
            stopping: None,
            mount: None,
            ended: None,
            over: None,
        }
    }

    /// Brings the pod to where it should be now. Says when to look again.
    pub(super) fn sync(&mut self, client: &mut Client<'_>, pod: &Object) -> Option<Timestamp> {
        let now = client.now();
        if self.accepted.is_none() {
            self.accept(client);
        }
        for container in &mut self.containers {
            container.go_on(client.cluster, pod.uid());
        }
        if matches!(pod.text(&["status", "phase"]), "Succeeded" | "Failed")
            && self.over.is_none()
            && self.stopping.is_none()
        {
            // Somebody else has ended it: an eviction, a lost node.
            self.stop(client, pod, now);
        }
        if pod.is_being_deleted() && self.stopping.is_none() {
            let grace = pod.integer(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or_default().unsigned_abs();
            self.stop(client, pod, after(now, Duration::from_secs(grace)));
        }
        self.enforce_deadline(client, pod);
        match &self.stopping {
            Some(stopping) if stopping.kill_at <= now => {
                for container in &mut self.containers {
                    container.kill(client.cluster, pod.uid());
                }
            }
            Some(_) => {}
            None => self.start_what_can(client, pod),
        }
        self.note_end(pod, now);
        self.stop_sidecars(client, pod);
        super::status::report(self, client, pod, now);
        if self.can_be_removed(pod, now) {
            self.remove(client);
            return None;
        }
        self.next_due(pod, now)
    }

    fn accept(&mut self, client: &mut Client<'_>) {
        self.accepted = Some(client.now());
        let (third, fourth) = (client.cluster.random.u8(..), client.cluster.random.u8(2..));
        self.address = format!("10.244.{third}.{fourth}");
    }

    /// When the sandbox of the pod is there, so that containers can start.
    pub(super) fn sandbox_at(&self) -> Timestamp {
        after(self.accepted.unwrap_or(Timestamp::UNIX_EPOCH), SANDBOX)
    }

    fn restarts(pod: &Object, container: &Container, code: i32) -> bool {
        match (container.role, pod.text(&["spec", "restartPolicy"])) {
            (Role::Sidecar, _) => true,
            (Role::Main, "Always" | "") => true,
            (_, "Always" | "OnFailure" | "") => code != 0,
            _ => false,
        }
    }

    fn start_what_can(&mut self, client: &mut Client<'_>, pod: &Object) {
        let now = client.now();
        if self.sandbox_at() > now || self.over.is_some() || !self.mounted(client, pod) {
            return;
        }
        for index in 0..self.containers.len() {
            let container = &mut self.containers[index];
            match container.probe(now) {
                Verdict::Fine => {}
                Verdict::Dead(probe) => {
                    client.tell_of(
                        pod,
                        &container.place(),
                        Tone::Warning,
                        "Unhealthy",
                        &format!("{probe} probe failed: "),
                    );
                    let why = format!(
                        "Container {} failed {} probe, will be restarted",
                        container.name,
                        probe.to_lowercase()
                    );
                    client.tell_of(pod, &container.place(), Tone::Normal, "Killing", &why);
                    container.kill(client.cluster, pod.uid());
                }
            }
            self.try_start(client, pod, index);
            let container = &self.containers[index];
            let passed = match container.role {
                Role::Init => container.ended().is_some_and(|exit| exit.code == 0),
                Role::Sidecar => container.has_started(now),
                Role::Main => true,
            };
            if !passed {
                return;
            }
        }
    }

    fn try_start(&mut self, client: &mut Client<'_>, pod: &Object, index: usize) {
        let now = client.now();
        let container = &mut self.containers[index];
        if container.not_before.is_some_and(|time| time > now) {
            return;
        }
        match &container.state {
            State::Running(_) => {}
            State::Waiting { .. } if container.backoff.is_some_and(|backoff| backoff.until > now) => {}
            State::Waiting { .. } => container.start(client, pod),
            State::Ended(exit) if Self::restarts(pod, container, exit.code) => {
                let exit = exit.clone();
                let ran = super::since(exit.started, exit.finished);
                let delay = match container.backoff {
                    Some(backoff) if ran < FORGIVEN_AFTER => Some((backoff.delay * 2).min(LONGEST_BACKOFF)),
                    _ => None,
                };
                match (delay, container.restarts) {
                    // The first time it is started again at once.
                    (None, 0) => {
                        container.start(client, pod);
                        container.backoff = None;
                    }
                    (delay, _) => {
                        let delay = delay.unwrap_or(FIRST_BACKOFF);
                        let place = format!("{}_{}({})", pod.name(), pod.namespace(), pod.uid());
                        let name = container.name.clone();
                        client.tell_of(
                            pod,
                            &container.place(),
                            Tone::Warning,
                            "BackOff",
                            &format!("Back-off restarting failed container {name} in pod {place}"),
                        );
                        let message =
                            format!("back-off {} restarting failed container={name} pod={place}", go_duration(delay));
                        container.last = Some(exit.clone());
                        container.backoff = Some(Backoff { delay, until: after(exit.finished, delay) });
                        container.state = State::Waiting { reason: "CrashLoopBackOff", message };
                    }
                }
            }
            State::Ended(_) => {}
        }
    }

    /// Whether all volumes are there; those that are not are tried again, ever more rarely.
    fn mounted(&mut self, client: &mut Client<'_>, pod: &Object) -> bool {
        let now = client.now();
        if self.containers.iter().any(|container| !matches!(container.state, State::Waiting { .. })) {
            return true;
        }
        if self.mount.is_some_and(|mount| mount.until > now) {
            return false;
        }
        let Some(why) = needs::unmountable(client.cluster, pod) else {
            self.mount = None;
            return true;
        };
        client.tell(pod, Tone::Warning, "FailedMount", &why);
        let delay = self.mount.map_or(FIRST_MOUNT_RETRY, |mount| (mount.delay * 2).min(LONGEST_MOUNT_RETRY));
        self.mount = Some(Backoff { delay, until: after(now, delay) });
        false
    }

    /// Tells all containers to stop.
    fn stop(&mut self, client: &mut Client<'_>, pod: &Object, kill_at: Timestamp) {
        self.stopping = Some(Stopping { kill_at });
        for container in &mut self.containers {
            if container.running().is_some_and(|running| running.exit.is_none()) {
                client.tell_of(
                    pod,
                    &container.place(),
                    Tone::Normal,
                    "Killing",
                    &format!("Stopping container {}", container.name),
                );
                container.signal(client.cluster, pod.uid());
            }
        }
    }

    fn enforce_deadline(&mut self, client: &mut Client<'_>, pod: &Object) {
        let now = client.now();
        if self.ended.is_none() && self.over.is_none() && self.deadline(pod).is_some_and(|deadline| deadline <= now) {
            let message = "Pod was active on the node longer than the specified deadline";
            self.ended = Some(Ended { reason: "DeadlineExceeded", message });
            let grace = pod.integer(&["spec", "terminationGracePeriodSeconds"]).unwrap_or(30).unsigned_abs();
            self.stop(client, pod, after(now, Duration::from_secs(grace)));
        }
    }

    fn deadline(&self, pod: &Object) -> Option<Timestamp> {
        let seconds = pod.integer(&["spec", "activeDeadlineSeconds"])?;
        Some(after(self.accepted?, Duration::from_secs(seconds.unsigned_abs())))
    }

    /// Notes when the last container that counts has ended for good.
    fn note_end(&mut self, pod: &Object, now: Timestamp) {
        if self.over.is_some() {
            return;
        }
        let stopping = self.stopping.is_some();
        let failed_init = self.containers.iter().any(|container| {
            container.role == Role::Init
                && container.ended().is_some_and(|exit| exit.code != 0 && !Self::restarts(pod, container, exit.code))
        });
        let done =
            self.containers.iter().filter(|container| container.role == Role::Main || stopping).all(|container| {
                match &container.state {
                    State::Ended(exit) => stopping || !Self::restarts(pod, container, exit.code),
                    State::Waiting { .. } => stopping || failed_init,
                    State::Running(_) => false,
                }
            });
        if done && (stopping || failed_init || self.containers.iter().any(|container| container.ended().is_some())) {
            self.over = Some(now);
        }
    }

    /// Sidecars have nothing left to be beside of.
    fn stop_sidecars(&mut self, client: &mut Client<'_>, pod: &Object) {
        if self.over.is_none() || self.stopping.is_some() {
            return;
        }
        if self.containers.iter().any(|container| container.role == Role::Sidecar && container.running().is_some()) {
            let grace = pod.integer(&["spec", "terminationGracePeriodSeconds"]).unwrap_or(30).unsigned_abs();
            let kill_at = after(client.now(), Duration::from_secs(grace));
            self.stop(client, pod, kill_at);
            self.over = None;
        }
    }

    /// The final phase, once it is known.
    pub(super) fn final_phase(&self, now: Timestamp) -> Option<&'static str> {
        let over = self.over?;
        let known = after(over, if self.stopping.is_some() { REMOVE } else { FINISH });
        if known > now {
            return None;
        }
        let counted = self.containers.iter().filter(|container| container.role != Role::Sidecar);
        let good = counted.into_iter().all(|container| container.ended().is_some_and(|exit| exit.code == 0));
        Some(if good && self.ended.is_none() { "Succeeded" } else { "Failed" })
    }

    fn can_be_removed(&self, pod: &Object, now: Timestamp) -> bool {
        pod.is_being_deleted() && self.over.is_some_and(|over| after(over, REMOVE) <= now)
    }

    fn remove(&self, client: &mut Client<'_>) {
        let options = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
        // It is gone already, or a finalizer holds it.
        let _ = client.delete_with(&Storage::core("pods"), &self.key, &options);
    }

    fn next_due(&self, pod: &Object, now: Timestamp) -> Option<Timestamp> {
        let containers = self.containers.iter().flat_map(|container| {
            let backoff = container.backoff.filter(|_| matches!(container.state, State::Waiting { .. }));
            [container.next_due(now), container.not_before, backoff.map(|backoff| backoff.until)]
        });
        let over = self.over.map(|over| after(over, if self.stopping.is_some() { REMOVE } else { FINISH }));
        let own = [
            Some(self.sandbox_at()),
            self.mount.map(|mount| mount.until),
            self.stopping.as_ref().map(|stopping| stopping.kill_at),
            self.deadline(pod).filter(|_| self.ended.is_none() && self.over.is_none()),
            over,
            self.accepted.map(|accepted| after(accepted, ACCEPT)),
        ];
        let started = self
            .containers
            .iter()
            .filter_map(Container::running)
            .map(|running| after(running.since, super::REPORT_START));
        containers.chain(own).flatten().chain(started).filter(|due| *due > now).min()
    }
}

/// A duration as Go prints it: `10s`, `2m40s`, `5m0s`.
fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}
