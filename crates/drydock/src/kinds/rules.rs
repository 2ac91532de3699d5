//! What the API server knows of particular kinds: defaults, generated fields, and what it refuses
//! (Kubernetes 1.34 `pkg/apis` and `pkg/registry`).

mod access;
mod admission_policy;
#[cfg(test)]
mod arbitrary;
mod autoscaler;
mod claim;
mod cluster;
mod config;
mod definition;
mod endpoints;
mod event;
mod fill;
mod ingress;
mod job;
mod network;
mod pod;
mod policy;
mod quota;
#[cfg(test)]
mod recorded;
mod registration;
pub(crate) mod service;
mod stateful_set;
mod storage;
mod volume;
mod webhook;
mod workload;
pub(crate) mod zeros;

pub(crate) use access::{CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING};
pub(crate) use admission_policy::{ADMISSION_POLICY, POLICY_BINDING};
pub(crate) use autoscaler::{AUTOSCALER, AUTOSCALER_V1};
pub(crate) use claim::CLAIM;
pub(crate) use cluster::{NAMESPACE, NODE, SERVICE_ACCOUNT};
pub(crate) use config::{CONFIG_MAP, SECRET};
pub(crate) use definition::DEFINITION;
pub(crate) use endpoints::{ENDPOINT_SLICE, ENDPOINTS};
pub(crate) use event::{EVENT, NEW_EVENT};
pub(crate) use ingress::{INGRESS, INGRESS_CLASS};
pub(crate) use job::JOB;
pub(crate) use job::cron::CRON_JOB;
pub(crate) use network::{ADDRESS, NETWORK_POLICY, SERVICE_CIDR};
pub(crate) use pod::{POD, POD_TEMPLATE};
pub(crate) use policy::{DISRUPTION_BUDGET, LEASE, PRIORITY_CLASS};
pub(crate) use quota::{LIMIT_RANGE, RESOURCE_QUOTA};
pub(crate) use registration::{API_SERVICE, CERTIFICATE_REQUEST, RUNTIME_CLASS};
pub(crate) use service::SERVICE;
pub(crate) use stateful_set::STATEFUL_SET;
pub(crate) use storage::{ATTACHMENT, ATTRIBUTES_CLASS, CAPACITY, DRIVER, DRIVER_NODE, STORAGE_CLASS};
pub(crate) use volume::VOLUME;
pub(crate) use webhook::{MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS};
pub(crate) use workload::{CONTROLLER_REVISION, DAEMON_SET, DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER};

use crate::object::Object;
use crate::validate::{self, Errors};
use serde_json::{Map, Value};

/// The rules of one kind. Each function is pure: what depends on other objects is admission's business.
///
/// A new object is decoded, gets its `default`s, its uid and name, is admitted, goes through `prepare_create` and is
/// judged by [`Rules::refuse_create`]. A changed one is decoded, gets its `default`s, is admitted, goes through
/// `prepare_update` with the stored object and is judged by [`Rules::refuse_update`]; through `/status` it is
/// `prepare_status` and [`Rules::refuse_status`].
pub(crate) struct Rules {
    /// How names must look.
    pub(crate) name: NameRule,
    /// When `metadata.generation` goes up.
    pub(crate) generation: Generation,
    /// Fills in what the client left out, for objects that are new, changed or read.
    pub(crate) default: fn(&mut Object),
    /// Generates and clears fields of a new object.
    pub(crate) prepare_create: fn(&mut Object),
    /// Carries over what an update may not change: (new, old).
    pub(crate) prepare_update: fn(&mut Object, &Object),
    /// Carries over what an update through `/status` may not change: (new, old).
    pub(crate) prepare_status: fn(&mut Object, &Object),
    /// What is wrong with a new object, but for its metadata.
    pub(crate) check: fn(&Object) -> Errors,
    /// What is wrong with a changed object, but for its metadata: (new, old).
    pub(crate) check_update: fn(&Object, &Object) -> Errors,
    /// What is wrong with a changed status: (new, old).
    pub(crate) check_status: fn(&Object, &Object) -> Errors,
    /// What the client is warned of: (new, old).
    pub(crate) warnings: fn(&Object, Option<&Object>) -> Vec<String>,
    /// Finalizers without a domain are refused, but for the few that the server knows.
    pub(crate) standard_finalizers: bool,
    /// An update of an absent object creates it.
    pub(crate) create_on_update: bool,
    /// An update without a resourceVersion is taken, whatever is stored.
    pub(crate) unconditional_update: bool,
}

