//! Versions as releases declare them: dotted numbers, perhaps with a pre-release.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A version such as `1.4.0`, `v2.1` or `1.4.0-rc.2+build7`, ordered as semantic versioning orders it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    text: String,
    numbers: Vec<u64>,
    pre_release: Vec<Identifier>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

/// A text that is no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no version: dotted numbers such as 1.4.0 are, also with a pre-release such as 1.4.0-rc.1")]
pub struct NoVersion(String);

impl Version {
    /// The numbers, the missing ones being zero.
    fn number(&self, index: usize) -> u64 {
        self.numbers.get(index).copied().unwrap_or_default()
    }

    pub(crate) fn major(&self) -> u64 {
        self.number(0)
    }

    pub(crate) fn minor(&self) -> u64 {
        self.number(1)
    }

    /// Whether the version begins with these dotted numbers: `1.4.0` with `1.4`, but `1.40.0` does not.
    pub fn starts_with(&self, prefix: &Version) -> bool {
        let same = |index: usize| self.number(index) == prefix.number(index);
        (0..prefix.numbers.len()).all(same) && (prefix.pre_release.is_empty() || prefix.pre_release == self.pre_release)
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Version {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let refuse = || NoVersion(text.to_owned());
        let bare = text.strip_prefix('v').unwrap_or(text);
        let bare = bare.split_once('+').map_or(bare, |(version, _build)| version);
        let (numbers, pre_release) = bare.split_once('-').map_or((bare, None), |(numbers, pre)| (numbers, Some(pre)));
        let numbers: Result<Vec<u64>, _> = numbers.split('.').map(str::parse).collect();
        let pre_release: Vec<Identifier> = pre_release
            .into_iter()
            .flat_map(|pre| pre.split('.'))
            .map(|part| part.parse().map_or_else(|_| Identifier::Text(part.to_owned()), Identifier::Number))
            .collect();
        if pre_release.contains(&Identifier::Text(String::new())) || text.len() > 128 {
            return Err(refuse());
        }
        Ok(Self { text: text.to_owned(), numbers: numbers.map_err(|_| refuse())?, pre_release })
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let length = self.numbers.len().max(other.numbers.len());
        let numbers = (0..length).map(|index| self.number(index).cmp(&other.number(index)));
        numbers.fold(Ordering::Equal, Ordering::then).then_with(|| {
            match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.pre_release.cmp(&other.pre_release),
            }
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl TryFrom<String> for Version {
    type Error = NoVersion;

    fn try_from(text: String) -> Result<Self, NoVersion> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_ordered_by_numbers_and_a_pre_release_comes_first() {
        let ordered =
            ["0.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0", "1.0.10", "v1.2"];
        for pair in ordered.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        assert_eq!(version("1.4"), version("v1.4.0+build7"));
    }

    #[test]
    fn a_prefix_is_made_of_whole_numbers() {
        assert!(version("1.4.7").starts_with(&version("1.4")));
        assert!(!version("1.40.0").starts_with(&version("1.4")));
        assert!(version("2.0.0-rc.1").starts_with(&version("2")));
        assert!(version("1").starts_with(&version("1.0")));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "latest", "1..2", "1.x", "-1", "1.0-", "1.2.3.99999999999999999999"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_version_is_stored_as_it_was_written() {
        let text = serde_json::to_string(&version("v1.4")).unwrap();
        assert_eq!(text, "\"v1.4\"");
        assert_eq!(serde_json::from_str::<Version>(&text).unwrap().as_str(), "v1.4");
    }
}
