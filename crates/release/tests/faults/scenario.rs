//! The release that is deployed: two versions, with every kind of work that a runner does.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The versions, in the order in which they are deployed.
pub(crate) const VERSIONS: [&str; 2] = ["1.4.0", "1.5.0"];
pub(crate) const NAMESPACE: &str = "shop";
/// What must not appear anywhere.
pub(crate) const SECRET: &str = "correct-horse-battery-staple";
/// An object of the manifests: group, resource, name.
pub(crate) type Key = (&'static str, &'static str, &'static str);

/// A pod job, and how the witness recognises its containers.
pub(crate) struct PodJob {
    pub(crate) id: &'static str,
    pub(crate) line: &'static str,
    /// Whether a success is never repeated for the same version.
    pub(crate) once: bool,
    /// The versions with which it runs.
    pub(crate) versions: &'static [&'static str],
}

/// The pod jobs of the plan.
pub(crate) const POD_JOBS: [PodJob; 3] = [
    PodJob { id: "check", line: "echo check", once: false, versions: &VERSIONS },
    PodJob { id: "migrate", line: MIGRATE, once: true, versions: &VERSIONS },
    PodJob { id: "warm", line: "echo warm; sleep 1", once: true, versions: &["1.5.0"] },
];

const MIGRATE: &str =
    "echo migrate $PASSWORD; echo $PASSWORD > /dev/termination-log; sleep 2; test $JOBWRIGHT_ATTEMPT = 2";

/// The directories that plans refer to, written once for all plays.
pub(crate) struct Scenario {
    directory: tempfile::TempDir,
}

impl Scenario {
    pub(crate) fn write() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for version in VERSIONS {
            let path = directory.path().join(format!("api-{version}"));
            std::fs::create_dir(&path).unwrap();
            let documents: Vec<String> = manifests(version).iter().map(ToString::to_string).collect();
            std::fs::write(path.join("api.yaml"), documents.join("\n---\n")).unwrap();
        }
        std::fs::create_dir(directory.path().join("chart")).unwrap();
        std::fs::write(directory.path().join("chart/Chart.yaml"), "{name: web, version: 1.0.0}").unwrap();
        Self { directory }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where the programs of plays are kept.
    pub(crate) fn new_directory(&self, play: usize) -> PathBuf {
        let path = self.directory.path().join(format!("play-{play}"));
        std::fs::create_dir(&path).unwrap();
        path
    }

    /// The plan of a version. Each play has a Helm release of its own, because helms are recognised by it among all
    /// processes of the machine.
    pub(crate) fn plan(&self, version: &str, helm_release: &str) -> String {
        let path = |name: String| self.directory.path().join(name).display().to_string();
        let pod = |image: &str, line: &str| json!({"template": {"spec": {"containers": [{"name": "main", "image": image, "command": ["sh", "-c", line]}]}}});
        let retires = json!({"never": "test"});
        let mut migrate = pod(&format!("busybox:{version}"), MIGRATE);
        migrate["template"]["spec"]["containers"][0]["env"] =
            json!([{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "credentials", "key": "password"}}}]);
        let objects = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "legacy"}]);
        let plan = json!({
            "apiVersion": "jobwright.io/v1alpha1",
            "kind": "Plan",
            "release": {"name": "shop", "namespace": NAMESPACE, "version": version},
            "components": [
                {"name": "web", "chart": {"path": path("chart".to_owned())}, "helm": {"timeout": "1m", "release": helm_release}},
                {"name": "api", "manifests": {"path": path(format!("api-{version}")), "timeout": "1m"}},
            ],
            "jobs": [
                {"id": "check", "phase": "pre", "retires": retires, "timeout": "1m",
                    "pod": pod("busybox:1", "echo check")},
                {"id": "adopt-legacy", "phase": "pre", "retires": retires, "timeout": "1m",
                    "retries": {"limit": 1, "backoff": "5s"}, "adopt": {"release": "legacy", "objects": objects}},
                {"id": "work", "component": "api", "phase": "pre", "retires": retires, "timeout": "1m",
                    "command": {"program": "sh", "args": ["./work"]}},
                {"id": "migrate", "component": "api", "phase": "pre", "after": ["work"], "retires": retires,
                    "timeout": "1m", "retries": {"limit": 1, "backoff": "1s"}, "pod": migrate},
                {"id": "warm", "component": "api", "phase": "post", "on": ["upgrade"], "retires": retires,
                    "timeout": "1m", "pod": pod(&format!("busybox:{version}"), "echo warm; sleep 1")},
            ],
        });
        plan.to_string()
    }
}

/// The objects of a version's manifests. The second version drops a ConfigMap, adds one, and declares the autoscaler by
/// another apiVersion.
pub(crate) fn manifests(version: &str) -> Vec<Value> {
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"version": version}});
    let template = json!({"metadata": {"labels": {"app": "api"}},
        "spec": {"containers": [{"name": "main", "image": format!("busybox:{version}")}]}});
    let workload = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api"},
        "spec": {"selector": {"matchLabels": {"app": "api"}}, "template": template}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"});
    let (scaler_version, extra) = if version == VERSIONS[0] { ("v1", "old") } else { ("v2", "new") };
    let scaler = json!({"apiVersion": format!("autoscaling/{scaler_version}"), "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "api"}, "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3}});
    vec![map("settings"), map(extra), workload, scaler]
}

/// The identities of a version's manifests, and of those of the other version that it does not have.
pub(crate) fn keys(version: &str) -> (Vec<Key>, Vec<Key>) {
    let mut present = vec![
        ("", "configmaps", "settings"),
        ("apps", "deployments", "api"),
        ("autoscaling", "horizontalpodautoscalers", "api"),
    ];
    let (old, new) = (("", "configmaps", "old"), ("", "configmaps", "new"));
    let (own, other) = if version == VERSIONS[0] { (old, new) } else { (new, old) };
    present.push(own);
    (present, vec![other])
}
