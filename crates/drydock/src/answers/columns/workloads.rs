//! Jobs, Deployments and their like.

use super::super::table::{age, human_duration};
use super::{AGE, Column, NAME, column, joined, labels, number, selector, text, text_or};
use crate::object::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

const CONTAINERS: Column = column("Containers", |object, _| json!(joined(containers(object), "name"))).wide();
const IMAGES: Column = column("Images", |object, _| json!(joined(containers(object), "image"))).wide();
const SELECTOR: Column = column("Selector", |object, _| json!(selector(object.at(&["spec", "selector"])))).wide();

static JOB: &[Column] = &[
    NAME,
    column("Status", |job, _| json!(job_status(job))),
    column("Completions", |job, _| json!(job_completions(job))),
    column("Duration", |job, now| json!(job_duration(job, now))),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

static CRON_JOB: &[Column] = &[
    NAME,
    column("Schedule", |object, _| text(object, &["spec", "schedule"])),
    column("Timezone", |object, _| text_or(object, &["spec", "timeZone"], "<none>")),
    column("Suspend", |object, _| {
        json!(if object.at(&["spec", "suspend"]) == Some(&json!(true)) { "True" } else { "False" })
    })
    .typed("boolean"),
    column("Active", |object, _| json!(object.list(&["status", "active"]).len())).typed("integer"),
    column("Last Schedule", |object, now| match object.text(&["status", "lastScheduleTime"]) {
        "" => json!("<none>"),
        time => json!(age(time, now)),
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    column("Selector", |_, _| json!("<none>")).wide(),
];

static DEPLOYMENT: &[Column] = &[
    NAME,
    READY_OF,
    column("Up-to-date", |object, _| json!(number(object, &["status", "updatedReplicas"]))),
    column("Available", |object, _| json!(number(object, &["status", "availableReplicas"]))),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const READY_OF: Column = column("Ready", |object, _| {
    json!(format!("{}/{}", number(object, &["status", "readyReplicas"]), number(object, &["spec", "replicas"])))
});
const DESIRED: Column = column("Desired", |object, _| json!(number(object, &["spec", "replicas"]))).typed("integer");
const CURRENT: Column = column("Current", |object, _| json!(number(object, &["status", "replicas"]))).typed("integer");
const READY: Column = column("Ready", |object, _| json!(number(object, &["status", "readyReplicas"]))).typed("integer");

static REPLICA_SET: &[Column] = &[NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR];

static REPLICATION_CONTROLLER: &[Column] = &[
    NAME,
    DESIRED,
    CURRENT,
    READY,
    AGE,
    CONTAINERS,
    IMAGES,
    column("Selector", |object, _| json!(labels(object.at(&["spec", "selector"])))).wide(),
];

static STATEFUL_SET: &[Column] = &[NAME, READY_OF, AGE, CONTAINERS, IMAGES];

static DAEMON_SET: &[Column] = &[
    NAME,
    column("Desired", |object, _| json!(number(object, &["status", "desiredNumberScheduled"]))).typed("integer"),
    column("Current", |object, _| json!(number(object, &["status", "currentNumberScheduled"]))).typed("integer"),
    column("Ready", |object, _| json!(number(object, &["status", "numberReady"]))).typed("integer"),
    column("Up-to-date", |object, _| json!(number(object, &["status", "updatedNumberScheduled"]))).typed("integer"),
    column("Available", |object, _| json!(number(object, &["status", "numberAvailable"]))).typed("integer"),
    column("Node Selector", |object, _| json!(labels(object.at(&["spec", "template", "spec", "nodeSelector"])))),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

static CONTROLLER_REVISION: &[Column] = &[
    NAME,
    column("Controller", |object, _| {
        let controller = object.owners().find(|owner| owner.controller);
        json!(controller.map_or("<none>".to_owned(), |owner| {
            let group = owner.api_version.split_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
            format!("{}{group}/{}", owner.kind.to_lowercase(), owner.name)
        }))
    }),
    column("Revision", |object, _| json!(number(object, &["revision"]))),
    AGE,
];

static POD_TEMPLATE: &[Column] = &[
    NAME,
    column("Containers", |object, _| json!(joined(object.list(&["template", "spec", "containers"]), "name"))),
    column("Images", |object, _| json!(joined(object.list(&["template", "spec", "containers"]), "image"))),
    column("Pod Labels", |object, _| json!(labels(object.at(&["template", "metadata", "labels"])))),
];

static AUTOSCALER: &[Column] = &[
    NAME,
    column("Reference", |object, _| {
        let target = |field| object.text(&["spec", "scaleTargetRef", field]);
        json!(format!("{}/{}", target("kind"), target("name")))
    }),
    column("Targets", |object, _| json!(autoscaler_targets(object))),
    column("MinPods", |object, _| {
        object.integer(&["spec", "minReplicas"]).map_or(json!("<unset>"), |n| json!(n.to_string()))
    }),
    column("MaxPods", |object, _| json!(number(object, &["spec", "maxReplicas"]))),
    column("Replicas", |object, _| json!(number(object, &["status", "currentReplicas"]))),
    AGE,
];

pub(super) fn of(plural: &str) -> Option<&'static [Column]> {
    Some(match plural {
        "jobs" => JOB,
        "cronjobs" => CRON_JOB,
        "deployments" => DEPLOYMENT,
        "replicasets" => REPLICA_SET,
        "replicationcontrollers" => REPLICATION_CONTROLLER,
        "statefulsets" => STATEFUL_SET,
        "daemonsets" => DAEMON_SET,
        "controllerrevisions" => CONTROLLER_REVISION,
        "podtemplates" => POD_TEMPLATE,
        "horizontalpodautoscalers" => AUTOSCALER,
        "pods" => super::pods::COLUMNS,
        _ => return None,
    })
}

fn containers(object: &Object) -> &[Value] {
    let direct = object.list(&["spec", "template", "spec", "containers"]);
    if direct.is_empty() {
        return object.list(&["spec", "jobTemplate", "spec", "template", "spec", "containers"]);
    }
    direct
}

fn job_status(job: &Object) -> &'static str {
    let is = |wanted: &str| {
        job.list(&["status", "conditions"]).iter().any(|condition| {
            condition.get("type").and_then(Value::as_str) == Some(wanted)
                && condition.get("status").and_then(Value::as_str) == Some("True")
        })
    };
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if job.is_being_deleted() {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn job_completions(job: &Object) -> String {
    let succeeded = number(job, &["status", "succeeded"]);
    match (job.integer(&["spec", "completions"]), job.integer(&["spec", "parallelism"]).unwrap_or_default()) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(job: &Object, now: Timestamp) -> String {
    let time = |field: &str| job.text(&["status", field]).parse::<Timestamp>().ok();
    match (time("startTime"), time("completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => human_duration(end.unwrap_or(now).as_second() - start.as_second()),
    }
}

fn autoscaler_targets(object: &Object) -> String {
    let metrics = object.list(&["spec", "metrics"]);
    let old = object.integer(&["spec", "targetCPUUtilizationPercentage"]);
    if metrics.is_empty() {
        return old.map_or("<none>".to_owned(), |target| format!("cpu: <unknown>/{target}%"));
    }
    let targets: Vec<String> = metrics
        .iter()
        .map(|metric| {
            let name = metric.pointer("/resource/name").and_then(Value::as_str).unwrap_or("<unknown>");
            match metric.pointer("/resource/target/averageUtilization").and_then(Value::as_i64) {
                Some(target) => format!("{name}: <unknown>/{target}%"),
                None => format!("{name}: <unknown>/<auto>"),
            }
        })
        .collect();
    targets.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn a_job_shows_how_far_it_is() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let running =
            job(json!({"spec": {"completions": 3}, "status": {"succeeded": 1, "startTime": "2026-01-01T00:00:00Z"}}));
        assert_eq!((job_status(&running), job_completions(&running).as_str()), ("Running", "1/3"));
        assert_eq!(job_duration(&running, now), "60s");
        let done =
            job(json!({"spec": {"parallelism": 2}, "status": {"conditions": [{"type": "Complete", "status": "True"}],
            "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:05Z"}}));
        assert_eq!((job_status(&done), job_completions(&done).as_str()), ("Complete", "0/1 of 2"));
        assert_eq!(job_duration(&done, now), "5s");
    }
}
