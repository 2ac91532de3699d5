//! A plan of a case, small enough for a model, and how it is written for Jobwright.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(crate) const NAMESPACE: &str = "shop";
pub(crate) const RELEASE: &str = "shop";
pub(crate) const COMPONENTS: [&str; 4] = ["a", "b", "c", "d"];
/// Pod jobs, and an in-process job at the end.
pub(crate) const JOBS: [&str; 5] = ["j0", "j1", "j2", "j3", "adopt"];
pub(crate) const ADOPT: usize = 4;
/// How many objects components share among themselves.
pub(crate) const OBJECTS: usize = 6;
/// How long each content of a job runs. The last outlives the lease of a runner that is killed.
pub(crate) const SECONDS: [u8; 3] = [0, 3, 40];

/// What is deployed. Whatever refers to something that the plan does not have counts as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) components: BTreeMap<usize, Component>,
    pub(crate) objects: BTreeMap<usize, Object>,
    pub(crate) jobs: BTreeMap<usize, Job>,
    /// `onRemovedComponent: Prune`.
    pub(crate) prunes_removed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Component {
    /// The value of the ConfigMap that each component has.
    pub(crate) base: u8,
    pub(crate) depends_on: BTreeSet<usize>,
    /// `onDrift: Report`.
    pub(crate) reports_drift: bool,
}

/// An object. It is in one component at a time, and may move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) component: usize,
    pub(crate) kind: Kind,
    pub(crate) value: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Map,
    Workload,
    /// An autoscaler in `autoscaling/v1`.
    ScalerV1,
    /// The same object in `autoscaling/v2`.
    ScalerV2,
    /// A Deployment that the API server refuses.
    Refused,
    /// A Deployment that never becomes ready.
    Stuck,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) component: Option<usize>,
    pub(crate) phase: Phase,
    pub(crate) on: On,
    pub(crate) run: Policy,
    pub(crate) on_failure: OnFailure,
    /// `onUnknown: RunAgain`.
    pub(crate) repeats_unknown: bool,
    pub(crate) retries: u32,
    pub(crate) after: BTreeSet<usize>,
    /// Another content is another fingerprint.
    pub(crate) content: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Pre,
    Post,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Both,
    Install,
    Upgrade,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    OncePerFingerprint,
    OnChange,
    Once,
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnFailure {
    Stop,
    Abort,
    Continue,
}

/// An object as a component declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) key: Key,
    pub(crate) kind: Kind,
    /// What distinguishes its contents.
    pub(crate) mark: String,
}

/// What makes two objects the same: `Deployment o1`. Its apiVersion does not.
pub(crate) type Key = String;

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Map => "ConfigMap",
            Self::Workload | Self::Refused | Self::Stuck => "Deployment",
            Self::ScalerV1 | Self::ScalerV2 => "HorizontalPodAutoscaler",
        }
    }
}

impl Plan {
    /// The objects of a component, in the order in which they are applied: ConfigMaps first.
    pub(crate) fn declares(&self, component: usize) -> Vec<Declared> {
        let Some(found) = self.components.get(&component) else { return Vec::new() };
        let declared = |name: String, kind: Kind, value: u8| Declared {
            key: format!("{} {name}", kind.name()),
            kind,
            mark: format!("{kind:?}-{value}"),
        };
        let base = declared(format!("base-{}", COMPONENTS[component]), Kind::Map, found.base);
        let others = self.objects.iter().filter(|(_, object)| object.component == component);
        let others = others.map(|(index, object)| declared(format!("o{index}"), object.kind, object.value));
        let mut all: Vec<Declared> = [base].into_iter().chain(others).collect();
        all.sort_by_key(|declared| declared.kind != Kind::Map);
        all
    }

    /// One of its components, counted round all.
    pub(crate) fn nth_component(&self, number: usize) -> usize {
        self.components.keys().copied().cycle().nth(number).unwrap_or_default()
    }

    /// The component that declares an object.
    pub(crate) fn holder(&self, key: &str) -> Option<usize> {
        self.components.keys().copied().find(|index| self.declares(*index).iter().any(|object| object.key == key))
    }

    /// The jobs whose component is in the plan.
    pub(crate) fn jobs(&self) -> Vec<(usize, &Job)> {
        let is_present = |job: &Job| job.component.is_none_or(|component| self.components.contains_key(&component));
        self.jobs.iter().filter(|(_, job)| is_present(job)).map(|(index, job)| (*index, job)).collect()
    }

    /// The jobs of a phase.
    pub(crate) fn jobs_of(&self, component: Option<usize>, phase: Phase) -> Vec<(usize, &Job)> {
        let mut jobs = self.jobs();
        jobs.retain(|(_, job)| job.component == component && job.phase == phase);
        jobs
    }

    /// The jobs that a job comes after.
    pub(crate) fn jobs_before(&self, index: usize, job: &Job) -> Vec<usize> {
        let same = self.jobs_of(job.component, job.phase);
        let is_before = |other: &usize| *other < index && job.after.contains(other);
        same.into_iter().map(|(other, _)| other).filter(is_before).collect()
    }

