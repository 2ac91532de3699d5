//! The cluster of a case, the deploys to it, and the other client.

use crate::case::{Act, Deploy, Switch};
use crate::oracle::Report;
use crate::plan::{COMPONENTS, JOBS, NAMESPACE, SECONDS};
use crate::state::{CHANGED, STRANGER, View};
use crate::support::cluster::{list, text};
use crate::support::journal::Journal;
use jobwright_drydock::{Drydock, Faults, Started};
use jobwright_engine::{Clock, DeployOutcome, Error, Events, Exceptions, Settings};
use jobwright_release::{Deployment, Dialling, Driver, Environment, PlanFile};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Far longer than any deploy of a case takes.
const LONGEST: Duration = Duration::from_hours(1);
/// The kinds of objects that plans have, with the version in which they are read.
const KINDS: [(&str, &str); 3] =
    [("v1", "ConfigMap"), ("apps/v1", "Deployment"), ("autoscaling/v2", "HorizontalPodAutoscaler")];
/// Objects of other clients: of none of our business, of another release, and of ours in another namespace.
const FOREIGN: [(&str, &str, &str, &str); 3] =
    [("foreign-1", "", "", ""), ("foreign-2", "other", NAMESPACE, "a"), ("foreign-3", "shop", "elsewhere", "a")];

pub(crate) struct World {
    directory: tempfile::TempDir,
    pub(crate) drydock: Drydock,
    client: Client,
    pub(crate) journal: Journal,
    /// The objects of other clients, as they were at the beginning.
    foreign: Vec<Value>,
    deploys: usize,
}

/// How a deploy ended.
pub(crate) enum Outcome {
    Reported(Report),
    Killed,
    /// It did what no model foresees.
    Wrong(String),
}

impl World {
    pub(crate) async fn new() -> Self {
        let drydock = Drydock::new();
        let client = Client::new(drydock.clone(), NAMESPACE);
        let directory = tempfile::tempdir().unwrap();
        let foreign = Vec::new();
        let mut world = Self { directory, drydock, client, journal: Journal::default(), foreign, deploys: 0 };
        world.prepare().await;
        world
    }

