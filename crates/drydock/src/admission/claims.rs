//! Claims and volumes: their class, and that nothing takes them away while they are used.

use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use serde_json::json;

/// Holds a claim as long as a pod uses it.
pub(crate) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// Holds a volume as long as a claim uses it.
pub(crate) const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

impl Cluster {
    pub(super) fn admit_claim(&self, claim: &mut Object) {
        claim.set(&["metadata", "finalizers"], json!([CLAIM_PROTECTION]));
        if claim.at(&["spec", "storageClassName"]).is_none() {
            let mut classes = self.store.list(&Storage::new("storage.k8s.io", "storageclasses"), None);
            if let Some(class) = classes.find(|class| class.annotation(IS_DEFAULT) == Some("true")) {
                claim.set(&["spec", "storageClassName"], class.name());
            }
        }
    }
}
