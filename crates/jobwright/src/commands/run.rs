//! `jobwright run`: one job of a release, without deploying its component.

use super::attention::Attention;
use super::plan::Wish;
use super::session::{self, Prepared};
use super::task::Task;
use crate::arguments;
use crate::cluster;
use crate::failure::Failure;
use crate::output;
use jobwright_release::Deployment;

pub(super) fn run(arguments: &arguments::Run) -> Result<(), Failure> {
    let is_watched = output::is_watched();
    cluster::block_on(&arguments.cluster, is_watched, run_job(arguments, is_watched))
}

async fn run_job(arguments: &arguments::Run, is_watched: bool) -> Result<(), Failure> {
    let mut file = session::read_plan(&arguments.plan, &arguments.cluster)?;
    // Nothing is deployed in between, so a certificate is issued and distributed in one run.
    let whole = file.plan.jobs.iter_mut().filter(|job| job.id == arguments.job);
    whole.for_each(jobwright_release::plan::Job::make_whole);
    session::check_names(&file, std::iter::once(&arguments.job))?;
    let selection = arguments::Selection { only: vec![arguments.job.clone()], ..arguments::Selection::default() };
    let settings = session::settings(&file, &selection, arguments.guards);
    if arguments.dry_run {
        let wish = Wish { force: arguments.again, redeploy: true, unlock: false };
        return super::plan::preview(&file, &arguments.cluster, settings, &wish, arguments.output).await;
    }
    let mut attention = Attention::begin(arguments.timeout)?;
    let prepared = Prepared::default();
    let connecting = cluster::connect(&arguments.cluster, file.path.parent(), session::clients(&file));
    let connection = attention.before_deploy(&prepared, connecting).await?;
    let preparing = async {
        session::check_permissions(&file, &connection).await?;
        session::ensure_namespace(&file.plan.release.namespace, &connection, &prepared).await?;
        Ok(session::find_helm(&file, &connection).await.ok().flatten())
    };
    let helm = attention.before_deploy(&prepared, preparing).await?;
    let abandon = settings.abandon.clone();
    let deployment = Deployment { force: arguments.again, ..session::deployment(&file, &connection, helm, settings)? };
    let subject = output::report::Subject::Job(&arguments.job);
    let task = Task { subject, connection: &connection, output: arguments.output, is_watched, prepared, abandon };
    task.attend(attention, async |cancellation, events| deployment.run_job(&arguments.job, cancellation, events).await)
        .await
}
