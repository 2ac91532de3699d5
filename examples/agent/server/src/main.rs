//! `agent`: answers reviews of admission in a pod.

#![expect(clippy::print_stdout, reason = "what it admits is recorded in its log")]

use anyhow::Context as _;
use clap::Parser;
use jobwright_agent::{Options, Serving};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Answers reviews of admission, with the certificate of a mounted Secret.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Where reviews are answered, over TLS
    #[arg(long, default_value = "0.0.0.0:8443")]
    listen: SocketAddr,
    /// Where /healthz, /readyz and /metrics are answered, in plain HTTP
    #[arg(long, default_value = "0.0.0.0:8080")]
    health: SocketAddr,
    /// The directory with tls.crt and tls.key; a new pair in it is served within a second
    #[arg(long, default_value = "/certificate")]
    certificate: PathBuf,
    /// Seconds that reviews are still answered after SIGTERM
    #[arg(long, default_value_t = 5)]
    drain: u64,
    /// Be ready before there is a certificate
    #[arg(long)]
    ready_without_certificate: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let options = Options {
        listen: arguments.listen,
        health: arguments.health,
        certificate: arguments.certificate,
        drain: Duration::from_secs(arguments.drain),
        ready_without_certificate: arguments.ready_without_certificate,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let mut end = signal(SignalKind::terminate()).context("cannot listen to signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen to signals")?;
        let serving = Serving::listen(&options, |line| println!("{line}"))
            .await
            .with_context(|| format!("cannot listen on {} and {}", options.listen, options.health))?;
        let stop = async {
            tokio::select! {
                _ = end.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        serving.run(stop).await.context("cannot serve")
    })
}
