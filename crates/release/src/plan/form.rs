//! How a plan is written. The schema of the file is made from these types; their comments are its descriptions.

use super::backfill::Backfill;
use super::format::{Identifier, Written, parsed};
use super::init_cert::InitCert;
use super::period::Period;
use super::rules;
use jobwright_engine::{JsonPath, OnCancel, OnFailure, OnSupersede, OnUnknown, RunPolicy, Version};
use jobwright_jobs::Quantity;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A release with its components and jobs: `jobwright.yaml`. The command reads it; it is never sent to a cluster.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Plan {
    /// `jobwright.io/v1alpha1`
    #[serde(rename = "apiVersion")]
    pub(super) _api_version: ApiVersion,
    /// `Plan`
    #[serde(rename = "kind")]
    pub(super) _kind: Kind,
    /// What is deployed
    pub(super) release: Release,
    /// How many components, and how many jobs of a phase, are in progress at the same time
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 256))]
    pub(super) parallel: u16,
    /// What happens to components that were deployed and that the plan no longer has
    #[serde(default)]
    pub(super) on_removed_component: OnRemovedComponent,
    /// The parts of the release, each deployed by helm or by server-side apply
    #[serde(default)]
    pub(super) components: Vec<Component>,
    /// What runs before and after them
    #[serde(default)]
    pub(super) jobs: Vec<Job>,
}

fn four() -> u16 {
    4
}

/// The version of the format.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) enum ApiVersion {
    /// The first version
    #[serde(rename = "jobwright.io/v1alpha1")]
    V1Alpha1,
}

/// What the file is.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) enum Kind {
    /// A plan
    Plan,
}

/// What is deployed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Release {
    /// Name of the release
    #[schemars(with = "Written<Identifier>")]
    pub name: String,
    /// Namespace it is deployed to
    #[schemars(with = "Written<Identifier>")]
    pub namespace: String,
    /// Version of the release: dotted numbers. Upgrades are checked against it
    #[schemars(with = "Option<Written<Version>>")]
    pub version: Option<Version>,
    /// Versions that can be upgraded, by their beginning (`1.3` for 1.3.x); by default the same and the previous minor
    /// version
    #[schemars(with = "Option<Vec<Written<Version>>>")]
    pub upgrade_from: Option<Vec<Version>>,
}

/// What happens to components that were deployed and that the plan no longer has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum OnRemovedComponent {
    /// They stay, and each deploy reports what they still own (default)
    #[default]
    Report,
    /// Objects of manifests are deleted; Helm releases are reported, for `helm uninstall`
    Prune,
}

/// A part of the release: a chart, or manifests.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("allOf" = [
    rules::exactly_one(&["chart", "manifests"]),
    rules::only_with("values", &["chart"]),
    rules::only_with("set", &["chart"]),
    rules::only_with("helm", &["chart"]),
]))]
pub(super) struct Component {
    /// Name of the component; `global` is reserved
    #[schemars(with = "Written<Identifier>")]
    pub(super) name: String,
    /// Components that are deployed before this one
    #[serde(default)]
    pub(super) depends_on: Vec<String>,
    /// A chart, deployed by the helm in `PATH`
    pub(super) chart: Option<Chart>,
    /// Values files of the chart; the last one wins
    pub(super) values: Option<Vec<PathBuf>>,
    /// Values of the chart, over those of the files
    pub(super) set: Option<BTreeMap<String, Value>>,
    /// How helm deploys the chart
    pub(super) helm: Option<Helm>,
    /// Plain YAML, deployed by server-side apply
    pub(super) manifests: Option<Manifests>,
}

/// Where a chart is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("allOf" = [
    rules::exactly_one(&["path", "ref"]),
    rules::only_with("version", &["ref"]),
    rules::only_with("repo", &["ref"]),
]))]
pub(super) struct Chart {
    /// A directory or an archive, relative to the plan
    pub(super) path: Option<PathBuf>,
    /// `oci://…`, or `repository/name`
    #[serde(rename = "ref")]
    pub(super) reference: Option<String>,
    /// Version of the chart, or a constraint such as `^1.2`; the newest by default. Each deploy resolves it
    pub(super) version: Option<String>,
    /// URL of its repository
    pub(super) repo: Option<String>,
}

/// How helm deploys a chart.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Helm {
    /// Wait until the chart is rolled out; post-jobs rely on it
    #[serde(default = "yes")]
    pub wait: bool,
    /// How long helm may take. A helm that does not end a minute later is killed
    #[serde(default = "ten_minutes")]
    pub timeout: Period,
    /// Name of the Helm release; that of the component by default
    #[schemars(with = "Option<Written<Identifier>>")]
    pub release: Option<String>,
}

impl Default for Helm {
    fn default() -> Self {
        Self { wait: true, timeout: ten_minutes(), release: None }
    }
}

pub(super) fn yes() -> bool {
    true
}

fn ten_minutes() -> Period {
    std::time::Duration::from_mins(10).into()
}

