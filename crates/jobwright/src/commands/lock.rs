//! `jobwright lock`: which process deploys a release, how to stop waiting for one that does not, and programs under a lock.

mod program;

use super::session::{self, Named};
use crate::arguments::{self, Format, Lock};
use crate::cluster;
use crate::failure::{Failure, Kind};
use crate::output::{self, duration};
use jiff::Timestamp;
use jobwright_engine::{Holder, LEASE_DURATION, break_lease, read_holder};
use serde_json::{Value, json};

/// How a broken lock ends, for people.
const AFTERWARDS: &str = "it stops within 10s, and the next deploy may start 15s from now";

pub(super) fn run(arguments: &Lock) -> Result<(), Failure> {
    let show = match arguments {
        Lock::Show(show) | Lock::Break(arguments::Break { show, .. }) => show,
        Lock::Run(arguments) => return program::run(arguments),
        Lock::Install(arguments) => return program::install(arguments),
    };
    cluster::block_on(&show.cluster, false, async {
        let named = session::find_release(&show.whose, &show.cluster).await?;
        let lease = named.lease().ok_or_else(|| {
            Failure::new(Kind::Usage, "no release named").hint("pass `--plan` or `--release`, or run it beside a plan")
        })?;
        match arguments {
            Lock::Break(arguments) => take_away(&named, &lease, arguments).await,
            _ => print(&named, &lease, show.output).await,
        }
    })
}

/// Prints the holder of a lock. That there is none is no failure.
async fn print(named: &Named, lease: &str, format: Format) -> Result<(), Failure> {
    let holder = find(named, lease).await?;
    match format {
        Format::Json => output::line(&to_json(named, lease, holder.as_ref()).to_string()),
        Format::Text => lines(named, lease, holder.as_ref()).iter().for_each(|line| output::line(line)),
    }
    Ok(())
}

/// Breaks a lock, or shows what that would do.
async fn take_away(named: &Named, lease: &str, arguments: &arguments::Break) -> Result<(), Failure> {
    if !arguments.yes {
        return match find(named, lease).await? {
            None => print(named, lease, arguments.show.output).await,
            Some(holder) => {
                let message = format!("not broken: would take the lock from `{}`; {AFTERWARDS}", holder.name);
                Err(Failure::new(Kind::Usage, message).hint("pass `--yes` to break it"))
            }
        };
    }
    let (connection, breaker) = (&named.connection, session::holder());
    let broken = break_lease(&connection.bounded(), &named.namespace, lease, &breaker, &connection.retry())
        .await
        .map_err(session::failed)?;
    match (arguments.show.output, &broken) {
        (Format::Json, _) => {
            let mut document = to_json(named, lease, broken.as_ref());
            document["broken"] = json!(broken.is_some());
            output::line(&document.to_string());
        }
        (Format::Text, Some(holder)) => {
            output::line(&format!("took the lock from `{}`: {AFTERWARDS}", holder.name));
        }
        (Format::Text, None) => lines(named, lease, None).iter().for_each(|line| output::line(line)),
    }
    Ok(())
}

async fn find(named: &Named, lease: &str) -> Result<Option<Holder>, Failure> {
    let connection = &named.connection;
    let found = read_holder(&connection.bounded(), &named.namespace, lease, &connection.retry()).await;
    found.map_err(session::failed)
}

fn lines(named: &Named, lease: &str, holder: Option<&Holder>) -> Vec<String> {
    let place = format!("Lease: {lease} in namespace {}", named.namespace);
    let Some(holder) = holder else { return vec!["not locked".to_owned(), place] };
    let now = named.connection.clock.now();
    let mut lines = vec![format!("locked by `{}`", holder.name)];
    lines.extend(holder.since.map(|since| format!("since: {since:.0} ({} ago)", ago(since, now))));
    lines.extend(holder.renewed.map(|renewed| format!("renewed: {renewed:.0} ({} ago)", ago(renewed, now))));
    lines.push(place);
    if holder.renewed.is_some_and(|renewed| is_late(renewed, now)) {
        lines.push("not renewed in time: its process has probably ended, and the next deploy takes over".to_owned());
    }
    lines
}

/// Whether a holder has missed its renewals, by clocks that may differ a little.
fn is_late(renewed: Timestamp, now: Timestamp) -> bool {
    now.duration_since(renewed).unsigned_abs() > 2 * LEASE_DURATION && renewed < now
}

fn ago(time: Timestamp, now: Timestamp) -> String {
    duration(now.duration_since(time).try_into().unwrap_or_default())
}

fn to_json(named: &Named, lease: &str, holder: Option<&Holder>) -> Value {
    json!({
        "namespace": named.namespace,
        "lease": lease,
        "holder": holder.map(|holder| json!({
            "name": holder.name,
            "since": holder.since,
            "renewed": holder.renewed,
        })),
    })
}
