//! The claims of a StatefulSet's pods: made before the pod, kept after it, or gone with it.

use crate::kinds::Storage;
use crate::life::client::{Client, Tone};
use crate::life::workload::reference_to;
use crate::object::{Object, strings};
use crate::status::Status;
use crate::store::Key;
use serde_json::{Value, json};

fn storage() -> Storage {
    Storage::core("persistentvolumeclaims")
}

pub(super) fn template_name(template: &Value) -> &str {
    template.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// The name of the claim that a pod has of a template.
pub(super) fn name(set: &Object, template: &Value, ordinal: i64) -> String {
    format!("{}-{}-{ordinal}", template_name(template), set.name())
}

/// Makes the claims that a pod lacks.
pub(super) fn make(client: &mut Client<'_>, set: &Object, pod: &Object, ordinal: i64) -> Result<(), Status> {
    let mut failed = None;
    for template in set.list(&["spec", "volumeClaimTemplates"]) {
        let name = name(set, template, ordinal);
        match client.get(&storage(), &Key::new(set.namespace(), &name)) {
            Some(claim) if claim.is_being_deleted() => {
                failed = Some(Status::internal(&format!("pvc {name} is being deleted")));
            }
            Some(_) => {}
            None => {
                let made = client.create(&storage(), claim(set, template, &name)).map(|_| ());
                tell(client, set, pod, &name, made.as_ref().err());
                if let Err(status) = made {
                    failed = Some(status);
                }
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

fn tell(client: &mut Client<'_>, set: &Object, pod: &Object, claim: &str, failed: Option<&Status>) {
    let (pod, name) = (pod.name(), set.name());
    match failed {
        None => {
            let message = format!("create Claim {claim} Pod {pod} in StatefulSet {name} success");
            client.tell(set, Tone::Normal, "SuccessfulCreate", &message);
        }
        Some(status) => {
            let why = &status.message;
            let message = format!("create Claim {claim} for Pod {pod} in StatefulSet {name} failed error: {why}");
            client.tell(set, Tone::Warning, "FailedCreate", &message);
        }
    }
}

fn claim(set: &Object, template: &Value, name: &str) -> Object {
    let mut claim = Object::from_value(template.clone()).unwrap_or_default();
    claim.set(&["apiVersion"], "v1");
    claim.set(&["kind"], "PersistentVolumeClaim");
    claim.remove(&["status"]);
    claim.set(&["metadata", "name"], name);
    claim.set(&["metadata", "namespace"], set.namespace());
    claim.remove(&["metadata", "creationTimestamp"]);
    for (key, value) in strings(set.at(&["spec", "selector", "matchLabels"])) {
        claim.set(&["metadata", "labels", key], value);
    }
    claim
}

fn deletes(set: &Object, when: &str) -> bool {
    set.text(&["spec", "persistentVolumeClaimRetentionPolicy", when]) == "Delete"
}

/// Whether a claim belongs to an earlier pod of the same name, and is about to go with it.
pub(super) fn is_stale(set: &Object, claim: &Object, pod: &str) -> bool {
    deletes(set, "whenScaled") && claim.owners().any(|owner| owner.kind == "Pod" && owner.name == pod)
}

/// Whether a claim goes with what it should go with.
pub(super) fn is_owned_rightly(set: &Object, claim: &Object, pod: &Object, stays: bool) -> bool {
    let refers = |owner: &Object| {
        claim.owners().any(|reference| reference.kind == owner.kind() && reference.name == owner.name())
    };
    let is_stale = |owner: &Object| {
        claim.owners().any(|reference| {
            reference.kind == owner.kind() && reference.name == owner.name() && reference.uid != owner.uid()
        })
    };
    let foreign = claim.owners().any(|owner| owner.controller && owner.uid != set.uid() && owner.uid != pod.uid());
    if foreign || is_stale(set) || is_stale(pod) {
        return true;
    }
    let (by_set, by_pod) = wanted_owners(set, stays);
    refers(set) == by_set && refers(pod) == by_pod
}

fn wanted_owners(set: &Object, stays: bool) -> (bool, bool) {
    let by_pod = deletes(set, "whenScaled") && !stays;
    (deletes(set, "whenDeleted") && !by_pod, by_pod)
}

/// Lets a pod's claims go with the set, with the pod, or with neither.
pub(super) fn own(client: &mut Client<'_>, set: &Object, pod: &Object, ordinal: i64, stays: bool) {
    for template in set.list(&["spec", "volumeClaimTemplates"]) {
        let key = Key::new(set.namespace(), &name(set, template, ordinal));
        let Some(claim) = client.get(&storage(), &key) else { continue };
        if is_owned_rightly(set, &claim, pod, stays) {
            continue;
        }
        let (by_set, by_pod) = wanted_owners(set, stays);
        // It is gone meanwhile.
        let _ = client.change(&storage(), &key, |claim| {
            let mut references = claim.list(&["metadata", "ownerReferences"]).to_vec();
            references.retain(|reference| reference["uid"] != set.uid() && reference["uid"] != pod.uid());
            references.extend(by_set.then(|| reference_to(set)));
            references.extend(by_pod.then(|| reference_to(pod)));
            if references.is_empty() {
                claim.remove(&["metadata", "ownerReferences"]);
            } else {
                claim.set(&["metadata", "ownerReferences"], json!(references));
            }
        });
    }
}
