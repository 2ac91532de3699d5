//! When a certificate is renewed, as people write it: `1/3` of its life, or `30d` before its end.

use super::period::Period;
use jobwright_jobs::init_cert::RenewBefore;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::borrow::Cow;
use std::str::FromStr;

/// When a certificate is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Renewal(pub RenewBefore);

/// A text that says no time to renew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` says no time to renew: 1/3 of its life and 30d before its end do")]
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
        json_schema!({
            "type": "string",
            "description": "When a certificate is renewed: 1/3 of its life, or 30d before its end",
            "pattern": r"^([0-9]+/[0-9]+|([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$",
            "minLength": 2,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_part_of_a_life_or_a_time_before_the_end() {
        let read = |text: &str| text.parse::<Renewal>().ok().map(|renewal| renewal.0);
        assert_eq!(read("1/3"), Some(RenewBefore::Fraction { numerator: 1, denominator: 3 }));
        assert_eq!(read("30d"), Some(RenewBefore::Left(Duration::from_hours(720))));
        for text in ["", "0/3", "3/3", "1/0", "a/b", "-1/3", "third"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
