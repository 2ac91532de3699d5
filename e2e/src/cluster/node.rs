//! A node with containers: containerd, the kubelet, kube-proxy, DNS.

mod configuration;

use super::load;
use super::process::{Daemon, SYSTEM_PATH};
use super::site::Site;
use crate::command::Command;
use crate::error::Error;
use crate::image::Image;
use crate::install::{catalogue, debian};
use crate::outcome::Exit;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The image that holds the namespaces of a pod.
const PAUSE: &str = "jobwright.local/pause:1";

/// What `busybox:1` is called in full.
const BUSYBOX: &str = "docker.io/library/busybox:1";

/// Starts containerd and gives it the images that every cluster has.
pub(super) fn start_containerd(site: &Site<'_>) -> Result<(), Error> {
    for directory in ["containerd", "network", "registries/_default"] {
        site.directory(directory)?;
    }
    let hosts = site.place.directory().join("registries/_default/hosts.toml");
    write(&hosts, &configuration::registry())?;
    let network = site.place.directory().join("network/10-pods.conflist");
    write(&network, &configuration::network(site.place).to_string())?;
    let configuration = site.configure("containerd.toml", configuration::containerd(site.place, PAUSE))?;
    Daemon::new("containerd", &system("containerd")?).argument("-c").argument(configuration).start(site.place)?;
    let socket = site.place.containerd_socket();
    site.until("containerd", "containerd", Duration::from_secs(30), || {
        let version = Command::system("ctr").arguments(["--address"]).arguments([&socket]).arguments(["version"]).run();
        version.is_ok_and(|ended| ended.exit == Exit::Code(0))
    })?;
    let there = load::images(site.place)?;
    for (name, make) in [(PAUSE, Image::pause as fn(&str) -> _), (BUSYBOX, Image::busybox)] {
        if !there.iter().any(|image| image == name) {
            load::load_image(site.place, &make(name)?)?;
        }
    }
    site.done("images");
    Ok(())
}

/// Starts DNS, the kubelet and kube-proxy, and waits for the node.
pub(super) fn start(site: &Site<'_>) -> Result<(), Error> {
    let corefile = site.configure("Corefile", configuration::dns(site.place))?;
    Daemon::new("coredns", &site.program(&catalogue::COREDNS, "coredns"))
        .argument("-conf")
        .argument(corefile)
        .start(site.place)?;
    let kubelet = site.configure("kubelet.json", configuration::kubelet(site.place).to_string())?;
    let root = site.directory("kubelet")?;
    let node = site.place.node();
    Daemon::new("kubelet", &site.kube("kubelet"))
        .path("--config", &kubelet)
        .path("--kubeconfig", &site.place.kubeconfig_of("kubelet"))
        .path("--root-dir", &root)
        .path("--cert-dir", &root.join("pki"))
        .words(&format!("--hostname-override={node} --node-ip={}", super::address::NODE))
        .start(site.place)?;
    let proxy = site.configure("kube-proxy.json", configuration::proxy(site.place).to_string())?;
    Daemon::new("kube-proxy", &site.kube("kube-proxy"))
        .path("--config", &proxy)
        .environment("PATH", SYSTEM_PATH)
        .start(site.place)?;
    let kubectl = site.kubectl("default");
    let says = |path: &str| kubectl.run(&["get", "node", &node, "--output", &format!("jsonpath={path}")]);
    site.until("kubelet", "node ready", Duration::from_mins(2), || {
        says("{.status.conditions[?(@.type=='Ready')].status}").is_ok_and(|status| status == "True")
    })?;
    // A node that lacks room is ready, and takes no pods.
    let taints = "{.spec.taints[*].key}";
    site.until("kubelet", "node takes pods", Duration::from_secs(30), || {
        says(taints).is_ok_and(|taints| taints.is_empty())
    })
    .map_err(|error| match says(taints) {
        Ok(taints) if !taints.is_empty() => Error::Cluster {
            name: site.place.name().to_string(),
            problem: format!("its node takes no pods, by {taints}; does the machine lack room on disk or memory?"),
        },
        _ => error,
    })
}

fn system(program: &str) -> Result<PathBuf, Error> {
    debian::find(program)
        .ok_or_else(|| Error::Tool { tool: program.to_owned(), reason: "it was there a moment ago".to_owned() })
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(Error::io(format!("write `{}`", path.display())))
}
