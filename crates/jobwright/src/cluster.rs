//! The cluster that a command works on: a real one, or one in memory.

use crate::arguments;
use crate::failure::{ErrorExt as _, Failure, Kind};
use anyhow::Context as _;
use jobwright_drydock::{Drydock, Script};
use jobwright_engine::Clock;
use jobwright_jobs::init_cert::{Dialling, Direct, PortForward};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How fast time passes in a cluster in memory: slow enough to be watched, if somebody does.
const WATCHED_SPEED: u32 = 20;
const UNWATCHED_SPEED: u32 = 200;
/// How often a cluster in memory goes on, in real time, and in which steps of its own.
const TICK: Duration = Duration::from_millis(5);
const STEP: Duration = Duration::from_millis(50);
/// How long a cluster may take to answer for the first time.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// A cluster, and what is needed to work on it.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    /// The namespace that is meant unless a plan says otherwise.
    pub(crate) namespace: String,
    /// Whether it lives in memory, where nobody else can reach it.
    pub(crate) is_drydock: bool,
    /// How its pods are reached from here.
    pub(crate) reach: Reach,
    /// What helm has to be told to reach the same cluster.
    pub(crate) helm_arguments: Vec<String>,
}

impl Connection {
    /// How servers in a namespace are asked what they show.
    pub(crate) fn dialling(&self, namespace: &str) -> Dialling {
        let (client, namespace) = (self.client.clone(), namespace.to_owned());
        match self.reach {
            Reach::Memory => Dialling::Not("nobody serves in a cluster in memory".to_owned()),
            Reach::Inside => Dialling::With(Arc::new(Direct)),
            Reach::Outside => Dialling::With(Arc::new(PortForward { client, namespace })),
        }
    }
}

/// How the pods of a cluster are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// This is one of them.
    Inside,
    /// Through the API server.
    Outside,
    /// Not at all: they only live in memory.
    Memory,
}

/// Runs a command that works on a cluster, in the time of that cluster.
pub(crate) fn block_on<F>(arguments: &arguments::Cluster, is_watched: bool, run: F) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    if !arguments.drydock {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().or_fail(Kind::Internal)?;
        let result = runtime.block_on(run);
        // Whatever still hangs on a cluster that does not answer is left.
        runtime.shutdown_background();
        return result;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.or_fail(Kind::Internal)?;
    let usual = if is_watched { WATCHED_SPEED } else { UNWATCHED_SPEED };
    let speed = arguments.speed.unwrap_or(usual);
    let result = runtime.block_on(async {
        tokio::select! {
            result = run => result,
            never = pass_time(speed) => never,
        }
    });
    runtime.shutdown_background();
    result
}

/// Lets the time of this runtime pass at a pace of its own. While a thread waits, it does not jump ahead by itself.
async fn pass_time<T>(speed: u32) -> T {
    loop {
        let _ = tokio::task::spawn_blocking(|| std::thread::sleep(TICK)).await;
        let mut left = TICK * speed;
        while !left.is_zero() {
            let step = STEP.min(left);
            tokio::time::advance(step).await;
            // What one thing sets off in another happens at the same time.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            left -= step;
        }
    }
}

/// Connects to the cluster that the arguments name. `beside` is where a script for one in memory may be.
pub(crate) async fn connect(arguments: &arguments::Cluster, beside: Option<&Path>) -> Result<Connection, Failure> {
    connect_with(arguments, beside, true).await
}

/// Connects for somebody who makes calls again by themselves.
pub(crate) async fn connect_without_retries(arguments: &arguments::Cluster) -> Result<Connection, Failure> {
    connect_with(arguments, None, false).await
}

async fn connect_with(
    arguments: &arguments::Cluster,
    beside: Option<&Path>,
    retries: bool,
) -> Result<Connection, Failure> {
    let mut connection = if arguments.drydock { embed(arguments, beside)? } else { reach(arguments, retries).await? };
    if let Some(namespace) = &arguments.namespace {
        connection.namespace.clone_from(namespace);
    }
    Ok(connection)
}

