//! The versions of Helm whose behaviour is written down, and sets of them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A version of Helm that scenarios are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HelmVersion {
    /// 3.17.3
    V3_17_3,
    /// 3.22.0
    V3_22_0,
    /// 4.3.1
    V4_3_1,
}

impl HelmVersion {
    /// Every version, oldest first.
    pub const ALL: [Self; 3] = [Self::V3_17_3, Self::V3_22_0, Self::V4_3_1];

    /// The number, as in `3.17.3`.
    pub fn number(self) -> &'static str {
        match self {
            Self::V3_17_3 => "3.17.3",
            Self::V3_22_0 => "3.22.0",
            Self::V4_3_1 => "4.3.1",
        }
    }

    /// The apply method that this version records unless told otherwise; Helm 3 records none.
    pub fn usual_method(self) -> &'static str {
        match self {
            Self::V3_17_3 | Self::V3_22_0 => "",
            Self::V4_3_1 => "ssa",
        }
    }
}

impl fmt::Display for HelmVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.number())
    }
}

/// A word that names no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no version of Helm: expected 3.17.3, 3.22.0, 4.3.1, v3, v4 or all")]
pub struct UnknownVersion(String);

impl FromStr for HelmVersion {
    type Err = UnknownVersion;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|version| version.number() == word).ok_or_else(|| UnknownVersion(word.to_owned()))
    }
}

/// Versions chosen by words with commas between: `3.17.3, v4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions(BTreeSet<HelmVersion>);

impl Versions {
    /// Every version.
    pub fn all() -> Self {
        Self(HelmVersion::ALL.into())
    }

    /// Whether this version is chosen.
    pub fn contains(&self, version: HelmVersion) -> bool {
        self.0.contains(&version)
    }

    /// The chosen versions, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = HelmVersion> + '_ {
        self.0.iter().copied()
    }

    /// Whether some version is in both.
    pub fn overlaps(&self, other: &Self) -> bool {
        !self.0.is_disjoint(&other.0)
    }
}

impl FromStr for Versions {
    type Err = UnknownVersion;

    fn from_str(words: &str) -> Result<Self, Self::Err> {
        let mut chosen = BTreeSet::new();
        for word in words.split(',').map(str::trim) {
            match word {
                "all" => chosen.extend(HelmVersion::ALL),
                "v3" => chosen.extend([HelmVersion::V3_17_3, HelmVersion::V3_22_0]),
                "v4" => chosen.extend([HelmVersion::V4_3_1]),
                _ => chosen.extend([word.parse::<HelmVersion>()?]),
            }
        }
        Ok(Self(chosen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_numbers_can_be_mixed() {
        let versions: Versions = "3.17.3, v4".parse().unwrap();
        assert_eq!(versions.iter().collect::<Vec<_>>(), [HelmVersion::V3_17_3, HelmVersion::V4_3_1]);
    }

    #[test]
    fn an_unknown_version_is_named() {
        let error = "v5".parse::<Versions>().unwrap_err();
        assert!(error.to_string().contains("`v5`"), "{error}");
    }
}
