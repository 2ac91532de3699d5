//! Strings with a format: the marker that the schema carries, and the parser that decides.

use super::period::Period;
use super::renewal::Renewal;
use jobwright_engine::{JsonPath, Version};
use jobwright_jobs::Quantity;
use jobwright_jobs::backfill::{Address, CheckpointPlace, Expression, Pattern, Wait};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

/// A format of strings. The schema names it in `format`; editors check its `pattern`, we parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Duration,
    Renewal,
    Version,
    Name,
    Quantity,
    JsonPath,
    Sink,
    Expression,
    Pattern,
    Checkpoint,
    Wait,
    Header,
}

use Format::{Checkpoint, Duration, Header, Name, Sink};

impl Format {
    const ALL: [Self; 12] = [
        Duration,
        Self::Renewal,
        Self::Version,
        Name,
        Self::Quantity,
        Self::JsonPath,
        Sink,
        Self::Expression,
        Self::Pattern,
        Checkpoint,
        Self::Wait,
        Header,
    ];

    /// The marker. JSON Schema has a `duration` of its own, so all of ours have a prefix.
    fn marker(self) -> &'static str {
        match self {
            Duration => "jobwright.io/duration",
            Self::Renewal => "jobwright.io/renewal",
            Self::Version => "jobwright.io/version",
            Name => "jobwright.io/name",
            Self::Quantity => "jobwright.io/quantity",
            Self::JsonPath => "jobwright.io/json-path",
            Sink => "jobwright.io/sink",
            Self::Expression => "jobwright.io/regular-expression",
            Self::Pattern => "jobwright.io/key-value-pattern",
            Checkpoint => "jobwright.io/checkpoint",
            Self::Wait => "jobwright.io/wait",
            Header => "jobwright.io/header",
        }
    }

    /// The format of the strings that a schema describes.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let marker = schema["format"].as_str()?;
        Self::ALL.into_iter().find(|format| format.marker() == marker)
    }

    /// What a value of another type should have been.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Duration => "a duration such as 90s or 10m",
            Self::Renewal => "a fraction such as 1/3 or a duration such as 30d",
            Self::Quantity => "a quantity such as 30Gi",
            _ => "a string",
        }
    }

    /// Why a string does not have this format.
    pub(super) fn problem(self, text: &str) -> Option<String> {
        fn fails<T: FromStr<Err: Display>>(text: &str) -> Option<String> {
            text.parse::<T>().err().map(|error| error.to_string())
        }
        match self {
            Duration => fails::<Period>(text),
            Self::Renewal => fails::<Renewal>(text),
            Self::Version => fails::<Version>(text),
            Name => (!jobwright_engine::is_identifier(text)).then(|| {
                format!("invalid name `{text}`: use lower-case letters, digits and dashes, at most 63 characters")
            }),
            Self::Quantity => fails::<Quantity>(text),
            Self::JsonPath => fails::<JsonPath>(text),
            Sink => fails::<PlanSink>(text),
            Self::Expression => fails::<Expression>(text),
            Self::Pattern => fails::<Pattern>(text),
            Checkpoint => fails::<CheckpointPlace>(text),
            Self::Wait => fails::<Wait>(text),
            Header => fails::<http::HeaderName>(text).map(|_| format!("invalid header name `{text}`")),
        }
    }

    /// What editors check of it; none if a regular expression says too little.
    fn pattern(self) -> Option<&'static str> {
        match self {
            Duration => Some(r"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$"),
            Self::Renewal => Some(r"^([0-9]+/[0-9]+|([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$"),
            Self::Version => Some(r"^v?[0-9]+(\.[0-9]+)*(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$"),
            Name => Some("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
            _ => None,
        }
    }

    /// The schema of strings of this format.
    pub(super) fn schema(self) -> Schema {
        let mut schema = json!({"type": "string", "format": self.marker()});
        if let Some(pattern) = self.pattern() {
            schema["pattern"] = json!(pattern);
        }
        match self {
            Duration | Self::Renewal => schema["minLength"] = json!(2),
            Name => schema["maxLength"] = json!(63),
            _ => {}
        }
        schema.try_into().unwrap_or_default()
    }
}

/// Types that a plan writes as strings.
pub(super) trait Formatted {
    const FORMAT: Format;
}

macro_rules! formatted {
    ($($type:ty => $format:ident),* $(,)?) => {
        $(impl Formatted for $type {
            const FORMAT: Format = Format::$format;
        })*
    };
}

/// The name of a release, a component or a job.
pub(super) struct Identifier;

formatted! {
    Identifier => Name,
    Version => Version,
    Quantity => Quantity,
    JsonPath => JsonPath,
    PlanSink => Sink,
    Expression => Expression,
    Pattern => Pattern,
    CheckpointPlace => Checkpoint,
    Wait => Wait,
    http::HeaderName => Header,
}

/// Stands for a type in the schema.
pub(super) struct Written<T>(PhantomData<T>);

impl<T: Formatted> JsonSchema for Written<T> {
    fn schema_name() -> Cow<'static, str> {
        T::FORMAT.marker().into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        T::FORMAT.schema()
    }
}

/// Where a plan may send a backfill: everywhere but to stdout, where the deploy reports.
#[derive(Clone, Debug)]
pub(crate) struct PlanSink(pub(crate) Address);

impl FromStr for PlanSink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<Address>() {
            Ok(Address::Stdout) => Err("a plan cannot send to stdout: the deploy reports there".to_owned()),
            Ok(address) => Ok(Self(address)),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Reads a string and parses it.
pub(super) fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(deserializer: D) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// Reads a string that may be absent and parses it.
pub(super) fn parsed_option<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
}

/// Reads strings and parses each.
pub(super) fn parsed_list<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_names_the_format_that_decides() {
        for format in Format::ALL {
            assert_eq!(Format::of(format.schema().as_value()), Some(format));
        }
        assert_eq!(Format::of(&json!({"type": "string", "pattern": "^([0-9]+d)?$"})), None);
    }

    #[test]
    fn each_format_takes_its_own_and_refuses_others() {
        let cases = [
            (Duration, "10m", "1/3"),
            (Format::Renewal, "1/3", "third"),
            (Format::Renewal, "30d", "30"),
            (Format::Version, "1.4.0", "latest"),
            (Name, "shop", "Shop"),
            (Format::Quantity, "30Gi", "large"),
            (Format::JsonPath, "{.data.version}", "data"),
            (Sink, "file:out", "stdout"),
            (Format::Expression, "^a$", "("),
            (Format::Pattern, "a=b", "a=["),
            (Checkpoint, "configmap:x", "secret:x"),
            (Format::Wait, "tcp:db:5432", "tcp:db"),
            (Header, "x-key", "a b"),
        ];
        for (format, good, bad) in cases {
            assert_eq!(format.problem(good), None, "{format:?} {good}");
            assert!(format.problem(bad).is_some(), "{format:?} {bad}");
        }
    }
}
