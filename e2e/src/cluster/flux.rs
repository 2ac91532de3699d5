//! Flux as processes beside the cluster, as its administrator.

use super::process::Daemon;
use super::site::{Site, answers};
use super::{address, process};
use crate::command::Ended;
use crate::error::Error;
use crate::install::{Tool, catalogue};
use std::time::Duration;

const NAMESPACE: &str = "flux-system";

/// A controller: its tool, and the ports of its metrics and of its health.
const CONTROLLERS: [(Tool, u16, u16); 3] = [
    (catalogue::SOURCE_CONTROLLER, 9791, 9792),
    (catalogue::HELM_CONTROLLER, 9793, 9794),
    (catalogue::KUSTOMIZE_CONTROLLER, 9795, 9796),
];

/// Where one kind of each controller is served.
const KINDS: [&str; 3] = [
    "/apis/source.toolkit.fluxcd.io/v1/gitrepositories",
    "/apis/helm.toolkit.fluxcd.io/v2/helmreleases",
    "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations",
];

/// The port where source-controller hands out what it fetched.
const STORAGE_PORT: u16 = 9790;

/// Applies the kinds and starts the controllers, unless they run.
pub(super) fn start(site: &Site<'_>) -> Result<(), Error> {
    if CONTROLLERS.iter().all(|(tool, ..)| process::running(site.place, tool.name).is_some()) {
        return Ok(());
    }
    let kubectl = site.kubectl(NAMESPACE);
    super::argocd::make_namespace(&kubectl)?;
    for (tool, ..) in &CONTROLLERS {
        let kinds = site.program(tool, "crds");
        let kinds = kinds.to_string_lossy();
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", &kinds];
        kubectl.command(&apply).run().and_then(Ended::successful)?;
    }
    // A controller whose kind is not served yet ends.
    site.until("kube-apiserver", "kinds of Flux", Duration::from_secs(30), || {
        KINDS.iter().all(|kind| kubectl.run(&["get", "--raw", kind]).is_ok())
    })?;
    let storage = site.directory("flux/storage")?;
    let temporary = site.directory("flux/temporary")?;
    for (tool, metrics, health) in &CONTROLLERS {
        let mut daemon = Daemon::new(tool.name, &site.program(tool, tool.name))
            .environment("KUBECONFIG", site.place.kubeconfig_of("admin"))
            .environment("RUNTIME_NAMESPACE", NAMESPACE)
            .environment("TMPDIR", &temporary)
            .environment("HOME", &temporary)
            .words("--watch-all-namespaces --enable-leader-election=false --log-encoding=json")
            .words(&format!("--metrics-addr=127.0.0.1:{metrics} --health-addr=127.0.0.1:{health}"));
        if *tool == catalogue::SOURCE_CONTROLLER {
            let at = format!("{}:{STORAGE_PORT}", address::NODE);
            daemon =
                daemon.path("--storage-path", &storage).words(&format!("--storage-addr={at} --storage-adv-addr={at}"));
        }
        daemon.start(site.place)?;
    }
    for (tool, _, health) in &CONTROLLERS {
        let at = format!("127.0.0.1:{health}");
        site.until(tool.name, tool.name, Duration::from_mins(1), || answers(&at, "/readyz"))?;
    }
    Ok(())
}
