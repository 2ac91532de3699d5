//! Follows what an attempt prints, for a process that did not start it.

use super::follow::read_line;
use super::view;
use crate::call;
use crate::error::Error;
use crate::fingerprint::References;
use crate::ledger::Active;
use crate::mask::Mask;
use crate::retry::Retry;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, LogParams};
use kube::{Client, ResourceExt};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longer lines are cut.
const LONGEST_LINE: usize = 64 * 1024;
/// How long a log may be silent before it is opened again: a connection that is silently dead looks quiet.
const SILENCE: Duration = Duration::from_secs(30);
/// How often the pod is read, to notice containers that start.
const POLL: Duration = Duration::from_secs(2);

/// Takes a line, and the name of the container that printed it if there are several.
type Print<'a> = dyn Fn(Option<&str>, &str) + Sync + 'a;

/// Follows the logs of a run's attempts. Values of Secrets that their pods name are hidden, as far as this process may
/// read them.
pub struct AttemptLog {
    client: Client,
    namespace: String,
    retry: Retry,
    mask: Mask,
    /// How far each container was read, by the uid of its pod and its name.
    positions: BTreeMap<(String, String), Position>,
}

impl AttemptLog {
    /// A follower of attempts in a namespace.
    pub fn new(client: &Client, namespace: &str, retry: Retry) -> Self {
        Self {
            client: call::bounded(client),
            namespace: namespace.to_owned(),
            retry,
            mask: Mask::default(),
            positions: BTreeMap::new(),
        }
    }

    /// Whether anything of the attempt's pods was printed.
    pub fn has_printed(&self) -> bool {
        self.positions.values().any(|position| position.last.is_some())
    }

    /// Prints each line of an attempt's pod once, with the name of its container if there are several. Returns when there
    /// is nothing to follow for now: no container has started, all have ended, or the connection broke. To be called
    /// again for as long as the ledger names the attempt.
    pub async fn follow(&mut self, active: &Active, print: &Print<'_>) -> Result<(), Error> {
        loop {
            let Some(pod) = self.find(active).await? else { return Ok(()) };
            let names = view::started_containers(&pod);
            let secrets = serde_json::to_value(&pod).map(|pod| References::of(&pod).secrets).unwrap_or_default();
            self.mask.hide_secrets(&self.client, &self.namespace, &secrets, &self.retry).await?;
            let uid = pod.uid().unwrap_or_default();
            for name in &names {
                self.positions.entry((uid.clone(), name.clone())).or_default();
            }
            let wanted = |(of, container): &(String, String)| *of == uid && names.iter().any(|name| name == container);
            let (client, retry, mask) = (&self.client, &self.retry, &self.mask);
            let pods = Api::<Pod>::namespaced(client.clone(), &self.namespace);
            let containers = self.positions.iter_mut().filter(|(key, _)| wanted(key)).map(|((_, name), position)| {
                let is_alone = names.len() == 1;
                let stream = Container { pods: &pods, pod: pod.name_any(), name, is_alone, mask, retry };
                stream.follow(position, print)
            });
            let all = futures::future::try_join_all(containers);
            tokio::select! {
                followed = all => return followed.map(drop),
                () = changed(&pods, &pod, &names) => {}
            }
        }
    }

    /// The newest pod of an attempt.
    async fn find(&self, active: &Active) -> Result<Option<Pod>, Error> {
        // Written by the Job controller, also before Kubernetes 1.27.
        let parameters = ListParams::default().labels(&format!("job-name={}", active.job));
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        let doing = format!("list the pods of Job `{}`", active.job);
        let found = self.retry.call(&doing, || pods.list(&parameters)).await?;
        let is_owned = |pod: &Pod| {
            let uid = active.uid.as_ref();
            uid.is_none_or(|uid| pod.owner_references().iter().any(|owner| owner.uid == *uid))
        };
        Ok(found.items.into_iter().filter(is_owned).max_by_key(ResourceExt::creation_timestamp))
    }
}

/// Waits until other containers of a pod have started.
async fn changed(pods: &Api<Pod>, pod: &Pod, started: &[String]) {
    loop {
        tokio::time::sleep(POLL).await;
        if let Ok(Some(pod)) = pods.get_opt(&pod.name_any()).await
            && view::started_containers(&pod) != started
        {
            return;
        }
    }
}

/// A container whose log is followed.
struct Container<'a> {
    pods: &'a Api<Pod>,
    pod: String,
    name: &'a str,
    is_alone: bool,
    mask: &'a Mask,
    retry: &'a Retry,
}

impl Container<'_> {
    async fn follow(self, position: &mut Position, print: &Print<'_>) -> Result<(), Error> {
        let parameters = LogParams {
            container: Some(self.name.to_owned()),
            follow: true,
            timestamps: true,
            since_time: position.last,
            ..LogParams::default()
        };
        let doing = format!("follow the log of pod `{}`", self.pod);
        let open = || async {
            match self.pods.log_stream(&self.pod, &parameters).await {
                Ok(stream) => Ok(Some(stream)),
                // The pod is gone, or its container has not started after all.
                Err(kube::Error::Api(status)) if matches!(status.code, 400 | 404) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let Some(stream) = self.retry.call(&doing, open).await? else { return Ok(()) };
        let mut stream = Box::pin(stream);
        position.rewind();
        while let Ok(Ok(Some(line))) = tokio::time::timeout(SILENCE, read_line(&mut stream, LONGEST_LINE)).await {
            let text = line.cut().decode(&line.bytes);
            if let Some(text) = position.advance(&text) {
                let text = self.mask.apply_to_part(text, line.cut());
                print((!self.is_alone).then_some(self.name), text.trim_end());
            }
        }
        Ok(())
    }
}

/// How far a log was read. The API resumes by time only, in seconds, so that lines come again.
#[derive(Debug, Default)]
struct Position {
    /// The time of the last line.
    last: Option<Timestamp>,
    /// How many lines of that time were read.
    read: usize,
    /// How many of them have come again.
    again: usize,
}

impl Position {
    /// The log is read again, from the time of the last line on.
    fn rewind(&mut self) {
        self.again = 0;
    }

    /// The text of a line with its time in front; none if it was read before.
    fn advance<'t>(&mut self, line: &'t str) -> Option<&'t str> {
        let parsed = line.split_once(' ').unwrap_or((line, ""));
        let Ok(time) = parsed.0.parse::<Timestamp>() else { return Some(line) };
        match self.last {
            Some(last) if time < last => return None,
            Some(last) if time == last => {
                self.again += 1;
                if self.again <= self.read {
                    return None;
                }
                self.read = self.again;
            }
            _ => (self.last, self.read, self.again) = (Some(time), 1, 1),
        }
        Some(parsed.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_come_again_are_told_once() {
        let log = ["2026-01-01T00:00:00.1Z one", "2026-01-01T00:00:00.2Z two", "2026-01-01T00:00:00.2Z two", "what"];
        let mut position = Position::default();
        let mut read = |lines: &[&'static str]| -> Vec<&'static str> {
            position.rewind();
            lines.iter().filter_map(|line| position.advance(line)).collect()
        };
        assert_eq!(read(&log[..2]), ["one", "two"]);
        assert_eq!(read(&log[..3]), ["two"], "the same line at the same time is another line");
        assert_eq!(read(&log[..3]), [""; 0]);
        assert_eq!(read(&log), ["what"], "without a time it cannot be known");
        assert_eq!(read(&["2026-01-01T00:00:03Z three"]), ["three"]);
        assert_eq!(read(&["2026-01-01T00:00:04Z"]), [""], "an empty line");
    }
}