/// How the names of a kind's objects must look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Lower-case words with dots and dashes, up to 253 characters.
    Subdomain,
    /// Lower-case words with dashes, up to 63 characters.
    Label,
    /// As a label, starting with a letter.
    ServiceLabel,
    /// Anything that may be one segment of a path.
    PathSegment,
    /// An address, in its usual form.
    Address,
    /// As a segment of a path, but nobody looks at the metadata before everything else is right.
    Late,
}

/// When `metadata.generation` goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has none; what the client writes is kept.
    Never,
    /// It is 1 and stays so.
    Once,
    /// When `spec` changes.
    WithSpec,
    /// When `spec` changes, but new objects have none.
    WithSpecLater,
    /// When `spec` or an annotation changes.
    WithSpecOrAnnotations,
    /// When anything but metadata and the status changes.
    WithContent,
    /// When anything but metadata and status, or a label changes.
    WithContentOrLabels,
}

impl Generation {
    /// The generation of a new object, if the kind sets it.
    pub(crate) fn first(self) -> Option<i64> {
        (!matches!(self, Self::Never | Self::WithSpecLater)).then_some(1)
    }

    /// Whether an update makes a new generation. A client cannot set it: the update starts from the old one. A status
    /// that has no endpoint of its own is content like any other.
    pub(crate) fn rises(self, new: &Object, old: &Object, has_status: bool) -> bool {
        let differs = |path: &[&str]| new.at(path) != old.at(path);
        match self {
            Self::Never | Self::Once => false,
            Self::WithSpec | Self::WithSpecLater => differs(&["spec"]),
            Self::WithSpecOrAnnotations => differs(&["spec"]) || differs(&["metadata", "annotations"]),
            Self::WithContent => content(new, has_status) != content(old, has_status),
            Self::WithContentOrLabels => {
                content(new, has_status) != content(old, has_status) || differs(&["metadata", "labels"])
            }
        }
    }
}

/// What is not metadata, nor a status of its own.
fn content(object: &Object, has_status: bool) -> Map<String, Value> {
    let mut fields = object.fields().clone();
    fields.retain(|name, _| match name.as_str() {
        "apiVersion" | "kind" | "metadata" => false,
        "status" => !has_status,
        _ => true,
    });
    fields
}

impl Rules {
    /// What is wrong with a new object.
    pub(crate) fn refuse_create(&self, object: &Object, namespaced: bool) -> Errors {
        let mut errors = Vec::new();
        if self.name != NameRule::Late {
            errors.extend(validate::metadata(object, self.name, namespaced));
            errors.extend(self.refuse_finalizers(object));
        }
        errors.extend((self.check)(object));
        if errors.is_empty() {
            errors = validate::metadata(object, NameRule::PathSegment, namespaced);
        }
        errors
    }

    /// What is wrong with a changed object.
    pub(crate) fn refuse_update(&self, new: &Object, old: &Object, namespaced: bool) -> Errors {
        self.refuse_change(new, old, namespaced, self.check_update)
    }

    /// What is wrong with an object whose status was changed.
    pub(crate) fn refuse_status(&self, new: &Object, old: &Object, namespaced: bool) -> Errors {
        self.refuse_change(new, old, namespaced, self.check_status)
    }

    fn refuse_change(
        &self,
        new: &Object,
        old: &Object,
        namespaced: bool,
        check: fn(&Object, &Object) -> Errors,
    ) -> Errors {
        let mut errors = validate::metadata(new, NameRule::PathSegment, namespaced);
        let update = validate::metadata_update(new, old);
        // Once for every object and once by the kind's own rules, as the causes in the answer show.
        errors.extend(update.iter().cloned());
        errors.extend(update);
        errors.extend(self.refuse_finalizers(new));
        errors.extend(check(new, old));
        errors
    }

    fn refuse_finalizers(&self, object: &Object) -> Errors {
        if self.standard_finalizers { validate::standard_finalizers(object) } else { Vec::new() }
    }
}

/// The rules of kinds that have none of their own.
pub(crate) const PLAIN: Rules = Rules {
    name: NameRule::Subdomain,
    generation: Generation::Never,
    default: |_| {},
    prepare_create: |_| {},
    prepare_update: |_, _| {},
    prepare_status: keep_all_but_status,
    check: |_| Vec::new(),
    check_update: |_, _| Vec::new(),
    check_status: |_, _| Vec::new(),
    warnings: |_, _| Vec::new(),
    standard_finalizers: true,
    create_on_update: false,
    unconditional_update: true,
};