/// Where manifests are.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifests {
    /// A file or a directory, relative to the plan
    pub path: PathBuf,
    /// Wait until every object is ready
    #[serde(default = "yes")]
    pub wait: bool,
    /// How long that may take
    #[serde(default = "ten_minutes")]
    pub timeout: Period,
    /// What happens when another client has deleted or changed an object, and the manifests are the same
    #[serde(default)]
    pub on_drift: OnDrift,
}

/// What happens when another client has deleted or changed an object of a component that is otherwise unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum OnDrift {
    /// The component is deployed again (default)
    #[default]
    Redeploy,
    /// The drift is reported; `--redeploy` deploys the component again
    Report,
}

/// Every field by which a job says what it does.
pub(super) const KINDS: [&str; 7] = ["pod", "podFrom", "initCert", "backfill", "adopt", "growVolume", "command"];

/// Work before or after something is deployed. Exactly one of `pod`, `podFrom`, `initCert`, `backfill`, `adopt`,
/// `growVolume` and `command` says what it does.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("allOf" = [
    rules::exactly_one(&KINDS),
    rules::at_least_one(&["phase", "initCert"], "`phase: pre` or `phase: post` is required, except for `initCert`"),
    rules::only_with("skipIf", &["pod", "podFrom"]),
    rules::only_with("onSupersede", &["pod", "podFrom"]),
    rules::only_with("onUnknown", &["pod", "podFrom"]),
    rules::only_with("onCancel", &["pod", "podFrom"]),
    rules::only_with("keep", &["pod", "podFrom"]),
]))]
pub(super) struct Job {
    /// Id of the job, unique in the plan
    #[schemars(with = "Written<Identifier>")]
    pub(super) id: String,
    /// The component it belongs to; the release as a whole by default
    pub(super) component: Option<String>,
    /// Before or after the component (or the release) is deployed
    pub(super) phase: Option<Phase>,
    /// Only on these occasions; on both by default
    #[schemars(length(min = 1))]
    pub(super) on: Option<Vec<Occasion>>,
    /// When it runs again. Default: `OncePerFingerprint` for pods of components, else `Always`
    #[schemars(with = "Option<RunPolicyName>")]
    pub(super) run: Option<RunPolicy>,
    /// Jobs of the same component and phase that run before it
    #[serde(default)]
    pub(super) after: Vec<String>,
    /// Conditions under any of which it is skipped
    pub(super) skip_if: Option<Vec<SkipIf>>,
    /// What its failure stops: `Stop` its component (default), `Abort` the deploy, `Continue` nothing
    #[schemars(with = "Option<OnFailureName>")]
    pub(super) on_failure: Option<OnFailure>,
    /// What happens when the previous run, with another fingerprint, is still going. Default: `Wait`
    #[schemars(with = "Option<OnSupersedeName>")]
    pub(super) on_supersede: Option<OnSupersede>,
    /// What happens when the result of a run is unknown. Default: `Fail`
    #[schemars(with = "Option<OnUnknownName>")]
    pub(super) on_unknown: Option<OnUnknown>,
    /// What happens to its pod when the deploy is cancelled. Default: `Leave`
    #[schemars(with = "Option<OnCancelName>")]
    pub(super) on_cancel: Option<OnCancel>,
    /// At which version it has to be removed from the plan
    pub(super) retires: Option<Retires>,
    /// Retries of failed attempts; none by default
    #[serde(default)]
    pub(super) retries: Retries,
    /// How long an attempt may take
    #[serde(default = "ten_minutes")]
    pub(super) timeout: Period,
    /// What is kept of its runs
    pub(super) keep: Option<Keep>,
    /// Runs a pod
    pub(super) pod: Option<Pod>,
    /// Runs a pod like those of a Deployment of the release
    pub(super) pod_from: Option<PodFrom>,
    /// Gives existing objects to a Helm release
    pub(super) adopt: Option<Adopt>,
    /// Makes a volume larger
    pub(super) grow_volume: Option<GrowVolume>,
    /// Captures the state of the cluster and uploads it
    pub(super) backfill: Option<Backfill>,
    /// Runs a program on the machine that deploys, at least once
    pub(super) command: Option<Command>,
    /// Issues, renews and distributes the certificate of a webhook
    pub(super) init_cert: Option<InitCert>,
}

/// Before or after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Before it is deployed
    Pre,
    /// After it was deployed successfully
    Post,
}

/// An occasion on which a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Occasion {
    /// The component (or the release) is new to the cluster
    Install,
    /// It was deployed before
    Upgrade,
}

/// A field of an object that has a value.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SkipIf {
    /// `v1`, `apps/v1`; found by the kind by default
    pub(super) api_version: Option<String>,
    /// `ConfigMap`
    pub(super) kind: String,
    /// Name of the object
    pub(super) name: String,
    /// The field: `{.data.version}`
    #[serde(deserialize_with = "parsed")]
    #[schemars(with = "Written<JsonPath>")]
    pub(super) json_path: JsonPath,
    /// The value that the field has to have
    pub(super) equals: Value,
}