    async fn prepare(&mut self) {
        let parameters = PostParams::default();
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
        Api::all(self.client.clone()).create(&parameters, &namespace).await.unwrap();
        let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "switches"}})).unwrap();
        Api::default_namespaced(self.client.clone()).create(&parameters, &secret).await.unwrap();
        let maps: Api<ConfigMap> = Api::default_namespaced(self.client.clone());
        let legacy = serde_json::from_value(json!({"metadata": {"name": "legacy"}})).unwrap();
        maps.create(&parameters, &legacy).await.unwrap();
        for (name, release, namespace, component) in FOREIGN {
            let labels = json!({"jobwright.io/release": release, "jobwright.io/release-namespace": namespace, "jobwright.io/component": component});
            let labels = if release.is_empty() { json!({}) } else { labels };
            let foreign = json!({"metadata": {"name": name, "labels": labels}});
            maps.create(&parameters, &serde_json::from_value(foreign).unwrap()).await.unwrap();
        }
        self.foreign = self.read_foreign().await;
    }

    async fn read_foreign(&self) -> Vec<Value> {
        let mut maps = list(&self.client, NAMESPACE, "v1", "ConfigMap").await;
        maps.retain(|map| FOREIGN.iter().any(|(name, ..)| map["metadata"]["name"] == **name));
        maps
    }

    /// Whether objects of other clients are as they were.
    pub(crate) async fn has_all_foreign(&self) -> bool {
        self.read_foreign().await == self.foreign
    }

    /// Says how containers end from now on.
    pub(crate) async fn switch(&self, switches: &[Switch]) {
        let value = |switch: &Switch| match switch {
            Switch::Well => "well",
            Switch::Once => "once",
            Switch::Badly => "badly",
        };
        let values: BTreeMap<&str, &str> = JOBS.into_iter().zip(switches.iter().map(value)).collect();
        let patch = Patch::Merge(json!({"stringData": values}));
        let secrets: Api<Secret> = Api::default_namespaced(self.client.clone());
        secrets.patch("switches", &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn deploy(&mut self, deploy: &Deploy) -> Outcome {
        self.deploys += 1;
        let runner = format!("deploy-{}", self.deploys);
        let plan = deploy.plan.write(self.directory.path(), deploy.version);
        let file = match PlanFile::parse(&self.directory.path().join("jobwright.yaml"), &plan) {
            Ok(file) => file,
            Err(findings) => return Outcome::Wrong(format!("the plan is refused: {:?}", findings.findings)),
        };
        let faults = Faults::new(0);
        if let Some(kill) = &deploy.kill {
            faults.stop_at(1 + kill.at * expected_calls(deploy) / 1000, kill.when);
        }
        let service =
            faults.around(self.journal.around(&runner, &self.deploys.to_string(), None, self.drydock.clone()));
        let clock = self.drydock.clone();
        let options = &deploy.options;
        let names = |indexes: &BTreeSet<usize>, names: &[&str]| -> BTreeSet<String> {
            indexes.iter().map(|index| names[*index].to_owned()).collect()
        };
        let deployment = Deployment {
            file: &file,
            client: Client::new(service, NAMESPACE),
            clock: Clock::new(move || clock.now()),
            helm: None,
            driver: Driver::Secrets,
            host: "machine".to_owned(),
            settings: Settings {
                holder: runner,
                parallel: deploy.parallel,
                components: options.components.as_ref().map(|indexes| names(indexes, &COMPONENTS)),
                only: options.only.as_ref().map(|indexes| names(indexes, &JOBS)),
                skip: names(&options.skip, &JOBS),
                allow: Exceptions { older: options.allow_older, skip_version: options.allow_skip_version },
                ..Settings::default()
            },
            redeploy: options.redeploy,
            force: options.force,
            unlock: false,
            environment: Environment::default(),
            dialling: Dialling::Not("nothing serves here".to_owned()),
        };
        let deployed = deployment.deploy(CancellationToken::new(), Events::nowhere());
        tokio::select! {
            done = tokio::time::timeout(LONGEST, deployed) => match done {
                Ok(Ok(report)) => shown(&report),
                Ok(Err(Error::Violations(_))) => Outcome::Reported(Report::Refused),
                Ok(Err(error)) => Outcome::Wrong(format!("the deploy fails: {error:?}: {error}")),
                Err(_) => Outcome::Wrong("the deploy does not end".to_owned()),
            },
            () = faults.stopped() => Outcome::Killed,
        }
    }

    /// What can be seen of the world.
    pub(crate) async fn view(&self) -> View {
        let mut view = View::default();
        for (version, kind) in KINDS {
            for object in list(&self.client, NAMESPACE, version, kind).await {
                let metadata = &object["metadata"];
                let name = text(&metadata["name"]);
                if name == "legacy" {
                    let adopter = metadata["annotations"]["meta.helm.sh/release-name"].as_str();
                    view.adopted = adopter.map(str::to_owned);
                }
                if !(name.starts_with("base-") || name.starts_with('o')) {
                    continue;
                }
                let mut mark = text(&metadata["annotations"]["mark"]).to_owned();
                if kind == "ConfigMap" && object["data"]["mark"] != json!(mark) {
                    mark = format!("{mark} with {}", object["data"]);
                }
                let component = text(&metadata["labels"]["jobwright.io/component"]).to_owned();
                view.objects.insert(format!("{kind} {name}"), (mark, component));
            }
        }
        for started in self.drydock.witness() {
            if let Some(what) = job_of(&started) {
                *view.starts.entry(what).or_default() += 1;
            }
        }
        view
    }

    /// The containers of each job.
    pub(crate) fn containers(&self) -> BTreeMap<String, Vec<Started>> {
        let mut jobs: BTreeMap<String, Vec<Started>> = BTreeMap::new();
        for started in self.drydock.witness() {
            if let Some(what) = job_of(&started) {
                jobs.entry(what[..2].to_owned()).or_default().push(started);
            }
        }
        jobs
    }

    /// Another client does something, to the objects that it sees.
    pub(crate) async fn act(&self, act: Act, view: &View) {
        let choose = |number: usize| view.objects.keys().cycle().nth(number).cloned();
        match act {
            Act::DeleteObject(number) => {
                if let Some(key) = choose(number) {
                    let (api, name) = self.find(&key);
                    drop(api.delete(&name, &DeleteParams::background()).await.unwrap());
                }
            }
            Act::ChangeObject(number) => {
                let mut patch = json!({"metadata": {"annotations": {"mark": CHANGED}}});
                if let Some(key) = choose(number) {
                    if key.starts_with("ConfigMap") {
                        patch["data"] = json!({"mark": CHANGED});
                    }
                    self.patch(&key, &patch).await;
                }
            }
            Act::TakeObject(number) => {
                if let Some(key) = choose(number) {
                    self.patch(&key, &json!({"metadata": {"labels": {"jobwright.io/component": STRANGER}}})).await;
                }
            }
            Act::DeleteJobs => {
                let jobs: Api<k8s_openapi::api::batch::v1::Job> = Api::default_namespaced(self.client.clone());
                let selector = ListParams::default().labels("jobwright.io/job");
                drop(jobs.delete_collection(&DeleteParams::background(), &selector).await.unwrap());
            }
        }
    }

    async fn patch(&self, key: &str, patch: &Value) {
        let (api, name) = self.find(key);
        let parameters = PatchParams { field_manager: Some("other".to_owned()), ..PatchParams::default() };
        api.patch(&name, &parameters, &Patch::Merge(patch)).await.unwrap();
    }

    fn find(&self, key: &str) -> (Api<DynamicObject>, String) {
        let (kind, name) = key.split_once(' ').unwrap();
        let version = KINDS.iter().find(|(_, known)| *known == kind).unwrap().0;
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        (Api::default_namespaced_with(self.client.clone(), &resource), name.to_owned())
    }
}

/// About how many calls a deploy makes. A long run is a dozen renewals of the lease.
fn expected_calls(deploy: &Deploy) -> usize {
    let objects: usize = deploy.plan.components.keys().map(|index| deploy.plan.declares(*index).len()).sum();
    let job = |content: usize| 8 + usize::from(SECONDS[content]) / 4;
    let jobs: usize = deploy.plan.jobs().iter().map(|(_, one)| job(one.content)).sum();
    14 + 3 * deploy.plan.components.len() + 3 * objects + jobs
}

/// The job and content of a container: `j1 0`.
fn job_of(started: &Started) -> Option<String> {
    let line = started.command.last()?.strip_prefix("echo ")?;
    line.split(';').next().map(str::to_owned)
}

fn shown(report: &jobwright_engine::Report) -> Outcome {
    if let Some(error) = &report.error {
        return Outcome::Wrong(format!("the engine stopped: {error:?}"));
    }
    let succeeded = match report.outcome {
        DeployOutcome::Succeeded => true,
        DeployOutcome::Failed => false,
        DeployOutcome::Cancelled => return Outcome::Wrong("the deploy is reported as cancelled".to_owned()),
    };
    let components =
        report.components.iter().map(|component| (component.name.clone(), format!("{:?}", component.action)));
    let jobs = report.jobs.iter().map(|job| (job.id.clone(), format!("{:?}", job.outcome)));
    Outcome::Reported(Report::Ended { succeeded, components: components.collect(), jobs: jobs.collect() })
}
