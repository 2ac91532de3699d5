//! What every namespace gets: a default service account, and the certificate by which pods trust the API.

use super::Controller;
use super::client::Client;
use crate::cluster::Cluster;
use crate::kinds::Storage;
use crate::object::Object;
use crate::store::Change;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Namespaces that may lack something.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    queue: BTreeSet<String>,
}

impl Controller for Accounts {
    fn observe(&mut self, storage: &Storage, change: &Change, _: &mut Cluster) {
        match change {
            Change::Added(namespace) if storage.is("", "namespaces") => {
                self.queue.insert(namespace.name().to_owned());
            }
            Change::Deleted { last, .. }
                if (storage.is("", "serviceaccounts") && last.name() == "default")
                    || (storage.is("", "configmaps") && last.name() == "kube-root-ca.crt") =>
            {
                self.queue.insert(last.namespace().to_owned());
            }
            _ => {}
        }
    }

    fn work(&mut self, cluster: &mut Cluster) -> bool {
        let worked = !self.queue.is_empty();
        while let Some(namespace) = self.queue.pop_first() {
            let there =
                cluster.find("", "namespaces", "", &namespace).is_some_and(|namespace| !namespace.is_being_deleted());
            if !there {
                continue;
            }
            let mut client = Client::of_controller(cluster, "serviceaccount-controller");
            let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}});
            create(&mut client, "serviceaccounts", account);
            let description = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as \
                 the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of \
                 Kubernetes clusters.";
            let certificate = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"ca.crt": "drydock\n"},
                "metadata": {"name": "kube-root-ca.crt", "namespace": namespace, "annotations": {"kubernetes.io/description": description}}});
            create(&mut client, "configmaps", certificate);
        }
        worked
    }
}

fn create(client: &mut Client<'_>, plural: &str, object: Value) {
    // It is there already, or the namespace has begun to go.
    let _ = client.create(&Storage::core(plural), Object::from_value(object).unwrap_or_default());
}
