//! A node that only pretends: kwok says of every pod that it runs, and of those of Jobs that they have completed.

use super::process::Daemon;
use super::site::Site;
use crate::command::Ended;
use crate::error::Error;
use crate::install::catalogue;
use serde_json::json;
use std::time::Duration;

const POD_FAILS: &str = include_str!("light/pod-fail.yaml");

/// Starts kwok and waits for its node.
pub(super) fn start(site: &Site<'_>) -> Result<(), Error> {
    let mut stages = vec![POD_FAILS.to_owned()];
    let directory = site.program(&catalogue::KWOK, "stages");
    let doing = || format!("read the stages in `{}`", directory.display());
    for entry in std::fs::read_dir(&directory).map_err(Error::io(doing()))? {
        let path = entry.map_err(Error::io(doing()))?.path();
        stages.push(std::fs::read_to_string(path).map_err(Error::io(doing()))?);
    }
    let stages = site.configure("kwok.yaml", stages.join("\n---\n"))?;
    Daemon::new("kwok", &site.program(&catalogue::KWOK, "kwok"))
        .path("--kubeconfig", &site.place.kubeconfig_of("admin"))
        .path("--config", &stages)
        .words("--manage-all-nodes=true --server-address=127.0.0.1:10247")
        .words(&format!("--node-ip={} --cidr={}", super::address::NODE, super::address::PODS))
        .start(site.place)?;
    let node = site.place.node();
    let object = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node, "labels": {"kubernetes.io/hostname": node, "kubernetes.io/os": "linux"}},
    });
    let kubectl = site.kubectl("default");
    kubectl.command(&["apply", "-f", "-"]).stdin(Some(object.to_string())).run().and_then(Ended::successful)?;
    site.until("kwok", "node ready", Duration::from_mins(1), || {
        let ready = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";
        kubectl.run(&["get", "node", &node, "--output", ready]).is_ok_and(|status| status == "True")
    })
}
