//! The cluster that a command works on: a real one, or one in memory.

mod clock;
mod config;
mod embedded;

use crate::arguments;
use crate::arguments::Pace;
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output;
use anyhow::Context as _;
use clock::Difference;
use embedded::Served;
use jobwright_drydock::Script;
use jobwright_engine::{Clock, Event, Events, Retry};
use jobwright_jobs::init_cert::{Dialling, Direct, PortForward};
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How fast time passes in a cluster in memory: slow enough to be watched on a terminal.
const WATCHED_SPEED: u32 = 20;
const UNWATCHED_SPEED: u32 = 200;
/// How often the time of a cluster in memory advances, in real time, and in which steps.
const TICK: Duration = Duration::from_millis(5);
const STEP: Duration = Duration::from_millis(50);
/// How long a cluster may take to answer for the first time.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// How long a cluster that refuses or drops connections is asked again.
const FIRST_RETRIES: Duration = Duration::from_secs(5);

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
    /// The API of an in-memory cluster, for helm.
    _served: Option<Served>,
}

/// Which programs have to reach a cluster besides this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clients {
    Own,
    /// An in-memory cluster is served on loopback, as long as the connection lives.
    OwnAndHelm,
}

impl Connection {
    /// A client whose calls have a deadline.
    pub(crate) fn bounded(&self) -> Client {
        jobwright_engine::bounded(&self.client)
    }

    /// Retries that print outages, for what happens outside of a deploy.
    pub(crate) fn retry(&self) -> Retry {
        retry(&self.clock)
    }

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
    arguments.pace.set(arguments.speed.unwrap_or(usual));
    let result = runtime.block_on(async {
        tokio::select! {
            result = run => result,
            never = pass_time(&arguments.pace) => never,
        }
    });
    runtime.shutdown_background();
    result
}

/// Lets the time of this runtime pass at a pace of its own. While a thread waits, it does not jump ahead by itself.
async fn pass_time<T>(pace: &Pace) -> T {
    loop {
        let _ = tokio::task::spawn_blocking(|| std::thread::sleep(TICK)).await;
        let mut left = TICK * pace.get();
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
pub(crate) async fn connect(
    arguments: &arguments::Cluster,
    beside: Option<&Path>,
    clients: Clients,
) -> Result<Connection, Failure> {
    let mut connection =
        if arguments.drydock { embedded::start(arguments, beside, clients).await? } else { reach(arguments).await? };
    if let Some(namespace) = &arguments.namespace {
        connection.namespace.clone_from(namespace);
    }
    Ok(connection)
}

/// Retries that print outages, for what happens outside of a deploy.
pub(crate) fn retry(clock: &Clock) -> Retry {
    let (events, mut receiver) = Events::channel();
    tokio::spawn(async move {
        while let Some(event) = receiver.recv().await {
            if let Event::Retrying { doing, error } = event {
                output::note(&format!("retrying to {doing}: {error}"));
            }
        }
    });
    Retry::new(clock.clone(), CancellationToken::new(), events)
}

/// Reads what containers do.
pub(crate) fn read_script(file: &Path) -> anyhow::Result<Script> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read the script `{}`", file.display()))?;
    Script::from_yaml(&text).with_context(|| format!("script `{}`", file.display()))
}

async fn reach(arguments: &arguments::Cluster) -> Result<Connection, Failure> {
    let mut config = config::find(arguments).await?;
    config.connect_timeout = Some(FIRST_ANSWER);
    // Every call is retried in one place, which has a time limit and reports it.
    config.default_retry = false;
    let namespace = config.default_namespace.clone();
    let address = config.cluster_url.to_string();
    let is_inside = arguments.kubeconfig.is_none() && arguments.context.is_none() && leads_inside(&config);
    let client = Client::try_from(config).or_fail(Kind::Cluster)?;
    let FirstAnswer { is_drydock, difference } = greet(&client, &address).await?;
    if let Some(report) = difference.report() {
        output::note(&report);
    }
    let reach = match (is_drydock, is_inside) {
        (true, _) => Reach::Memory,
        (false, true) => Reach::Inside,
        (false, false) => Reach::Outside,
    };
    let (clock, helm_arguments) = (difference.correct(wall_clock), helm_arguments(arguments));
    Ok(Connection { client, clock, namespace, is_drydock: false, reach, helm_arguments, _served: None })
}

/// What the first answer of a cluster tells.
struct FirstAnswer {
    is_drydock: bool,
    difference: Difference,
}

/// Asks a cluster for its version, to see whether it answers, and what time it is there.
async fn greet(client: &Client, address: &str) -> Result<FirstAnswer, Failure> {
    let ask = || async {
        let request = http::Request::get("/version").body(Body::empty()).map_err(kube::Error::HttpError)?;
        let sent = wall_clock();
        let (head, body) = client.send(request).await?.into_parts();
        let difference = Difference::of(&head.headers, sent, wall_clock());
        let body = body.collect_bytes().await?;
        if !head.status.is_success() {
            let refusal = serde_json::from_slice(&body).unwrap_or_else(|_| Status::failure(head.status.as_str(), ""));
            return Err(kube::Error::Api(refusal.with_code(head.status.as_u16()).boxed()));
        }
        let version: Info = serde_json::from_slice(&body).map_err(kube::Error::SerdeError)?;
        Ok(FirstAnswer { is_drydock: version.git_commit == "drydock", difference })
    };
    let doing = format!("reach the cluster at {address}");
    let retry = retry(&Clock::new(wall_clock)).within(FIRST_RETRIES);
    match tokio::time::timeout(FIRST_ANSWER, retry.call(&doing, ask)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Failure::new(Kind::Cluster, error.whole_message())),
        Err(_) => Err(Failure::new(Kind::Cluster, format!("cannot {doing}: no answer within {FIRST_ANSWER:?}"))),
    }
}

#[expect(clippy::disallowed_methods, reason = "the wall clock comes in here")]
fn wall_clock() -> jiff::Timestamp {
    jiff::Timestamp::now()
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
