//! What runs of a cluster.

use super::place::Place;
use super::record::Record;
use super::{network, process};
use crate::error::Error;
use std::fmt::Write as _;

/// Tells of a cluster in lines.
pub fn status(place: &Place) -> Result<String, Error> {
    let mut text = String::new();
    let name = place.name();
    let Some(record) = Record::read(place)? else {
        let there = place.directory().exists() || network::exists(place);
        let _ = writeln!(text, "{name}: {}", if there { "not wholly started; `up` or `down` it" } else { "not there" });
        return Ok(text);
    };
    let _ = writeln!(text, "{name}: {} tier, Kubernetes {}", record.tier, record.kubernetes);
    let _ = writeln!(text, "  kubeconfig: {}", place.kubeconfig().display());
    let deployers: Vec<String> = record.deployers.iter().map(ToString::to_string).collect();
    if !deployers.is_empty() {
        let _ = writeln!(text, "  deployers: {}", deployers.join(", "));
    }
    for skipped in &record.skipped {
        let _ = writeln!(text, "  skipped: {}: {}", skipped.deployer, skipped.reason);
    }
    let (running, ended): (Vec<String>, Vec<String>) =
        process::started(place).into_iter().partition(|name| process::running(place, name).is_some());
    let _ = writeln!(text, "  running: {}", running.join(", "));
    if !ended.is_empty() {
        let log = place.log(&ended[0]);
        let _ = writeln!(text, "  ENDED: {} (see `{}`; `up` starts what is missing)", ended.join(", "), log.display());
    }
    let parts: Vec<String> =
        record.parts.iter().map(|(part, after)| format!("{part} {:.1} s", after.as_secs_f64())).collect();
    let _ = writeln!(text, "  started, from the beginning: {}", parts.join(", "));
    Ok(text)
}
