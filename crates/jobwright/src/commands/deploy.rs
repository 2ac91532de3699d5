//! `jobwright deploy`: a release, component by component, with its jobs before and after.

use super::attention::Attention;
use super::session::{self, Prepared};
use super::task::Task;
use crate::arguments;
use crate::cluster;
use crate::failure::Failure;
use crate::output;
use jobwright_release::Deployment;

pub(super) fn run(arguments: &arguments::Deploy) -> Result<(), Failure> {
    if arguments.dry_run {
        return super::plan::preview_deploy(arguments);
    }
    let is_watched = output::is_watched();
    cluster::block_on(&arguments.cluster, is_watched, deploy(arguments, is_watched))
}

async fn deploy(arguments: &arguments::Deploy, is_watched: bool) -> Result<(), Failure> {
    let file = session::read_plan(&arguments.plan, &arguments.cluster)?;
    session::check_selection(&file, &arguments.selection)?;
    let mut attention = Attention::begin(arguments.timeout)?;
    let prepared = Prepared::default();
    let connecting = cluster::connect(&arguments.cluster, file.path.parent(), session::clients(&file));
    let connection = attention.before_deploy(&prepared, connecting).await?;
    let preparing = async {
        let helm = session::find_helm(&file, &connection).await?;
        session::check_permissions(&file, &connection).await?;
        session::ensure_namespace(&file.plan.release.namespace, &connection, &prepared).await?;
        Ok(helm)
    };
    let helm = attention.before_deploy(&prepared, preparing).await?;

    let settings = session::settings(&file, &arguments.selection, arguments.guards);
    let abandon = settings.abandon.clone();
    let deployment = Deployment {
        redeploy: arguments.redeploy,
        force: arguments.force,
        unlock: arguments.unlock,
        ..session::deployment(&file, &connection, helm, settings)?
    };
    let subject = output::report::Subject::Deploy(&file.plan.release);
    let task = Task { subject, connection: &connection, output: arguments.output, is_watched, prepared, abandon };
    task.attend(attention, async |cancellation, events| deployment.deploy(cancellation, events).await).await
}
