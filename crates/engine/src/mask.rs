//! Values of Secrets that must not be printed or recorded.

use crate::error::{Answer, Error, classify};
use crate::retry::Retry;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shorter values are no secrets, and masking them would hide words.
const SHORTEST: usize = 5;

/// Values that are replaced wherever they would be printed or recorded. Clones share them.
#[derive(Clone, Default)]
pub struct Mask {
    values: Names,
    /// The Secrets that were read.
    secrets: Names,
}

type Names = Arc<Mutex<BTreeSet<String>>>;

impl Mask {
    /// Hides a value, each line of it, and its base64 form.
    pub fn hide(&self, value: &[u8]) {
        let encoded = serde_json::to_value(ByteString(value.to_vec())).ok();
        let encoded = encoded.as_ref().and_then(|encoded| encoded.as_str()).map(|text| text.trim_end_matches('='));
        let text = String::from_utf8_lossy(value);
        let parts = text.lines().chain(encoded).map(str::trim).filter(|part| part.len() >= SHORTEST);
        lock(&self.values).extend(parts.map(str::to_owned));
    }

    /// A mask that hides the same values, for work that reads its Secrets itself: they may have changed since.
    pub(crate) fn share(&self) -> Self {
        Self { values: Arc::clone(&self.values), secrets: Names::default() }
    }

    /// Hides the values of Secrets that this process may read. What it may not read it cannot recognise.
    pub(crate) async fn hide_secrets(
        &self,
        client: &Client,
        namespace: &str,
        names: &BTreeSet<String>,
        retry: &Retry,
    ) -> Result<(), Error> {
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        for name in names {
            if lock(&self.secrets).contains(name) {
                continue;
            }
            let read = || async {
                match secrets.get_opt(name).await {
                    // As if it were empty. One that does not exist yet is read again.
                    Err(error) if classify(&error) == Answer::Refused => Ok(Some(Secret::default())),
                    read => read,
                }
            };
            if let Some(secret) = retry.call(&format!("read Secret `{name}`"), read).await? {
                secret.data.iter().flatten().for_each(|(_, value)| self.hide(&value.0));
                lock(&self.secrets).insert(name.clone());
            }
        }
        Ok(())
    }

    /// The text without these values.
    pub fn apply(&self, text: &str) -> String {
        let hidden = lock(&self.values);
        let mut values: Vec<&String> = hidden.iter().filter(|value| text.contains(value.as_str())).collect();
        // The longest first, so that none is hidden by a part of it.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.into_iter().fold(text.to_owned(), |text, value| text.replace(value.as_str(), "***"))
    }
}

fn lock(names: &Names) -> MutexGuard<'_, BTreeSet<String>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Mask of {} values", lock(&self.values).len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_their_lines_and_their_base64_forms_are_hidden() {
        let mask = Mask::default();
        for value in ["hunter2", "hunter2-longer", "abc", "line1-x\nline2-y\n"] {
            mask.hide(value.as_bytes());
        }
        assert_eq!(mask.apply("a hunter2-longer b hunter2 abc line2-y"), "a *** b *** abc ***");
        assert_eq!(mask.apply("aHVudGVyMg=="), "***==");
        assert_eq!(format!("{mask:?}"), "Mask of 7 values");
    }
}
