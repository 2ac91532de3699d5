//! Versions of charts, as Helm reads them: semantic versioning, with a `v` and with numbers left out where people do so.

mod constraint;

pub use constraint::{Constraint, NoConstraint};

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A version of a chart.
///
/// Two versions that differ only in how they are written, or in what follows a `+`, are the same version.
#[derive(Clone, Debug)]
pub struct Version {
    text: String,
    pub(crate) numbers: [u64; 3],
    pub(crate) pre_release: Vec<Identifier>,
}

/// A part of a pre-release.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Identifier {
    /// Numbers come before texts.
    Number(u64),
    Text(String),
}

/// A text that is no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no version: 1.4.0 is one, and 1.4.0-rc.1")]
pub struct NoVersion(String);

/// Which number of a version goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bump {
    /// 1.4.2 becomes 2.0.0.
    Major,
    /// 1.4.2 becomes 1.5.0.
    Minor,
    /// 1.4.2 becomes 1.4.3; 1.4.3-rc.1 becomes 1.4.3.
    Patch,
}

impl Version {
    fn from_parts(numbers: [u64; 3], pre_release: Vec<Identifier>) -> Self {
        let [major, minor, patch] = numbers;
        Self { text: format!("{major}.{minor}.{patch}"), numbers, pre_release }
    }

    /// The next version.
    #[must_use]
    pub fn bump(&self, bump: Bump) -> Self {
        let [major, minor, patch] = self.numbers;
        let is_pre_release = !self.pre_release.is_empty();
        let numbers = match bump {
            // A pre-release is followed by what it was before.
            Bump::Major if is_pre_release && minor == 0 && patch == 0 => [major, 0, 0],
            Bump::Minor if is_pre_release && patch == 0 => [major, minor, 0],
            Bump::Patch if is_pre_release => [major, minor, patch],
            Bump::Major => [major.saturating_add(1), 0, 0],
            Bump::Minor => [major, minor.saturating_add(1), 0],
            Bump::Patch => [major, minor, patch.saturating_add(1)],
        };
        let mut next = Self::from_parts(numbers, Vec::new());
        if self.text.starts_with('v') {
            next.text.insert(0, 'v');
        }
        next
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Version {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let (numbers, pre_release) = parse(text).ok_or_else(|| NoVersion(text.to_owned()))?;
        Ok(Self { text: text.to_owned(), numbers, pre_release })
    }
}

fn parse(text: &str) -> Option<([u64; 3], Vec<Identifier>)> {
    // No version is longer, and Helm takes none that is.
    if text.len() > 256 {
        return None;
    }
    let bare = text.strip_prefix('v').unwrap_or(text);
    let (bare, build) = bare.split_once('+').map_or((bare, None), |(bare, build)| (bare, Some(build)));
    if build.is_some_and(|build| !build.split('.').all(is_identifier)) {
        return None;
    }
    let (dotted, pre_release) = bare.split_once('-').map_or((bare, None), |(dotted, pre)| (dotted, Some(pre)));
    let mut numbers = [0; 3];
    for (index, part) in dotted.split('.').enumerate() {
        *numbers.get_mut(index)? = parse_number(part)?;
    }
    Some((numbers, parse_pre_release(pre_release)?))
}

/// A number without a sign.
fn parse_number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn parse_pre_release(text: Option<&str>) -> Option<Vec<Identifier>> {
    let Some(text) = text else { return Some(Vec::new()) };
    let part = |part: &str| {
        let has_zero_in_front = part.len() > 1 && part.starts_with('0');
        match parse_number(part) {
            Some(_) if has_zero_in_front => None,
            Some(number) => Some(Identifier::Number(number)),
            None => is_identifier(part).then(|| Identifier::Text(part.to_owned())),
        }
    };
    text.split('.').map(part).collect()
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            // What is released comes after what was tried before.
            let released = self.pre_release.is_empty().cmp(&other.pre_release.is_empty());
            released.then_with(|| self.pre_release.cmp(&other.pre_release))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn versions_go_up() {
        for (old, bump, new) in [
            ("1.5.1", Bump::Minor, "1.6.0"),
            ("1.5.1", Bump::Patch, "1.5.2"),
            ("1.5.1", Bump::Major, "2.0.0"),
            ("v0.10.1", Bump::Minor, "v0.11.0"),
            ("1.5.0-rc.1", Bump::Minor, "1.5.0"),
            ("1.5.1-rc.1", Bump::Minor, "1.6.0"),
            ("2.0.0-0", Bump::Major, "2.0.0"),
            ("1.5.1-rc.1+7", Bump::Patch, "1.5.1"),
            ("3.1", Bump::Patch, "3.1.1"),
        ] {
            assert_eq!(version(old).bump(bump).as_str(), new, "{old} {bump:?}");
        }
    }

    #[test]
    fn versions_are_ordered_as_semantic_versioning_orders_them() {
        let ordered =
            ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0", "1.10.0"];
        for pair in ordered.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        assert_eq!(version("v1.2"), version("1.2.0+build.7"));
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in [
            "",
            "x",
            "1.2.3.4",
            "1..2",
            "+1.2.3",
            "1.2.-3",
            "1.2.3-",
            "1.2.3-01",
            "1.2.3+",
            "18446744073709551616.0.0",
            "1.x",
        ] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }
}