    /// The components that a component depends on.
    pub(crate) fn components_before(&self, index: usize) -> Vec<usize> {
        let depends_on = &self.components[&index].depends_on;
        self.components.keys().copied().filter(|other| *other < index && depends_on.contains(other)).collect()
    }

    pub(crate) fn aborts(&self) -> bool {
        self.jobs().iter().any(|(_, job)| job.on_failure == OnFailure::Abort)
    }

    /// Writes the manifests into a directory, and gives the plan.
    pub(crate) fn write(&self, directory: &Path, version: Option<u8>) -> String {
        for (index, name) in COMPONENTS.iter().enumerate() {
            let documents: Vec<String> =
                self.declares(index).iter().map(|declared| manifest(declared).to_string()).collect();
            std::fs::write(directory.join(format!("{name}.yaml")), documents.join("\n---\n")).unwrap();
        }
        let mut release = json!({"name": RELEASE, "namespace": NAMESPACE});
        if let Some(version) = version {
            release["version"] = json!(format!("1.{version}.0"));
        }
        let components = self.components.iter().map(|(index, component)| {
            let names: Vec<&str> = self.components_before(*index).iter().map(|other| COMPONENTS[*other]).collect();
            let drift = if component.reports_drift { "Report" } else { "Redeploy" };
            let manifests = json!({"path": format!("{}.yaml", COMPONENTS[*index]), "timeout": "20s", "onDrift": drift});
            json!({"name": COMPONENTS[*index], "dependsOn": names, "manifests": manifests})
        });
        let plan = json!({
            "apiVersion": "jobwright.io/v1alpha1",
            "kind": "Plan",
            "release": release,
            "onRemovedComponent": if self.prunes_removed { "Prune" } else { "Report" },
            "components": components.collect::<Vec<_>>(),
            "jobs": self.jobs().into_iter().map(|(index, job)| self.write_job(index, job)).collect::<Vec<_>>(),
        });
        plan.to_string()
    }

    fn write_job(&self, index: usize, job: &Job) -> Value {
        let after: Vec<&str> = self.jobs_before(index, job).into_iter().map(|other| JOBS[other]).collect();
        let mut written = json!({
            "id": JOBS[index],
            "phase": match job.phase { Phase::Pre => "pre", Phase::Post => "post" },
            "run": format!("{:?}", job.run),
            "onFailure": format!("{:?}", job.on_failure),
            "after": after,
            "retries": {"limit": job.retries, "backoff": "1s"},
            "retires": {"never": "test"},
        });
        if let Some(component) = job.component {
            written["component"] = json!(COMPONENTS[component]);
        }
        match job.on {
            On::Both => {}
            On::Install => written["on"] = json!(["install"]),
            On::Upgrade => written["on"] = json!(["upgrade"]),
        }
        if index == ADOPT {
            let legacy = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "legacy"});
            written["adopt"] = json!({"release": adopter(job.content), "objects": [legacy]});
        } else {
            written["onUnknown"] = json!(if job.repeats_unknown { "RunAgain" } else { "Fail" });
            written["pod"] = json!({"template": {"spec": {"containers": [container(JOBS[index], job.content)]}}});
        }
        written
    }
}

/// The Helm release that adopts.
pub(crate) fn adopter(content: usize) -> String {
    format!("helm-{content}")
}

/// The container of a pod job. A Secret, which is no part of its fingerprint, says how it ends.
fn container(id: &str, content: usize) -> Value {
    let line = format!(
        "echo {id} {content}; sleep {}; test $SWITCH = well || test $SWITCH$JOBWRIGHT_ATTEMPT = once2",
        SECONDS[content]
    );
    let switch = json!({"name": "SWITCH", "valueFrom": {"secretKeyRef": {"name": "switches", "key": id}}});
    json!({"name": "main", "image": "busybox:1", "command": ["sh", "-c", line], "env": [switch]})
}

fn manifest(declared: &Declared) -> Value {
    let Declared { key, kind, mark } = declared;
    let name = key.split(' ').nth(1).unwrap();
    let metadata = json!({"name": name, "annotations": {"mark": mark}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "any"});
    let scaler = json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3});
    let workload = |label: &str, secret: &str| {
        let key = json!({"name": secret, "key": "j0"});
        let container = json!({"name": "main", "image": "busybox:1", "command": ["sleep", "infinity"],
            "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": key}}]});
        json!({"selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": label}}, "spec": {"containers": [container]}}})
    };
    match kind {
        Kind::Map => json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"mark": mark}}),
        Kind::ScalerV1 => {
            json!({"apiVersion": "autoscaling/v1", "kind": kind.name(), "metadata": metadata, "spec": scaler})
        }
        Kind::ScalerV2 => {
            json!({"apiVersion": "autoscaling/v2", "kind": kind.name(), "metadata": metadata, "spec": scaler})
        }
        Kind::Workload => {
            json!({"apiVersion": "apps/v1", "kind": kind.name(), "metadata": metadata, "spec": workload(name, "switches")})
        }
        Kind::Refused => {
            json!({"apiVersion": "apps/v1", "kind": kind.name(), "metadata": metadata, "spec": workload("other", "switches")})
        }
        Kind::Stuck => {
            json!({"apiVersion": "apps/v1", "kind": kind.name(), "metadata": metadata, "spec": workload(name, "missing")})
        }
    }
}
