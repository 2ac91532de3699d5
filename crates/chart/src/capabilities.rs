//! What Helm says that a cluster can, when there is none.

use crate::version::Version;
use jobwright_template::Helm;

/// The API versions and the version of Kubernetes that templates see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The version, as `v1.34.0`.
    pub kube_version: String,
    /// Group versions, and kinds where somebody named them.
    pub api_versions: Vec<String>,
}

impl Capabilities {
    /// Those that this Helm takes for granted.
    pub fn of(helm: Helm) -> Self {
        let minor = match (helm.major, helm.minor) {
            (3, minor) => minor + 15,
            (_, minor) => 34 + minor,
        };
        let known = if minor <= 34 { V1_32 } else { V1_37 };
        Self {
            kube_version: format!("v1.{minor}.0"),
            api_versions: known.split_ascii_whitespace().map(str::to_owned).collect(),
        }
    }

    /// The same with another version of Kubernetes, as `--kube-version` names it.
    pub fn with_kube_version(mut self, version: &str) -> Result<Self, String> {
        let parsed: Version =
            version.parse().map_err(|_| format!("invalid kube version '{version}': Invalid Semantic Version"))?;
        let [major, minor, patch] = parsed.numbers;
        let rest =
            version.trim_start_matches('v').find(['-', '+']).map_or("", |at| &version.trim_start_matches('v')[at..]);
        self.kube_version = format!("v{major}.{minor}.{patch}{rest}");
        Ok(self)
    }

    /// The numbers of the version of Kubernetes.
    pub(crate) fn major_and_minor(&self) -> (String, String) {
        let mut parts = self.kube_version.trim_start_matches('v').split(['.', '-', '+']).map(str::to_owned);
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
    }
}

const V1_32: &str = "\
    v1 admissionregistration.k8s.io/v1 admissionregistration.k8s.io/v1alpha1 admissionregistration.k8s.io/v1beta1 \
    internal.apiserver.k8s.io/v1alpha1 apps/v1 apps/v1beta1 apps/v1beta2 authentication.k8s.io/v1 \
    authentication.k8s.io/v1alpha1 authentication.k8s.io/v1beta1 authorization.k8s.io/v1 \
    authorization.k8s.io/v1beta1 autoscaling/v1 autoscaling/v2 autoscaling/v2beta1 autoscaling/v2beta2 batch/v1 \
    batch/v1beta1 certificates.k8s.io/v1 certificates.k8s.io/v1beta1 certificates.k8s.io/v1alpha1 \
    coordination.k8s.io/v1alpha2 coordination.k8s.io/v1beta1 coordination.k8s.io/v1 discovery.k8s.io/v1 \
    discovery.k8s.io/v1beta1 events.k8s.io/v1 events.k8s.io/v1beta1 extensions/v1beta1 \
    flowcontrol.apiserver.k8s.io/v1 flowcontrol.apiserver.k8s.io/v1beta1 flowcontrol.apiserver.k8s.io/v1beta2 \
    flowcontrol.apiserver.k8s.io/v1beta3 networking.k8s.io/v1 networking.k8s.io/v1alpha1 networking.k8s.io/v1beta1 \
    node.k8s.io/v1 node.k8s.io/v1alpha1 node.k8s.io/v1beta1 policy/v1 policy/v1beta1 rbac.authorization.k8s.io/v1 \
    rbac.authorization.k8s.io/v1beta1 rbac.authorization.k8s.io/v1alpha1 resource.k8s.io/v1beta1 \
    resource.k8s.io/v1alpha3 scheduling.k8s.io/v1alpha1 scheduling.k8s.io/v1beta1 scheduling.k8s.io/v1 \
    storage.k8s.io/v1beta1 storage.k8s.io/v1 storage.k8s.io/v1alpha1 storagemigration.k8s.io/v1alpha1 \
    apiextensions.k8s.io/v1beta1 apiextensions.k8s.io/v1";
const V1_37: &str = "\
    v1 admissionregistration.k8s.io/v1 admissionregistration.k8s.io/v1alpha1 admissionregistration.k8s.io/v1beta1 \
    internal.apiserver.k8s.io/v1alpha1 apps/v1 apps/v1beta1 apps/v1beta2 authentication.k8s.io/v1 \
    authentication.k8s.io/v1alpha1 authentication.k8s.io/v1beta1 authorization.k8s.io/v1 \
    authorization.k8s.io/v1beta1 autoscaling/v1 autoscaling/v2 batch/v1 batch/v1beta1 certificates.k8s.io/v1 \
    certificates.k8s.io/v1beta1 certificates.k8s.io/v1alpha1 coordination.k8s.io/v1alpha2 \
    coordination.k8s.io/v1beta1 coordination.k8s.io/v1 discovery.k8s.io/v1 discovery.k8s.io/v1beta1 \
    events.k8s.io/v1 events.k8s.io/v1beta1 extensions/v1beta1 flowcontrol.apiserver.k8s.io/v1 \
    flowcontrol.apiserver.k8s.io/v1beta1 flowcontrol.apiserver.k8s.io/v1beta2 flowcontrol.apiserver.k8s.io/v1beta3 \
    lifecycle.k8s.io/v1alpha1 networking.k8s.io/v1 networking.k8s.io/v1beta1 node.k8s.io/v1 node.k8s.io/v1alpha1 \
    node.k8s.io/v1beta1 policy/v1 policy/v1beta1 rbac.authorization.k8s.io/v1 rbac.authorization.k8s.io/v1beta1 \
    rbac.authorization.k8s.io/v1alpha1 resource.k8s.io/v1 resource.k8s.io/v1beta2 resource.k8s.io/v1beta1 \
    resource.k8s.io/v1alpha3 scheduling.k8s.io/v1alpha3 scheduling.k8s.io/v1beta1 scheduling.k8s.io/v1 \
    storage.k8s.io/v1beta1 storage.k8s.io/v1 storage.k8s.io/v1alpha1 storagemigration.k8s.io/v1 \
    storagemigration.k8s.io/v1beta1 apiextensions.k8s.io/v1beta1 apiextensions.k8s.io/v1";
