//! The labels by which a release recognises what it applied.

use jobwright_engine::DeployContext;
use kube::ResourceExt;

const RELEASE: &str = "jobwright.io/release";
const RELEASE_NAMESPACE: &str = "jobwright.io/release-namespace";
const COMPONENT: &str = "jobwright.io/component";
/// Helm's mark on what is part of a Helm release.
const HELM_RELEASE: &str = "meta.helm.sh/release-name";

/// A component of a release, which owns what carries its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    release: String,
    namespace: String,
    component: String,
}

impl Owner {
    pub(crate) fn new(context: &DeployContext, component: &str) -> Self {
        let release = context.release();
        Self { release: release.name.clone(), namespace: release.namespace.clone(), component: component.to_owned() }
    }

    /// The labels.
    pub(crate) fn labels(&self) -> [(&'static str, &str); 3] {
        [(RELEASE, &self.release), (RELEASE_NAMESPACE, &self.namespace), (COMPONENT, &self.component)]
    }

    /// Whether an object belongs to this component of this release: also a cluster-scoped one, and no other release of
    /// the same name in another namespace.
    pub(crate) fn owns(&self, object: &impl ResourceExt) -> bool {
        let label = |key: &str| object.labels().get(key).map(String::as_str);
        let is_helms = object.annotations().contains_key(HELM_RELEASE);
        label(RELEASE) == Some(&self.release)
            && label(COMPONENT) == Some(&self.component)
            && label(RELEASE_NAMESPACE).is_none_or(|namespace| namespace == self.namespace)
            && !is_helms
    }
}
