//! When a certificate is renewed: when `1/3` of its validity is left, or `30d` before it expires.

use super::format::Format;
use super::period::Period;
use jobwright_jobs::init_cert::RenewBefore;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use std::borrow::Cow;
use std::str::FromStr;

/// When a certificate is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Renewal(pub RenewBefore);

/// A string that is neither a fraction nor a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid renewal `{0}`: write a fraction of its validity, as in 1/3, or a duration, as in 30d")]
pub struct NoRenewal(String);

impl FromStr for Renewal {
    type Err = NoRenewal;

    fn from_str(text: &str) -> Result<Self, NoRenewal> {
        let refuse = || NoRenewal(text.to_owned());
        let Some((numerator, denominator)) = text.split_once('/') else {
            let period: Period = text.parse().map_err(|_| refuse())?;
            return Ok(Self(RenewBefore::Left(period.duration())));
        };
        let part = |text: &str| text.parse::<u32>().map_err(|_| refuse());
        let (numerator, denominator) = (part(numerator)?, part(denominator)?);
        if numerator == 0 || numerator >= denominator {
            return Err(refuse());
        }
        Ok(Self(RenewBefore::Fraction { numerator, denominator }))
    }
}

impl TryFrom<String> for Renewal {
    type Error = NoRenewal;

    fn try_from(text: String) -> Result<Self, NoRenewal> {
        text.parse()
    }
}

impl JsonSchema for Renewal {
    fn schema_name() -> Cow<'static, str> {
        "Renewal".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = Format::Renewal.schema();
        let about = "When a certificate is renewed: when 1/3 of its validity is left, or 30d before it expires";
        schema.insert("description".to_owned(), about.into());
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_fraction_or_a_duration_is_read() {
        let read = |text: &str| text.parse::<Renewal>().ok().map(|renewal| renewal.0);
        assert_eq!(read("1/3"), Some(RenewBefore::Fraction { numerator: 1, denominator: 3 }));
        assert_eq!(read("30d"), Some(RenewBefore::Left(Duration::from_hours(720))));
        for text in ["", "0/3", "3/3", "1/0", "a/b", "-1/3", "third"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
