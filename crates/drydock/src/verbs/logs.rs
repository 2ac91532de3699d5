//! `/log`: what a container has printed, and what it goes on to print.

use crate::cluster::{Answer, Cluster, Reply};
use crate::containers::logs::Line;
use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::options::Query;
use crate::request::Request;
use crate::status::Status;
use crate::store::Key;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A log that is read: which one, from where, and how far it has been told.
#[derive(Clone, Debug)]
pub(crate) struct LogPlan {
    pod_uid: String,
    container: String,
    previous: bool,
    timestamps: bool,
    pub(crate) follow: bool,
    since: Option<Timestamp>,
    /// The next line to tell.
    position: usize,
    bytes_left: Option<usize>,
}

/// What there is to tell of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) text: String,
    /// Nothing will follow.
    pub(crate) over: bool,
}

impl Cluster {
    pub(crate) fn log(&mut self, request: &Request) -> Result<Reply, Status> {
        let target = &request.target;
        let key = Key::new(target.storage_namespace(), target.object_name());
        let pod = self.fetch(&target.kind, &key).ok_or_else(|| Status::not_found(&target.kind, &key.name))?;
        let query = &request.query;
        let (tail, limit, since) = options(query, &key.name, self.now)?;
        let container = choose_container(&pod, query.text("container"))?;
        if pod.text(&["spec", "nodeName"]).is_empty() {
            return Ok(Reply::other(204, Value::Null));
        }
        let previous = query.flag("previous").unwrap_or_default();
        let Some(log) = self.logs.get(pod.uid(), &container, previous) else {
            return Err(Status::bad_request(if previous {
                format!("previous terminated container {container:?} in pod {:?} not found", pod.name())
            } else {
                let why = waiting_reason(&pod, &container);
                format!("container {container:?} in pod {:?} is waiting to start: {why}", pod.name())
            }));
        };
        let kept = log.lines().iter().filter(|line| since.is_none_or(|since| line.at >= since)).count();
        let skipped = tail.map_or(0, |tail| kept.saturating_sub(tail));
        let plan = LogPlan {
            pod_uid: pod.uid().to_owned(),
            container,
            previous,
            timestamps: query.flag("timestamps").unwrap_or_default(),
            follow: query.flag("follow").unwrap_or_default(),
            since,
            position: log.count() - kept + skipped,
            bytes_left: limit,
        };
        Ok(Reply { answer: Answer::Log(plan), warnings: Vec::new() })
    }

    /// What a log has to tell now.
    pub(crate) fn read_log(&self, plan: &mut LogPlan) -> Told {
        let Some(log) = self.logs.get(&plan.pod_uid, &plan.container, plan.previous) else {
            return Told { text: String::new(), over: true };
        };
        let mut text = String::new();
        for line in log.after(plan.position) {
            if plan.since.is_none_or(|since| line.at >= since) {
                text.push_str(&shown(line, plan.timestamps));
            }
        }
        plan.position = log.count();
        let mut over = log.closed || !plan.follow;
        if let Some(left) = &mut plan.bytes_left {
            let cut = (0..=text.len().min(*left)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            text.truncate(cut);
            *left -= cut;
            over |= *left == 0;
        }
        Told { text, over }
    }
}

fn shown(line: &Line, timestamps: bool) -> String {
    if timestamps { format!("{:.9} {}\n", line.at, line.text) } else { format!("{}\n", line.text) }
}

type Options = (Option<usize>, Option<usize>, Option<Timestamp>);

fn options(query: &Query, pod: &str, now: Timestamp) -> Result<Options, Status> {
    let mut errors = Vec::new();
    let mut number = |name: &str, least: i64| -> Result<Option<i64>, Status> {
        let value = query.integer(name)?;
        if let Some(value) = value.filter(|value| *value < least) {
            let detail = if least == 0 { "must be greater than or equal to 0" } else { "must be greater than 0" };
            errors.push(FieldError::invalid(&Path::new(name), value, detail));
        }
        Ok(value)
    };
    let tail = number("tailLines", 0)?;
    let limit = number("limitBytes", 1)?;
    let seconds = number("sinceSeconds", 1)?;
    if !errors.is_empty() {
        let causes: Vec<Value> = errors
            .iter()
            .map(|error| json!({"reason": error.reason.cause(), "message": error.body(), "field": error.field}))
            .collect();
        let message = format!("PodLogOptions {pod:?} is invalid: {}", crate::field::aggregate(&errors));
        return Err(Status::new(422, "Invalid", message).with_causes(causes));
    }
    let size = |value: Option<i64>| value.and_then(|value| usize::try_from(value).ok());
    let since = match seconds {
        Some(seconds) => now.checked_sub(SignedDuration::from_secs(seconds)).ok(),
        None => query.text("sinceTime").parse().ok(),
    };
    Ok((size(tail), size(limit), since))
}

fn container_names(pod: &Object) -> Vec<&str> {
    let names = |field: &str| pod.list(&["spec", field]).iter().filter_map(|container| container["name"].as_str());
    names("containers").chain(names("initContainers")).collect()
}

fn choose_container(pod: &Object, asked: &str) -> Result<String, Status> {
    let names = container_names(pod);
    let main = pod.list(&["spec", "containers"]).len();
    match asked {
        "" if names.len() == 1 => Ok(names[0].to_owned()),
        "" => {
            let default = pod.annotation("kubectl.kubernetes.io/default-container");
            if let Some(name) = default.filter(|name| names.contains(name)) {
                return Ok(name.to_owned());
            }
            let mut message = format!(
                "a container name must be specified for pod {}, choose one of: [{}]",
                pod.name(),
                names[..main].join(" ")
            );
            if names.len() > main {
                message.push_str(&format!(" or one of the init containers: [{}]", names[main..].join(" ")));
            }
            Err(Status::bad_request(message))
        }
        asked if names.contains(&asked) => Ok(asked.to_owned()),
        asked => Err(Status::bad_request(format!("container {asked} is not valid for pod {}", pod.name()))),
    }
}

/// Why a container has no log yet, in the kubelet's words.
fn waiting_reason(pod: &Object, container: &str) -> &'static str {
    let statuses = ["containerStatuses", "initContainerStatuses"];
    let status =
        statuses.iter().flat_map(|field| pod.list(&["status", field])).find(|status| status["name"] == container);
    let reason = status.and_then(|status| status.pointer("/state/waiting/reason")).and_then(Value::as_str);
    match reason {
        Some("ErrImagePull") => "image can't be pulled",
        Some("ImagePullBackOff") => "trying and failing to pull image",
        Some("CreateContainerConfigError") => "CreateContainerConfigError",
        Some("PodInitializing") => "PodInitializing",
        _ => "ContainerCreating",
    }
}
