//! The programs that runners start: a helm and a command. Both are a shell script that waits until the play ends it.
//!
//! Time is virtual and jumps, while programs are real. So a play checks for new programs every quarter of a virtual second
//! while a runner may start one, lets no time pass until a new program has reported itself, and none from the moment it
//! ends a program until the runner has reaped it. How long a program takes is virtual time.

use crate::scenario::NAMESPACE;
use crate::support::journal::Journal;
use jiff::Timestamp;
use jobwright_drydock::Drydock;
use jobwright_engine::Event;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a helm and a command take.
const TAKES: Duration = Duration::from_secs(4);
/// How often new programs are looked for.
const QUANTUM: Duration = Duration::from_millis(250);

const SCRIPT: &str = r#"#!/bin/sh
# Records its call, and ends when the play writes an exit code into its pipe. The command ignores SIGTERM.
case $0 in *work) trap '' TERM ;; esac
pipe="${0%/*}/$$.${0##*/}"
echo "$*" >"$pipe.call"
mkfifo "$pipe"
read -r code <"$pipe"
exit "$code"
"#;

/// A piece of work: a program, from its start to its end.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) runner: String,
    /// The version that the runner deploys.
    pub(crate) version: String,
    /// `helm` or `work`.
    pub(crate) kind: String,
    pub(crate) started: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) succeeded: bool,
    /// Its arguments.
    pub(crate) call: String,
    process: u32,
    pipe: PathBuf,
}

/// The programs of a play.
pub(crate) struct Programs {
    directory: PathBuf,
    drydock: Drydock,
    /// The Helm release.
    release: String,
    journal: Journal,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Who may start a program: runner, and job or component.
    expected: BTreeSet<(String, String)>,
    /// What runners deploy.
    versions: BTreeMap<String, String>,
    /// Children of this thread that have been seen.
    known: BTreeSet<u32>,
    works: Vec<Work>,
    problems: Vec<String>,
}

