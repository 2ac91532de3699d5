//! A play of the scenario: who deploys, who disturbs, and what is true at its end.

use crate::crash::scenario::{Act, Part};
use crate::support::{Lab, NAMESPACE, release};
use jobwright_drydock::{Call, Fault, Faults, When};
use jobwright_engine::{Events, Manager, Report, Settings};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What goes wrong in a play.
#[derive(Clone, Debug)]
pub(crate) enum Disturbance {
    None,
    /// The process is stopped at a call, and started again.
    Stop {
        call: usize,
        when: When,
    },
    /// A call fails.
    Fault {
        call: usize,
        fault: Fault,
    },
    /// Somebody else deploys the same, a little later.
    Second {
        delay: Duration,
    },
}

impl fmt::Display for Disturbance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(formatter, "undisturbed"),
            Self::Stop { call, when } => write!(formatter, "stopped {when:?} call {call}"),
            Self::Fault { call, fault } => write!(formatter, "{fault:?} at call {call}"),
            Self::Second { delay } => write!(formatter, "two at once, {delay:?} apart"),
        }
    }
}

pub(crate) struct Play<'a> {
    part: &'a Part,
    disturbance: Disturbance,
}

impl<'a> Play<'a> {
    pub(crate) fn new(part: &'a Part, disturbance: Disturbance) -> Self {
        Self { part, disturbance }
    }

    /// Plays it, and gives the calls that were made.
    pub(crate) fn run(&self) -> Result<Vec<Call>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(self.play())
    }

    async fn play(&self) -> Result<Vec<Call>, String> {
        let mut lab = Lab::new().await;
        self.prepare(&lab.faults);
        let mut strangers = Vec::new();
        let mut stopped_at = None;
        for (number, act) in self.part.acts.iter().enumerate() {
            lab.pass(act.after()).await;
            strangers.extend(act.doomed().map(|job| stranger(&lab, job.to_owned())));
            let first = self.act(&lab, number, act, "first");
            let stopped = if let Disturbance::Second { delay } = &self.disturbance {
                let second = async {
                    tokio::time::sleep(*delay).await;
                    self.act(&lab, number, act, "second").await
                };
                let (first, second) = tokio::join!(first, second);
                first.and(second)?;
                false
            } else {
                tokio::select! {
                    result = first => result.map(|()| false)?,
                    () = lab.faults.stopped() => true,
                }
            };
            if stopped {
                stopped_at = lab.faults.calls().last().map(ToString::to_string);
                // A new process knows nothing, and its calls go well.
                lab.faults = Faults::new(0);
                self.act(&lab, number, act, "again").await?;
            }
        }
        for stranger in strangers {
            stranger.await.unwrap();
        }
        self.judge(&lab).await.map_err(|problem| match stopped_at {
            Some(call) => format!("({call}) {problem}"),
            None => problem,
        })?;
        Ok(lab.faults.calls())
    }

    fn prepare(&self, faults: &Faults) {
        match &self.disturbance {
            Disturbance::Stop { call, when } => faults.stop_at(*call, *when),
            Disturbance::Fault { call, fault } => faults.on(|_| true).skip(call - 1).times(1).fail(fault.clone()),
            Disturbance::None | Disturbance::Second { .. } => {}
        }
    }

    async fn act(&self, lab: &Lab, number: usize, act: &Act, holder: &str) -> Result<(), String> {
        let settings = Settings {
            revision: number.to_string(),
            nonce: act.nonce.clone(),
            holder: format!("{holder}-{number}"),
            patience: Duration::from_hours(2),
            ..Settings::default()
        };
        let manager = Manager::new(lab.client(), release(None), lab.clock(), settings);
        let cancellation = CancellationToken::new();
        let registry = act.registry();
        let deploy = async {
            let lock = manager.lock(&cancellation, &Events::nowhere()).await?;
            // The deploy is cancelled, not the wait until the lease of a dead process has expired.
            if let Some(after) = act.cancelled_after() {
                let token = cancellation.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    token.cancel();
                });
            }
            let report = manager.deploy_locked(&lock, &registry, cancellation.clone(), Events::nowhere()).await;
            lock.release().await;
            report
        };
        match tokio::time::timeout(Duration::from_hours(6), deploy).await {
            Ok(Ok(Report { error: Some(error), .. })) => Err(format!("{}: {}", act.name, error.whole_message())),
            Ok(result) => result.map(drop).map_err(|error| format!("{}: {}", act.name, error.whole_message())),
            Err(_) => Err(format!("{}: it hangs", act.name)),
        }
    }

    /// What is true at the end, whatever happened.
    async fn judge(&self, lab: &Lab) -> Result<(), String> {
        let mut seen: BTreeMap<String, usize> = self.part.starts.keys().map(|line| (line.clone(), 0)).collect();
        for started in lab.drydock.witness() {
            *seen.entry(started.command.last().cloned().unwrap_or_default()).or_default() += 1;
        }
        expect("containers started", &seen, &self.part.starts)?;
        let mut outcomes = BTreeMap::new();
        let mut unknown = Vec::new();
        for ledger in lab.ledgers().await {
            let job = ledger.labels()["jobwright.io/job"].clone();
            let part = |key: &str| -> Value { serde_json::from_str(&ledger.data.as_ref().unwrap()[key]).unwrap() };
            if !part("head")["active"].is_null() {
                return Err(format!("`{job}` still has an active run: {}", part("head")));
            }
            let runs = part("runs").as_array().cloned().unwrap_or_default();
            let last = runs.iter().rev().find(|run| run["outcome"] != "Superseded").cloned().unwrap_or_default();
            outcomes.insert(job.clone(), last["outcome"].as_str().unwrap_or_default().to_owned());
            let lost = runs.iter().filter(|run| run["outcome"] == "Unknown");
            unknown.extend(lost.map(|run| format!("{job} {}", run["run"])));
        }
        expect("jobs ended", &outcomes, &self.part.outcomes)?;
        unknown.sort();
        let mut expected = self.part.unknown.clone();
        expected.sort();
        expect("runs are unknown", &unknown, &expected)?;
        let stays = |job: &&Job| job.spec.as_ref().is_none_or(|spec| spec.ttl_seconds_after_finished.is_none());
        let left: Vec<String> = lab.jobs().await.iter().filter(stays).map(kube::ResourceExt::name_any).collect();
        expect("Jobs never go", &left, &Vec::new())
    }
}

fn expect<T: PartialEq + fmt::Debug>(what: &str, seen: &T, expected: &T) -> Result<(), String> {
    if seen == expected { Ok(()) } else { Err(format!("{what}: {seen:?} instead of {expected:?}")) }
}

/// Deletes the Job of a job once it has run for a while, and only once.
fn stranger(lab: &Lab, job: String) -> tokio::task::JoinHandle<()> {
    let jobs = Api::<Job>::namespaced(lab.stranger(), NAMESPACE);
    tokio::spawn(async move {
        let mut running_for = 0;
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let parameters = ListParams::default().labels(&format!("jobwright.io/job={job}"));
            let found = jobs.list(&parameters).await.unwrap().items;
            let running = |job: &&Job| job.status.as_ref().is_some_and(|status| status.active.unwrap_or_default() > 0);
            let Some(found) = found.iter().find(running) else { continue };
            running_for += 1;
            if running_for == 4 {
                jobs.delete(&found.name_any(), &DeleteParams::background()).await.unwrap();
                return;
            }
        }
    })
}
