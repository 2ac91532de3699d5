//! What the commands on a plan have in common: reading it, finding helm, building what is deployed, and telling errors.

use crate::arguments;
use crate::cluster::Connection;
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output;
use anyhow::Context as _;
use jobwright_engine::{Error, Exceptions, Settings};
use jobwright_jobs::access::{self, Permission};
use jobwright_release::{DeployError, Deployment, Driver, Helm, PlanFile, preflight, second_id};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Reads the plan that an argument names. Everything that is wrong in it is shown.
pub(super) fn read_plan(path: &Path, cluster: &arguments::Cluster) -> Result<PlanFile, Failure> {
    let path = locate(path);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read the plan `{}`", path.display()))
        .map_err(|source| {
            Failure { kind: Kind::Usage, source, hints: Vec::new() }
                .hint("name a plan, or a directory with a jobwright.yaml")
        })?;
    let mut file = PlanFile::parse(&path, &text).map_err(|findings| {
        output::findings::show(&findings, true);
        Failure::new(Kind::Usage, findings)
    })?;
    if let Some(namespace) = &cluster.namespace {
        file.plan.release.namespace.clone_from(namespace);
    }
    Ok(file)
}

fn locate(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("jobwright.yaml") } else { path.to_owned() }
}

/// Checks that jobs that are named on the command line are there.
pub(super) fn check_names(file: &PlanFile, names: impl Iterator<Item = impl AsRef<str>>) -> Result<(), Failure> {
    for name in names {
        if !file.plan.jobs.iter().any(|job| job.id == name.as_ref()) {
            let known: Vec<&str> = file.plan.jobs.iter().map(|job| job.id.as_str()).collect();
            let failure = Failure::new(Kind::Usage, format!("the plan has no job `{}`", name.as_ref()));
            return Err(failure.hint(format!("it has {}", known.join(", "))));
        }
    }
    Ok(())
}

/// Finds the helm that a plan needs, if it needs one.
pub(super) async fn find_helm(file: &PlanFile, connection: &Connection) -> Result<Option<Helm>, Failure> {
    let Some(component) = file.plan.components.iter().find(|component| component.chart.is_some()) else {
        return Ok(None);
    };
    if connection.is_drydock {
        let message = format!(
            "component `{}` is a chart, and helm cannot reach a cluster inside of this process",
            component.name
        );
        return Err(Failure::new(Kind::Usage, message)
            .hint("serve one with `jobwright drydock --kubeconfig FILE`, and deploy with `--kubeconfig FILE`"));
    }
    let program = search("helm").ok_or_else(|| {
        Failure::new(
            Kind::Usage,
            format!("component `{}` is a chart, and there is no helm on the search path", component.name),
        )
        .hint("install Helm 3 or 4, or deploy manifests")
    })?;
    let helm = Helm::probe(&program, connection.helm_arguments.clone()).await.or_fail(Kind::Usage)?;
    Ok(Some(helm))
}

/// A program on the search path.
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

/// Asks for the permissions that the plan needs; what is missing is told as a Role.
pub(super) async fn check_permissions(file: &PlanFile, connection: &Connection) -> Result<(), Failure> {
    let release = &file.plan.release;
    let (wanted, name) = (
        preflight::permissions(&file.plan, &connection.dialling(&release.namespace)),
        format!("jobwright-{}", release.name),
    );
    require(connection, &release.namespace, &name, "the deploy", wanted).await
}

/// Asks for permissions; what is missing is told as roles of a name.
pub(super) async fn require(
    connection: &Connection,
    namespace: &str,
    name: &str,
    what: &str,
    wanted: BTreeSet<Permission>,
) -> Result<(), Failure> {
    let missing = access::missing(&connection.client, namespace, wanted)
        .await
        .context("cannot ask the cluster what is allowed")
        .or_fail(Kind::Cluster)?;
    if missing.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = missing.iter().map(ToString::to_string).collect();
    output::note(&format!("# what is missing, as a Role:\n{}", access::roles(name, namespace, &missing)));
    let message = format!("{what} needs what is not allowed in namespace `{namespace}`: {}", list.join(", "));
    Err(Failure::new(Kind::Cluster, message)
        .hint("apply the Role above and bind it to who deploys; nothing was changed"))
}

/// Makes a namespace, if it is not there.
pub(super) async fn ensure_namespace(name: &str, connection: &Connection) -> Result<(), Failure> {
    let namespaces = Api::<Namespace>::all(connection.client.clone());
    match namespaces.get_opt(name).await {
        Ok(None) => {}
        // Who may not look has been given one.
        Ok(Some(_)) | Err(_) => return Ok(()),
    }
    let namespace = Namespace {
        metadata: kube::core::ObjectMeta { name: Some(name.to_owned()), ..kube::core::ObjectMeta::default() },
        ..Namespace::default()
    };
    match namespaces.create(&PostParams::default(), &namespace).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => {
            let refusal = jobwright_engine::Refusal::from(error);
            let message = format!("namespace `{name}` is not there and cannot be made: {refusal}");
            Err(Failure::new(Kind::Cluster, message))
        }
    }
}

/// A plan on a cluster, to be deployed in the usual way.
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
    let is_two = |name: &&String| {
        file.plan.jobs.iter().any(|job| job.id == **name && job.init_cert.is_some() && job.phase.is_none())
    };
    let set = |names: &[String]| {
        let seconds = names.iter().filter(is_two).map(|name| second_id(name));
        names.iter().cloned().chain(seconds).collect::<BTreeSet<String>>()
    };
    Settings {
        parallel: usize::from(file.plan.parallel),
        holder: holder(),
        only: (!selection.only.is_empty()).then(|| set(&selection.only)),
        skip: set(&selection.skip),
        upgrade_from: file.plan.release.upgrade_from.clone(),
        allow: Exceptions { skip_version: guards.allow_skip_version, older: guards.allow_older },
        follow_logs: true,
        ..Settings::default()
    }
}

/// This machine.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Who deploys: nobody else has the same text at the same time.
pub(super) fn holder() -> String {
    #[expect(clippy::disallowed_methods, reason = "the environment comes in here")]
    let user = std::env::var("USER").unwrap_or_else(|_| "jobwright".to_owned());
    format!("{user}@{} (process {})", host(), std::process::id())
}

/// What it means to the command line that a deploy could not be carried out.
pub(super) fn stopped(error: DeployError) -> Failure {
    match error {
        DeployError::Engine(error) => failed(error),
        DeployError::Record(error) => Failure { kind: Kind::Cluster, source: error.into(), hints: Vec::new() },
    }
}

/// What an error of the engine means to the command line.
pub(super) fn failed(error: Error) -> Failure {
    let kind = match &error {
        Error::Registry(_) => Kind::Usage,
        Error::Cluster { .. } => Kind::Cluster,
        Error::Cancelled => Kind::Cancelled,
        _ => Kind::Negative,
    };
    let hint = match &error {
        Error::Violations(_) => {
            Some("`--allow-skip-version` and `--allow-older` break the rule on purpose; a job that retires has to go")
        }
        Error::LostLease { .. } => Some("run the same command again: it goes on from here"),
        Error::Busy { .. } => Some("wait for it, or look whether it still runs"),
        _ => None,
    };
    let failure = Failure::new(kind, error.whole_message());
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
