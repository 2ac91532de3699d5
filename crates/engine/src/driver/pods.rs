//! Attempts that are Jobs of the cluster.

use super::follow::Follower;
use super::{Attempts, log, view};
use crate::error::{Answer, Error, Refusal, classify};
use crate::event::Events;
use crate::fingerprint::{Inputs, References};
use crate::job::Needed;
use crate::ledger::Active;
use crate::lookout::Lookout;
use crate::machine::{Finish, Life, Observed, Remains, Seen, Step, Stray, Trouble};
use crate::mask::Mask;
use crate::names::{FIELD_MANAGER, FINGERPRINT};
use crate::pod_job::PodJob;
use crate::retry::Retry;
use crate::skip;
use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The attempts of a job that is a pod.
pub(crate) struct Pods {
    job: Arc<PodJob>,
    client: Client,
    namespace: String,
    /// The labels of everything that is made.
    labels: BTreeMap<String, String>,
    lookout: Lookout,
    retry: Retry,
    mask: Mask,
    seen: Memory,
    /// Where to send what pods print while they run.
    audience: Option<Events>,
    follower: Option<Follower>,
}

/// What this process knows that the watch may not have told yet.
#[derive(Default)]
struct Memory {
    /// The Job that was made or read last, and how often all had been listed then.
    job: Option<(Arc<Job>, u64)>,
    /// What was done to Jobs, by uid.
    released: BTreeSet<String>,
    deleted: BTreeMap<String, Timestamp>,
    expired: BTreeSet<String>,
    /// The Job has to be asked for, whatever the watch says.
    in_doubt: bool,
    /// How the pod of an attempt ended, by the uid of its Job: it may go before its Job does.
    finish: Option<(String, Finish, Arc<Pod>)>,
    /// What the pod says of why it does not start.
    trouble: Option<Trouble>,
    /// What events say of that.
    events: Option<Trouble>,
    silent_since: Option<Timestamp>,
    /// Since when the Job runs without a start time.
    unstarted_since: Option<Timestamp>,
    log: Option<Result<String, String>>,
    refusal: Option<String>,
}

impl Memory {
    /// How a Job is, after what was done to it.
    fn correct(&self, life: Life, uid: &str) -> Life {
        match life {
            Life::Held | Life::Running { .. } if self.deleted.contains_key(uid) => {
                Life::Going { since: self.deleted[uid] }
            }
            Life::Held if self.released.contains(uid) => Life::Running { since: None },
            other => other,
        }
    }
}

impl Pods {
    pub(crate) fn new(
        job: Arc<PodJob>,
        client: Client,
        namespace: &str,
        labels: BTreeMap<String, String>,
        lookout: Lookout,
        retry: Retry,
    ) -> Self {
        Self {
            job,
            client,
            namespace: namespace.to_owned(),
            labels,
            lookout,
            retry,
            mask: Mask::default(),
            seen: Memory::default(),
            audience: None,
            follower: None,
        }
    }

    /// Hides what this mask hides, and lets it hide the Secrets of these pods.
    pub(crate) fn behind(mut self, mask: &Mask) -> Self {
        self.mask = mask.share();
        self
    }

    /// Sends what pods print while they run.
    pub(crate) fn heard_by(mut self, events: &Events) -> Self {
        self.audience = Some(events.clone());
        self
    }

    fn follow(&mut self, pod: &Pod) {
        let Some(events) = &self.audience else { return };
        if !self.follower.as_ref().is_some_and(|follower| follower.follows(pod)) {
            self.follower = Follower::start(&self.client, &self.namespace, pod, &self.job.id, &self.mask, events);
        }
    }

    /// Hides the Secrets of what runs. The pod counts, not the plan: the plan may have changed, or not know the job.
    async fn hide_secrets(&self, job: Option<&Job>, pod: Option<&Pod>) -> Result<(), Error> {
        let template = job.and_then(|job| job.spec.as_ref()).and_then(|spec| serde_json::to_value(&spec.template).ok());
        let running = pod.and_then(|pod| serde_json::to_value(pod).ok());
        let wanted = std::iter::once(&self.job.template).chain(&template).chain(&running);
        let names: BTreeSet<String> = wanted.flat_map(|template| References::of(template).secrets).collect();
        self.mask.hide_secrets(&self.client, &self.namespace, &names, &self.retry).await
    }

    fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The Job of an attempt, for certain, and whether it was read just now.
    async fn find(&mut self, active: &Active) -> Result<(Option<Arc<Job>>, bool), Error> {
        // What was remembered of an earlier attempt says nothing of this one.
        self.seen.job.take_if(|(job, _)| job.name_any() != active.job);
        if !self.seen.in_doubt {
            if let Some(job) = self.lookout.jobs(&self.job.id).into_iter().find(|job| job.name_any() == active.job) {
                self.seen.job = None;
                return Ok((Some(job), false));
            }
            match &self.seen.job {
                Some((job, _)) if self.lookout.has_gone(&job.uid().unwrap_or_default()) => {
                    self.seen.job = None;
                    return Ok((None, false));
                }
                // The watch lags a little. Only a list that was made since would know better.
                Some((job, lists)) if *lists == self.lookout.lists() => return Ok((Some(Arc::clone(job)), false)),
                // A Job without a recorded uid is created if it does not exist, and found if it does.
                None if active.uid.is_none() => return Ok((None, false)),
                None if active.uid.as_ref().is_some_and(|uid| self.lookout.has_gone(uid)) => return Ok((None, false)),
                _ => {}
            }
        }
        let doing = format!("read Job `{}`", active.job);
        let jobs = self.jobs();
        let found = self.retry.call(&doing, || jobs.get_opt(&active.job)).await?.map(Arc::new);
        self.seen.in_doubt = false;
        self.seen.job = found.clone().map(|job| (job, self.lookout.lists()));
        Ok((found, true))
    }

    fn look_at_strays(&self, active: Option<&Active>, observed: &mut Observed) {
        let jobs = self.lookout.jobs(&self.job.id);
        let pods = self.lookout.pods(&self.job.id);
        let is_active = |uid: &str| active.and_then(|active| active.uid.as_deref()) == Some(uid);
        for job in &jobs {
            let uid = job.uid().unwrap_or_default();
            let name = job.name_any();
            if active.is_some_and(|active| active.job == name) {
                continue;
            }
            let ttl = job.spec.as_ref().and_then(|spec| spec.ttl_seconds_after_finished);
            let expires = ttl.is_some() || self.seen.expired.contains(&uid);
            let life = self.seen.correct(view::life(job, None), &uid);
            observed.strays.push(Stray { job: name, life, uid, expires });
        }
        let remains = pods.iter().find(|pod| {
            let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
            let uid = owner.map(|owner| owner.uid.as_str()).unwrap_or_default();
            let job_exists = jobs.iter().any(|job| job.uid().as_deref() == Some(uid));
            view::is_alive(pod) && !is_active(uid) && !job_exists
        });
        observed.remains = remains.map(|pod| Remains {
            pod: pod.name_any(),
            since: pod.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        });
    }

    /// Looks at the pod of a Job that is there, or was.
    fn look_at_pod(&mut self, uid: &str, observed: &mut Observed) -> Option<Arc<Pod>> {
        let pods = self.lookout.pods(&self.job.id);
        let owned = |pod: &&Arc<Pod>| pod.owner_references().iter().any(|owner| owner.uid == uid);
        let pod = pods.iter().filter(owned).max_by_key(|pod| pod.creation_timestamp()).cloned();
        if let Some((pod, finish)) = pod.as_ref().and_then(|pod| Some((pod, view::finish_of_pod(pod)?))) {
            self.seen.finish = Some((uid.to_owned(), finish, Arc::clone(pod)));
        }
        let finish = self.seen.finish.as_ref().filter(|(owner, ..)| owner == uid);
        observed.pod_finish = finish.map(|(_, finish, _)| finish.clone());
        pod.or_else(|| finish.map(|(_, _, pod)| Arc::clone(pod)))
    }

    /// Why a pod does not start, and since when it does not say.
    fn look_for_trouble(&mut self, pod: Option<&Pod>, observed: &mut Observed) {
        let now = self.retry.clock().now();
        if pod.is_some_and(view::has_started) {
            self.seen.trouble = None;
            self.seen.events = None;
            self.seen.silent_since = None;
        } else if let Some(trouble) = pod.and_then(|pod| view::trouble_of_pod(pod, now)) {
            // The same trouble continues, in other words.
            let known = self.seen.trouble.as_ref().filter(|known| known.is_scheduling == trouble.is_scheduling);
            let since = known.map_or(trouble.since, |known| known.since);
            self.seen.trouble = Some(Trouble { since, ..trouble });
        } else {
            self.seen.silent_since.get_or_insert(now);
        }
        observed.trouble = self.seen.trouble.as_ref().or(self.seen.events.as_ref()).cloned();
        observed.is_silent_since = self.seen.silent_since.filter(|_| self.seen.trouble.is_none());
    }

