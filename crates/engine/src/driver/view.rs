//! What Jobs and pods look like to the machine. Pure functions of the objects.

use crate::ledger::later;
use crate::machine::{Finish, Life, Trouble};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Event, Pod};
use std::time::Duration;

/// Reasons for which a container waits and that rarely go by themselves.
const TROUBLES: &[&str] = &[
    "ImagePullBackOff",
    "ErrImagePull",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CreatePodSandboxError",
];

/// How a Job is.
pub(crate) fn life(job: &Job, pod: Option<&Pod>) -> Life {
    let spec = job.spec.as_ref();
    if let Some(finish) = finish_of_job(job, pod) {
        return Life::Finished(finish);
    }
    if let Some(since) = &job.metadata.deletion_timestamp {
        return Life::Going { since: since.0 };
    }
    if spec.and_then(|spec| spec.suspend).unwrap_or_default() {
        return Life::Held;
    }
    Life::Running { since: started_at(job) }
}

fn started_at(job: &Job) -> Option<Timestamp> {
    Some(job.status.as_ref()?.start_time.as_ref()?.0)
}

fn finish_of_job(job: &Job, pod: Option<&Pod>) -> Option<Finish> {
    let status = job.status.as_ref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let condition = conditions
        .iter()
        .find(|condition| condition.status == "True" && matches!(condition.type_.as_str(), "Complete" | "Failed"))?;
    let transition = condition.last_transition_time.as_ref().map(|time| time.0);
    let completion = status.completion_time.as_ref().map(|time| time.0);
    let at = completion.or(transition).unwrap_or(Timestamp::UNIX_EPOCH);
    let seen = pod.and_then(finish_of_pod);
    if condition.type_ == "Complete" {
        let exit_code = seen.and_then(|finish| finish.exit_code).or(Some(0));
        return Some(Finish { succeeded: true, reason: String::new(), exit_code, started_at: started_at(job), at });
    }
    let said = |part: &Option<String>| part.clone().unwrap_or_default();
    // That one pod failed is what our Jobs are set up for; why it did is the news.
    let reason = match (said(&condition.reason).as_str(), &seen) {
        ("BackoffLimitExceeded", Some(finish)) if !finish.succeeded => finish.reason.clone(),
        (reason, _) => format!("{reason}: {}", said(&condition.message)),
    };
    let exit_code = seen.and_then(|finish| finish.exit_code);
    Some(Finish { succeeded: false, reason, exit_code, started_at: started_at(job), at })
}

/// How a pod ended, if it has.
pub(crate) fn finish_of_pod(pod: &Pod) -> Option<Finish> {
    let status = pod.status.as_ref()?;
    let succeeded = match status.phase.as_deref() {
        Some("Succeeded") => true,
        Some("Failed") => false,
        _ => return None,
    };
    let ended = statuses(pod).filter_map(|status| Some((status, status.state.as_ref()?.terminated.as_ref()?)));
    let decisive = ended.clone().find(|(_, end)| end.exit_code != 0).or_else(|| ended.last());
    let at = decisive.and_then(|(_, end)| end.finished_at.as_ref()).map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let exit_code = decisive.map(|(_, end)| end.exit_code);
    let reason = match (succeeded, decisive) {
        (true, _) => String::new(),
        (false, Some((container, end))) => {
            let why = match end.reason.as_deref() {
                Some("Error") | None => format!("exit code {}", end.exit_code),
                Some(reason) => format!("{reason}, exit code {}", end.exit_code),
            };
            let message =
                end.message.as_deref().and_then(|message| first_line(message, reads_log(pod, &container.name)));
            let message = message.map(|line| format!(": {line}")).unwrap_or_default();
            format!("container {} ended with {why}{message}", container.name)
        }
        (false, None) => {
            let parts = [status.reason.as_deref(), status.message.as_deref()];
            let parts: Vec<&str> = parts.into_iter().flatten().collect();
            if parts.is_empty() { "its pod failed".to_owned() } else { parts.join(": ") }
        }
    };
    let started_at = status.start_time.as_ref().map(|time| time.0);
    Some(Finish { succeeded, reason, exit_code, started_at, at })
}

