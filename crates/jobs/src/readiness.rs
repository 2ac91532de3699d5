//! Is an object as it should be? For workloads what `kubectl rollout status` asks, for the rest their conditions.

use serde_json::Value;

/// How an object stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// As it should be.
    Ready,
    /// Not yet, and what it waits for.
    Waiting(String),
    /// Not any more without help.
    Failed(String),
}

use Readiness::{Failed, Ready, Waiting};

/// How an object of a kind stands. Objects do not always say themselves what they are: those of lists do not.
pub fn judge(kind: &str, object: &Value) -> Readiness {
    let (spec, status) = (&object["spec"], &object["status"]);
    let count = |value: &Value| value.as_i64().unwrap_or_default();
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let observed = status["observedGeneration"].as_i64();
    if observed.is_some_and(|observed| observed < count(&object["metadata"]["generation"])) {
        return Waiting("nobody has looked at it yet".to_owned());
    }
    match kind {
        "Deployment" => {
            if let Some(condition) = condition(status, "Progressing")
                && condition["reason"] == "ProgressDeadlineExceeded"
            {
                return Failed(format!("its rollout does not get on: {}", text(&condition["message"])));
            }
            let updated = count(&status["updatedReplicas"]);
            let (available, all) = (count(&status["availableReplicas"]), count(&status["replicas"]));
            if observed.is_none() || updated < wanted {
                Waiting(format!("{updated} of {wanted} pods are new"))
            } else if all > updated {
                Waiting(format!("{} old pods are left", all - updated))
            } else if available < updated {
                Waiting(format!("{available} of {updated} pods are available"))
            } else {
                Ready
            }
        }
        "StatefulSet" => {
            let rolling = spec["updateStrategy"]["type"] != "OnDelete";
            let (ready, updated) = (count(&status["readyReplicas"]), count(&status["updatedReplicas"]));
            if observed.is_none() || ready < wanted {
                Waiting(format!("{ready} of {wanted} pods are ready"))
            } else if rolling
                && spec["updateStrategy"]["rollingUpdate"]["partition"].as_i64().unwrap_or_default() == 0
                && updated < wanted
            {
                Waiting(format!("{updated} of {wanted} pods are new"))
            } else {
                Ready
            }
        }
        "DaemonSet" => {
            let desired = count(&status["desiredNumberScheduled"]);
            let (updated, available) = (count(&status["updatedNumberScheduled"]), count(&status["numberAvailable"]));
            let rolling = spec["updateStrategy"]["type"] != "OnDelete";
            if observed.is_none() || (rolling && updated < desired) {
                Waiting(format!("{updated} of {desired} pods are new"))
            } else if available < desired {
                Waiting(format!("{available} of {desired} pods are available"))
            } else {
                Ready
            }
        }
        "Job" => match (condition(status, "Complete"), condition(status, "Failed")) {
            (Some(_), _) => Ready,
            (None, Some(failed)) => Failed(format!("{}: {}", text(&failed["reason"]), text(&failed["message"]))),
            (None, None) => Waiting("it has not finished".to_owned()),
        },
        "Pod" => match status["phase"].as_str() {
            Some("Succeeded") => Ready,
            Some("Failed") => Failed("it has failed".to_owned()),
            _ if condition(status, "Ready").is_some() => Ready,
            _ => Waiting("it is not ready".to_owned()),
        },
        "CustomResourceDefinition" => match condition(status, "Established") {
            Some(_) => Ready,
            None => Waiting("it is not established".to_owned()),
        },
        "Namespace" if status["phase"] == "Terminating" => Waiting("an older one is going".to_owned()),
        _ => by_conditions(status),
    }
}

/// What kstatus makes of conditions that a kind of one's own may have.
fn by_conditions(status: &Value) -> Readiness {
    if let Some(stalled) = condition(status, "Stalled") {
        return Failed(text(&stalled["message"]));
    }
    if let Some(reconciling) = condition(status, "Reconciling") {
        return Waiting(text(&reconciling["message"]));
    }
    let ready = status["conditions"].as_array().into_iter().flatten().find(|condition| condition["type"] == "Ready");
    match ready {
        Some(ready) if ready["status"] != "True" => Waiting(text(&ready["message"])),
        _ => Ready,
    }
}

/// A condition that is true.
fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = status["conditions"].as_array()?;
    let progressing = |condition: &Value| kind == "Progressing" || condition["status"] == "True";
    conditions.iter().find(|condition| condition["type"] == kind && progressing(condition))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judged(kind: &str, spec: Value, status: Value) -> Readiness {
        judge(kind, &json!({"metadata": {"generation": 2}, "spec": spec, "status": status}))
    }

    #[test]
    fn workloads_are_ready_when_they_are_rolled_out() {
        let deployment = |status: Value| judged("Deployment", json!({"replicas": 2}), status);
        assert_eq!(deployment(json!({"observedGeneration": 1})), Waiting("nobody has looked at it yet".to_owned()));
        assert_eq!(deployment(json!({})), Waiting("0 of 2 pods are new".to_owned()));
        let old = json!({"observedGeneration": 2, "updatedReplicas": 2, "replicas": 3, "availableReplicas": 2});
        assert_eq!(deployment(old), Waiting("1 old pods are left".to_owned()));
        let done = json!({"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, "availableReplicas": 2});
        assert_eq!(deployment(done), Ready);
        let stuck = json!({"observedGeneration": 2, "conditions": [{"type": "Progressing", "status": "False",
            "reason": "ProgressDeadlineExceeded", "message": "timed out"}]});
        assert_eq!(deployment(stuck), Failed("its rollout does not get on: timed out".to_owned()));
        let set = |status: Value| judged("StatefulSet", json!({}), status);
        assert_eq!(set(json!({"observedGeneration": 2, "readyReplicas": 1, "updatedReplicas": 1})), Ready);
        assert_eq!(set(json!({"observedGeneration": 2})), Waiting("0 of 1 pods are ready".to_owned()));
        let daemons = json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 1});
        assert_eq!(judged("DaemonSet", json!({}), daemons), Waiting("1 of 3 pods are available".to_owned()));
    }

    #[test]
    fn other_objects_are_judged_by_what_they_say() {
        let with = |kind: &str, name: &str, status: &str| {
            judged(
                kind,
                json!({}),
                json!({"conditions": [{"type": name, "status": status, "reason": "R", "message": "why"}]}),
            )
        };
        assert_eq!(judged("ConfigMap", json!(null), json!(null)), Ready);
        assert_eq!(with("Job", "Complete", "True"), Ready);
        assert_eq!(with("Job", "Failed", "True"), Failed("R: why".to_owned()));
        assert_eq!(with("CustomResourceDefinition", "Established", "True"), Ready);
        assert_eq!(with("Widget", "Ready", "False"), Waiting("why".to_owned()));
        assert_eq!(with("Widget", "Stalled", "True"), Failed("why".to_owned()));
        assert_eq!(with("Widget", "Ready", "True"), Ready);
    }
}
