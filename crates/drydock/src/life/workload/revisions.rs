//! ControllerRevisions: the templates that a StatefulSet or a DaemonSet has had.

use super::{apps, hash, is_controlled_by, reference_to};
use crate::life::client::Client;
use crate::object::Object;
use crate::status::Status;
use crate::store::Key;
use serde_json::{Value, json};
use std::sync::Arc;

/// The label that carries a revision's hash, or the name of a revision on a pod.
pub(crate) const HASH_LABEL: &str = "controller-revision-hash";

/// What becomes of a template that is wanted.
#[derive(Debug, PartialEq)]
pub(crate) enum Choice {
    /// The newest revision has it.
    Newest(usize),
    /// An older revision has it, and becomes the newest with this number.
    Again(usize, i64),
    /// None has it; one with this number is to be made.
    New(i64),
}

/// What a revision holds.
pub(crate) fn data(template: &Value) -> Value {
    let mut template = template.clone();
    if let Value::Object(template) = &mut template {
        template.insert("$patch".to_owned(), json!("replace"));
    }
    json!({"spec": {"template": template}})
}

/// The template that a revision holds.
pub(crate) fn template(revision: &Object) -> Value {
    let mut template = revision.at(&["data", "spec", "template"]).cloned().unwrap_or_else(|| json!({}));
    if let Value::Object(template) = &mut template {
        template.remove("$patch");
    }
    template
}

pub(crate) fn number(revision: &Object) -> i64 {
    revision.integer(&["revision"]).unwrap_or_default()
}

/// The revisions of an owner, oldest first.
pub(crate) fn list(client: &Client<'_>, owner: &Object) -> Vec<Arc<Object>> {
    let mut revisions = client.owned(&apps("controllerrevisions"), owner);
    revisions.retain(|revision| is_controlled_by(revision, owner));
    revisions.sort_by_key(|revision| (number(revision), super::created(revision), revision.name().to_owned()));
    revisions
}

/// Which revision is the one of a template, of revisions that are sorted.
pub(crate) fn choose(revisions: &[Arc<Object>], template: &Value) -> Choice {
    let data = data(template);
    let next = revisions.last().map_or(0, |newest| number(newest)) + 1;
    match revisions.iter().rposition(|revision| revision.at(&["data"]) == Some(&data)) {
        Some(index) if index + 1 == revisions.len() => Choice::Newest(index),
        Some(index) => Choice::Again(index, next),
        None => Choice::New(next),
    }
}

/// Makes a choice true. Gives back the revision of the template.
pub(crate) fn enact(
    client: &mut Client<'_>,
    owner: &Object,
    revisions: &[Arc<Object>],
    labels: &[&str],
    collisions: &mut Option<i64>,
) -> Result<Arc<Object>, Status> {
    let wanted = owner.at(&["spec", "template"]).cloned().unwrap_or_else(|| json!({}));
    let storage = apps("controllerrevisions");
    let number = match choose(revisions, &wanted) {
        Choice::Newest(index) => return Ok(Arc::clone(&revisions[index])),
        Choice::Again(index, number) => {
            let key = Key::of(&revisions[index]);
            return client.change(&storage, &key, |revision| revision.set(&["revision"], number));
        }
        Choice::New(number) => number,
    };
    let data = data(&wanted);
    loop {
        let hash = hash::of(&data, *collisions);
        let mut metadata = json!({"name": format!("{}-{hash}", owner.name()), "namespace": owner.namespace(),
            "ownerReferences": [reference_to(owner)]});
        if let Some(Value::Object(annotations)) = owner.at(&["metadata", "annotations"]) {
            metadata["annotations"] = json!(annotations);
        }
        let mut revision = Object::default();
        revision.set(&["apiVersion"], "apps/v1");
        revision.set(&["kind"], "ControllerRevision");
        revision.set(&["metadata"], metadata);
        let template_labels = wanted.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
        revision.set(&["metadata", "labels"], template_labels);
        for label in labels {
            revision.set(&["metadata", "labels", label], hash.as_str());
        }
        revision.set(&["data"], data.clone());
        revision.set(&["revision"], number);
        match client.create(&storage, revision) {
            Err(status) if status.reason == "AlreadyExists" => {
                *collisions = Some(collisions.unwrap_or_default() + 1);
            }
            made => return made,
        }
    }
}

/// Takes away the oldest revisions that nothing lives by, but so many.
pub(crate) fn truncate(client: &mut Client<'_>, owner: &Object, revisions: &[Arc<Object>], live: &[String]) {
    let limit = owner.integer(&["spec", "revisionHistoryLimit"]).unwrap_or(10);
    let dead: Vec<&Arc<Object>> =
        revisions.iter().filter(|revision| !live.iter().any(|name| name == revision.name())).collect();
    let Ok(limit) = usize::try_from(limit) else { return };
    for revision in dead.iter().take(dead.len().saturating_sub(limit)) {
        // It is gone already.
        let _ = client.delete(&apps("controllerrevisions"), &Key::of(revision));
    }
}
