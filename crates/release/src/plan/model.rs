//! What stands in a plan. The schema of the file is made from these types.

use super::backfill::Backfill;
use super::init_cert::InitCert;
use super::period::Period;
use jobwright_engine::{OnCancel, OnFailure, OnSupersede, OnUnknown, RunPolicy, Version};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A release with its components and jobs: `jobwright.yaml`. Read by the command, never sent to a cluster.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// `jobwright.io/v1alpha1`
    pub api_version: ApiVersion,
    /// `Plan`
    pub kind: Kind,
    /// What is deployed
    pub release: Release,
    /// How many components, and how many jobs of a phase, are worked on at once
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 256))]
    pub parallel: u16,
    /// What is deployed, piece by piece
    #[serde(default)]
    pub components: Vec<Component>,
    /// What runs before and after
    #[serde(default)]
    pub jobs: Vec<Job>,
}

fn four() -> u16 {
    4
}

/// The version of the form.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The first one
    #[serde(rename = "jobwright.io/v1alpha1")]
    V1Alpha1,
}

/// What the file is.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub enum Kind {
    /// A plan
    Plan,
}

/// What is deployed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Release {
    /// Its name
    #[schemars(with = "Name")]
    pub name: String,
    /// Where it goes
    #[schemars(with = "Name")]
    pub namespace: String,
    /// Its version: dotted numbers, with the guards that come with them
    #[schemars(with = "Option<VersionText>")]
    pub version: Option<Version>,
    /// Versions from which it upgrades, by their beginning; the same and the previous minor one if absent
    #[schemars(with = "Option<Vec<VersionText>>")]
    pub upgrade_from: Option<Vec<Version>>,
}

/// One deployable thing: a chart, or manifests.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Component {
    /// Its name; `global` is taken
    #[schemars(with = "Name")]
    pub name: String,
    /// Components that have to be deployed before it
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// A chart, deployed by the helm on the search path
    pub chart: Option<Chart>,
    /// Values files of the chart, the last one wins
    #[serde(default)]
    pub values: Vec<PathBuf>,
    /// Values of the chart, over those of the files
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// How helm deploys it
    #[serde(default)]
    pub helm: Helm,
    /// Plain YAML, deployed by server-side apply
    pub manifests: Option<Manifests>,
}

/// Where a chart is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Chart {
    /// A directory or an archive, from the plan's directory on
    pub path: Option<PathBuf>,
    /// `oci://…`, or `repository/name`
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// The version of the chart
    pub version: Option<String>,
    /// The URL of its repository
    pub repo: Option<String>,
}

/// How helm deploys a chart.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Helm {
    /// Wait until it is rolled out: post-jobs need that
    #[serde(default = "yes")]
    pub wait: bool,
    /// How long it may take
    #[serde(default = "ten_minutes")]
    pub timeout: Period,
    /// What the Helm release is called; like the component if absent
    #[schemars(with = "Option<Name>")]
    pub release: Option<String>,
}

impl Default for Helm {
    fn default() -> Self {
        Self { wait: true, timeout: ten_minutes(), release: None }
    }
}

fn yes() -> bool {
    true
}

fn ten_minutes() -> Period {
    std::time::Duration::from_mins(10).into()
}

/// Where manifests are.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifests {
    /// A file or a directory, from the plan's directory on
    pub path: PathBuf,
    /// Wait until everything is ready
    #[serde(default = "yes")]
    pub wait: bool,
    /// How long that may take
    #[serde(default = "ten_minutes")]
    pub timeout: Period,
}

/// Work before or after something is deployed. Exactly one of `pod`, `podFrom`, `initCert`, `backfill`, `adopt`,
/// `growVolume`, `command` says what it does.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Job {
    /// What it is called; no other job has it
    #[schemars(with = "Name")]
    pub id: String,
    /// The component that it belongs to; the release as a whole if absent
    pub component: Option<String>,
    /// Before or after that is deployed
    pub phase: Option<Phase>,
    /// Only on these occasions
    #[serde(default = "both")]
    #[schemars(length(min = 1))]
    pub on: Vec<Occasion>,
    /// When it runs again; `OncePerFingerprint` for pods of components, else `Always`
    #[schemars(with = "Option<RunPolicyName>")]
    pub run: Option<RunPolicy>,
    /// Jobs of the same component and phase that come before it
    #[serde(default)]
    pub after: Vec<String>,
    /// Conditions under any of which it is not needed
    #[serde(default)]
    pub skip_if: Vec<SkipIf>,
    /// What its failure means
    #[serde(default)]
    #[schemars(with = "OnFailureName")]
    pub on_failure: OnFailure,
    /// What happens when the previous run, with something else, is still going
    #[serde(default)]
    #[schemars(with = "OnSupersedeName")]
    pub on_supersede: OnSupersede,
    /// What happens when nobody can say how a run ended
    #[serde(default)]
    #[schemars(with = "OnUnknownName")]
    pub on_unknown: OnUnknown,
    /// What happens to its pod when the deploy is cancelled
    #[serde(default)]
    #[schemars(with = "OnCancelName")]
    pub on_cancel: OnCancel,
    /// At which version it is to be gone
    pub retires: Option<Retires>,
    /// How often a failed attempt is made again
    #[serde(default)]
    pub retries: Retries,
    /// How long an attempt may take
    #[serde(default = "ten_minutes")]
    pub timeout: Period,
    /// What is kept of it
    #[serde(default)]
    pub keep: Keep,
    /// A pod
    pub pod: Option<Pod>,
    /// A pod like those of a Deployment of the release
    pub pod_from: Option<PodFrom>,
    /// Objects that a Helm release adopts
    pub adopt: Option<Adopt>,
    /// A volume that has to be larger
    pub grow_volume: Option<GrowVolume>,
    /// The state of the cluster, captured and uploaded
    pub backfill: Option<Backfill>,
    /// A program of the machine that deploys: it runs at least once
    pub command: Option<Command>,
    /// The certificate of a webhook
    pub init_cert: Option<InitCert>,
}

