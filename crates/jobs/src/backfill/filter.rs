//! Which objects are wanted by name, and which of their labels and annotations.

use regex::{Regex, RegexBuilder};
use serde::{Serialize, Serializer};

/// What goes out of what there is.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Filters {
    /// Names of objects.
    pub names: Names,
    /// Labels.
    pub labels: Patterns,
    /// Annotations.
    pub annotations: Patterns,
}

/// Names that are wanted, and names that are not.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Names {
    /// One of these has to match; all names do if there are none.
    pub only: Vec<Expression>,
    /// None of these may match.
    pub without: Vec<Expression>,
}

/// Labels or annotations that are wanted, and those that are not.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Patterns {
    /// One of these has to match; everything does if there are none.
    pub only: Vec<Pattern>,
    /// None of these may match.
    pub without: Vec<Pattern>,
}

/// A regular expression over keys, and perhaps one over values: `KEY` or `KEY=VALUE`.
#[derive(Clone, Debug, Serialize)]
pub struct Pattern {
    key: Expression,
    value: Option<Expression>,
}

/// A regular expression. It matches anywhere; `^…$` is for the whole.
#[derive(Clone, Debug)]
pub struct Expression(Regex);

/// A text that is no regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no regular expression: {problem}")]
pub struct NoExpression {
    text: String,
    problem: String,
}

/// The most memory that a compiled expression may take.
const LARGEST: usize = 1 << 20;

impl std::str::FromStr for Expression {
    type Err = NoExpression;

    fn from_str(text: &str) -> Result<Self, NoExpression> {
        let built = RegexBuilder::new(text).size_limit(LARGEST).build();
        built.map(Self).map_err(|error| {
            // The last line says what is wrong, those before it where.
            let problem = error.to_string();
            let problem = problem.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            NoExpression { text: text.to_owned(), problem }
        })
    }
}

impl std::str::FromStr for Pattern {
    type Err = NoExpression;

    fn from_str(text: &str) -> Result<Self, NoExpression> {
        match text.split_once('=') {
            Some((key, value)) => Ok(Self { key: key.parse()?, value: Some(value.parse()?) }),
            None => Ok(Self { key: text.parse()?, value: None }),
        }
    }
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl Pattern {
    fn matches(&self, key: &str, value: &str) -> bool {
        self.key.0.is_match(key) && self.value.as_ref().is_none_or(|expression| expression.0.is_match(value))
    }
}

impl Patterns {
    pub(crate) fn is_empty(&self) -> bool {
        self.only.is_empty() && self.without.is_empty()
    }

    pub(crate) fn lets_through(&self, key: &str, value: &str) -> bool {
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(key, value));
        (self.only.is_empty() || any(&self.only)) && !any(&self.without)
    }
}

impl Names {
    pub(crate) fn is_empty(&self) -> bool {
        self.only.is_empty() && self.without.is_empty()
    }

    pub(crate) fn lets_through(&self, name: &str) -> bool {
        let any = |expressions: &[Expression]| expressions.iter().any(|expression| expression.0.is_match(name));
        (self.only.is_empty() || any(&self.only)) && !any(&self.without)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(only: &[&str], without: &[&str]) -> Patterns {
        let all = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Patterns { only: all(only), without: all(without) }
    }

    #[test]
    fn keys_and_values_decide() {
        for (only, without, key, value, expected) in [
            (&[][..], &[][..], "app", "web", true),
            (&["^app$"], &[], "app", "web", true),
            (&["^app$"], &[], "apps", "web", false),
            (&["^app$", "tier"], &[], "my-tier", "web", true),
            (&["app=^w"], &[], "app", "web", true),
            (&["app=^w"], &[], "app", "db", false),
            (&[], &["app"], "app", "web", false),
            (&["app"], &["=^secret"], "app", "secret-thing", false),
            (&["app"], &["=^secret"], "app", "thing", true),
        ] {
            let patterns = patterns(only, without);
            assert_eq!(patterns.lets_through(key, value), expected, "{only:?} {without:?} {key}={value}");
        }
    }

    #[test]
    fn what_is_no_expression_is_told() {
        assert_eq!(
            "a(".parse::<Expression>().unwrap_err().to_string(),
            "`a(` is no regular expression: unclosed group"
        );
        assert!("a{999999999}".parse::<Expression>().is_err());
        assert!("ok=(".parse::<Pattern>().is_err());
    }
}
