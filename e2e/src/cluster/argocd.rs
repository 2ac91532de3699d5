//! Argo CD as processes beside the cluster, as its administrator: controller, repository server, redis.

use super::process::{self, Daemon, SYSTEM_PATH};
use super::site::{Site, answers};
use crate::command::Ended;
use crate::error::Error;
use crate::install::{Tool, catalogue, debian};
use crate::kubectl::Kubectl;
use serde_json::json;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAMESPACE: &str = "argocd";

/// What one program is called to be each part.
const ROLES: [&str; 4] = ["argocd", "argocd-application-controller", "argocd-repo-server", "argocd-git-ask-pass"];

/// Its kinds, without sets of Applications: their controller is not run, and their kind takes seconds.
const KINDS: [&str; 2] = ["application-crd.yaml", "appproject-crd.yaml"];

/// Of its configuration, what the parts that are run read.
const CONFIGURATION: [&str; 7] = [
    "argocd-cm.yaml",
    "argocd-cmd-params-cm.yaml",
    "argocd-rbac-cm.yaml",
    "argocd-gpg-keys-cm.yaml",
    "argocd-ssh-known-hosts-cm.yaml",
    "argocd-tls-certs-cm.yaml",
    "argocd-secret.yaml",
];

/// Applies kinds and configuration and starts the parts, unless they run.
pub(super) fn start(site: &Site<'_>, tool: &Tool) -> Result<(), Error> {
    let parts = ["redis", "argocd-repo-server", "argocd-application-controller"];
    if parts.iter().all(|part| process::running(site.place, part).is_some()) {
        return Ok(());
    }
    let programs = programs(site, tool)?;
    configure(site, tool)?;
    let directory = site.directory("argocd")?;
    let kubeconfig = kubeconfig(site, &directory)?;
    let redis = debian::find("redis-server").unwrap_or_else(|| PathBuf::from("redis-server"));
    Daemon::new("redis", &redis)
        .words("--bind 127.0.0.1 --port 6379 --appendonly no --daemonize no --save")
        .argument("")
        .argument("--dir")
        .argument(&directory)
        .start(site.place)?;
    let daemon = |name: &str| -> Result<Daemon, Error> {
        let mut daemon = Daemon::new(name, &programs.join(name))
            .environment("PATH", format!("{}:{SYSTEM_PATH}", programs.display()))
            .environment("KUBECONFIG", &kubeconfig)
            // It then finds the cluster by the kubeconfig and still calls it by its usual name.
            .environment("ARGOCD_FAKE_IN_CLUSTER", "true")
            .environment("ARGOCD_GPG_ENABLED", "false");
        let places = [
            ("ARGOCD_TLS_DATA_PATH", "tls"),
            ("ARGOCD_SSH_DATA_PATH", "ssh"),
            ("ARGOCD_GNUPGHOME", "gpg"),
            ("ARGOCD_PLUGINSOCKFILEPATH", "plugins"),
            ("TMPDIR", "temporary"),
            ("HOME", "home"),
        ];
        for (variable, name) in places {
            daemon = daemon.environment(variable, site.directory(&format!("argocd/{name}"))?);
        }
        Ok(daemon)
    };
    daemon("argocd-repo-server")?
        .words("--address 127.0.0.1 --port 8081 --metrics-address 127.0.0.1 --metrics-port 8084")
        .words("--redis 127.0.0.1:6379")
        .start(site.place)?;
    daemon("argocd-application-controller")?
        .words("--redis 127.0.0.1:6379 --repo-server 127.0.0.1:8081 --metrics-port 8082 --app-resync 30")
        .start(site.place)?;
    for (part, at) in [("argocd-repo-server", "127.0.0.1:8084"), ("argocd-application-controller", "127.0.0.1:8082")] {
        site.until(part, part, Duration::from_mins(1), || answers(at, "/healthz"))?;
    }
    Ok(())
}

/// Makes the namespace that a kubectl is for, unless it is there.
pub(super) fn make_namespace(kubectl: &Kubectl) -> Result<(), Error> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kubectl.namespace()}});
    apply(kubectl, object.to_string())
}

fn apply(kubectl: &Kubectl, text: String) -> Result<(), Error> {
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    kubectl.command(&apply).stdin(Some(text)).run().and_then(Ended::successful).map(|_| ())
}

/// A directory with everything that it calls by name.
fn programs(site: &Site<'_>, tool: &Tool) -> Result<PathBuf, Error> {
    let directory = site.directory("argocd/programs")?;
    let doing = || format!("gather the programs of Argo CD in `{}`", directory.display());
    let link = |from: &Path, name: &str| {
        let to = directory.join(name);
        let _ = std::fs::remove_file(&to);
        symlink(from, to).map_err(Error::io(doing()))
    };
    for role in ROLES {
        link(&site.program(tool, "argocd"), role)?;
    }
    link(&site.program(&catalogue::KUSTOMIZE, "kustomize"), "kustomize")?;
    link(&site.program(&catalogue::HELM_3_22_0, "helm"), "helm")?;
    link(&site.kube("kubectl"), "kubectl")?;
    // The repository server calls these even for commits without a signature.
    for entry in std::fs::read_dir(site.program(tool, "wrappers")).map_err(Error::io(doing()))? {
        let entry = entry.map_err(Error::io(doing()))?;
        let to = directory.join(entry.file_name());
        std::fs::copy(entry.path(), &to).map_err(Error::io(doing()))?;
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o755)).map_err(Error::io(doing()))?;
    }
    Ok(directory)
}

fn configure(site: &Site<'_>, tool: &Tool) -> Result<(), Error> {
    let kubectl = site.kubectl(NAMESPACE);
    make_namespace(&kubectl)?;
    apply(&kubectl, documents(&site.program(tool, "crds"), &KINDS)?)?;
    apply(&kubectl, documents(&site.program(tool, "config"), &CONFIGURATION)?)?;
    // The server would make the default project; it is not run.
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"namespace": "*", "server": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    });
    let limit = Duration::from_secs(30);
    // A kind a moment old may not be found yet.
    let mut applied = Ok(());
    let ready = site.until("kube-apiserver", "kinds of Argo CD", limit, || {
        applied = apply(&kubectl, project.to_string());
        applied.is_ok()
    });
    ready.or(applied)
}

fn documents(directory: &Path, files: &[&str]) -> Result<String, Error> {
    let mut documents = Vec::new();
    for file in files {
        let path = directory.join(file);
        documents.push(std::fs::read_to_string(&path).map_err(Error::io(format!("read `{}`", path.display())))?);
    }
    Ok(documents.join("\n---\n"))
}

/// It takes its own namespace from the context of its kubeconfig.
fn kubeconfig(site: &Site<'_>, directory: &Path) -> Result<PathBuf, Error> {
    let admin = site.place.kubeconfig_of("admin");
    let text = std::fs::read(&admin).map_err(Error::io(format!("read `{}`", admin.display())))?;
    let mut kubeconfig: serde_json::Value =
        serde_json::from_slice(&text).map_err(Error::json(format!("`{}`", admin.display())))?;
    kubeconfig["contexts"][0]["context"]["namespace"] = json!(NAMESPACE);
    let path = directory.join("kubeconfig");
    std::fs::write(&path, kubeconfig.to_string()).map_err(Error::io(format!("write `{}`", path.display())))?;
    Ok(path)
}
