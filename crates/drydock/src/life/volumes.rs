//! Claims get volumes: at once, of the size they ask for, as a provisioner would make them. What is used is held.

use super::Controller;
use super::client::{Client, Tone};
use crate::admission::{CLAIM_PROTECTION, VOLUME_PROTECTION};
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::store::{Change, Key, Place};
use crate::verbs::delete::set_finalizers;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Claims that have no volume yet, and volumes whose claims are gone.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    claims: BTreeSet<Key>,
    released: BTreeSet<Key>,
    /// Claims and volumes that are being deleted, and may be let go.
    leaving: BTreeSet<Place>,
}

impl Controller for Volumes {
    fn observe(&mut self, storage: &Storage, change: &Change, cluster: &mut Cluster) {
        if let Change::Added(object) | Change::Modified { after: object, .. } = change
            && object.is_being_deleted()
            && (storage.is("", "persistentvolumeclaims") || storage.is("", "persistentvolumes"))
        {
            self.leaving.insert((storage.clone(), Key::of(object)));
        }
        if let (true, Change::Deleted { last, .. }) = (storage.is("", "pods"), change) {
            let claims = last.list(&["spec", "volumes"]).iter().filter_map(claim_of);
            self.leaving.extend(claims.map(|claim| (self::claims(), Key::new(last.namespace(), claim))));
        }
        if storage.is("", "persistentvolumeclaims") {
            match change {
                Change::Added(claim) | Change::Modified { after: claim, .. } => {
                    if claim.text(&["status", "phase"]) != "Bound" {
                        self.claims.insert(Key::of(claim));
                    }
                }
                Change::Deleted { last, .. } => {
                    let volume = last.text(&["spec", "volumeName"]);
                    if !volume.is_empty() {
                        self.released.insert(Key::new("", volume));
                    }
                }
            }
        } else if storage.is("", "persistentvolumes") || storage.is("storage.k8s.io", "storageclasses") {
            let claims = cluster.store.list(&Storage::core("persistentvolumeclaims"), None);
            self.claims
                .extend(claims.filter(|claim| claim.text(&["status", "phase"]) != "Bound").map(|claim| Key::of(claim)));
        }
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        let worked = !self.claims.is_empty() || !self.released.is_empty() || !self.leaving.is_empty();
        while let Some(key) = self.claims.pop_first() {
            bind(cluster, &key);
        }
        while let Some(key) = self.released.pop_first() {
            release(cluster, &key);
        }
        while let Some((storage, key)) = self.leaving.pop_first() {
            let_go(cluster, &storage, &key);
        }
        worked
    }
}

fn claims() -> Storage {
    Storage::core("persistentvolumeclaims")
}

fn volumes() -> Storage {
    Storage::core("persistentvolumes")
}

fn bind(cluster: &mut Cluster, key: &Key) {
    let Some(claim) = cluster.store.get(&claims(), key).cloned().filter(|claim| !claim.is_being_deleted()) else {
        return;
    };
    if claim.text(&["status", "phase"]) == "Bound" {
        return;
    }
    let volume = match claim.text(&["spec", "volumeName"]) {
        "" => find_or_make(cluster, &claim),
        name => cluster.find("", "persistentvolumes", "", name).map(|volume| volume.name().to_owned()),
    };
    let mut client = Client::of_controller(cluster, "persistentvolume-controller");
    let Some(volume) = volume else {
        let class = claim.text(&["spec", "storageClassName"]);
        let (reason, message) = match class {
            "" => (
                "FailedBinding",
                "no persistent volumes available for this claim and no storage class is set".to_owned(),
            ),
            class => ("ProvisioningFailed", format!("storageclass.storage.k8s.io {class:?} not found")),
        };
        client.tell(&claim, if class.is_empty() { Tone::Normal } else { Tone::Warning }, reason, &message);
        return;
    };
    let reference = json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1", "name": claim.name(), "namespace": claim.namespace(),
        "uid": claim.uid(), "resourceVersion": claim.resource_version()});
    // Whatever is gone meanwhile needs no binding.
    let _ = client.change(&volumes(), &Key::new("", &volume), |volume| volume.set(&["spec", "claimRef"], reference));
    let _ =
        client.change_status(&volumes(), &Key::new("", &volume), |volume| volume.set(&["status", "phase"], "Bound"));
    let _ = client.change(&claims(), key, |claim| {
        claim.set(&["spec", "volumeName"], volume.as_str());
        claim.set(&["metadata", "annotations", "pv.kubernetes.io/bind-completed"], "yes");
        claim.set(&["metadata", "annotations", "pv.kubernetes.io/bound-by-controller"], "yes");
    });
    let _ = client.change_status(&claims(), key, |claim| {
        claim.set(&["status", "phase"], "Bound");
        let modes = claim.at(&["spec", "accessModes"]).cloned().unwrap_or_else(|| json!([]));
        claim.set(&["status", "accessModes"], modes);
        let size = claim.at(&["spec", "resources", "requests", "storage"]).cloned().unwrap_or_else(|| json!("0"));
        claim.set(&["status", "capacity"], json!({"storage": size}));
    });
}

