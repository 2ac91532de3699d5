//! What the commands on a plan have in common: reading it, finding helm, preparing the cluster, and reporting errors.

use crate::arguments;
use crate::cluster::{Clients, Connection};
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output;
use anyhow::Context as _;
use jobwright_engine::{Answer, Error, Exceptions, Manager, Release, Settings, classify};
use jobwright_jobs::access::{self, Permission};
use jobwright_release::{Deployment, Driver, Helm, PlanFile, preflight, second_id};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Reads the plan that an argument names. Prints every error in it.
pub(super) fn read_plan(path: &Path, cluster: &arguments::Cluster) -> Result<PlanFile, Failure> {
    let path = locate(path);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read the plan `{}`", path.display()))
        .map_err(|error| Failure::of(Kind::Usage, error).hint("name a plan, or a directory with a jobwright.yaml"))?;
    let mut file = PlanFile::parse(&path, &text).map_err(|findings| {
        output::findings::show(&findings, true);
        Failure::new(Kind::Usage, findings)
    })?;
    if let Some(namespace) = &cluster.namespace {
        file.plan.release.namespace.clone_from(namespace);
    }
    Ok(file)
}

/// A release that arguments name, and the cluster that it is in.
pub(super) struct Named {
    /// Its plan, if there is one.
    pub(super) plan: Option<PlanFile>,
    /// Its name; none if neither a plan nor an argument gives one.
    pub(super) name: Option<String>,
    pub(super) namespace: String,
    pub(super) connection: Connection,
}

/// Finds the release that arguments name, and connects to its cluster.
pub(super) async fn find_release(whose: &arguments::Whose, cluster: &arguments::Cluster) -> Result<Named, Failure> {
    let default = Path::new("jobwright.yaml");
    let plan = match &whose.plan {
        Some(path) => Some(read_plan(path, cluster)?),
        None if whose.release.is_none() && default.is_file() => Some(read_plan(default, cluster)?),
        None => None,
    };
    let connection = crate::cluster::connect(cluster, None, Clients::Own).await?;
    let release = plan.as_ref().map(|file| &file.plan.release);
    let name = release.map(|release| release.name.clone()).or_else(|| whose.release.clone());
    let namespace = release.map_or(&connection.namespace, |release| &release.namespace).clone();
    Ok(Named { plan, name, namespace, connection })
}

impl Named {
    /// The name of its Lease; none if the name of the release is unknown.
    pub(super) fn lease(&self) -> Option<String> {
        let release = Release { name: self.name.clone()?, namespace: self.namespace.clone(), ..Release::default() };
        let Connection { client, clock, .. } = &self.connection;
        Some(Manager::new(client.clone(), release, clock.clone(), Settings::default()).lease_name())
    }
}

fn locate(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("jobwright.yaml") } else { path.to_owned() }
}

/// Checks that the jobs and components that are selected on the command line exist.
pub(super) fn check_selection(file: &PlanFile, selection: &arguments::Selection) -> Result<(), Failure> {
    check_names(file, selection.only.iter().chain(&selection.skip))?;
    let known: Vec<&str> = file.plan.components.iter().map(|component| component.name.as_str()).collect();
    selection.component.iter().try_for_each(|name| check_name("component", name, &known))
}

/// Checks that jobs that are named on the command line exist.
pub(super) fn check_names(file: &PlanFile, names: impl Iterator<Item = impl AsRef<str>>) -> Result<(), Failure> {
    let known: Vec<&str> = file.plan.jobs.iter().map(|job| job.id.as_str()).collect();
    for name in names {
        check_name("job", name.as_ref(), &known)?;
    }
    Ok(())
}

fn check_name(what: &str, name: &str, known: &[&str]) -> Result<(), Failure> {
    if known.contains(&name) {
        return Ok(());
    }
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(Failure::new(Kind::Usage, format!("the plan has no {what} `{name}`")).hint(format!("it has {known}")))
}

/// Which programs a plan needs the cluster for.
pub(super) fn clients(file: &PlanFile) -> Clients {
    let has_charts = file.plan.components.iter().any(|component| component.helm_release().is_some());
    if has_charts { Clients::OwnAndHelm } else { Clients::Own }
}

/// Finds the helm that a plan needs, if it needs one.
pub(super) async fn find_helm(file: &PlanFile, connection: &Connection) -> Result<Option<Helm>, Failure> {
    let Some(component) = file.plan.components.iter().find(|component| component.helm_release().is_some()) else {
        return Ok(None);
    };
    let program = search("helm").ok_or_else(|| {
        Failure::new(
            Kind::Usage,
            format!("component `{}` is a chart, and there is no `helm` on your `PATH`", component.name),
        )
        .hint("install Helm 3 or 4, or deploy manifests")
    })?;
    let helm = Helm::probe(&program, connection.helm_arguments.clone()).await.or_fail(Kind::Usage)?;
    Ok(Some(helm))
}

