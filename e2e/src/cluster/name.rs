//! The name of a cluster.

use std::fmt;
use std::str::FromStr;

/// The longest name: sockets below the directory of a cluster have paths of at most 108 bytes.
const LONGEST: usize = 12;

/// A letter, then letters or digits. Without a hyphen, so that no name is the start of another in names made of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// A word that is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be the name of a cluster: use a small letter and up to {more} small letters or digits", more = LONGEST - 1)]
pub struct NotAName(String);

impl Name {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let well_formed = word.starts_with(|first: char| first.is_ascii_lowercase())
            && word.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
            && word.len() <= LONGEST;
        if well_formed { Ok(Self(word.to_owned())) } else { Err(NotAName(word.to_owned())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        assert_eq!("e2e".parse::<Name>().unwrap().as_str(), "e2e");
        for bad in ["", "2e", "a-b", "A", "../x", "abcdefghijklm"] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }
}
