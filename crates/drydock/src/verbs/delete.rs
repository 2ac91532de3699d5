//! `delete` and `deletecollection`: objects go at once, or when what holds them has let go.

use super::list::Filter;
use crate::admission::admit_deletion;
use crate::body;
use crate::cluster::{Answer, Cluster, Reply};
use crate::field::{FieldError, Path};
use crate::kinds::Kind;
use crate::object::Object;
use crate::options::{self, ListOptions, Query};
use crate::request::{Body, Request};
use crate::schema::Schema;
use crate::status::Status;
use crate::store::Key;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

/// Held by the garbage collector until the dependants are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Held by the garbage collector until the dependants are on their own.
pub(crate) const ORPHAN: &str = "orphan";

static SCHEMA: LazyLock<Schema> =
    LazyLock::new(|| Schema::built_in("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"));

/// What becomes of the objects that an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl Propagation {
    /// What an earlier deletion asked for.
    pub(crate) fn of_finalizer(finalizer: &str) -> Option<Self> {
        match finalizer {
            ORPHAN => Some(Self::Orphan),
            FOREGROUND => Some(Self::Foreground),
            _ => None,
        }
    }
}

/// How a deletion is meant.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    /// Reads the body, or the query where there is no body.
    fn read(body: &Body, query: &Query) -> Result<Self, Status> {
        let options = if body.bytes.is_empty() {
            from_query(query)?
        } else {
            body::read_other(body, &SCHEMA, "DeleteOptions", "v1")?
        };
        let mut errors = Vec::new();
        let path = Path::new("propagationPolicy");
        let orphan = options.get("orphanDependents").and_then(Value::as_bool);
        let policy = options.text(&["propagationPolicy"]);
        if orphan.is_some() && !policy.is_empty() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&path, policy, why));
        }
        let propagation = match policy {
            "" => orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
            "Background" => Some(Propagation::Background),
            "Foreground" => Some(Propagation::Foreground),
            "Orphan" => Some(Propagation::Orphan),
            other => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&path, other, &supported));
                None
            }
        };
        let dry_run: Vec<String> =
            options.list(&["dryRun"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let dry_run = options::dry_run(&dry_run, &mut errors);
        if !errors.is_empty() {
            return Err(Status::invalid_options("DeleteOptions", &errors));
        }
        let precondition =
            |field: &str| options.at(&["preconditions", field]).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            grace_seconds: options.integer(&["gracePeriodSeconds"]),
            propagation,
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            dry_run,
        })
    }
}

fn from_query(query: &Query) -> Result<Object, Status> {
    let mut options = Object::default();
    if let Some(seconds) = query.integer("gracePeriodSeconds")? {
        options.set(&["gracePeriodSeconds"], seconds);
    }
    if let Some(orphan) = query.flag("orphanDependents") {
        options.set(&["orphanDependents"], orphan);
    }
    if !query.text("propagationPolicy").is_empty() {
        options.set(&["propagationPolicy"], query.text("propagationPolicy"));
    }
    if !query.text("dryRun").is_empty() {
        options.set(&["dryRun"], json!([query.text("dryRun")]));
    }
    Ok(options)
}

/// What a deletion came to.
pub(crate) enum Deletion {
    /// The object is gone; this is what it was.
    Gone(Arc<Object>),
    /// Something still holds it.
    Pending(Arc<Object>),
}

