//! `jobwright run`: one job of a release, whatever becomes of its component.

use super::deploy::Task;
use super::plan::Wish;
use super::session;
use crate::arguments;
use crate::cluster;
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output;
use jobwright_engine::Settings;

pub(super) fn run(arguments: &arguments::Run) -> Result<(), Failure> {
    let is_watched = output::is_watched();
    cluster::block_on(&arguments.cluster, is_watched, run_job(arguments, is_watched))
}

async fn run_job(arguments: &arguments::Run, is_watched: bool) -> Result<(), Failure> {
    let mut file = session::read_plan(&arguments.plan, &arguments.cluster)?;
    // Nothing is deployed in between, so all of a certificate is seen to at once.
    let whole = file.plan.jobs.iter_mut().filter(|job| job.id == arguments.job && job.init_cert.is_some());
    whole.for_each(|job| job.phase = Some(job.phase.unwrap_or(jobwright_release::plan::Phase::Post)));
    session::check_names(&file, std::iter::once(&arguments.job))?;
    let selection = arguments::Selection { only: vec![arguments.job.clone()], skip: Vec::new() };
    let settings = session::settings(&file, &selection, arguments.guards);
    if arguments.dry_run {
        let wish = Wish { force: arguments.again, redeploy: true, unlock: false };
        return super::plan::preview(&file, &arguments.cluster, settings, &wish, arguments.output).await;
    }
    let connection = cluster::connect(&arguments.cluster, file.path.parent()).await?;
    // Each invocation is an application of its own: a job that failed is tried again.
    let asked = format!("run at {}", connection.clock.now());
    let settings =
        Settings { nonce: if arguments.again { asked.clone() } else { String::new() }, revision: asked, ..settings };
    session::ensure_namespace(&file.plan.release.namespace, &connection).await?;
    session::check_permissions(&file, &connection).await?;
    let helm = if connection.is_drydock { None } else { session::find_helm(&file, &connection).await.ok().flatten() };
    let deployment = session::deployment(&file, &connection, helm, settings.clone())?;
    let task = Task { connection: &connection, output: arguments.output, is_watched };
    let limit = arguments.timeout.map(jobwright_release::Period::duration);
    task.attend(limit, async |cancellation, events| {
        let (registry, records) = deployment.open().await.or_fail(Kind::Cluster)?;
        // The version that is deployed stays what it is, and a job of it may run again.
        let previous = records.get().await.version.filter(|_| !arguments.guards.allow_older);
        let manager = deployment.manager(previous, settings);
        let lock = manager.lock(&cancellation, &events).await.map_err(session::failed)?;
        let report = manager.run_job(lock, &registry, &arguments.job, cancellation, events).await;
        report.map_err(session::failed)
    })
    .await
}
