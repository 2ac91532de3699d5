//! Starting a container: its image, what it refers to, its process.

use super::container::{Container, Running, State};
use super::needs;
use super::probes::Probes;
use super::{RETRY, after};
use crate::containers::process::{self, Process};
use crate::containers::script::{self, Behaviour};
use crate::containers::shell::{Command, Part, Word};
use crate::containers::witness::Started;
use crate::life::client::{Client, Tone};
use crate::object::Object;
use serde_json::Value;
use std::collections::BTreeMap;

fn words(container: &Value, field: &str) -> Vec<String> {
    let list = container.get(field).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What a pod belongs to: its Job, the Deployment behind its ReplicaSet, its controller, or itself.
pub(super) fn owner_of(client: &Client<'_>, pod: &Object) -> String {
    let Some(owner) = pod.owners().find(|owner| owner.controller) else { return pod.name().to_owned() };
    if owner.kind == "ReplicaSet" {
        let set = client.cluster.find("apps", "replicasets", pod.namespace(), owner.name);
        if let Some(deployment) =
            set.and_then(|set| set.owners().find(|owner| owner.controller).map(|owner| owner.name.to_owned()))
        {
            return deployment;
        }
    }
    owner.name.to_owned()
}

impl Container {
    /// Starts the container, or says what keeps it from starting.
    pub(super) fn start(&mut self, client: &mut Client<'_>, pod: &Object) {
        let now = client.now();
        let image = self.spec.get("image").and_then(Value::as_str).unwrap_or_default().to_owned();
        let owner = owner_of(client, pod);
        let mut command = words(&self.spec, "command");
        command.extend(words(&self.spec, "args"));
        let attempt = client.cluster.witness.starts_of(pod.namespace(), &owner, &self.name) + 1;
        let behaviour = client
            .cluster
            .script
            .behaviour(&script::Container {
                namespace: pod.namespace(),
                labels: &|key| pod.label(key),
                name: &self.name,
                image: &image,
                command: &command,
                attempt,
            })
            .cloned();
        if is_nowhere(&image) || behaviour.as_ref().is_some_and(|behaviour| behaviour.never_pulled) {
            self.fail_pull(client, pod, &image);
            return;
        }
        let present = format!("Container image {image:?} already present on machine");
        client.tell_of(pod, &self.place(), Tone::Normal, "Pulled", &present);
        let variables = match needs::variables(client.cluster, pod, &self.spec) {
            Ok(variables) => variables,
            Err(missing) => {
                client.tell_of(pod, &self.place(), Tone::Warning, "Failed", &format!("Error: {missing}"));
                self.state = State::Waiting { reason: "CreateContainerConfigError", message: missing };
                self.not_before = Some(after(now, RETRY));
                return;
            }
        };
        client.tell_of(pod, &self.place(), Tone::Normal, "Created", &format!("Created container: {}", self.name));
        client.tell_of(pod, &self.place(), Tone::Normal, "Started", &format!("Started container {}", self.name));
        let before = self.status(now);
        if let Some(exit) = self.ended().cloned() {
            self.last = Some(exit);
            self.restarts += 1;
        } else if self.last.is_some() {
            self.restarts += 1;
        }
        client.cluster.logs.start(pod.uid(), &self.name);
        let id = format!("drydock://{:032x}{:032x}", client.cluster.random.u128(..), client.cluster.random.u128(..));
        client.cluster.witness.note(Started {
            at: now,
            namespace: pod.namespace().to_owned(),
            pod: pod.name().to_owned(),
            pod_uid: pod.uid().to_owned(),
            owner,
            container: self.name.clone(),
            image,
            command: command.clone(),
            attempt,
            ended: None,
        });
        let ready_from = behaviour.as_ref().and_then(|behaviour| behaviour.ready_after).map(|delay| after(now, delay));
        self.state = State::Running(Box::new(Running {
            id,
            since: now,
            process: process_of(pod, &command, behaviour.as_ref(), variables),
            exit: None,
            before,
            message: behaviour.as_ref().and_then(|behaviour| behaviour.message.clone()),
            ready_from,
            never_ready: behaviour.is_some_and(|behaviour| behaviour.never_ready),
        }));
        self.not_before = None;
        self.probes = Probes::new(&self.spec, now);
    }

    /// The image cannot be pulled: tried, told, and put off in turns.
    fn fail_pull(&mut self, client: &mut Client<'_>, pod: &Object, image: &str) {
        let reference = format!("failed to resolve reference {image:?}: {image}: not found");
        let error = format!("rpc error: code = NotFound desc = failed to pull and unpack image {image:?}: {reference}");
        let backing_off = matches!(&self.state, State::Waiting { reason: "ErrImagePull", .. });
        let now = client.now();
        if backing_off {
            client.tell_of(pod, &self.place(), Tone::Normal, "BackOff", &format!("Back-off pulling image {image:?}"));
            client.tell_of(pod, &self.place(), Tone::Warning, "Failed", "Error: ImagePullBackOff");
            let message = format!("Back-off pulling image {image:?}: ErrImagePull: {error}");
            self.state = State::Waiting { reason: "ImagePullBackOff", message };
        } else {
            client.tell_of(pod, &self.place(), Tone::Normal, "Pulling", &format!("Pulling image {image:?}"));
            client.tell_of(
                pod,
                &self.place(),
                Tone::Warning,
                "Failed",
                &format!("Failed to pull image {image:?}: {error}"),
            );
            client.tell_of(pod, &self.place(), Tone::Warning, "Failed", "Error: ErrImagePull");
            self.state = State::Waiting { reason: "ErrImagePull", message: error };
        }
        self.not_before = Some(after(now, RETRY));
    }
}

/// What runs in a container: what the script says, what the command says, or the simplest thing.
fn process_of(
    pod: &Object,
    command: &[String],
    behaviour: Option<&Behaviour>,
    variables: BTreeMap<String, String>,
) -> Process {
    if let Some(behaviour) = behaviour {
        return Process::of_command(behaviour.commands(), variables);
    }
    if process::is_understood(command) {
        return Process::new(command, variables);
    }
    let always = matches!(pod.text(&["spec", "restartPolicy"]), "Always" | "");
    if always {
        return Process::of_command(Behaviour::serves().commands(), variables);
    }
    let word = |text: &str| Word { parts: vec![Part::Text(text.to_owned())], quoted: true };
    let sleep = Command::Simple { assignments: Vec::new(), words: vec![word("sleep"), word("1")], output: None };
    Process::of_command(sleep, variables)
}

/// Whether an image is of a registry that cannot exist: `.invalid` is nobody's, by the rules of the Internet.
fn is_nowhere(image: &str) -> bool {
    let host = image.split_once('/').map_or("", |(host, _)| host);
    host.split(':').next().is_some_and(|name| name == "invalid" || name.ends_with(".invalid"))
}