impl Cluster {
    pub(crate) fn delete(&mut self, request: &Request) -> Result<Reply, Status> {
        let options = DeleteOptions::read(&request.body, &request.query)?;
        let target = &request.target;
        let kind = Arc::clone(&target.kind);
        let key = Key::new(target.storage_namespace(), target.object_name());
        let deletion = self.remove(&kind, &key, &options)?;
        let warnings = deletion_warnings(&kind, &options);
        let reply = match deletion {
            Deletion::Gone(object) if !kind.returns_deleted() => Reply::other(
                200,
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                    "details": details(&kind, &object)}),
            ),
            Deletion::Gone(object) | Deletion::Pending(object) => Reply::object(200, &kind, object),
        };
        Ok(reply.warn(warnings))
    }

    pub(crate) fn delete_collection(&mut self, request: &Request) -> Result<Reply, Status> {
        let options = DeleteOptions::read(&request.body, &request.query)?;
        let list_options = ListOptions::read(&request.query, false)?;
        let filter = Filter::new(request, &list_options)?;
        let kind = Arc::clone(&request.target.kind);
        let list = self.select(&kind, &filter, &list_options)?;
        for object in &list.items {
            match self.remove(&kind, &Key::of(object), &options) {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
        Ok(Reply { answer: Answer::List(list), warnings: deletion_warnings(&kind, &options) })
    }

    /// Deletes an object, or asks for its deletion where something holds it.
    pub(crate) fn remove(&mut self, kind: &Arc<Kind>, key: &Key, options: &DeleteOptions) -> Result<Deletion, Status> {
        let old = self.store.get(&kind.storage, key).cloned().ok_or_else(|| Status::not_found(kind, &key.name))?;
        admit_deletion(kind, &key.name)?;
        check_preconditions(kind, &old, options)?;
        let grace = match grace(kind, &old, options) {
            Grace::Pending => return Ok(Deletion::Pending(kind.served(&old))),
            Grace::Seconds(seconds) => seconds,
        };
        let mut new = Object::clone(&old);
        set_finalizers(&mut new, finalizers(kind, &old, options));
        let held =
            new.finalizers().next().is_some() || (kind.is_namespace() && !new.list(&["spec", "finalizers"]).is_empty());
        if grace == 0 && !held {
            if options.dry_run {
                return Ok(Deletion::Gone(kind.served(&old)));
            }
            let last = self.store.delete(&kind.storage, key).unwrap_or(old);
            return Ok(Deletion::Gone(kind.served(&last)));
        }
        self.mark(kind, &mut new, grace);
        if options.dry_run {
            return Ok(Deletion::Pending(kind.served(&Arc::new(new))));
        }
        if new == *old {
            return Ok(Deletion::Pending(kind.served(&old)));
        }
        let stored = self.store.put(&kind.storage, new);
        Ok(Deletion::Pending(kind.served(&stored)))
    }

    /// Says in the object that it is to go, and when.
    fn mark(&self, kind: &Kind, object: &mut Object, grace: i64) {
        let marked = object.is_being_deleted();
        if !marked && object.generation() > 0 {
            object.set(&["metadata", "generation"], object.generation() + 1);
        }
        let due = self.now.checked_add(SignedDuration::from_secs(grace)).unwrap_or(self.now);
        if !marked || grace > 0 {
            object.set(&["metadata", "deletionTimestamp"], crate::clock::time(due));
        }
        if kind.is_namespace() {
            object.set(&["status", "phase"], "Terminating");
        } else {
            object.set(&["metadata", "deletionGracePeriodSeconds"], grace);
        }
    }
}

enum Grace {
    Seconds(i64),
    /// It is going already, and not later than asked for.
    Pending,
}

/// How long a pod has to end. Everything else goes at once.
fn grace(kind: &Kind, old: &Object, options: &DeleteOptions) -> Grace {
    if !kind.is_pod() {
        return Grace::Seconds(0);
    }
    let asked = options.grace_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    if old.is_being_deleted() {
        let left = old.integer(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or_default();
        return match asked {
            _ if left == 0 => Grace::Seconds(0),
            Some(asked) if asked < left => Grace::Seconds(asked),
            _ => Grace::Pending,
        };
    }
    let never_started = old.text(&["spec", "nodeName"]).is_empty();
    let finished = matches!(old.text(&["status", "phase"]), "Succeeded" | "Failed");
    if never_started || finished {
        return Grace::Seconds(0);
    }
    Grace::Seconds(asked.unwrap_or_else(|| old.integer(&["spec", "terminationGracePeriodSeconds"]).unwrap_or(30)))
}

fn check_preconditions(kind: &Kind, old: &Object, options: &DeleteOptions) -> Result<(), Status> {
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != old.uid()) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            old.uid()
        );
        return Err(Status::conflict_of_kind(kind, old.name(), &why));
    }
    let version = options.resource_version.as_deref();
    if let Some(version) = version.filter(|version| *version != old.resource_version()) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
            old.resource_version()
        );
        return Err(Status::conflict_of_kind(kind, old.name(), &why));
    }
    Ok(())
}

/// What must let go of the object, with what the propagation adds to it.
fn finalizers(kind: &Kind, old: &Object, options: &DeleteOptions) -> Vec<String> {
    let earlier = old.finalizers().find_map(Propagation::of_finalizer);
    let default = if kind.orphans_by_default() { Propagation::Orphan } else { Propagation::Background };
    let propagation = options.propagation.or(earlier).unwrap_or(default);
    let others = old.finalizers().filter(|finalizer| *finalizer != ORPHAN && *finalizer != FOREGROUND);
    let mut finalizers: Vec<String> = others.map(str::to_owned).collect();
    match propagation {
        Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
        Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
        Propagation::Background => {}
    }
    finalizers
}

pub(crate) fn set_finalizers(object: &mut Object, finalizers: Vec<String>) {
    if finalizers.is_empty() {
        object.remove(&["metadata", "finalizers"]);
    } else {
        object.set(&["metadata", "finalizers"], finalizers);
    }
}

fn details(kind: &Kind, object: &Object) -> Value {
    let mut details = json!({"name": object.name(), "kind": kind.plural, "uid": object.uid()});
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    details
}

fn deletion_warnings(kind: &Kind, options: &DeleteOptions) -> Vec<String> {
    if kind.orphans_by_default() && kind.plural == "jobs" && options.propagation.is_none() {
        let warning = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or \
             set propagationPolicy=Orphan to suppress this warning";
        return vec![warning.to_owned()];
    }
    Vec::new()
}