/// A program on `PATH`.
fn search(name: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the environment comes in here")]
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

/// Where helm keeps its releases, as its own setting says.
fn helm_driver() -> Result<Driver, Failure> {
    #[expect(clippy::disallowed_methods, reason = "the environment comes in here")]
    match std::env::var("HELM_DRIVER").unwrap_or_default().as_str() {
        "" | "secret" | "secrets" => Ok(Driver::Secrets),
        "configmap" | "configmaps" => Ok(Driver::ConfigMaps),
        other => Err(Failure::new(
            Kind::Usage,
            format!("HELM_DRIVER is `{other}`, and releases are only found in Secrets and ConfigMaps"),
        )),
    }
}

/// Asks for the permissions that the plan needs, in every namespace it changes; prints the missing ones as roles.
pub(super) async fn check_permissions(file: &PlanFile, connection: &Connection) -> Result<(), Failure> {
    let name = format!("jobwright-{}", file.plan.release.name);
    match missing_permissions(file, connection).await?.into_iter().next() {
        Some((namespace, missing)) => Err(denied(&namespace, &name, "the deploy", &missing)),
        None => Ok(()),
    }
}

/// The permissions that a deploy of the plan lacks, by namespace.
pub(super) async fn missing_permissions(
    file: &PlanFile,
    connection: &Connection,
) -> Result<Vec<(String, BTreeSet<Permission>)>, Failure> {
    let dialling = connection.dialling(&file.plan.release.namespace);
    let client = connection.bounded();
    let wanted = preflight::permissions(file, &client, connection.retry(), &dialling).await.or_fail(Kind::Cluster)?;
    let mut all = Vec::new();
    for (namespace, wanted) in wanted {
        let missing = ask_for(connection, &namespace, wanted).await?;
        if !missing.is_empty() {
            all.push((namespace, missing));
        }
    }
    Ok(all)
}

async fn ask_for(
    connection: &Connection,
    namespace: &str,
    wanted: BTreeSet<Permission>,
) -> Result<BTreeSet<Permission>, Failure> {
    let client = connection.bounded();
    let ask = || async { Ok(access::missing(&client, namespace, wanted.clone()).await?) };
    connection.retry().call("check permissions", ask).await.map_err(failed)
}

/// Asks for permissions; what is missing is told as roles of a name.
pub(super) async fn require(
    connection: &Connection,
    namespace: &str,
    name: &str,
    what: &str,
    wanted: BTreeSet<Permission>,
) -> Result<(), Failure> {
    let missing = ask_for(connection, namespace, wanted).await?;
    if missing.is_empty() { Ok(()) } else { Err(denied(namespace, name, what, &missing)) }
}

fn denied(namespace: &str, name: &str, what: &str, missing: &BTreeSet<Permission>) -> Failure {
    note_roles(name, namespace, missing);
    let needs = name_permissions(missing);
    let message = format!("permission denied in namespace `{namespace}`: {what} needs {needs}");
    Failure::new(Kind::Cluster, message)
        .hint("apply the Role above and bind it to the identity that deploys; nothing was changed")
}

/// Prints the roles that grant permissions.
pub(super) fn note_roles(name: &str, namespace: &str, missing: &BTreeSet<Permission>) {
    output::note(&format!("# missing permissions, as a Role:\n{}", access::roles(name, namespace, missing)));
}

pub(super) fn name_permissions(missing: &BTreeSet<Permission>) -> String {
    missing.iter().map(|permission| format!("`{permission}`")).collect::<Vec<_>>().join(", ")
}

/// What was done to the cluster before the deploy itself.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    namespace: RefCell<Creation>,
}

/// Whether a namespace was created.
#[derive(Debug, Default)]
enum Creation {
    #[default]
    No,
    /// It was asked for, and not answered.
    Asked(String),
    Done(String),
}

impl Prepared {
    /// What is different in the cluster if the deploy has not begun.
    pub(super) fn summary(&self) -> String {
        match &*self.namespace.borrow() {
            Creation::Done(name) => format!("namespace `{name}` was created, nothing else was changed"),
            Creation::Asked(name) => format!("namespace `{name}` may have been created, nothing else was changed"),
            Creation::No => "nothing was changed".to_owned(),
        }
    }
}

