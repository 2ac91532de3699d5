//! Label selectors: `app=web,tier in (a,b),!old`.

use crate::field::{FieldError, Path};
use crate::object::strings;
use serde_json::Value;
use std::fmt;

/// What labels an object must have. Empty: anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    pub(crate) key: String,
    pub(crate) operator: Operator,
    pub(crate) values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl LabelSelector {
    /// Reads the text of a query parameter.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Parser { tokens: tokens(text), position: 0 }.selector()
    }

    /// The selector of a `LabelSelector` object: `{matchLabels, matchExpressions}`. `None` if it is malformed.
    pub(crate) fn from_object(selector: &Value) -> Option<Self> {
        let mut requirements: Vec<Requirement> = strings(selector.get("matchLabels"))
            .map(|(key, value)| Requirement::new(key, Operator::In, vec![value.to_owned()]))
            .collect();
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let operator = match expression.get("operator")?.as_str()? {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                _ => return None,
            };
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            requirements.push(Requirement::new(expression.get("key")?.as_str()?, operator, values));
        }
        Some(Self { requirements })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether a set of labels, as JSON, fits.
    pub(crate) fn matches(&self, labels: Option<&Value>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.and_then(|labels| labels.get(&requirement.key)).and_then(Value::as_str);
            requirement.matches(value)
        })
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(formatter, "{separator}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::In if self.values.len() == 1 => write!(formatter, "{key}={values}"),
            Operator::NotIn if self.values.len() == 1 => write!(formatter, "{key}!={values}"),
            Operator::In => write!(formatter, "{key} in ({values})"),
            Operator::NotIn => write!(formatter, "{key} notin ({values})"),
            Operator::Exists => write!(formatter, "{key}"),
            Operator::DoesNotExist => write!(formatter, "!{key}"),
            Operator::GreaterThan => write!(formatter, "{key}>{values}"),
            Operator::LessThan => write!(formatter, "{key}<{values}"),
        }
    }
}