/// At which version a job has to be removed from the plan.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("allOf" = [rules::exactly_one(&["at", "never"])]))]
pub(super) struct Retires {
    /// From this version on, a plan that still has it is refused
    #[schemars(with = "Option<Written<Version>>")]
    pub(super) at: Option<Version>,
    /// Why it stays
    pub(super) never: Option<String>,
}

/// Retries of failed attempts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Retries {
    /// How many, after the first attempt
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub(super) limit: u32,
    /// The pause before the first retry; it doubles with each further one
    #[serde(default = "ten_seconds")]
    pub(super) backoff: Period,
}

impl Default for Retries {
    fn default() -> Self {
        Self { limit: 0, backoff: ten_seconds() }
    }
}

fn ten_seconds() -> Period {
    std::time::Duration::from_secs(10).into()
}

/// What is kept of a job's runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Keep {
    /// How long a finished Job stays
    pub(super) finished: Option<Period>,
    /// How many attempts the ledger keeps in detail
    #[schemars(range(min = 1, max = 100))]
    pub(super) runs: Option<u16>,
    /// How many bytes of the end of a log the ledger keeps; 0 for none
    #[schemars(range(max = 65536))]
    pub(super) log_bytes: Option<u32>,
}

/// A pod.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Pod {
    /// A pod template, as a Job has it
    pub(super) template: Template,
}

/// A pod template.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Template(pub(super) Value);

impl JsonSchema for Template {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PodTemplate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "A pod template; the API server checks its spec",
            "properties": {"metadata": {"type": "object"}, "spec": {"type": "object"}},
            "required": ["spec"],
            "additionalProperties": false,
        })
    }
}

/// A pod like those of a Deployment: one container of it, with its environment, volumes, ServiceAccount and placement.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodFrom {
    /// The Deployment, in the namespace of the release
    pub deployment: String,
    /// The container; can be omitted if the Deployment has only one
    pub container: Option<String>,
    /// Image to run; that of the container by default. Required with `phase: pre`, where the Deployment still has the
    /// image of the previous version
    pub image: Option<String>,
    /// Command to run instead of the container's
    pub command: Option<Vec<String>>,
    /// Arguments instead of the container's
    pub args: Option<Vec<String>>,
}

/// Objects that a Helm release adopts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Adopt {
    /// The Helm release; that of the job's component by default
    pub(super) release: Option<String>,
    /// Namespace of the Helm release; that of the plan's release by default
    pub(super) namespace: Option<String>,
    /// The objects
    #[schemars(length(min = 1))]
    pub(super) objects: Vec<Object>,
    /// Take the objects away from another Helm release
    #[serde(default)]
    pub(super) force: bool,
}

/// An object.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Object {
    /// `apps/v1`
    pub api_version: String,
    /// `Deployment`
    pub kind: String,
    /// Name of the object
    pub name: String,
    /// Namespace of the object; that of the release by default
    pub namespace: Option<String>,
}

/// A volume that has to be larger.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrowVolume {
    /// The PersistentVolumeClaim
    pub claim: String,
    /// How large it has to be at least: `30Gi`
    #[serde(deserialize_with = "parsed")]
    #[schemars(with = "Written<Quantity>")]
    pub to: Quantity,
    /// The workload to scale down meanwhile, where the storage requires it
    pub detach: Option<Workload>,
    /// How long to wait until the expansion begins
    pub patience: Option<Period>,
}

/// A workload.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workload {
    /// Its kind
    pub kind: WorkloadKind,
    /// Its name
    pub name: String,
}

/// What kind of workload.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub enum WorkloadKind {
    /// A Deployment
    Deployment,
    /// A StatefulSet
    StatefulSet,
}

/// A program on the machine that deploys.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Command {
    /// The program, by path or by name in `PATH`
    pub program: String,
    /// Its arguments
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables, in addition to those of the command
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it runs, relative to the plan
    pub directory: Option<PathBuf>,
}

/// Names of the engine's policies, for the schema.
macro_rules! names {
    ($($name:ident => $policy:ty [$($value:literal),*];)*) => {
        $(
            pub(super) struct $name;

            impl JsonSchema for $name {
                fn schema_name() -> std::borrow::Cow<'static, str> {
                    stringify!($name).into()
                }

                fn inline_schema() -> bool {
                    true
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!({"enum": [$($value),*]})
                }
            }
        )*

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn the_schema_names_policies_that_the_engine_has() {
                $($(serde_json::from_value::<$policy>(serde_json::json!($value)).unwrap();)*)*
            }
        }
    };
}

names! {
    RunPolicyName => RunPolicy ["OncePerFingerprint", "OnChange", "OnChangeOrExpired", "Once", "Always"];
    OnFailureName => OnFailure ["Stop", "Abort", "Continue"];
    OnSupersedeName => OnSupersede ["Wait", "Replace", "Fail"];
    OnUnknownName => OnUnknown ["Fail", "RunAgain"];
    OnCancelName => OnCancel ["Leave", "Stop"];
}
