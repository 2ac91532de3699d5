//! `jobwright plan`: what a deploy would do, and why.

use super::session;
use crate::arguments::{self, Format, Output};
use crate::cluster::{self, Clients, Connection};
use crate::failure::{Failure, Kind};
use crate::output::{self, report};
use jobwright_engine::{Past, Preview, Settings, Would};
use jobwright_release::{Deployment, PlanFile, Records};

pub(super) fn run(arguments: &arguments::Plan) -> Result<(), Failure> {
    cluster::block_on(&arguments.cluster, false, plan(arguments))
}

async fn plan(arguments: &arguments::Plan) -> Result<(), Failure> {
    let file = session::read_plan(&arguments.plan, &arguments.cluster)?;
    session::check_selection(&file, &arguments.selection)?;
    if arguments.check {
        return check(arguments, &file).await;
    }
    let settings = session::settings(&file, &arguments.selection, arguments.guards);
    let wish = Wish { force: arguments.force, redeploy: arguments.redeploy, unlock: arguments.unlock };
    preview(&file, &arguments.cluster, settings, &wish, arguments.output).await
}

/// `deploy --dry-run`.
pub(super) fn preview_deploy(arguments: &arguments::Deploy) -> Result<(), Failure> {
    cluster::block_on(&arguments.cluster, false, async {
        let file = session::read_plan(&arguments.plan, &arguments.cluster)?;
        session::check_selection(&file, &arguments.selection)?;
        let settings = session::settings(&file, &arguments.selection, arguments.guards);
        let wish = Wish { force: arguments.force, redeploy: arguments.redeploy, unlock: arguments.unlock };
        preview(&file, &arguments.cluster, settings, &wish, arguments.output).await
    })
}

/// What is asked for explicitly.
pub(super) struct Wish {
    pub(super) force: bool,
    pub(super) redeploy: bool,
    pub(super) unlock: bool,
}

/// Shows what a deploy would do. Fails if the deploy would.
pub(super) async fn preview(
    file: &PlanFile,
    cluster: &arguments::Cluster,
    settings: Settings,
    wish: &Wish,
    output: Output,
) -> Result<(), Failure> {
    let connection = cluster::connect(cluster, file.path.parent(), session::clients(file)).await?;
    let helm = session::find_helm(file, &connection).await?;
    let nonce = if wish.force { "asked for".to_owned() } else { settings.nonce.clone() };
    let settings = Settings { nonce, ..settings };
    let deployment = Deployment {
        redeploy: wish.redeploy,
        unlock: wish.unlock,
        ..session::deployment(file, &connection, helm, settings.clone())?
    };
    let (registry, records) =
        deployment.open(connection.bounded(), None, connection.retry()).await.map_err(session::failed)?;
    let record = records.get().await;
    let manager = deployment.manager(record.past(), Settings { owed: record.owed, ..settings });
    let preview = manager.preview(&registry).await.map_err(session::failed)?;
    let violations = manager.violations(&registry);
    let denied = denied(file, &connection).await?;
    match output.output {
        Format::Json => output::line(&report::preview_to_json(&preview, &violations, &denied).to_string()),
        Format::Text => report::show_preview(&preview, &violations),
    }
    let failing: Vec<String> = failing(&preview).into_iter().chain(denied).collect();
    match (violations.is_empty(), failing.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => {
            let message = format!("the deploy would fail: {}", failing.join(", "));
            Err(Failure::new(Kind::Negative, message).documented())
        }
        (false, _) => Err(Failure::reported(Kind::Negative)),
    }
}

/// The permissions that the deploy would lack, as its errors name them. Prints the roles that grant them.
async fn denied(file: &PlanFile, connection: &Connection) -> Result<Vec<String>, Failure> {
    let release = &file.plan.release;
    let mut denied = Vec::new();
    for (namespace, missing) in session::missing_permissions(file, connection).await? {
        let needs = session::name_permissions(&missing);
        session::note_roles(&format!("jobwright-{}", release.name), &namespace, &missing);
        denied.push(format!("permission denied in namespace `{namespace}`: it needs {needs}"));
    }
    Ok(denied)
}

/// The components and jobs that would fail.
fn failing(preview: &Preview) -> Vec<String> {
    let components = preview.components.iter().filter(|(_, decision)| decision.is_err());
    let jobs = preview.jobs.iter().filter(|job| job.would == Would::Fail);
    let components = components.map(|(name, _)| format!("component `{name}`"));
    components.chain(jobs.map(|job| format!("job `{}`", job.id))).collect()
}

/// What was deployed before, if a cluster can be reached, and has the release.
async fn deployed(arguments: &arguments::Plan, file: &PlanFile) -> Option<Past> {
    let connection = cluster::connect(&arguments.cluster, file.path.parent(), Clients::Own).await.ok()?;
    let release = &file.plan.release;
    let retry = connection.retry().within(std::time::Duration::from_secs(10));
    let records = Records::open(connection.bounded(), &release.namespace, &release.name, None, retry).await.ok()?;
    Some(records.get().await.past()).filter(|past| past.version.is_some() || past.attempted.is_some())
}

/// `plan --check`: what should not be merged. The deployed version is read from the cluster, if one can be reached.
async fn check(arguments: &arguments::Plan, file: &PlanFile) -> Result<(), Failure> {
    let mut problems: Vec<String> = file.warnings.findings.iter().map(|finding| finding.message.clone()).collect();
    if arguments.output.output == Format::Text && !file.warnings.findings.is_empty() {
        output::findings::show(&file.warnings, false);
    }
    let mut more = unused_values(file);
    let past = deployed(arguments, file).await;
    if past.is_none() {
        output::note("found no cluster with a deployed version: the upgrade is not checked");
    }
    let settings = session::settings(file, &arguments.selection, arguments.guards);
    more.extend(
        jobwright_release::violations(file, &past.unwrap_or_default(), &settings).iter().map(ToString::to_string),
    );
    if arguments.output.output == Format::Text {
        for problem in &more {
            output::line(&format!("{}error{:#}: {problem}", output::BAD, output::BAD));
        }
    }
    problems.extend(more);
    if arguments.output.output == Format::Json {
        output::line(&serde_json::json!({"problems": problems}).to_string());
    }
    match problems.len() {
        0 => {
            if arguments.output.output == Format::Text && !arguments.output.quiet {
                output::line(&format!("{}no problems found{:#}", output::GOOD, output::GOOD));
            }
            Ok(())
        }
        _ => Err(Failure::reported(Kind::Negative)),
    }
}

/// Values files beside used ones that no component uses.
fn unused_values(file: &PlanFile) -> Vec<String> {
    let used: std::collections::BTreeSet<_> = file
        .plan
        .components
        .iter()
        .flat_map(jobwright_release::plan::Component::values)
        .filter_map(|path| file.resolve(path).canonicalize().ok())
        .collect();
    let directories: std::collections::BTreeSet<_> = used.iter().filter_map(|path| path.parent()).collect();
    // The plan's own directory holds other things, too.
    let own = file.resolve(std::path::Path::new(".")).canonicalize().ok();
    let files = directories
        .into_iter()
        .filter(|directory| Some(*directory) != own.as_deref())
        .flat_map(|directory| std::fs::read_dir(directory).into_iter().flatten().flatten())
        .map(|entry| entry.path());
    let mut unused: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml"))
        .filter(|path| !used.contains(path))
        .map(|path| format!("no component uses the values file `{}`", path.display()))
        .collect();
    unused.sort();
    unused
}
