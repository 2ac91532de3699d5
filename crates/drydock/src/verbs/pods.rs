//! What can be asked of a pod, or of an account, besides reading and writing it: binding, eviction, tokens.

use super::delete::{DeleteOptions, Deletion};
use super::write::{Source, Write};
use crate::access::{API_AUDIENCE, Token, User};
use crate::body;
use crate::cluster::{Cluster, Reply};
use crate::conditions::set_condition;
use crate::life::disruption;
use crate::life::workload::{count, pods};
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
            set_condition(
                &mut new,
                json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null}),
                &crate::clock::time(cluster.now),
            );
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
        if !eviction.name().is_empty() && eviction.name() != &*key.name {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        let pod = self.fetch(&kind, &key).ok_or_else(|| Status::not_found(&kind, &key.name))?;
        let options = DeleteOptions {
            grace_seconds: eviction.integer(&["deleteOptions", "gracePeriodSeconds"]),
            dry_run: !eviction.list(&["deleteOptions", "dryRun"]).is_empty(),
            ..DeleteOptions::default()
        };
        if counts_for_budgets(&pod) {
            self.spend_budget(&pod, options.dry_run)?;
        }
        if !options.dry_run {
            let now = crate::clock::time(self.now);
            let target = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now});
            self.modify(&kind, &key, &Write::internal("kube-apiserver").through("status"), Source::Patch, |_, old| {
                let mut new = Object::clone(old);
                let conditions = new.map_at(&["status"]).entry("conditions").or_insert_with(|| json!([]));
                if let Value::Array(conditions) = conditions {
                    conditions.retain(|known| known["type"] != "DisruptionTarget");
                    conditions.push(target);
                }
                Ok(new)
            })?;
        }
        let (Deletion::Gone(_) | Deletion::Pending(_)) = self.remove(&kind, &key, &options)?;
        Ok(Reply::other(
            201,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
        ))
    }

    /// Takes an eviction of a pod from its disruption budget, or refuses it.
    fn spend_budget(&mut self, pod: &Object, dry_run: bool) -> Result<(), Status> {
        let storage = disruption::storage();
        let budgets: Vec<Arc<Object>> = self
            .store
            .list(&storage, Some(pod.namespace()))
            .filter(|budget| {
                disruption::selector(budget).is_some_and(|selector| selector.matches(pod.at(&["metadata", "labels"])))
            })
            .cloned()
            .collect();
        let Some(budget) = budgets.first() else { return Ok(()) };
        if budgets.len() > 1 {
            let why =
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::new(500, "", why));
        }
        let at = |field| count(budget, &["status", field]);
        let (healthy, desired) = (at("currentHealthy"), at("desiredHealthy"));
        let always = budget.text(&["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow";
        if !pods::is_ready(pod) && (always || (healthy >= desired && desired > 0)) {
            return Ok(());
        }
        let refuse = |why: String, retry_after| {
            let message = "Cannot evict pod as it would violate the pod's disruption budget.";
            let refused = Status::new(429, "TooManyRequests", message);
            let refused = if retry_after > 0 { refused.retry_after(retry_after) } else { refused };
            Err(refused.with_causes(vec![json!({"reason": "DisruptionBudget", "message": why})]))
        };
        let name = budget.name();
        if at("observedGeneration") < budget.generation() {
            return refuse(format!("The disruption budget {name} is still being processed by the server."), 10);
        }
        let allowed = at("disruptionsAllowed");
        if allowed == 0 {
            let why = format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently");
            return refuse(why, 0);
        }
        if dry_run {
            return Ok(());
        }
        let now = self.now;
        let kind = self.kinds.of_storage(&storage).cloned().ok_or_else(Status::unknown_resource)?;
        let write = Write::internal("kube-apiserver").through("status");
        self.modify(&kind, &Key::of(budget), &write, Source::Patch, |_, old| {
            let mut new = Object::clone(old);
            new.set(&["status", "disruptionsAllowed"], allowed - 1);
            new.set(&["status", "conditions"], disruption::conditions(old, allowed - 1, now));
            new.set(&["status", "disruptedPods", pod.name()], crate::clock::time(now));
            Ok(new)
        })?;
        Ok(())
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
        asked.set(&["spec", "expirationSeconds"], seconds);
        if asked.list(&["spec", "audiences"]).is_empty() {
            asked.set(&["spec", "audiences"], json!([API_AUDIENCE]));
        }
        let audiences =
            asked.list(&["spec", "audiences"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let user = User::service_account(&key.namespace, &key.name);
        self.tokens.insert(token.clone(), Token { user, audiences, expires: Some(expires) });
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

/// Whether the eviction of a pod disrupts anything.
fn counts_for_budgets(pod: &Object) -> bool {
    pods::is_active(pod) && pod.text(&["status", "phase"]) != "Pending"
}