/// The longest termination messages that are certainly whole: the kubelet keeps the last 4096 bytes of a file and the last
/// 2048 of a log, and drops what is not UTF-8.
const WHOLE_MESSAGE: usize = 4000;
const WHOLE_LOG: usize = 2000;

/// The first line of a termination message. One whose start was cut off is no line: it may begin within a Secret's value.
fn first_line(message: &str, is_log: bool) -> Option<&str> {
    let is_cut = message.len() > if is_log { WHOLE_LOG } else { WHOLE_MESSAGE };
    message.lines().skip(usize::from(is_cut)).find(|line| !line.trim().is_empty())
}

/// Whether the end of a container's log takes the place of a message that it does not write.
fn reads_log(pod: &Pod, name: &str) -> bool {
    let spec = pod.spec.as_ref();
    let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let main = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let policy = |container: &Container| container.termination_message_policy.as_deref() == Some(FALLBACK);
    init.iter().chain(main).any(|container| container.name == name && policy(container))
}

const FALLBACK: &str = "FallbackToLogsOnError";

/// What keeps a pod from running, as it says itself.
pub(crate) fn trouble_of_pod(pod: &Pod, now: Timestamp) -> Option<Trouble> {
    let waiting = statuses(pod).find_map(|status| {
        let waiting = status.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref().filter(|reason| TROUBLES.contains(reason))?;
        let message = waiting.message.clone().unwrap_or_default();
        Some(Trouble {
            reason: reason.to_owned(),
            message,
            since: now,
            seen: now,
            is_scheduling: false,
            is_lasting: true,
        })
    });
    waiting.or_else(|| {
        let conditions = pod.status.as_ref()?.conditions.as_deref().unwrap_or_default();
        let condition = conditions.iter().find(|condition| {
            condition.type_ == "PodScheduled"
                && condition.status == "False"
                && condition.reason.as_deref() == Some("Unschedulable")
        })?;
        let since = condition.last_transition_time.as_ref().map_or(now, |time| time.0);
        let message = condition.message.clone().unwrap_or_default();
        Some(Trouble {
            reason: "Unschedulable".to_owned(),
            message,
            since,
            seen: now,
            is_scheduling: true,
            is_lasting: true,
        })
    })
}

/// What keeps a Job or a pod from running, by its events: pods that cannot be created, volumes that cannot be mounted.
/// A Warning counts until something went well after it, or it was not repeated for a while.
pub(crate) fn trouble_of_events(events: &[Event], now: Timestamp) -> Option<Trouble> {
    let is_warning = |event: &&Event| event.type_.as_deref() == Some("Warning");
    let progress = events.iter().filter(|event| !is_warning(event)).filter_map(last_time).max();
    let current = events.iter().filter(is_warning).filter_map(|event| Some((last_time(event)?, event)));
    let current =
        current.filter(|(time, _)| progress.is_none_or(|progress| *time > progress) && later(*time, STALE) > now);
    let current: Vec<(Timestamp, &Event)> = current.collect();
    let (seen, newest) = current.iter().max_by_key(|(time, _)| *time)?;
    let same = || current.iter().filter(|(_, event)| event.reason == newest.reason);
    let times: i64 = same().map(|(_, event)| i64::from(occurrences(event))).sum();
    Some(Trouble {
        reason: newest.reason.clone().unwrap_or_default(),
        message: newest.message.clone().unwrap_or_default(),
        since: same().filter_map(|(_, event)| first_time(event)).min().unwrap_or(now),
        seen: *seen,
        is_scheduling: newest.reason.as_deref() == Some("FailedScheduling"),
        is_lasting: times > 1,
    })
}

/// Controllers and kubelets repeat what goes wrong at least every two minutes.
const STALE: Duration = Duration::from_mins(3);

fn last_time(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0);
    series.or(event.last_timestamp.as_ref().map(|time| time.0)).or_else(|| first_time(event))
}

