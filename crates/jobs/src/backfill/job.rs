//! A backfill as a job of a release.

use super::note::Note;
use super::task::{Setting, Task};
use super::{Ending, Error, Listener, Meter, Summary, Surroundings};
use crate::place::{Place, placed};
use jobwright_engine::{Context, Failure, Job, async_trait};
use serde_json::{Value, json};

/// Captures the state of the cluster when its turn comes in a deploy.
#[derive(Clone, Debug)]
pub struct BackfillJob {
    /// What every job has.
    pub place: Place,
    /// What it does.
    pub task: Task,
}

#[async_trait]
impl Job for BackfillJob {
    placed!();

    fn inputs(&self) -> Value {
        // How it is done may change without its being another one.
        let backfill = &self.task.backfill;
        json!({
            "sink": self.task.sink.to_string(),
            "kinds": backfill.kinds,
            "excludeKinds": backfill.exclude_kinds,
            "namespaces": backfill.namespaces,
            "selection": backfill.selection,
            "filters": backfill.filters,
        })
    }

    async fn run(&self, context: &Context) -> Result<(), Failure> {
        let log = context.clone();
        let listener = Listener::new(move |note: Note| log.log(note.to_string()));
        let surroundings = Surroundings {
            client: context.client().clone(),
            clock: context.clock().clone(),
            meter: Meter::new(),
            listener,
        };
        let holder =
            format!("{}/{} at {}", context.release().name, self.place.id, context.clock().now().as_nanosecond());
        let setting = Setting {
            surroundings,
            namespace: context.namespace().to_owned(),
            holder,
            stdout: Box::new(std::io::sink()),
            cancellation: context.cancellation().clone(),
        };
        let summary = self.task.run(setting).await.map_err(fail)?;
        context.log(sum_up(&summary));
        match summary.ending() {
            Ending::Complete => Ok(()),
            Ending::Cancelled => {
                Err(Failure::new("it was told to stop; the next run goes on where it has a checkpoint"))
            }
            Ending::Forbidden => Err(Failure::new(sum_up(&summary)).for_good()),
            Ending::Partial | Ending::Failed => Err(Failure::new(sum_up(&summary))),
        }
    }
}

fn fail(error: Error) -> Failure {
    let is_final = matches!(error, Error::UnknownKind(_) | Error::Open(_));
    let failure = Failure::new(error.to_string());
    if is_final { failure.for_good() } else { failure }
}

/// What became of it, in a line.
fn sum_up(summary: &Summary) -> String {
    let total = summary.total();
    let mut line = format!("{} of {} objects sent to {}", total.sent - total.repeated, total.listed, summary.sink);
    if total.skipped > 0 {
        line = format!("{line}, {} skipped", total.skipped);
    }
    if let Some(why) = &summary.stopped {
        line = format!("{line}; {why}");
    }
    let wrong = summary.kinds.iter().filter_map(|kind| Some((kind, kind.errors.first()?)));
    for (kind, problem) in wrong.take(5) {
        line = format!("{line}; {} {}: {problem}", kind.api_version, kind.kind);
    }
    line
}