impl Requirement {
    fn new(key: &str, operator: Operator, values: Vec<String>) -> Self {
        Self { key: key.to_owned(), operator, values }
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|value| self.values.iter().any(|wanted| wanted == value));
        let compare = |test: fn(&i64, &i64) -> bool| {
            let number = value.and_then(|value| value.parse::<i64>().ok());
            let bound = self.values.first().and_then(|bound| bound.parse::<i64>().ok());
            number.zip(bound).is_some_and(|(number, bound)| test(&number, &bound))
        };
        match self.operator {
            Operator::In => listed(),
            Operator::NotIn => !listed(),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => compare(i64::gt),
            Operator::LessThan => compare(i64::lt),
        }
    }

    fn check(&self) -> Result<(), String> {
        let path = Path::new("key");
        if let Some(error) = crate::validate::format::qualified_name(&self.key).first() {
            return Err(FieldError::invalid(&path, self.key.as_str(), error.clone()).to_string());
        }
        for (index, value) in self.values.iter().enumerate() {
            if let Some(error) = crate::validate::format::label_value(value).first() {
                let path = Path::new("values").index(index).key(&self.key);
                return Err(FieldError::invalid(&path, value.as_str(), error.clone()).to_string());
            }
            let compares = matches!(self.operator, Operator::GreaterThan | Operator::LessThan);
            if compares && value.parse::<i64>().is_err() {
                let path = Path::new("values").index(index);
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                return Err(FieldError::invalid(&path, value.as_str(), detail).to_string());
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
        }
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let symbol =
            ["==", "!=", "=", "!", "(", ")", ",", ">", "<"].into_iter().find(|symbol| rest.starts_with(symbol));
        let length = match symbol {
            Some(symbol) => symbol.len(),
            None => rest.find(|c: char| c.is_whitespace() || "=!(),><".contains(c)).unwrap_or(rest.len()),
        };
        debug_assert!(length >= first.len_utf8().min(1));
        let (token, after) = rest.split_at(length);
        tokens.push(if symbol.is_some() { Token::Symbol(token) } else { Token::Word(token) });
        rest = after.trim_start();
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.position).copied()
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn found(token: Option<Token<'a>>) -> &'a str {
        token.map_or("", Token::text)
    }

    fn selector(mut self) -> Result<LabelSelector, String> {
        let mut requirements = Vec::new();
        while let Some(token) = self.peek() {
            match token {
                Token::Word(_) | Token::Symbol("!") => {
                    let requirement =
                        self.requirement().map_err(|error| format!("unable to parse requirement: {error}"))?;
                    requirements.push(requirement);
                    match self.next() {
                        None => break,
                        Some(Token::Symbol(",")) => match self.peek() {
                            Some(Token::Word(_) | Token::Symbol("!")) => {}
                            other => {
                                return Err(format!("found '{}', expected: identifier after ','", Self::found(other)));
                            }
                        },
                        other => {
                            return Err(format!("found '{}', expected: ',' or 'end of string'", Self::found(other)));
                        }
                    }
                }
                Token::Symbol(other) => {
                    return Err(format!("found '{other}', expected: !, identifier, or 'end of string'"));
                }
            }
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(LabelSelector { requirements })
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == Some(Token::Symbol("!"));
        if absent {
            self.position += 1;
        }
        let key = match self.next() {
            Some(Token::Word(key)) => key,
            other => return Err(format!("found '{}', expected: identifier", Self::found(other))),
        };
        let requirement =
            if absent { Requirement::new(key, Operator::DoesNotExist, Vec::new()) } else { self.comparison(key)? };
        requirement.check()?;
        Ok(requirement)
    }

    fn comparison(&mut self, key: &str) -> Result<Requirement, String> {
        let operator = match self.peek() {
            None | Some(Token::Symbol(",")) => return Ok(Requirement::new(key, Operator::Exists, Vec::new())),
            Some(Token::Symbol("=" | "==") | Token::Word("in")) => Operator::In,
            Some(Token::Symbol("!=") | Token::Word("notin")) => Operator::NotIn,
            Some(Token::Symbol(">")) => Operator::GreaterThan,
            Some(Token::Symbol("<")) => Operator::LessThan,
            other => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", Self::found(other))),
        };
        let values = match self.next() {
            Some(Token::Word(_)) => self.values()?,
            _ => vec![self.exact_value()?],
        };
        Ok(Requirement::new(key, operator, values))
    }

    fn exact_value(&mut self) -> Result<String, String> {
        match self.peek() {
            None | Some(Token::Symbol(",")) => Ok(String::new()),
            Some(Token::Word(value)) => {
                self.position += 1;
                Ok(value.to_owned())
            }
            other => Err(format!("found '{}', expected: identifier", Self::found(other))),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            Some(Token::Symbol("(")) => {}
            other => return Err(format!("found '{}' expected: '('", Self::found(other))),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Some(Token::Word(value)) => {
                    values.push(value.to_owned());
                    match self.next() {
                        Some(Token::Symbol(",")) => {}
                        Some(Token::Symbol(")")) => break,
                        other => return Err(format!("found '{}', expected: ',' or ')'", Self::found(other))),
                    }
                }
                Some(Token::Symbol(",")) => values.push(String::new()),
                Some(Token::Symbol(")")) => {
                    values.push(String::new());
                    break;
                }
                other => return Err(format!("found '{}', expected: ',', ')' or identifier", Self::found(other))),
            }
        }
        values.sort();
        values.dedup();
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_match_as_in_kubernetes() {
        let labels = json!({"app": "web", "tier": "front", "n": "5"});
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=back", true),
            ("app in (web, db)", true),
            ("app notin (web)", false),
            ("missing notin (a)", true),
            ("missing!=a", true),
            ("app", true),
            ("!app", false),
            ("!missing", true),
            ("n>4,n<6", true),
            ("n>5", false),
            ("app=", false),
            ("missing=", false),
        ] {
            assert_eq!(LabelSelector::parse(selector).unwrap().matches(Some(&labels)), expected, "{selector}");
        }
    }

    #[test]
    fn wrong_selectors_are_refused_in_the_servers_words() {
        for (selector, refusal) in [
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a===b", "unable to parse requirement: found '=', expected: identifier"),
            ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
            ("a=b,", "found '', expected: identifier after ','"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            (",", "found ',', expected: !, identifier, or 'end of string'"),
            (
                "n>x",
                "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
        ] {
            assert_eq!(LabelSelector::parse(selector).unwrap_err(), refusal, "{selector}");
        }
    }

    #[test]
    fn selector_objects_mean_the_same() {
        let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]});
        let selector = LabelSelector::from_object(&selector).unwrap();
        assert!(selector.matches(Some(&json!({"a": "b", "c": ""}))));
        assert!(!selector.matches(Some(&json!({"a": "b"}))));
        assert!(!selector.matches(None));
        assert!(LabelSelector::from_object(&json!({"matchExpressions": [{"key": "c", "operator": "?"}]})).is_none());
    }
}
