//! `jobwright drydock`: a Kubernetes API in memory, over HTTP, until it is told to stop.

use super::signals::Signals;
use crate::arguments;
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output;
use anyhow::Context as _;
use jobwright_drydock::{Clock, Drydock, Http, ServeError};
use jobwright_jobs::files::{Access, write_whole};

pub(super) fn run(arguments: arguments::Drydock) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().or_fail(Kind::Internal)?;
    runtime.block_on(serve(arguments))
}

async fn serve(arguments: arguments::Drydock) -> Result<(), Failure> {
    let arguments::Drydock { kubeconfig, listen, script, speed, rbac, plain } = arguments;
    #[expect(clippy::disallowed_methods, reason = "the wall clock comes in here")]
    let clock = Clock::starting_at(jiff::Timestamp::now()).times(speed);
    let mut builder = Drydock::builder().clock(clock).rbac(rbac).seed(seed(&clock)).system();
    if let Some(file) = script {
        builder = builder.script(crate::cluster::read_script(&file).or_fail(Kind::Usage)?);
    }
    let mut signals = Signals::listen().or_fail(Kind::Internal)?;
    let serving = builder.serve(Http { listen, tls: !plain }).await.map_err(|error| match error {
        ServeError::Open { .. } => {
            failed(error, Kind::Usage).hint("leave out `--plain`, or listen on 127.0.0.1 with `--listen`")
        }
        _ => failed(error, Kind::Cluster).hint("choose another address with `--listen`, or port 0 for a free one"),
    })?;
    write_whole(&kubeconfig, serving.kubeconfig().as_bytes(), Access::Private)
        .with_context(|| format!("cannot write the kubeconfig to `{}`", kubeconfig.display()))
        .or_fail(Kind::Usage)?;
    output::note(&format!("drydock listens on {}; KUBECONFIG={}", serving.address(), kubeconfig.display()));
    signals.next().await;
    serving.stop().await;
    Ok(())
}

/// A seed that differs from run to run.
fn seed(clock: &Clock) -> u64 {
    clock.now().as_nanosecond().to_le_bytes()[..8].iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

fn failed(error: ServeError, kind: Kind) -> Failure {
    Failure::of(kind, error)
}
