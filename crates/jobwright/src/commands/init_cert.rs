//! `jobwright init-cert`: the certificate by which the Kubernetes API reaches a webhook.

use super::session;
use super::signals::Signals;
use crate::arguments::{self, Format};
use crate::cluster::{self, Clients, Connection};
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output;
use anyhow::Context as _;
use jobwright_jobs::access;
use jobwright_jobs::files::{Access, write_whole};
use jobwright_jobs::init_cert::{
    Dialling, Direct, Error, Options, Report, Stage, Surroundings, Targets, check, init_cert, metrics, permissions,
};
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(super) fn run(arguments: &arguments::InitCert) -> Result<(), Failure> {
    if arguments.print_rbac {
        return print_roles(arguments);
    }
    cluster::block_on(&arguments.cluster, output::is_watched(), see_to_it(arguments))
}

/// What is wanted, in a namespace.
fn options(arguments: &arguments::InitCert, namespace: &str) -> Options {
    let wanted = arguments.targets.clone();
    Options {
        authority_secret: arguments.ca_secret.clone(),
        stage: match arguments.stage {
            arguments::Stage::All => Stage::All,
            arguments::Stage::Secret => Stage::Secret,
            arguments::Stage::Inject => Stage::Inject,
        },
        targets: Targets {
            validating_webhooks: wanted.validating_webhook,
            mutating_webhooks: wanted.mutating_webhook,
            webhook_selector: wanted.webhook_selector,
            definitions: wanted.crd,
            api_services: wanted.apiservice,
        },
        deployments: arguments.deployment.clone(),
        cluster_domain: arguments.cluster_domain.clone(),
        validity: arguments.validity.duration(),
        authority_validity: arguments.ca_validity.duration(),
        renew_before: arguments.renew_before.0,
        settle: arguments.settle.duration(),
        timeout: arguments.timeout.duration(),
        force: arguments.force,
        again: arguments.again.clone(),
        mark: arguments.mark.clone(),
        only_if_forced: arguments.if_forced,
        lock: arguments.lock.clone(),
        services: arguments.service.clone(),
        ..Options::new(namespace, "", &arguments.secret)
    }
}

/// Prints the roles of who runs it inside of a cluster.
fn print_roles(arguments: &arguments::InitCert) -> Result<(), Failure> {
    let namespace = arguments.cluster.namespace.as_deref().unwrap_or("default");
    let options = options(arguments, namespace);
    options.check().map_err(failed)?;
    let dialling = if arguments.no_handshake { told_not_to() } else { Dialling::With(Arc::new(Direct)) };
    let wanted = permissions(&options, &dialling, arguments.check);
    output::line(access::roles(&role(&options), namespace, &wanted).trim_end());
    Ok(())
}

/// What the roles of a certificate are called.
fn role(options: &Options) -> String {
    format!("{}-init-cert", options.secret)
}

fn told_not_to() -> Dialling {
    Dialling::Not("told not to (--no-handshake)".to_owned())
}

fn dialling(arguments: &arguments::InitCert, connection: &Connection, namespace: &str) -> Dialling {
    if arguments.no_handshake {
        return told_not_to();
    }
    connection.dialling(namespace)
}

async fn see_to_it(arguments: &arguments::InitCert) -> Result<(), Failure> {
    // What cannot work needs no cluster to say so.
    options(arguments, arguments.cluster.namespace.as_deref().unwrap_or("default")).check().map_err(failed)?;
    let connection = cluster::connect(&arguments.cluster, None, Clients::Own).await?;
    let options = options(arguments, &connection.namespace);
    let namespace = options.namespace.as_str();
    let dialling = dialling(arguments, &connection, namespace);
    if connection.is_drydock {
        session::ensure_namespace(namespace, &connection, &session::Prepared::default()).await?;
    }
    let wanted = permissions(&options, &dialling, arguments.check);
    session::require(&connection, namespace, &role(&options), "init-cert", wanted).await?;
    let is_quiet = arguments.output.quiet;
    let around = Surroundings {
        client: connection.client.clone(),
        clock: connection.clock.clone(),
        dialling,
        holder: Some(session::holder()),
        tell: Arc::new(move |line| {
            if !is_quiet {
                output::note(line);
            }
        }),
        cancellation: CancellationToken::new(),
    };
    let result = attend(arguments, &around, &options).await;
    if let Some(file) = &arguments.metrics {
        let text = metrics(namespace, &options.secret, result.as_ref().ok(), around.clock.now());
        write(file, &text).or_fail(Kind::Usage)?;
    }
    let report = result.map_err(failed)?;
    match arguments.output.output {
        Format::Json => output::line(&report.to_json().to_string()),
        Format::Text => tell(&report, arguments.check),
    }
    if arguments.check && !report.is_good() {
        // It has been told.
        return Err(Failure::new(Kind::Negative, ""));
    }
    Ok(())
}

/// Does it, or looks only, until it is done or a signal ends it.
async fn attend(arguments: &arguments::InitCert, around: &Surroundings, options: &Options) -> Result<Report, Error> {
    let work = async { if arguments.check { check(around, options).await } else { init_cert(around, options).await } };
    let Ok(mut signals) = Signals::listen() else { return work.await };
    let mut work = std::pin::pin!(work);
    tokio::select! {
        result = &mut work => return result,
        () = signals.next() => around.cancellation.cancel(),
    }
    // It gives its lease back; whoever is asked twice goes at once.
    tokio::select! {
        result = work => result,
        () = signals.next() => Err(Error::Cancelled),
    }
}

fn tell(report: &Report, is_check: bool) {
    let action = match (is_check, report.action.to_string().as_str()) {
        (true, "created") => "would be created".to_owned(),
        (true, "renewed") => "would be renewed".to_owned(),
        (_, action) => action.to_owned(),
    };
    output::line(&format!("{action}: {}", report.whole_reason()));
    for target in report.targets.iter().filter(|target| target.changed) {
        output::line(&format!("injected: {} {}", target.kind, target.name));
    }
    for deployment in &report.restarted {
        output::line(&format!("restarted: Deployment {deployment}"));
    }
}

/// Writes a file whole or not at all: somebody may be reading it.
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    write_whole(file, text.as_bytes(), Access::Public).with_context(|| format!("cannot write {}", file.display()))
}

fn failed(error: Error) -> Failure {
    let kind = match &error {
        Error::Options(_) => Kind::Usage,
        Error::Cluster { .. } => Kind::Cluster,
        Error::Cancelled => Kind::Cancelled,
        _ => Kind::Negative,
    };
    Failure::of(kind, error)
}
