//! Every state that one object was in, in order: what deployers say of a release lasts for less than a second.

use crate::error::Error;
use crate::kubectl::Kubectl;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Follows one object from now on. Dropping it ends that.
#[derive(Debug)]
pub struct Film {
    namespace: String,
    states: Arc<Mutex<Vec<Value>>>,
    child: Child,
    thread: Option<JoinHandle<()>>,
}

impl Film {
    /// Follows an object of the namespace; `path` is where its kind is served: `apis/batch/v1` and `jobs`.
    pub(super) fn start(
        kubectl: &Kubectl,
        namespace: &str,
        (api, kind): (&str, &str),
        name: &str,
    ) -> Result<Self, Error> {
        let path = format!("/{api}/namespaces/{namespace}/{kind}?fieldSelector=metadata.name%3D{name}");
        let list: Value = kubectl.raw(&path)?;
        let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        let states = Arc::new(Mutex::new(list["items"].as_array().cloned().unwrap_or_default()));
        let mut child = kubectl.watch(&format!("{path}&watch=true&resourceVersion={version}"))?;
        let output = child.stdout.take();
        let follow = states.clone();
        let thread = std::thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
                let Ok(event) =
                    line.map_err(|_| ()).and_then(|line| serde_json::from_str::<Value>(&line).map_err(|_| ()))
                else {
                    return;
                };
                follow.lock().unwrap_or_else(PoisonError::into_inner).push(event["object"].clone());
            }
        });
        Ok(Self { namespace: kubectl.namespace().to_owned(), states, child, thread: Some(thread) })
    }

    /// The states so far.
    pub fn states(&self) -> Vec<Value> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a condition said one after another: `True Reason "message"`, with `NS` for the namespace. It says that work
    /// goes on between two words on how work ended, so the same word twice is two ends.
    pub fn ends_of(&self, condition: &str) -> Vec<String> {
        let said = self.states().iter().map(|state| said(state, condition, &self.namespace)).collect();
        without_progress(said)
    }

    /// A field of the status one after another, each value once while it stays.
    pub fn values_of(&self, field: &str) -> Vec<Value> {
        let mut values: Vec<Value> = self.states().iter().map(|state| state["status"][field].clone()).collect();
        values.dedup();
        values
    }
}

impl Drop for Film {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a condition of an object says, with `NS` for its namespace.
pub(super) fn said(object: &Value, condition: &str, namespace: &str) -> Option<String> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|candidate| candidate["type"] == condition)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    let message = text("message").replace(namespace, "NS");
    Some(format!("{} {} \"{message}\"", text("status"), text("reason")))
}

fn without_progress(mut said: Vec<Option<String>>) -> Vec<String> {
    said.dedup();
    said.into_iter().flatten().filter(|text| !text.starts_with("Unknown ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state(status: &str, reason: &str) -> Value {
        let condition = json!({"type": "Ready", "status": status, "reason": reason, "message": "in here-1"});
        json!({"status": {"conditions": [condition]}})
    }

    #[test]
    fn the_same_end_counts_twice_if_work_went_on_between() {
        let states = [
            json!({}),
            state("Unknown", "Progressing"),
            state("False", "Failed"),
            state("False", "Failed"),
            state("Unknown", "Progressing"),
            state("False", "Failed"),
        ];
        let said = states.iter().map(|state| said(state, "Ready", "here-1")).collect();
        assert_eq!(without_progress(said), ["False Failed \"in NS\"", "False Failed \"in NS\""]);
    }
}
