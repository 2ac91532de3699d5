//! Fingerprints: what a job depends on, as a hash. The same fingerprint is the same run.
//!
//! Each way to make one has a number, which is stored with it. A new Jobwright that makes them in another way still
//! recognises what an old one has recorded, so that an upgrade of Jobwright runs nothing again.

mod canonical;
mod references;

pub(crate) use canonical::is_volatile;
pub use references::References;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// A hash, and the number of the way it was made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Fingerprint {
    algorithm: u32,
    value: String,
}

/// The fingerprints of the same inputs in every way there has been, the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprints {
    newest: Fingerprint,
    older: Vec<Fingerprint>,
}

/// What a job depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// The pod template, or whatever a job in code names.
    pub template: Value,
    /// The content of the ConfigMaps that it names; null for one that is not there.
    pub config_maps: BTreeMap<String, Value>,
    /// The version, where that is to count.
    pub version: Option<String>,
    /// The content of the Secrets that it names, where that is to count, and the key of the hash over them: without
    /// it, whoever reads the ledger could try out passwords.
    pub secrets: Option<(Key, BTreeMap<String, Value>)>,
}

/// A key for what must not be guessed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

/// A way to make a fingerprint.
type Algorithm = fn(&Inputs) -> Value;

/// All ways there have been, by number. One that has been released is never changed.
const ALGORITHMS: &[(u32, Algorithm)] = &[(1, algorithm_1)];

impl Key {
    /// A key; random and at least 16 bytes long, if it is to be any good.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(…)")
    }
}

/// The template without what changes when nothing does, the ConfigMaps, and what was asked for.
fn algorithm_1(inputs: &Inputs) -> Value {
    let mut form = Map::new();
    form.insert("template".to_owned(), canonical::template(&inputs.template));
    form.insert("configMaps".to_owned(), json!(inputs.config_maps));
    if let Some(version) = &inputs.version {
        form.insert("version".to_owned(), json!(version));
    }
    if let Some((key, secrets)) = &inputs.secrets {
        form.insert("secrets".to_owned(), json!(keyed(key, &canonical::text(&json!(secrets)))));
    }
    Value::Object(form)
}

fn keyed(key: &Key, text: &str) -> String {
    // HMAC takes keys of any length; the error is for algorithms that do not.
    Hmac::<Sha256>::new_from_slice(&key.0)
        .map(|mut hmac| {
            hmac.update(text.as_bytes());
            hexadecimal(&hmac.finalize().into_bytes())
        })
        .unwrap_or_default()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

impl Fingerprints {
    /// The fingerprints of these inputs.
    pub fn of(inputs: &Inputs) -> Self {
        Self::by(ALGORITHMS, inputs)
    }

    fn by(algorithms: &[(u32, Algorithm)], inputs: &Inputs) -> Self {
        let make = |(algorithm, form): &(u32, Algorithm)| {
            let digest = Sha256::digest(canonical::text(&form(inputs)).as_bytes());
            Fingerprint { algorithm: *algorithm, value: hexadecimal(&digest[..16]) }
        };
        let mut all: Vec<Fingerprint> = algorithms.iter().map(make).collect();
        let nothing = || Fingerprint { algorithm: 0, value: String::new() };
        let newest = all.pop().unwrap_or_else(nothing);
        Self { newest, older: all }
    }

    /// What is written down from now on.
    pub fn newest(&self) -> &Fingerprint {
        &self.newest
    }

    /// Whether what was written down is of the same inputs.
    pub fn include(&self, recorded: &Fingerprint) -> bool {
        self.newest == *recorded || self.older.contains(recorded)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.algorithm {
            1 => formatter.write_str(&self.value),
            number => write!(formatter, "{number}:{}", self.value),
        }
    }
}

impl From<String> for Fingerprint {
    fn from(text: String) -> Self {
        match text.split_once(':').map(|(number, value)| (number.parse(), value)) {
            Some((Ok(algorithm), value)) => Self { algorithm, value: value.to_owned() },
            _ => Self { algorithm: 1, value: text },
        }
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

#[cfg(test)]
mod tests;
