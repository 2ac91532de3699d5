//! What can be asked of a pod, or of an account, besides reading and writing it: binding, eviction, tokens.

use super::delete::{DeleteOptions, Deletion};
use super::write::{Source, Write};
use crate::access::User;
use crate::body;
use crate::cluster::{Cluster, Reply};
use crate::object::Object;
use crate::request::Request;
use crate::schema::Schema;
use crate::status::Status;
use crate::store::Key;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

static BINDING: LazyLock<Schema> = LazyLock::new(|| Schema::built_in("io.k8s.api.core.v1.Binding"));
static EVICTION: LazyLock<Schema> = LazyLock::new(|| Schema::built_in("io.k8s.api.policy.v1.Eviction"));
static TOKEN_REQUEST: LazyLock<Schema> =
    LazyLock::new(|| Schema::built_in("io.k8s.api.authentication.v1.TokenRequest"));

impl Cluster {
    /// Puts a pod on a node.
    pub(crate) fn bind(&mut self, request: &Request) -> Result<Reply, Status> {
        let binding = body::read_other(&request.body, &BINDING, "Binding", "v1")?;
        let name = request.target.name.as_deref().unwrap_or_else(|| binding.name());
        let pods = self.kinds.by_kind("v1", "Pod").cloned().ok_or_else(Status::unknown_resource)?;
        let key = Key::new(request.target.storage_namespace(), name);
        let node = binding.text(&["target", "name"]).to_owned();
        let write = Write::internal("kube-scheduler").through("binding");
        self.modify(&pods, &key, &write, Source::Patch, |cluster, old| {
            let bound = old.text(&["spec", "nodeName"]);
            if !bound.is_empty() {
                let why = format!("pod {} is already assigned to node {bound:?}", old.name());
                return Err(Status::conflict(&pods, old.name(), &why));
            }
            let mut new = Object::clone(old);
            new.set(&["spec", "nodeName"], node);
            set_condition(&mut new, "PodScheduled", "True", &crate::clock::time(cluster.now));
            Ok(new)
        })?;
        Ok(Reply::other(
            201,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
        ))
    }

    /// Deletes a pod, unless a disruption budget forbids it.
    pub(crate) fn evict(&mut self, request: &Request) -> Result<Reply, Status> {
        let eviction = body::read_other(&request.body, &EVICTION, "Eviction", "v1")?;
        let kind = Arc::clone(&request.target.kind);
        let key = Key::new(request.target.storage_namespace(), request.target.object_name());
        self.fetch(&kind, &key).ok_or_else(|| Status::not_found(&kind, &key.name))?;
        let options = DeleteOptions {
            grace_seconds: eviction.integer(&["deleteOptions", "gracePeriodSeconds"]),
            dry_run: !eviction.list(&["deleteOptions", "dryRun"]).is_empty(),
            ..DeleteOptions::default()
        };
        let (Deletion::Gone(_) | Deletion::Pending(_)) = self.remove(&kind, &key, &options)?;
        Ok(Reply::other(
            201,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
        ))
    }

    /// Makes a token for a service account.
    pub(crate) fn request_token(&mut self, request: &Request) -> Result<Reply, Status> {
        let mut asked = body::read_other(&request.body, &TOKEN_REQUEST, "TokenRequest", "v1")?;
        let kind = Arc::clone(&request.target.kind);
        let key = Key::new(request.target.storage_namespace(), request.target.object_name());
        self.fetch(&kind, &key).ok_or_else(|| Status::not_found(&kind, &key.name))?;
        let seconds = asked.integer(&["spec", "expirationSeconds"]).unwrap_or(3600).clamp(600, 1 << 32);
        let expires = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(self.now);
        let token = format!("drydock.{}.{}", self.new_uid(), self.new_suffix());
        self.tokens.insert(token.clone(), User::service_account(&key.namespace, &key.name));
        asked.set(&["spec", "expirationSeconds"], seconds);
        if asked.list(&["spec", "audiences"]).is_empty() {
            asked.set(&["spec", "audiences"], json!(["https://kubernetes.default.svc"]));
        }
        asked.set(
            &["metadata"],
            json!({"name": &*key.name, "namespace": &*key.namespace,
            "creationTimestamp": crate::clock::time(self.now)}),
        );
        asked.set(&["status"], json!({"token": token, "expirationTimestamp": crate::clock::time(expires)}));
        asked.set(&["apiVersion"], "authentication.k8s.io/v1");
        asked.set(&["kind"], "TokenRequest");
        Ok(Reply::other(201, asked.into_value()))
    }
}

fn set_condition(object: &mut Object, kind: &str, status: &str, now: &str) {
    let condition = json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": now});
    let conditions = object.map_at(&["status"]).entry("conditions").or_insert_with(|| json!([]));
    if let Value::Array(conditions) = conditions {
        conditions.retain(|known| known.get("type").and_then(Value::as_str) != Some(kind));
        conditions.push(condition);
    }
}
