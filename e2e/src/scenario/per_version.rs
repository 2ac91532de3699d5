//! A value that may differ from version to version of Helm.

use crate::version::{HelmVersion, Versions};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use std::fmt;

/// A text for every version, or texts for some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PerVersion {
    Every(String),
    Each(Vec<(Versions, String)>),
}

impl PerVersion {
    /// The text for this version, if there is one.
    pub(crate) fn get(&self, version: HelmVersion) -> Option<&str> {
        match self {
            Self::Every(text) => Some(text),
            Self::Each(texts) => {
                texts.iter().find(|(versions, _)| versions.contains(version)).map(|(_, text)| text.as_str())
            }
        }
    }
}

/// A scalar as it is written: numbers keep their text.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

struct PerVersionVisitor;

impl<'de> Visitor<'de> for PerVersionVisitor {
    type Value = PerVersion;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or texts by version of Helm")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PerVersion, E> {
        Ok(PerVersion::Every(text.to_owned()))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<PerVersion, E> {
        Ok(PerVersion::Every(number.to_string()))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<PerVersion, E> {
        Ok(PerVersion::Every(number.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PerVersion, A::Error> {
        let mut texts: Vec<(Versions, String)> = Vec::new();
        while let Some(Scalar(key)) = map.next_key()? {
            let versions: Versions = key.parse().map_err(A::Error::custom)?;
            if texts.iter().any(|(others, _)| others.overlaps(&versions)) {
                return Err(A::Error::custom(format_args!("`{key}` repeats a version")));
            }
            let Scalar(text) = map.next_value()?;
            texts.push((versions, text));
        }
        Ok(PerVersion::Each(texts))
    }
}

impl<'de> Deserialize<'de> for PerVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PerVersionVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(yaml: &str) -> Result<PerVersion, serde_saphyr::Error> {
        serde_saphyr::from_str(yaml)
    }

    #[test]
    fn a_plain_value_is_for_every_version() {
        assert_eq!(parse("1").unwrap().get(HelmVersion::V3_22_0), Some("1"));
        assert_eq!(parse("1 deployed").unwrap().get(HelmVersion::V4_3_1), Some("1 deployed"));
    }

    #[test]
    fn a_map_gives_each_version_its_own() {
        let value = parse("{v3: 1, v4: '0'}").unwrap();
        assert_eq!(value.get(HelmVersion::V3_17_3), Some("1"));
        assert_eq!(value.get(HelmVersion::V4_3_1), Some("0"));
        assert_eq!(parse("{3.22.0: a}").unwrap().get(HelmVersion::V4_3_1), None);
    }

    #[test]
    fn a_version_is_given_once() {
        assert!(parse("{v3: 1, 3.17.3: 2}").unwrap_err().to_string().contains("repeats"));
        assert!(parse("{v9: 1}").unwrap_err().to_string().contains("v9"));
    }
}