/// A free volume of the claim's class, or a new one where its class makes volumes.
fn find_or_make(cluster: &mut Cluster, claim: &Object) -> Option<String> {
    let class = claim.text(&["spec", "storageClassName"]).to_owned();
    let free = cluster.store.list(&volumes(), None).find(|volume| {
        volume.at(&["spec", "claimRef"]).is_none() && volume.text(&["spec", "storageClassName"]) == class
    });
    if let Some(volume) = free {
        return Some(volume.name().to_owned());
    }
    let stored = cluster.find("storage.k8s.io", "storageclasses", "", &class)?.clone();
    let name = format!("pvc-{}", claim.uid());
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": stored.text(&["provisioner"])}},
        "spec": {"capacity": {"storage": claim.at(&["spec", "resources", "requests", "storage"])},
            "accessModes": claim.at(&["spec", "accessModes"]), "storageClassName": class,
            "persistentVolumeReclaimPolicy": stored.at(&["reclaimPolicy"]).cloned().unwrap_or_else(|| json!("Delete")),
            "hostPath": {"path": format!("/drydock/{name}"), "type": ""}}});
    let mut client = Client::of_controller(cluster, "persistentvolume-controller");
    client.create(&volumes(), Object::from_value(volume).unwrap_or_default()).ok()?;
    client.tell(claim, Tone::Normal, "ProvisioningSucceeded", &format!("Successfully provisioned volume {name}"));
    Some(name)
}

fn claim_of(volume: &Value) -> Option<&str> {
    volume.pointer("/persistentVolumeClaim/claimName").and_then(Value::as_str)
}

/// Lets a claim go that no pod uses, or a volume that no claim uses.
fn let_go(cluster: &mut Cluster, storage: &Storage, key: &Key) {
    let Some(object) = cluster.store.get(storage, key).cloned().filter(|object| object.is_being_deleted()) else {
        return;
    };
    let (finalizer, used) = if *storage == claims() {
        let mut pods = cluster.store.list(&Storage::core("pods"), Some(&key.namespace));
        let used = pods.any(|pod| {
            !matches!(pod.text(&["status", "phase"]), "Succeeded" | "Failed")
                && pod.list(&["spec", "volumes"]).iter().filter_map(claim_of).any(|claim| claim == &*key.name)
        });
        (CLAIM_PROTECTION, used)
    } else {
        let reference = |field| object.text(&["spec", "claimRef", field]);
        let used = cluster.find("", "persistentvolumeclaims", reference("namespace"), reference("name")).is_some();
        (VOLUME_PROTECTION, used)
    };
    if !used {
        let mut client = Client::of_controller(cluster, "persistentvolume-controller");
        // It is gone already.
        let _ = client.change(storage, key, |object| {
            let left = object.finalizers().filter(|known| *known != finalizer).map(str::to_owned).collect();
            set_finalizers(object, left);
        });
    }
}

fn release(cluster: &mut Cluster, key: &Key) {
    let Some(volume) = cluster.store.get(&volumes(), key).cloned() else { return };
    let mut client = Client::of_controller(cluster, "persistentvolume-controller");
    // Somebody else has taken it away meanwhile.
    if volume.text(&["spec", "persistentVolumeReclaimPolicy"]) == "Delete" {
        let _ = client.delete(&volumes(), key);
    } else {
        let _ =
            client.change_status(&volumes(), key, |volume| volume.set(&["status", "phase"], Value::from("Released")));
    }
}
