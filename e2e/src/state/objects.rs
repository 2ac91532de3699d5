//! The objects that are left in a namespace, each on a line: `Job/x#1 owned hook=pre-upgrade Complete`.

use crate::object::Object;
use std::collections::BTreeMap;

/// Which uid of a kind and name was seen first, second …
#[derive(Debug, Default)]
pub(super) struct Ordinals(BTreeMap<(String, String), Vec<String>>);

impl Ordinals {
    /// The number of this object among all of its kind and name, from 1.
    fn number(&mut self, object: &Object) -> usize {
        let uids = self.0.entry((object.kind.clone(), object.name())).or_default();
        let known = uids.iter().position(|uid| *uid == object.metadata.uid);
        known.map_or_else(
            || {
                uids.push(object.metadata.uid.clone());
                uids.len()
            },
            |index| index + 1,
        )
    }
}

/// The lines, sorted. What every namespace has, and what belongs to something else that is listed, is left out.
pub(super) fn left(objects: &[Object], ordinals: &mut Ordinals) -> Vec<String> {
    let mut lines: Vec<String> = objects
        .iter()
        .filter(|object| match object.kind.as_str() {
            "ConfigMap" => object.metadata.name != "kube-root-ca.crt",
            "ServiceAccount" => object.metadata.name != "default",
            "Pod" => object.controller().is_none(),
            "Secret" => false,
            _ => true,
        })
        .map(|object| line(object, ordinals))
        .collect();
    lines.sort();
    lines
}

fn line(object: &Object, ordinals: &mut Ordinals) -> String {
    let number = ordinals.number(object);
    let mut words = vec![format!("{}/{}#{number}", object.kind, object.name()), ownership(object).to_owned()];
    words.extend(object.metadata.annotations.get("helm.sh/hook").map(|hook| format!("hook={hook}")));
    words.extend(condition(object));
    words.extend(object.is_deleting().then(|| "DELETING".to_owned()));
    words.join(" ")
}

fn ownership(object: &Object) -> &'static str {
    let label = object.metadata.labels.contains_key("app.kubernetes.io/managed-by");
    let annotation = object.metadata.annotations.contains_key("meta.helm.sh/release-name");
    match (label, annotation) {
        (true, true) => "owned",
        (false, false) => "un-owned",
        _ => "half-owned",
    }
}

/// How an object is, or what it holds.
fn condition(object: &Object) -> Option<String> {
    match object.kind.as_str() {
        "Job" => Some(job(object)),
        "Pod" => Some(object.status["phase"].as_str().unwrap_or("None").to_owned()),
        "ConfigMap" => Some(format!("v={}", object.data["v"].as_str().unwrap_or("None"))),
        "Deployment" => {
            let variables = object.spec["template"]["spec"]["containers"][0]["env"].as_array();
            let v = variables.into_iter().flatten().find(|variable| variable["name"] == "V");
            Some(format!("V={}", v.and_then(|v| v["value"].as_str()).unwrap_or("None")))
        }
        _ => None,
    }
}

fn job(job: &Object) -> String {
    if job.condition("Complete").is_some() {
        "Complete".to_owned()
    } else if let Some(reason) = job.condition("Failed") {
        format!("Failed({reason})")
    } else if job.status["active"].as_u64().unwrap_or_default() > 0 {
        "Active".to_owned()
    } else {
        "Pending".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(value: Value) -> Object {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn jobs_say_how_they_ended_and_whose_they_are() {
        let failed = object(json!({
            "kind": "Job",
            "metadata": {"name": "x", "uid": "1", "annotations": {"helm.sh/hook": "pre-upgrade"}},
            "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]},
        }));
        let lines = left(&[failed], &mut Ordinals::default());
        assert_eq!(lines, ["Job/x#1 un-owned hook=pre-upgrade Failed(BackoffLimitExceeded)"]);
    }

    #[test]
    fn ownership_may_be_half() {
        let mut map = object(json!({"kind": "ConfigMap", "metadata": {"name": "m", "uid": "1"}, "data": {"v": "2"}}));
        map.metadata.labels.insert("app.kubernetes.io/managed-by".to_owned(), "Helm".to_owned());
        map.metadata.deletion_timestamp = Some("now".to_owned());
        let lines = left(&[map], &mut Ordinals::default());
        assert_eq!(lines, ["ConfigMap/m#1 half-owned v=2 DELETING"]);
    }

    #[test]
    fn a_new_uid_gets_the_next_number() {
        let mut ordinals = Ordinals::default();
        let mut lines = |uid: &str| {
            let pod = json!({"kind": "Pod", "metadata": {"name": "p", "uid": uid}, "status": {"phase": "Failed"}});
            left(&[object(pod)], &mut ordinals)
        };
        assert_eq!(lines("a"), ["Pod/p#1 un-owned Failed"]);
        assert_eq!(lines("b"), ["Pod/p#2 un-owned Failed"]);
        assert_eq!(lines("a"), ["Pod/p#1 un-owned Failed"]);
    }

    #[test]
    fn what_every_namespace_has_is_left_out() {
        let objects = [
            object(json!({"kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}})),
            object(json!({"kind": "ServiceAccount", "metadata": {"name": "default"}})),
            object(json!({"kind": "Pod", "metadata": {"name": "x-1", "ownerReferences":
                [{"kind": "Job", "name": "x", "controller": true}]}})),
        ];
        assert!(left(&objects, &mut Ordinals::default()).is_empty());
    }
}