fn first_time(event: &Event) -> Option<Timestamp> {
    event.first_timestamp.as_ref().map(|time| time.0).or(event.event_time.as_ref().map(|time| time.0))
}

fn occurrences(event: &Event) -> i32 {
    event.series.as_ref().and_then(|series| series.count).or(event.count).unwrap_or(1)
}

/// Whether any container of a pod has ever started.
pub(crate) fn has_started(pod: &Pod) -> bool {
    statuses(pod)
        .any(|status| status.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some()))
}

/// The containers that have run; init containers are of interest if they kept the others from starting.
pub(crate) fn started_containers(pod: &Pod) -> Vec<String> {
    let status = pod.status.as_ref();
    let started = |list: Option<&[ContainerStatus]>| -> Vec<String> {
        let has_run = |status: &&ContainerStatus| {
            status.state.as_ref().is_some_and(|state| state.terminated.is_some() || state.running.is_some())
        };
        list.into_iter().flatten().filter(has_run).map(|status| status.name.clone()).collect()
    };
    let main = started(status.and_then(|status| status.container_statuses.as_deref()));
    if main.is_empty() { started(status.and_then(|status| status.init_container_statuses.as_deref())) } else { main }
}

/// Whether a pod may still be doing something.
pub(crate) fn is_alive(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed"))
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> + Clone {
    let status = pod.status.as_ref();
    let init = status.and_then(|status| status.init_container_statuses.as_deref()).unwrap_or_default();
    let main = status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    init.iter().chain(main)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(status: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap()
    }

    fn job(spec: Value, status: Value) -> Job {
        let spec = serde_json::from_value(json!({"template": {}, "suspend": spec["suspend"]})).unwrap();
        Job { spec: Some(spec), status: serde_json::from_value(status).unwrap(), ..Job::default() }
    }

    const END: &str = "2026-01-01T00:00:20Z";

    fn ended(name: &str, code: i32, more: Value) -> Value {
        let mut end =
            json!({"exitCode": code, "finishedAt": END, "reason": if code == 0 { "Completed" } else { "Error" }});
        end.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": end}})
    }

    #[test]
    fn a_job_is_held_running_or_finished() {
        assert_eq!(life(&job(json!({"suspend": true}), json!({})), None), Life::Held);
        assert_eq!(life(&job(json!({}), json!({})), None), Life::Running { since: None });
        let started = life(&job(json!({}), json!({"startTime": END})), None);
        assert_eq!(started, Life::Running { since: Some(END.parse().unwrap()) });
        let complete = json!({"completionTime": END, "conditions": [{"type": "SuccessCriteriaMet", "status": "True"},
            {"type": "Complete", "status": "True", "lastTransitionTime": END}]});
        let Life::Finished(finish) = life(&job(json!({}), complete), None) else { panic!("it has finished") };
        assert_eq!((finish.succeeded, finish.exit_code, finish.at.to_string()), (true, Some(0), END.to_owned()));
    }

    #[test]
    fn a_failure_is_told_by_what_the_pod_said() {
        let failed = |reason: &str| json!({"conditions": [{"type": "Failed", "status": "True", "reason": reason, "message": "why", "lastTransitionTime": END}]});
        let pod = pod(json!({"phase": "Failed", "containerStatuses": [
            ended("a", 0, json!({})), ended("m", 3, json!({"message": "\ncolumn exists\nmore"}))]}));
        let reason = |status: Value| match life(&job(json!({}), status), Some(&pod)) {
            Life::Finished(finish) => (finish.reason, finish.exit_code),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            reason(failed("BackoffLimitExceeded")),
            ("container m ended with exit code 3: column exists".to_owned(), Some(3))
        );
        assert_eq!(reason(failed("DeadlineExceeded")).0, "DeadlineExceeded: why");
    }

    #[test]
    fn a_message_whose_start_was_cut_off_is_told_from_its_first_whole_line() {
        let told = |message: &str, policy: &str| {
            let status = json!({"phase": "Failed", "containerStatuses": [ended("m", 3, json!({"message": message}))]});
            let spec = json!({"containers": [{"name": "m", "terminationMessagePolicy": policy}]});
            let pod = serde_json::from_value(json!({"metadata": {}, "spec": spec, "status": status})).unwrap();
            finish_of_pod(&pod).unwrap().reason.replace("container m ended with exit code 3", "")
        };
        let long = |bytes: usize| format!("{}\nsecond line", "x".repeat(bytes - "\nsecond line".len()));
        assert_eq!(told(&long(4096), "File"), ": second line");
        assert_eq!(told(&long(2048), "FallbackToLogsOnError"), ": second line");
        assert!(told(&long(2048), "File").starts_with(": xxx"), "a file may have more");
        assert_eq!(told(&"x".repeat(4096), "File"), "", "there is no whole line");
    }

    #[test]
    fn a_pod_that_never_ran_a_container_tells_its_own_reason() {
        let evicted = pod(json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}));
        assert_eq!(finish_of_pod(&evicted).unwrap().reason, "Evicted: low on memory");
        let killed =
            pod(json!({"phase": "Failed", "containerStatuses": [ended("m", 137, json!({"reason": "OOMKilled"}))]}));
        assert_eq!(finish_of_pod(&killed).unwrap().reason, "container m ended with OOMKilled, exit code 137");
        assert_eq!(finish_of_pod(&pod(json!({"phase": "Running"}))), None);
    }

    #[test]
    fn a_warning_lasts_only_if_it_is_repeated_and_nothing_went_well_since() {
        let at = |second: i64| Timestamp::from_second(second).unwrap().to_string();
        let event = |kind: &str, reason: &str, first: i64, last: i64, count: i32| -> Event {
            serde_json::from_value(json!({"metadata": {}, "involvedObject": {}, "type": kind, "reason": reason,
                "message": "words", "firstTimestamp": at(first), "lastTimestamp": at(last), "count": count}))
            .unwrap()
        };
        let trouble = |events: &[Event], now: i64| {
            let found = trouble_of_events(events, Timestamp::from_second(now).unwrap());
            found.map(|trouble| (trouble.reason, trouble.since.as_second(), trouble.is_lasting))
        };
        let once = event("Warning", "FailedMount", 1, 1, 1);
        assert_eq!(trouble(std::slice::from_ref(&once), 60), Some(("FailedMount".to_owned(), 1, false)));
        assert_eq!(trouble(std::slice::from_ref(&once), 200), None, "nothing repeats it");
        assert_eq!(trouble(&[once, event("Normal", "Pulling", 3, 3, 1)], 60), None, "it went on after that");
        let often = event("Warning", "FailedMount", 1, 120, 7);
        assert_eq!(trouble(&[often], 130), Some(("FailedMount".to_owned(), 1, true)));
        let two = [event("Warning", "FailedCreate", 5, 5, 1), event("Warning", "FailedCreate", 9, 9, 1)];
        assert_eq!(trouble(&two, 70), Some(("FailedCreate".to_owned(), 5, true)));
    }

    #[test]
    fn trouble_is_seen_in_containers_and_in_scheduling() {
        let now = Timestamp::UNIX_EPOCH;
        let waiting = |reason: &str| {
            let status = json!({"name": "m", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"waiting": {"reason": reason, "message": "words"}}});
            pod(json!({"phase": "Pending", "initContainerStatuses": [status]}))
        };
        let trouble = trouble_of_pod(&waiting("ImagePullBackOff"), now).unwrap();
        assert_eq!((trouble.reason.as_str(), trouble.message.as_str()), ("ImagePullBackOff", "words"));
        assert_eq!(trouble_of_pod(&waiting("ContainerCreating"), now), None);
        let unschedulable = pod(json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/1 nodes", "lastTransitionTime": END}]}));
        let trouble = trouble_of_pod(&unschedulable, now).unwrap();
        assert!(trouble.is_scheduling && trouble.since.to_string() == END, "{trouble:?}");
    }
}