/// The rules of kinds whose status only `/status` changes.
const WITH_STATUS: Rules = Rules { prepare_create: clear_status, prepare_update: keep_status, ..PLAIN };

/// The rules of custom resources; their schemas say the rest.
pub(crate) static CUSTOM: Rules = Rules {
    generation: Generation::WithContent,
    prepare_status: keep_all_but_bare_status,
    standard_finalizers: false,
    unconditional_update: false,
    ..PLAIN
};

fn clear_status(object: &mut Object) {
    object.set(&["status"], Map::new());
}

fn keep_status(new: &mut Object, old: &Object) {
    keep(new, old, "status");
}

/// Takes a top-level field from the old object.
fn keep(new: &mut Object, old: &Object, field: &str) {
    match old.get(field) {
        Some(value) => new.set(&[field], value.clone()),
        None => {
            new.remove(&[field]);
        }
    }
}

/// `/status` also takes labels, annotations and the like from the client.
fn keep_all_but_status(new: &mut Object, old: &Object) {
    new.fields_mut().retain(|field, _| matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
    for (field, value) in content(old, true) {
        new.set(&[&field], value);
    }
}

/// `/status` takes only the status, as newer kinds do.
fn keep_all_but_bare_status(new: &mut Object, old: &Object) {
    keep_all_but_status(new, old);
    keep_metadata(new, old);
}

/// Keeps what a subresource of newer kinds does not take from the client.
pub(crate) fn keep_metadata(new: &mut Object, old: &Object) {
    for field in ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"] {
        let path = ["metadata", field];
        match old.at(&path) {
            Some(value) => new.set(&path, value.clone()),
            None => {
                new.remove(&path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn metadata_is_judged_as_often_as_the_server_judges_it() {
        let metadata = |finalizers: Value| {
            let fields = json!({"name": "a", "namespace": "b", "resourceVersion": "1", "deletionTimestamp": "d", "labels": {"e": "f g"}});
            let mut object = object(json!({"metadata": fields}));
            object.set(&["metadata", "finalizers"], finalizers);
            object
        };
        let (new, old) = (metadata(json!(["a/b", "c/d"])), metadata(json!(["a/b"])));
        let errors = CONFIG_MAP.refuse_update(&new, &old, true);
        let fields: Vec<String> =
            errors.iter().map(|error| error.to_string().split(':').next().unwrap_or_default().to_owned()).collect();
        let (labels, finalizers) = ("metadata.labels", "metadata.finalizers");
        assert_eq!(fields, [labels, finalizers, labels, finalizers, labels, labels]);
    }

    #[test]
    fn generations_rise_with_what_the_kind_says() {
        let old = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"a": 1}, "data": 1, "status": {"b": 1}});
        let all = [
            Generation::Never,
            Generation::Once,
            Generation::WithSpec,
            Generation::WithSpecLater,
            Generation::WithSpecOrAnnotations,
            Generation::WithContent,
            Generation::WithContentOrLabels,
        ];
        for (path, expected) in [
            (&["status", "b"][..], [false; 7]),
            (&["spec", "a"], [false, false, true, true, true, true, true]),
            (&["data"], [false, false, false, false, false, true, true]),
            (&["metadata", "labels", "a"], [false, false, false, false, false, false, true]),
            (&["metadata", "annotations", "a"], [false, false, false, false, true, false, false]),
        ] {
            let old = object(old.clone());
            let mut new = old.clone();
            new.set(path, "new");
            assert_eq!(all.map(|generation| generation.rises(&new, &old, true)), expected, "{path:?}");
            if path == ["status", "b"] {
                assert!(Generation::WithContent.rises(&new, &old, false));
            }
        }
    }

    #[test]
    fn status_is_for_its_own_endpoint() {
        let old = object(json!({"metadata": {"labels": {"a": "b"}}, "spec": 1, "status": 1}));
        let changed = object(json!({"metadata": {"labels": {"a": "c"}}, "spec": 2, "status": 2, "data": 2}));
        for (keep, expected) in [
            (
                keep_status as fn(&mut Object, &Object),
                json!({"metadata": {"labels": {"a": "c"}}, "spec": 2, "status": 1, "data": 2}),
            ),
            (keep_all_but_status, json!({"metadata": {"labels": {"a": "c"}}, "spec": 1, "status": 2})),
            (keep_all_but_bare_status, json!({"metadata": {"labels": {"a": "b"}}, "spec": 1, "status": 2})),
        ] {
            let mut new = changed.clone();
            keep(&mut new, &old);
            assert_eq!(new.into_value(), expected);
        }
    }
}
