//! A component that is a chart, deployed by helm.

mod pending;
mod run;
mod source;

use super::caller::Caller;
use super::helm::{Helm, HelmReleases, Machine, Revision, Running};
use super::{Common, files, name_some, with_left};
use crate::plan::{self, Chart};
use crate::record::{Deployed, HelmProcess, Record};
use jobwright_engine::{CALL_LIMIT, Component, Decision, DeployContext, Failure, Occasion, async_trait};
use pending::{Case, Verdict};
use run::Ended;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A component that is a chart.
pub(crate) struct ChartComponent {
    /// What every component has.
    pub common: Common,
    /// The name of its Helm release.
    pub release: String,
    /// Where the chart is.
    pub chart: Chart,
    /// Values files, the last one wins.
    pub values: Vec<PathBuf>,
    /// Values over those of the files.
    pub set: BTreeMap<String, Value>,
    /// How helm deploys it.
    pub options: plan::Helm,
    /// The helm that does; without one it can neither be decided on nor deployed.
    pub helm: Option<Helm>,
    /// The Helm releases of the namespace.
    pub releases: HelmReleases,
    /// This host.
    pub host: String,
    /// The release that is pending when the deploy begins is taken over.
    pub unlock: bool,
    /// The revision that `unlock` is about, by its uid.
    pub unlocked: Mutex<Option<String>>,
}

/// How much longer than its own time limit a helm may run, before it is ended.
const SLACK: Duration = Duration::from_mins(1);
/// How often a running helm is looked for.
const PAUSE: Duration = Duration::from_secs(1);

impl ChartComponent {
    fn helm(&self) -> Result<&Helm, Failure> {
        self.helm.as_ref().ok_or_else(|| {
            let name = &self.common.name;
            Failure::new(format!("component `{name}` is a chart, and no helm was found: install Helm 3 or 4"))
                .for_good()
        })
    }

    /// What it is made of, as hashes.
    fn parts(&self, chart: &Chart) -> Result<BTreeMap<String, String>, Failure> {
        let mut texts = vec![json!(self.set).to_string()];
        for file in &self.values {
            texts.push(files::hash(file, std::slice::from_ref(file))?);
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Ok(BTreeMap::from([("chart".to_owned(), chart.hash()?), ("values".to_owned(), files::hash_of(&texts))]))
    }

    async fn decide_release(&self, context: &DeployContext) -> Result<Decision, Failure> {
        let helm = self.helm()?;
        let Some(revision) = self.last(context, true).await? else {
            return Ok(Decision::Install(format!("Helm release `{}` does not exist", self.release)));
        };
        if revision.is_pending() {
            let reason = format!("a helm was killed during revision {} ({})", revision.number, revision.status);
            return Ok(if revision.number == 1 { Decision::Install(reason) } else { Decision::Upgrade(reason) });
        }
        let deployed = self.deployed().await;
        if revision.status != "deployed" {
            let reason = format!("its Helm release is {}", revision.status);
            return Ok(deployed.map_or(Decision::Upgrade(reason.clone()), |deployed| deployed.decide(reason)));
        }
        let parts = self.parts(&self.chart.pin(helm, context).await?)?;
        Ok(match self.common.changes(deployed.as_ref(), &parts) {
            // Helm knows it, and the record does not.
            Some(Decision::Install(_)) if deployed.is_none() => {
                Decision::Upgrade("first deploy by Jobwright".to_owned())
            }
            Some(decision) => decision,
            None => match deployed.and_then(|deployed| deployed.helm_revision) {
                Some(number) if number != revision.number => Decision::Upgrade(format!(
                    "drift: another client has deployed revision {} over revision {number}",
                    revision.number
                )),
                _ => Decision::Unchanged("same chart, values and version".to_owned()),
            },
        })
    }

    /// What it was before and is no longer: another Helm release, or manifests.
    fn left(&self, deployed: &Deployed, namespace: &str) -> Option<String> {
        deployed.left_release(Some(&self.release), namespace).or_else(|| {
            let objects = Some(&deployed.objects).filter(|objects| !objects.is_empty())?;
            Some(format!("it was manifests before, and {} stay", name_some(objects)))
        })
    }

    async fn deployed(&self) -> Option<Deployed> {
        self.common.records.get().await.components.remove(&self.common.name)
    }

    /// The last revision of the release. One that is pending is judged, each time it is seen: a helm that runs on this
    /// machine is waited for, one that may run elsewhere is an error, and what is given back pending may be taken over. A
    /// helm that an earlier deploy started on this machine is waited for, even if it has not created a revision yet.
    async fn last(&self, context: &DeployContext, is_first: bool) -> Result<Option<Revision>, Failure> {
        let caller = Caller::of(context);
        let mut last = if is_first {
            self.releases.last(&caller, &self.release).await?
        } else {
            self.releases.last_now(&caller, &self.release).await?
        };
        if let Some(pending) = last.as_ref().filter(|revision| is_first && self.unlock && revision.is_pending()) {
            *self.unlocked.lock().unwrap_or_else(PoisonError::into_inner) = Some(pending.uid.clone());
        }
        let mut waited = Duration::ZERO;
        loop {
            let verdict = match last.as_ref().filter(|revision| revision.is_pending()) {
                Some(pending) => self.judge(context, pending).await,
                None if self.has_running_helm(context).await => Verdict::Wait,
                None => break,
            };
            match verdict {
                Verdict::TakeOver => break,
                Verdict::Refuse(why) => return Err(Failure::new(why)),
                Verdict::Wait if waited > self.limit() => {
                    let release = &self.release;
                    let problem = format!("a helm for release `{release}` still runs on this machine");
                    return Err(Failure::new(format!("{problem}: end it, then deploy again")));
                }
                Verdict::Wait => {}
            }
            if waited.is_zero() {
                context.progress("waiting for a helm that an earlier deploy left running");
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => waited += PAUSE,
                () = context.cancellation().cancelled() => return Err(Failure::new("cancelled")),
            }
            last = self.releases.last_now(&caller, &self.release).await?;
        }
        Ok(last)
    }

    /// Whether a helm that an earlier deploy has started runs on this machine.
    async fn has_running_helm(&self, context: &DeployContext) -> bool {
        let was_started = self.deployed().await.is_some_and(|deployed| deployed.helm.is_some());
        was_started && self.running(context) == Running::Yes
    }

    /// Whether a helm of this release runs on this machine.
    fn running(&self, context: &DeployContext) -> Running {
        Running::of(&["upgrade", "--install", &self.release, "--namespace", &context.release().namespace])
    }

    async fn judge(&self, context: &DeployContext, pending: &Revision) -> Verdict {
        let deployed = self.deployed().await;
        let unlocked = self.unlocked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let case = Case {
            release: &self.release,
            pending,
            process: deployed.as_ref().and_then(|deployed| deployed.helm.as_ref()),
            host: &self.host,
            machine: &Machine::here(),
            running: self.running(context),
            is_unlocked: unlocked.as_ref() == Some(&pending.uid),
            now: context.now(),
        };
        case.judge()
    }

    /// How long helm may run.
    fn limit(&self) -> Duration {
        self.options.timeout.duration().saturating_add(SLACK)
    }

    /// Records that helm is going to run, so that the release that it may leave pending is known as ours.
    async fn announce(&self, context: &DeployContext, revision: u64, mark: Option<String>) -> Result<(), Failure> {
        // It starts when this is recorded.
        let limit = self.limit() + CALL_LIMIT + run::GRACE;
        let limit = jiff::SignedDuration::try_from(limit).unwrap_or(jiff::SignedDuration::MAX);
        let process = HelmProcess {
            host: self.host.clone(),
            machine: Machine::here().id,
            revision,
            until: jiff::Timestamp::MAX,
            mark,
        };
        let (name, release) = (self.common.name.clone(), self.release.clone());
        let announce = move |record: &mut Record| {
            let until = context.now().checked_add(limit).unwrap_or(jiff::Timestamp::MAX);
            let process = HelmProcess { until, ..process.clone() };
            let had_begun = record.components.contains_key(&name);
            let deployed = record.components.entry(name.clone()).or_default();
            deployed.helm = Some(process);
            deployed.helm_release = Some(release.clone());
            deployed.begin();
            // Helm had deployed it before.
            deployed.installed |= revision > 0 && !had_begun;
        };
        self.common.records.change(announce).await.map(drop)
    }

    /// Records that helm has ended by itself: a release that is pending from now on is another client's.
    async fn withdraw(&self) -> Result<(), Failure> {
        let name = self.common.name.clone();
        let withdraw = move |record: &mut Record| {
            if let Some(deployed) = record.components.get_mut(&name) {
                deployed.helm = None;
            }
        };
        self.common.records.change(withdraw).await.map(drop)
    }
}

#[async_trait]
impl Component for ChartComponent {
    fn name(&self) -> &str {
        &self.common.name
    }