    async fn create(&mut self, active: &Active, ledger_uid: &str) -> kube::Result<()> {
        let run_id = format!("{}-{}-{}", self.job.id, active.run, ledger_uid.split('-').next().unwrap_or_default());
        let manifest = self.job.manifest(active, &self.labels, &run_id);
        let job: Job = serde_json::from_value(manifest).map_err(kube::Error::SerdeError)?;
        let post = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match self.retry.attempt(self.jobs().create(&post, &job)).await {
            Ok(job) => self.seen.job = Some((Arc::new(job), self.lookout.lists())),
            Err(error) if classify(&error) == Answer::AlreadyExists => {
                let found = self.retry.attempt(self.jobs().get(&active.job)).await?;
                // The same inputs: created before a crash, or for an earlier ledger of the same name.
                if found.annotations().get(FINGERPRINT) != Some(&active.fingerprint.to_string()) {
                    self.seen.refusal = Some(format!("another client has created a Job `{}`", active.job));
                    return Ok(());
                }
                self.seen.job = Some((Arc::new(found), self.lookout.lists()));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Patches a Job, if it is still the same.
    async fn patch(&self, name: &str, uid: &str, spec: Value) -> kube::Result<Job> {
        let patch = json!({"metadata": {"uid": uid}, "spec": spec});
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        self.retry.attempt(self.jobs().patch(name, &parameters, &Patch::Merge(patch))).await
    }

    /// Looks at the events of a pod that does not start. They only tell earlier what the deadline would tell later, so
    /// that they cannot be read is no failure.
    async fn inspect(&mut self, active: &Active) {
        let events = Api::<Event>::namespaced(self.client.clone(), &self.namespace);
        let now = self.retry.clock().now();
        let uid = active.uid.clone().unwrap_or_default();
        let pods = self.lookout.pods(&self.job.id);
        let pod = pods.iter().filter(|pod| pod.owner_references().iter().any(|owner| owner.uid == uid));
        let uids = std::iter::once(uid.clone()).chain(pod.filter_map(|pod| pod.uid()));
        self.seen.silent_since = Some(now);
        let mut found = Vec::new();
        for uid in uids {
            let about = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
            let Ok(listed) = self.retry.attempt(events.list(&about)).await else { return };
            found.extend(listed.items);
        }
        self.seen.events = view::trouble_of_events(&found, now);
    }

    async fn read_log(&mut self, active: &Active) {
        let uid = active.uid.clone().unwrap_or_default();
        let mut ignored = Observed::default();
        let pod = self.look_at_pod(&uid, &mut ignored);
        self.seen.log = Some(match pod {
            None => Err("its pod was deleted".to_owned()),
            Some(pod) => {
                let bytes = self.job.keep.log_bytes;
                log::read(&self.client, &self.namespace, &pod, bytes, &self.mask, &self.retry).await
            }
        });
    }
}

#[async_trait]
impl Attempts for Pods {
    async fn look(&mut self, active: Option<&Active>, observed: &mut Observed) -> Result<(), Error> {
        self.lookout.ready(&self.retry).await?;
        if let Some(active) = active.filter(|active| !active.job.is_empty()) {
            let (found, is_confirmed) = self.find(active).await?;
            observed.is_confirmed = is_confirmed;
            if let Some(job) = found {
                let uid = job.uid().unwrap_or_default();
                let pod = self.look_at_pod(&uid, observed);
                let life = self.seen.correct(view::life(&job, pod.as_deref()), &uid);
                if matches!(life, Life::Running { .. }) {
                    self.look_for_trouble(pod.as_deref(), observed);
                }
                if life == (Life::Running { since: None }) {
                    let now = self.retry.clock().now();
                    observed.is_unstarted_since = Some(*self.seen.unstarted_since.get_or_insert(now));
                }
                if pod.is_some() || matches!(life, Life::Finished(_)) {
                    self.hide_secrets(Some(&job), pod.as_deref()).await?;
                }
                if let Some(pod) = &pod {
                    self.follow(pod);
                }
                observed.attempt = Seen::Present { uid, life };
            } else {
                let pod = self.look_at_pod(active.uid.as_deref().unwrap_or_default(), observed);
                if pod.is_some() || self.seen.refusal.is_some() {
                    self.hide_secrets(None, pod.as_deref()).await?;
                }
                observed.attempt = Seen::Absent;
            }
            observed.log.clone_from(&self.seen.log);
            observed.refusal.clone_from(&self.seen.refusal);
            observed.is_final = self.seen.refusal.is_some();
            observed.hide(&self.mask);
        }
        self.look_at_strays(active, observed);
        Ok(())
    }

    async fn ask(&mut self) -> Result<Option<Needed>, String> {
        let ask = || skip::ask(&self.job.skip_if, &self.client, &self.namespace);
        let asked = self.retry.call("check `skipIf`", ask).await;
        asked.map(Some).map_err(|error| error.whole_message())
    }

    async fn foresee(&mut self, active: &Active) -> Result<(), String> {
        let manifest = self.job.manifest(active, &self.labels, "preview");
        let post = PostParams { dry_run: true, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let jobs = self.jobs();
        let tried = match serde_json::from_value::<Job>(manifest) {
            Ok(job) => self.retry.answer("try to create its Job", || jobs.create(&post, &job)).await,
            Err(error) => Ok(Err(kube::Error::SerdeError(error))),
        };
        match tried {
            Ok(Err(error)) if classify(&error) == Answer::Refused => {
                Err(self.mask.apply(&format!("the API server would refuse its Job: {}", Refusal(error))))
            }
            // Its namespace may come with the deploy, and an outage may pass.
            _ => Ok(()),
        }
    }

    async fn carry_out(&mut self, step: &Step, active: Option<&Active>, ledger_uid: &str) -> kube::Result<()> {
        match (step, active) {
            (Step::Create, Some(active)) => {
                // What was seen of an earlier attempt says nothing of this one.
                let kept = std::mem::take(&mut self.seen);
                self.seen.expired = kept.expired;
                self.create(active, ledger_uid).await
            }
            (Step::Release { job, uid }, _) => {
                let released = self.patch(job, uid, json!({"suspend": false})).await?;
                self.seen.released.insert(uid.clone());
                self.seen.job = Some((Arc::new(released), self.lookout.lists()));
                Ok(())
            }
            (Step::Delete { job, uid }, _) => {
                let parameters = DeleteParams {
                    preconditions: Some(Preconditions { uid: Some(uid.clone()), resource_version: None }),
                    propagation_policy: Some(PropagationPolicy::Foreground),
                    ..DeleteParams::default()
                };
                self.retry.attempt(self.jobs().delete(job, &parameters)).await?;
                self.seen.deleted.insert(uid.clone(), self.retry.clock().now());
                Ok(())
            }
            (Step::Expire { job, uid, seconds }, _) => {
                let result = self.patch(job, uid, json!({"ttlSecondsAfterFinished": seconds})).await;
                match result.as_ref().map_err(classify) {
                    // Gone is as good as expired.
                    Ok(_) | Err(Answer::NotFound) => {
                        self.seen.expired.insert(uid.clone());
                        Ok(())
                    }
                    Err(_) => result.map(drop),
                }
            }
            (Step::Confirm, _) => {
                self.doubt();
                Ok(())
            }
            (Step::Inspect, Some(active)) => {
                self.inspect(active).await;
                Ok(())
            }
            (Step::ReadLog, Some(active)) => {
                self.read_log(active).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn refuse(&mut self, reason: String) {
        self.seen.refusal = Some(reason);
    }

    fn doubt(&mut self) {
        self.seen.in_doubt = true;
    }

    async fn changed(&mut self) {
        self.lookout.changed().await;
    }
}

/// What a pod job depends on.
pub(crate) async fn inputs(client: &Client, namespace: &str, job: &PodJob, retry: &Retry) -> Result<Inputs, Error> {
    let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace);
    let mut config_maps = BTreeMap::new();
    for name in References::of(&job.template).config_maps {
        let doing = format!("read ConfigMap `{name}`, which job `{}` names", job.id);
        let found = retry.call(&doing, || maps.get_opt(&name)).await?;
        let content = found.map(|map| json!({"data": map.data, "binaryData": map.binary_data}));
        config_maps.insert(name, content.unwrap_or_default());
    }
    Ok(Inputs { template: job.template.clone(), config_maps, ..Inputs::default() })
}

/// A pod job with its template, borrowed if it has to be; or why there is none.
pub(crate) async fn resolve(
    job: &Arc<PodJob>,
    client: &Client,
    namespace: &str,
    retry: &Retry,
) -> Result<Result<Arc<PodJob>, String>, Error> {
    let Some(borrowed) = &job.borrowed else { return Ok(Ok(Arc::clone(job))) };
    let deployments = Api::<Deployment>::namespaced(client.clone(), namespace);
    let doing = format!("read Deployment `{}`, which job `{}` borrows from", borrowed.deployment, job.id);
    let Some(found) = retry.call(&doing, || deployments.get_opt(&borrowed.deployment)).await? else {
        let name = &borrowed.deployment;
        return Ok(Err(format!(
            "Deployment `{name}` does not exist yet: run the job after it is deployed, with `phase: post`"
        )));
    };
    Ok(borrowed.template(&found).map(|template| Arc::new(PodJob { template, ..PodJob::clone(job) })))
}