/// Creates a namespace, if it does not exist.
pub(super) async fn ensure_namespace(name: &str, connection: &Connection, prepared: &Prepared) -> Result<(), Failure> {
    let (namespaces, retry) = (Api::<Namespace>::all(connection.bounded()), connection.retry());
    match retry.call(&format!("read namespace `{name}`"), || namespaces.get_opt(name)).await {
        Ok(None) => {}
        Ok(Some(_)) => return Ok(()),
        // An identity without permission to read namespaces works in one that exists.
        Err(error) if error.forbidden().is_some() => return Ok(()),
        Err(error) => return Err(failed(error)),
    }
    let namespace = Namespace {
        metadata: kube::core::ObjectMeta { name: Some(name.to_owned()), ..kube::core::ObjectMeta::default() },
        ..Namespace::default()
    };
    prepared.namespace.replace(Creation::Asked(name.to_owned()));
    let create = || async {
        match namespaces.create(&PostParams::default(), &namespace).await {
            Err(error) if classify(&error) == Answer::AlreadyExists => Ok(Creation::No),
            created => created.map(|_| Creation::Done(name.to_owned())),
        }
    };
    let created = retry.call(&format!("create namespace `{name}`, which does not exist"), create).await;
    prepared.namespace.replace(created.map_err(failed)?);
    Ok(())
}

/// A plan on a cluster, to be deployed without exceptions.
pub(super) fn deployment<'a>(
    file: &'a PlanFile,
    connection: &Connection,
    helm: Option<Helm>,
    settings: Settings,
) -> Result<Deployment<'a>, Failure> {
    Ok(Deployment {
        file,
        client: connection.client.clone(),
        clock: connection.clock.clone(),
        helm,
        driver: helm_driver()?,
        host: host(),
        settings,
        redeploy: false,
        force: false,
        unlock: false,
        environment: super::backfill::environment(),
        dialling: connection.dialling(&file.plan.release.namespace),
    })
}

/// How a plan is deployed.
pub(super) fn settings(file: &PlanFile, selection: &arguments::Selection, guards: arguments::Guards) -> Settings {
    // A certificate without a phase is two jobs, and both are meant by its name.
    let is_two = |name: &&String| file.plan.jobs.iter().any(|job| job.id == **name && job.is_two_jobs());
    let set = |names: &[String]| {
        let seconds = names.iter().filter(is_two).map(|name| second_id(name));
        names.iter().cloned().chain(seconds).collect::<BTreeSet<String>>()
    };
    Settings {
        parallel: usize::from(file.plan.parallel),
        holder: holder(),
        components: (!selection.component.is_empty()).then(|| selection.component.iter().cloned().collect()),
        only: (!selection.only.is_empty()).then(|| set(&selection.only)),
        skip: set(&selection.skip),
        upgrade_from: file.plan.release.upgrade_from.clone(),
        allow: Exceptions { skip_version: guards.allow_skip_version, older: guards.allow_older },
        follow_logs: true,
        watchdog: super::watchdog::find(),
        ..Settings::default()
    }
}

/// This machine.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// This process, unlike any other: processes in two containers may have the same user, host and number.
pub(super) fn holder() -> String {
    static HOLDER: OnceLock<String> = OnceLock::new();
    let name = || {
        #[expect(clippy::disallowed_methods, reason = "the environment comes in here")]
        let user = std::env::var("USER").unwrap_or_else(|_| "jobwright".to_owned());
        let random = RandomState::new().build_hasher().finish() & 0xff_ffff;
        format!("{user}@{} (process {}, {random:06x})", host(), std::process::id())
    };
    HOLDER.get_or_init(name).clone()
}

/// What an error of the engine means to the command line.
pub(super) fn failed(error: Error) -> Failure {
    failure_of(&error)
}

/// The same, of an error that a report carries.
pub(super) fn failure_of(error: &Error) -> Failure {
    let kind = match error {
        Error::Registry(_) => Kind::Usage,
        Error::Cluster { .. } => Kind::Cluster,
        Error::Cancelled | Error::CancelledWaiting { .. } | Error::Abandoned => Kind::Cancelled,
        _ => Kind::Negative,
    };
    let hint = match error {
        Error::Violations(_) => {
            Some("pass `--allow-skip-version` or `--allow-older` to break the rule; remove jobs that have retired")
        }
        Error::LostLease { .. } => Some("run the same command again: it resumes the deploy"),
        Error::Busy { .. } | Error::CancelledWaiting { .. } => {
            Some("check whether it still runs: `jobwright lock show`")
        }
        _ => None,
    };
    let failure = Failure::new(kind, error.whole_message());
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