    fn depends_on(&self) -> Vec<String> {
        self.common.depends_on.clone()
    }

    async fn decide(&self, context: &DeployContext) -> Result<Decision, Failure> {
        let decision = self.decide_release(context).await?;
        let left = self.deployed().await.and_then(|deployed| self.left(&deployed, &context.release().namespace));
        Ok(with_left(decision, left))
    }

    async fn deploy(&self, context: &DeployContext, _: Occasion) -> Result<(), Failure> {
        let helm = self.helm()?;
        let chart = self.chart.pin(helm, context).await?;
        let parts = self.parts(&chart)?;
        let caller = Caller::of(context);
        let before = loop {
            match self.last(context, false).await? {
                Some(pending) if pending.is_pending() => {
                    let (number, status) = (pending.number, &pending.status);
                    context.progress(format!("recovering revision {number}, which a killed helm left {status}"));
                    self.releases.forget(&caller, &pending).await?;
                }
                last => break last.map_or(0, |last| last.number),
            }
        };
        context.progress(format!("helm {} upgrade --install {}", helm.version, self.release));
        let mark = helm.takes_labels().then(run::new_mark);
        self.announce(context, before, mark.clone()).await?;
        match self.run(helm, &chart, mark.as_deref(), context).await? {
            Ended::Well => {}
            Ended::Badly(failure) => {
                return Err(match self.withdraw().await {
                    Ok(()) => failure,
                    Err(second) => Failure::new(format!("{failure}; {second}")),
                });
            }
            Ended::Killed(failure) => return Err(failure),
        }
        let last = self.releases.last_now(&caller, &self.release).await?.map(|last| last.number);
        let Deployed { objects, installed, .. } = self.deployed().await.unwrap_or_default();
        let deployed = Deployed {
            parts,
            version: self.common.version.clone(),
            // Any later revision is another client's.
            helm_revision: last.map(|last| last.min(before + 1)),
            helm_release: Some(self.release.clone()),
            // What was applied while it was manifests is not helm's, and not forgotten.
            objects,
            installed,
            ..Deployed::default()
        };
        let name = self.common.name.clone();
        let done = move |record: &mut Record| drop(record.components.insert(name.clone(), deployed.clone()));
        self.common.records.change(done).await.map(drop)
    }

    async fn complete(&self, context: &DeployContext) -> Result<(), Failure> {
        self.common.complete(context).await
    }
}