fn both() -> Vec<Occasion> {
    vec![Occasion::Install, Occasion::Upgrade]
}

/// Before or after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Before
    Pre,
    /// After
    Post,
}

/// Whether something is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Occasion {
    /// It is
    Install,
    /// It was there
    Upgrade,
}

/// A field of an object that has a value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkipIf {
    /// `v1`, `apps/v1`; found by the kind if absent
    pub api_version: Option<String>,
    /// `ConfigMap`
    pub kind: String,
    /// The name of the object
    pub name: String,
    /// The field: `{.data.version}`
    pub json_path: String,
    /// What it has to be
    pub equals: Value,
}

/// At which version a job is to be gone.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retires {
    /// From this version on it is an error to have it
    #[schemars(with = "Option<VersionText>")]
    pub at: Option<Version>,
    /// It stays, and why
    pub never: Option<String>,
}

/// How often a failed attempt is made again.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retries {
    /// Attempts after the first
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub limit: u32,
    /// The wait before the second attempt; it doubles with each further one
    #[serde(default = "ten_seconds")]
    pub backoff: Period,
}

impl Default for Retries {
    fn default() -> Self {
        Self { limit: 0, backoff: ten_seconds() }
    }
}

fn ten_seconds() -> Period {
    std::time::Duration::from_secs(10).into()
}

/// What is kept of a job.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Keep {
    /// How long a finished Job stays
    pub finished: Option<Period>,
    /// How many attempts the ledger knows in detail
    #[schemars(range(min = 1, max = 100))]
    pub runs: Option<u16>,
    /// How much of the end of a log the ledger keeps; 0 for nothing
    #[schemars(range(max = 65536))]
    pub log_bytes: Option<u32>,
}

/// A pod.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pod {
    /// A pod template, as a Job has it
    pub template: Template,
}

/// A pod template.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Template(pub Value);

impl JsonSchema for Template {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PodTemplate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "A pod template; the server checks what is in its spec",
            "properties": {"metadata": {"type": "object"}, "spec": {"type": "object"}},
            "required": ["spec"],
            "additionalProperties": false,
        })
    }
}

/// A pod like those of a Deployment: one container of it, with its environment, volumes, account and placement.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodFrom {
    /// The Deployment
    pub deployment: String,
    /// The container; the only one if absent
    pub container: Option<String>,
    /// What it runs instead
    pub command: Option<Vec<String>>,
    /// With which arguments
    pub args: Option<Vec<String>>,
}

/// Objects that a Helm release adopts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Adopt {
    /// The Helm release; that of the job's component if absent
    pub release: Option<String>,
    /// Its namespace; that of the release if absent
    pub namespace: Option<String>,
    /// What is adopted
    #[schemars(length(min = 1))]
    pub objects: Vec<Object>,
    /// Take it away from another release
    #[serde(default)]
    pub force: bool,
}

/// An object.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Object {
    /// `apps/v1`
    pub api_version: String,
    /// `Deployment`
    pub kind: String,
    /// Its name
    pub name: String,
    /// Its namespace; that of the release if absent
    pub namespace: Option<String>,
}

/// A volume that has to be larger.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrowVolume {
    /// The claim
    pub claim: String,
    /// How large it has to be at least: `30Gi`
    pub to: String,
    /// The workload that must not use it meanwhile, where the storage demands that
    pub detach: Option<Workload>,
    /// How long to wait until somebody begins to expand it
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

/// A program of the machine that deploys.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Command {
    /// The program
    pub program: String,
    /// Its arguments
    #[serde(default)]
    pub args: Vec<String>,
    /// What it finds in its environment, besides what the command does
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it runs, from the plan's directory on
    pub directory: Option<PathBuf>,
}

/// Texts with a form, and names of policies, for the schema.
macro_rules! form {
    ($name:ident, $schema:tt) => {
        struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

form!(Name, {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63});
form!(VersionText, {"type": "string", "pattern": r"^v?[0-9]+(\.[0-9]+)*(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$"});
form!(RunPolicyName, {"enum": ["OncePerFingerprint", "OnChange", "OnChangeOrExpired", "Once", "Always"]});
form!(OnFailureName, {"enum": ["Stop", "Abort", "Continue"]});
form!(OnSupersedeName, {"enum": ["Wait", "Replace", "Fail"]});
form!(OnUnknownName, {"enum": ["Fail", "RunAgain"]});
form!(OnCancelName, {"enum": ["Leave", "Stop"]});