/// Writes the script that all plays share.
pub(crate) fn write_script(directory: &Path) {
    let path = directory.join("program");
    fs::write(&path, SCRIPT).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Programs {
    pub(crate) fn new(directory: PathBuf, drydock: Drydock, release: &str, journal: Journal) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Notify::new());
        let programs = Arc::new(Self { directory, drydock, release: release.to_owned(), journal, state, changed });
        tokio::spawn(Arc::clone(&programs).watch());
        programs
    }

    /// A runner deploys a version. Gives its directory: its plan is read from there, and its programs are there.
    pub(crate) fn enter(&self, runner: &str, version: &str) -> PathBuf {
        self.lock().versions.insert(runner.to_owned(), version.to_owned());
        let directory = self.directory.join(runner);
        if !directory.exists() {
            fs::create_dir(&directory).unwrap();
            for name in ["helm", "work"] {
                std::os::unix::fs::symlink(self.directory.join("../program"), directory.join(name)).unwrap();
            }
        }
        directory
    }

    /// Hears what a runner reports.
    pub(crate) fn hear(&self, runner: &str, event: &Event) {
        let (name, may_start) = match event {
            Event::AttemptStarted { job, .. } if job == "work" => ("work", true),
            Event::AttemptEnded { job, .. } if job == "work" => ("work", false),
            Event::Deploying { component, .. } if component == "web" => ("helm", true),
            Event::ComponentDone { component, .. } if component == "web" => ("helm", false),
            _ => return,
        };
        let key = (runner.to_owned(), name.to_owned());
        let mut state = self.lock();
        if may_start {
            state.expected.insert(key);
        } else {
            state.expected.remove(&key);
        }
        self.changed.notify_one();
    }

    /// A runner has ended: it must not leave a program running, unless it was killed.
    pub(crate) async fn leave(&self, runner: &str, killed: bool) {
        self.lock().expected.retain(|(name, _)| name != runner);
        if !killed {
            let left: Vec<Work> = self.running().into_iter().filter(|work| work.runner == runner).collect();
            for work in left {
                if is_alive_for_long(work.process).await {
                    self.lock().problems.push(format!("`{runner}` has ended and its {} runs on", work.kind));
                }
            }
        }
    }

    pub(crate) fn works(&self) -> Vec<Work> {
        self.lock().works.clone()
    }

    pub(crate) fn take_problems(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().problems)
    }

    fn running(&self) -> Vec<Work> {
        self.lock().works.iter().filter(|work| work.ended.is_none()).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn watch(self: Arc<Self>) {
        loop {
            if self.lock().expected.is_empty() && self.running().is_empty() {
                self.changed.notified().await;
            }
            tokio::time::sleep(QUANTUM).await;
            self.meet_new_ones().await;
            for work in self.running() {
                self.follow(&work).await;
            }
        }
    }

    /// Waits, in real time, until new children of this thread have reported themselves.
    async fn meet_new_ones(&self) {
        let children = fs::read_to_string("/proc/thread-self/children").unwrap();
        for process in children.split_whitespace().map(|id| id.parse::<u32>().unwrap()) {
            if !self.lock().known.insert(process) {
                continue;
            }
            for _ in 0..5_000 {
                if let Some(pipe) = self.find_pipe(process) {
                    self.begin(process, pipe).await;
                    break;
                }
                if !is_alive(process) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn find_pipe(&self, process: u32) -> Option<PathBuf> {
        let runners = fs::read_dir(&self.directory).unwrap().map(|entry| entry.unwrap().path());
        let names = ["helm", "work"].map(|kind| format!("{process}.{kind}"));
        runners.flat_map(|runner| names.clone().map(|name| runner.join(name))).find(|pipe| pipe.exists())
    }

    async fn begin(&self, process: u32, pipe: PathBuf) {
        let runner = pipe.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let kind = pipe.extension().unwrap().to_string_lossy().into_owned();
        let others: Vec<Work> = self.running();
        for other in others.iter().filter(|other| other.kind == kind || other.runner != runner) {
            // A helm may outlive a runner that was killed, and the command of a killed runner is killed with it.
            if is_alive_for_long(other.process).await {
                let message = format!("{kind} of `{runner}` started while {} of `{}` runs", other.kind, other.runner);
                self.lock().problems.push(message);
            }
        }
        let started = self.drydock.now();
        let version = self.lock().versions[&runner].clone();
        let call = fs::read_to_string(format!("{}.call", pipe.display())).unwrap();
        let work = Work { runner, version, kind, started, ended: None, succeeded: false, call, process, pipe };
        self.lock().works.push(work.clone());
        if work.kind == "helm" && !self.start_release(&work.call).await {
            self.end(&work, 1).await;
        }
    }

    async fn follow(&self, work: &Work) {
        if !is_alive(work.process) {
            self.note_end(work, false);
            return;
        }
        let holder = self.journal.holder();
        if holder.as_ref().is_some_and(|holder| *holder != work.runner) && is_alive_for_long(work.process).await {
            let message = format!("{} of `{}` runs while {holder:?} holds the lease", work.kind, work.runner);
            let mut state = self.lock();
            if !state.problems.contains(&message) {
                state.problems.push(message);
            }
        }
        let age = Duration::try_from(self.drydock.now().duration_since(work.started)).unwrap_or_default();
        if age >= TAKES {
            if work.kind == "helm" {
                self.end_release().await;
            }
            self.end(work, 0).await;
        }
    }

    /// Ends a program, and lets no time pass until it is reaped.
    async fn end(&self, work: &Work, code: i32) {
        self.note_end(work, code == 0);
        // Open for reading, too, so that nothing waits if the program has just been killed.
        let mut pipe = fs::OpenOptions::new().read(true).write(true).open(&work.pipe).unwrap();
        pipe.write_all(format!("{code}\n").as_bytes()).unwrap();
        let process = work.process;
        let reaped = move || {
            for _ in 0..1_000 {
                if !Path::new(&format!("/proc/{process}")).exists() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        tokio::task::spawn_blocking(reaped).await.unwrap();
    }

    fn note_end(&self, ended: &Work, succeeded: bool) {
        let now = self.drydock.now();
        let mut state = self.lock();
        for work in state.works.iter_mut().filter(|work| work.process == ended.process && work.ended.is_none()) {
            (work.ended, work.succeeded) = (Some(now), succeeded);
        }
    }

    fn releases(&self) -> Api<Secret> {
        Api::default_namespaced(Client::new(self.drydock.clone(), NAMESPACE))
    }

    /// The revisions of the Helm release: number and status.
    pub(crate) async fn revisions(&self) -> Vec<(u64, String)> {
        let listed = self
            .releases()
            .list(&ListParams::default().labels(&format!("owner=helm,name={}", self.release)))
            .await
            .unwrap();
        let label = |secret: &Secret, key: &str| secret.labels().get(key).cloned().unwrap_or_default();
        let revision = |secret: &Secret| (label(secret, "version").parse().unwrap(), label(secret, "status"));
        let mut revisions: Vec<(u64, String)> = listed.iter().map(revision).collect();
        revisions.sort();
        revisions
    }

    fn object_name(&self, number: u64) -> String {
        format!("sh.helm.release.v1.{}.v{number}", self.release)
    }

    /// What helm does first: it refuses while a revision is pending, and else records a pending one.
    async fn start_release(&self, call: &str) -> bool {
        let revisions = self.revisions().await;
        let last = revisions.last().cloned().unwrap_or_default();
        if last.1.starts_with("pending") {
            return false;
        }
        let (number, status) = (last.0 + 1, if last.0 == 0 { "pending-install" } else { "pending-upgrade" });
        let mut labels =
            json!({"owner": "helm", "name": self.release, "version": number.to_string(), "status": status});
        let given = call.split_whitespace().skip_while(|word| *word != "--labels").nth(1);
        if let Some((label, value)) = given.and_then(|given| given.split_once('=')) {
            labels[label] = value.into();
        }
        let secret = json!({"metadata": {"name": self.object_name(number), "labels": labels}});
        let secret = serde_json::from_value(secret).unwrap();
        self.releases().create(&PostParams::default(), &secret).await.unwrap();
        true
    }

    /// What helm does last.
    async fn end_release(&self) {
        for (number, status) in self.revisions().await {
            let status = match status.as_str() {
                "deployed" => "superseded",
                "pending-install" | "pending-upgrade" => "deployed",
                _ => continue,
            };
            let patch = Patch::Merge(json!({"metadata": {"labels": {"status": status}}}));
            self.releases().patch(&self.object_name(number), &PatchParams::default(), &patch).await.unwrap();
        }
    }
}

/// Whether a process runs: it exists and is no zombie.
fn is_alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, state)| !matches!(state.trim_start().as_bytes().first(), Some(b'Z' | b'X')))
}

/// Whether a process still runs when a signal has had time to end it. No virtual time passes.
async fn is_alive_for_long(process: u32) -> bool {
    let wait = move || {
        for _ in 0..100 {
            if !is_alive(process) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    };
    tokio::task::spawn_blocking(wait).await.unwrap()
}