fn embed(arguments: &arguments::Cluster, beside: Option<&Path>) -> Result<Connection, Failure> {
    let found = beside.map(|directory| directory.join("drydock.yaml")).filter(|file| file.is_file());
    let script = match arguments.script.clone().or(found) {
        Some(file) => read_script(&file).or_fail(Kind::Usage)?,
        None => Script::default(),
    };
    let drydock = Drydock::builder().script(script).build();
    let client = Client::new(drydock.clone(), "default");
    let clock = Clock::new(move || drydock.now());
    let namespace = "default".to_owned();
    Ok(Connection { client, clock, namespace, is_drydock: true, reach: Reach::Memory, helm_arguments: Vec::new() })
}

/// Reads what containers do.
pub(crate) fn read_script(file: &Path) -> anyhow::Result<Script> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read the script `{}`", file.display()))?;
    Script::from_yaml(&text).with_context(|| format!("script `{}`", file.display()))
}

async fn reach(arguments: &arguments::Cluster, retries: bool) -> Result<Connection, Failure> {
    let options = KubeConfigOptions { context: arguments.context.clone(), ..KubeConfigOptions::default() };
    let configured = match &arguments.kubeconfig {
        Some(file) => {
            let read =
                Kubeconfig::read_from(file).with_context(|| format!("cannot use the kubeconfig `{}`", file.display()));
            kube::Config::from_custom_kubeconfig(read.or_fail(Kind::Usage)?, &options)
                .await
                .map_err(anyhow::Error::from)
        }
        None if arguments.context.is_some() => {
            kube::Config::from_kubeconfig(&options).await.map_err(anyhow::Error::from)
        }
        None => kube::Config::infer().await.map_err(anyhow::Error::from),
    };
    let mut config = configured.context("cannot tell which cluster is meant").map_err(|error| {
        Failure { kind: Kind::Cluster, source: error, hints: Vec::new() }
            .hint("name one with `--kubeconfig` or $KUBECONFIG, or try it with `--drydock`")
    })?;
    config.connect_timeout = Some(FIRST_ANSWER);
    config.default_retry = retries;
    let namespace = config.default_namespace.clone();
    let address = config.cluster_url.to_string();
    let is_inside = arguments.kubeconfig.is_none() && arguments.context.is_none() && leads_inside(&config);
    let client = Client::try_from(config).or_fail(Kind::Cluster)?;
    let asked = tokio::time::timeout(FIRST_ANSWER, client.apiserver_version()).await;
    let reached = match asked {
        Ok(Ok(version)) if version.git_commit == "drydock" => Ok(Reach::Memory),
        Ok(Ok(_)) if is_inside => Ok(Reach::Inside),
        Ok(Ok(_)) => Ok(Reach::Outside),
        Ok(Err(error)) => Err(jobwright_engine::Refusal::from(error).to_string()),
        Err(_) => Err(format!("no answer within {FIRST_ANSWER:?}")),
    };
    let reach = reached
        .map_err(|why| Failure::new(Kind::Cluster, format!("the cluster at {address} cannot be reached: {why}")))?;
    #[expect(clippy::disallowed_methods, reason = "the wall clock comes in here")]
    let clock = Clock::new(jiff::Timestamp::now);
    let helm_arguments = helm_arguments(arguments);
    Ok(Connection { client, clock, namespace, is_drydock: false, reach, helm_arguments })
}

/// Whether a configuration is that of a pod.
fn leads_inside(config: &kube::Config) -> bool {
    #[expect(clippy::disallowed_methods, reason = "the environment comes in here")]
    let own = std::env::var("KUBERNETES_SERVICE_HOST").ok();
    let host = config.cluster_url.host().map(|host| host.trim_matches(['[', ']']));
    own.is_some_and(|own| host == Some("kubernetes.default.svc") || host == Some(own.as_str()))
}

fn helm_arguments(arguments: &arguments::Cluster) -> Vec<String> {
    let file =
        arguments.kubeconfig.as_ref().map(|file: &PathBuf| ["--kubeconfig".to_owned(), file.display().to_string()]);
    let context = arguments.context.as_ref().map(|name| ["--kube-context".to_owned(), name.clone()]);
    file.into_iter().chain(context).flatten().collect()
}
