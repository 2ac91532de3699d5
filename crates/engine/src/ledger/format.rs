//! The form of a ledger in a ConfigMap.

use super::{Done, Head, Ledger};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// The format that is written. Older ones are read, newer ones are refused.
pub(super) const NEWEST: u32 = 2;

/// A ledger that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Another program has written into it, or a part of it is missing.
    #[error("its `{key}` cannot be parsed")]
    Broken {
        /// The part that is broken.
        key: &'static str,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A newer Jobwright has written it.
    #[error("it has format {format}, and this version of jobwright reads up to {NEWEST}: use a newer one")]
    Newer {
        /// Its format.
        format: u32,
    },
}

/// What is read before all else, and what only format 1 has.
#[derive(serde::Deserialize)]
struct About {
    format: u32,
    /// The last request for one more run.
    #[serde(default)]
    nonce: String,
}

impl Ledger {
    /// Reads a ledger from the data of its ConfigMap.
    pub(crate) fn decode(data: &BTreeMap<String, String>) -> Result<Self, FormatError> {
        let about = part::<Option<About>>(data, "head")?;
        if let Some(About { format, .. }) = about
            && format > NEWEST
        {
            return Err(FormatError::Newer { format });
        }
        let mut head = part::<Option<Head>>(data, "head")?.unwrap_or_default();
        head.handle(&about.map(|about| about.nonce).unwrap_or_default());
        head.format = NEWEST;
        Ok(Self { head, done: part(data, "done")?, runs: part(data, "runs")?, logs: part(data, "logs")? })
    }

    /// The data of its ConfigMap.
    pub(crate) fn encode(&self) -> BTreeMap<String, String> {
        let mut data = BTreeMap::from([("head".to_owned(), text(&self.head)), ("done".to_owned(), text(&self.done))]);
        data.insert("runs".to_owned(), text(&self.runs));
        data.insert("logs".to_owned(), text(&self.logs));
        data
    }
}

fn part<T: DeserializeOwned + Default>(data: &BTreeMap<String, String>, key: &'static str) -> Result<T, FormatError> {
    let text = data.get(key).map(String::as_str).filter(|text| !text.is_empty());
    text.map_or_else(|| Ok(T::default()), serde_json::from_str).map_err(|source| FormatError::Broken { key, source })
}

fn text(value: &impl Serialize) -> String {
    // Strings, numbers and lists of them: there is nothing that JSON could not write.
    serde_json::to_string(value).unwrap_or_default()
}

/// How much room `done` takes.
pub(super) fn size_of_done(done: &[Done]) -> usize {
    text(&done).len()
}

/// How much room a text takes once it is escaped: a control character takes six bytes.
pub(crate) fn escaped_size(value: &str) -> usize {
    // Without the quotes around it.
    text(&value).len().saturating_sub(2)
}
