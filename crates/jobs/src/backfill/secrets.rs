//! The values of the Secrets of a cluster, read before anything is sent, so that they are taken out wherever they are.

use super::checkpoint::Position;
use super::cut::values::{Collector, Values};
use super::kind::Kind;
use super::list::{Lister, Query, Selection};
use super::note::Note;
use super::pages::{Pages, Retry, Step};
use super::restarts::Restarts;
use super::summary::Problem;
use super::{Backfill, Error, Surroundings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether the values of Secrets are read, to be taken out wherever they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum SecretValues {
    /// Where they may be listed. Otherwise names alone decide, and the summary says so.
    #[default]
    Auto,
    /// Nothing is sent without them.
    Require,
    /// They are not read: names alone decide.
    Never,
}

/// What is known of the values of Secrets.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) values: Arc<Values>,
    /// Why some or all of them are not known.
    pub(crate) names_only: Option<String>,
}

#[derive(Deserialize)]
struct Secret {
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

/// What Secrets are listed as.
pub(crate) fn kind() -> Kind {
    Kind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        plural: "secrets".to_owned(),
        namespaced: true,
    }
}

impl Backfill {
    /// Reads the values of all Secrets in the namespaces that are captured, whatever is captured of them.
    pub(crate) async fn read_secrets(&self, surroundings: &Surroundings) -> Result<Known, Error> {
        if self.secret_values == SecretValues::Never {
            return Ok(Known {
                names_only: Some("the values of Secrets were not read".to_owned()),
                ..Known::default()
            });
        }
        let Surroundings { client, clock, listener, .. } = surroundings.clone();
        let lister = Lister { client, clock: clock.clone(), selection: Selection::default(), patience: self.patience };
        let mut reader = Reader {
            lister,
            restarts: Restarts::new(self.patience, &clock),
            collector: Collector::default(),
            retry: Arc::new(move |problem, pause| {
                listener.tell(Note::Retrying { kind: "secrets".to_owned(), problem: problem.clone(), pause });
            }),
        };
        let mut names_only = None;
        let namespaces = match &self.namespaces[..] {
            [] => vec![None],
            names => names.iter().map(|name| Some(name.as_str())).collect(),
        };
        for namespace in namespaces {
            let Err(problem) = reader.read(namespace, self.page_size).await else { continue };
            // What passes must not lower the guard; what does not pass is the same for every run.
            if self.secret_values == SecretValues::Require || !matches!(problem.status, Some(401 | 403 | 404 | 405)) {
                return Err(Error::Secrets(problem));
            }
            let place = namespace.map(|name| format!(" of namespace `{name}`")).unwrap_or_default();
            names_only.get_or_insert(format!("the Secrets{place} may not be listed: {problem}"));
        }
        if reader.collector.is_full {
            if self.secret_values == SecretValues::Require {
                return Err(Error::Secrets(Problem::of("there are more values than fit into memory")));
            }
            names_only.get_or_insert("there are more values of Secrets than fit into memory".to_owned());
        }
        if let Some(why) = &names_only {
            surroundings.listener.tell(Note::NamesOnly(why.clone()));
        }
        Ok(Known { values: Arc::new(reader.collector.finish()), names_only })
    }
}

struct Reader {
    lister: Lister,
    restarts: Restarts,
    collector: Collector,
    retry: Retry,
}

impl Reader {
    async fn read(&mut self, namespace: Option<&str>, page_size: usize) -> Result<(), Problem> {
        let start = Query::start(&kind(), namespace, page_size);
        let mut pages = Pages::new(self.lister.clone(), start, &Position::default(), Arc::clone(&self.retry));
        let mut read = 0;
        loop {
            match pages.next().await? {
                Step::End => return Ok(()),
                Step::Page(page, _) => {
                    for object in page.items() {
                        self.add(object)?;
                        read += 1;
                    }
                    pages.give_back(page);
                }
                // What was read counts: values do not become public when a list starts over.
                Step::WentOn(problem) | Step::Restarted(problem) => {
                    let Some(pause) = self.restarts.pause(read) else { return Err(problem) };
                    tokio::time::sleep(pause).await;
                    read = 0;
                }
            }
        }
    }

    fn add(&mut self, object: &[u8]) -> Result<(), Problem> {
        let secret: Secret =
            serde_json::from_slice(object).map_err(|_| Problem::of("a Secret of the answer cannot be read"))?;
        for (key, value) in secret.data.into_iter().flatten() {
            // What is no base64 was not taken by the server, and is searched for as it is.
            let decoded = STANDARD.decode(&value).unwrap_or_else(|_| value.into_bytes());
            self.collector.add(&key, &decoded);
        }
        Ok(())
    }
}
