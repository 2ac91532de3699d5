//! What versions a dependency takes: `1.x`, `^1.5.0`, `>=1.2 <2`, `1.2 - 1.4 || 2.x`, with the rules that Helm has for
//! them (Masterminds semver v3.3, `constraints.go`).

use super::{Identifier, Version, parse_number, parse_pre_release};
use std::fmt;
use std::str::FromStr;

/// What versions a dependency takes.
#[derive(Clone, Debug)]
pub struct Constraint {
    text: String,
    /// One of these has to hold, and of it all.
    alternatives: Vec<Vec<Comparison>>,
}

/// A text that is no constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no constraint on versions: 1.x, ^1.5.0 and `>=1.2 <2` are")]
pub struct NoConstraint(String);

/// One condition.
#[derive(Clone, Debug)]
struct Comparison {
    operator: Operator,
    /// The numbers, the missing ones being zero.
    numbers: [u64; 3],
    /// How many of them are given; the others may be anything.
    given: usize,
    pre_release: Vec<Identifier>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    /// The same minor version, as far as it is given.
    Tilde,
    /// Nothing left of the first number that is not zero changes.
    Caret,
}

/// The longer ones first.
const OPERATORS: [(&str, Operator); 12] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    ("=>", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=<", Operator::LessOrEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
    ("", Operator::Equal),
];

impl Constraint {
    /// Whether it takes a version.
    pub fn takes(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|all| all.iter().all(|comparison| comparison.holds(version)))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The constraint that takes a new version instead: the same form, with other numbers. Nothing if its form is one
    /// that only a person can change.
    pub(crate) fn follow(&self, new: &Version) -> Option<String> {
        let [all] = self.alternatives.as_slice() else { return None };
        let [comparison] = all.as_slice() else { return None };
        if !matches!(comparison.operator, Operator::Equal | Operator::Tilde | Operator::Caret) {
            return None;
        }
        let start = self.text.find(|character: char| character.is_ascii_digit())?;
        let (before, written) = self.text.split_at(start);
        let before = before.strip_suffix('v').unwrap_or(before);
        let parts: Vec<&str> = written.split('.').collect();
        if comparison.given == 3 {
            let prefix = if before.is_empty() { "" } else { before };
            let bare = new.as_str().trim_start_matches('v');
            let v = if self.text[..start].ends_with('v') { "v" } else { "" };
            return Some(format!("{prefix}{v}{bare}"));
        }
        // `1.5.x` and `1.5` keep what they have instead of numbers.
        let numbers = new.numbers.iter().map(ToString::to_string);
        let followed: Vec<String> = parts
            .iter()
            .zip(numbers)
            .enumerate()
            .map(|(index, (part, number))| if index < comparison.given { number } else { (*part).to_owned() })
            .collect();
        Some(format!("{}{}", &self.text[..start], followed.join(".")))
    }
}

impl FromStr for Constraint {
    type Err = NoConstraint;

    fn from_str(text: &str) -> Result<Self, NoConstraint> {
        let refuse = || NoConstraint(text.to_owned());
        if text.len() > 1024 {
            return Err(refuse());
        }
        let alternatives = text.split("||").map(parse_all).collect::<Option<Vec<_>>>().ok_or_else(refuse)?;
        Ok(Self { text: text.to_owned(), alternatives })
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Conditions with commas or spaces between them. A space may follow an operator.
fn parse_all(text: &str) -> Option<Vec<Comparison>> {
    let mut comparisons = Vec::new();
    let mut words = text.split([',', ' ', '\t']).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let is_operator = OPERATORS.iter().any(|(operator, _)| !operator.is_empty() && *operator == word);
        let whole = if is_operator { format!("{word}{}", words.next()?) } else { word.to_owned() };
        if words.next_if_eq(&"-").is_some() {
            // From one to the other, both included.
            comparisons.push(parse_one(&format!(">={whole}"))?);
            comparisons.push(parse_one(&format!("<={}", words.next()?))?);
        } else {
            comparisons.push(parse_one(&whole)?);
        }
    }
    (!comparisons.is_empty()).then_some(comparisons)
}

fn parse_one(text: &str) -> Option<Comparison> {
    let (prefix, operator) = *OPERATORS.iter().find(|(operator, _)| text.starts_with(operator))?;
    let rest = &text[prefix.len()..];
    let rest = rest.strip_prefix('v').unwrap_or(rest);
    let rest = rest.split_once('+').map_or(rest, |(rest, _build)| rest);
    let (dotted, pre_release) = rest.split_once('-').map_or((rest, None), |(dotted, pre)| (dotted, Some(pre)));
    let mut numbers = [0; 3];
    let mut given = 0;
    let mut is_open = false;
    for (index, part) in dotted.split('.').enumerate() {
        let number = numbers.get_mut(index)?;
        if matches!(part, "x" | "X" | "*") {
            is_open = true;
        } else if !is_open {
            *number = parse_number(part)?;
            given = index + 1;
        } else {
            parse_number(part)?;
        }
    }
    Some(Comparison { operator, numbers, given, pre_release: parse_pre_release(pre_release)? })
}

impl Comparison {
    fn holds(&self, version: &Version) -> bool {
        // Who does not ask for pre-releases gets none.
        if !version.pre_release.is_empty() && self.pre_release.is_empty() {
            return false;
        }
        let own = Version::from_parts(self.numbers, self.pre_release.clone());
        let agrees = |count: usize| version.numbers[..count] == self.numbers[..count];
        match self.operator {
            Operator::Equal if self.given == 3 => *version == own,
            Operator::NotEqual if self.given == 3 => *version != own,
            Operator::Greater if self.given == 3 => *version > own,
            Operator::LessOrEqual if self.given == 3 => *version <= own,
            Operator::NotEqual => !agrees(self.given),
            Operator::Greater => version.numbers[..self.given] > self.numbers[..self.given],
            Operator::LessOrEqual => version.numbers[..self.given] <= self.numbers[..self.given],
            Operator::Less => *version < own,
            Operator::GreaterOrEqual => *version >= own,
            Operator::Equal | Operator::Tilde => {
                // `~0.0.0` means no more than `>=0.0.0`.
                let takes_all = self.operator == Operator::Tilde && self.given == 3 && self.numbers == [0; 3];
                *version >= own && (takes_all || agrees(self.given.min(2)))
            }
            Operator::Caret => {
                let kept = self.numbers[..self.given].iter().position(|number| *number > 0);
                *version >= own && agrees(kept.map_or(self.given, |index| index + 1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(constraint: &str, version: &str) -> bool {
        let constraint: Constraint = constraint.parse().unwrap_or_else(|error| panic!("{error}"));
        constraint.takes(&version.parse().unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn constraints_take_what_they_take_in_helm() {
        for (constraint, taken, refused) in [
            ("1.5.1", &["1.5.1", "v1.5.1"][..], &["1.5.2", "1.5.1-rc.1"][..]),
            ("=1.5", &["1.5.0", "1.5.9"], &["1.6.0", "1.5.1-0"]),
            ("1.X", &["1.0.0", "1.99.3"], &["2.0.0", "0.9.0"]),
            ("*", &["0.0.1", "7.1.2"], &["1.0.0-rc.1"]),
            ("^1.2.3", &["1.2.3", "1.9.0"], &["1.2.2", "2.0.0"]),
            ("^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0", "1.0.0"]),
            ("^0.0.3", &["0.0.3"], &["0.0.4", "0.1.0"]),
            ("^0.0", &["0.0.0", "0.0.9"], &["0.1.0"]),
            ("^0", &["0.0.0", "0.9.9"], &["1.0.0"]),
            ("~1.2.3", &["1.2.3", "1.2.9"], &["1.3.0", "1.2.2"]),
            ("~1", &["1.0.0", "1.9.0"], &["2.0.0"]),
            ("~0.0.0", &["0.0.0", "3.0.0"], &[]),
            (">= 1.2.3, < 2", &["1.2.3", "1.9.9"], &["2.0.0", "1.2.2"]),
            (">=1.19-0", &["1.19.0-rc.1", "1.20.0", "1.20.0-alpha.1"], &["1.18.0"]),
            (">1.2", &["1.3.0", "2.0.0"], &["1.2.9"]),
            ("<=1.2", &["1.2.9", "0.1.0"], &["1.3.0"]),
            ("!=1.2", &["1.3.0"], &["1.2.7"]),
            ("!=1.2.3", &["1.2.4"], &["1.2.3"]),
            ("1.2 - 1.4.5", &["1.2.0", "1.4.5"], &["1.4.6", "1.1.9"]),
            ("<1 || >=2 <3", &["0.5.0", "2.4.0"], &["1.0.0", "3.0.0"]),
        ] {
            for version in taken {
                assert!(takes(constraint, version), "{constraint} takes {version}");
            }
            for version in refused {
                assert!(!takes(constraint, version), "{constraint} does not take {version}");
            }
        }
    }

    #[test]
    fn what_is_no_constraint_is_refused() {
        for text in ["", "||", "a", "1.2.3.4", ">", "1 -", "^^1", "1.2.3 || "] {
            assert!(text.parse::<Constraint>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_constraint_follows_a_version_in_its_own_form() {
        for (old, followed) in [
            ("1.5.1", Some("2.6.7")),
            ("v1.5.1", Some("v2.6.7")),
            ("^1.5.1", Some("^2.6.7")),
            ("~1.5", Some("~2.6")),
            ("1.5.x", Some("2.6.x")),
            ("1.X", Some("2.X")),
            ("=1.5.1", Some("=2.6.7")),
            (">=1 <2", None),
            ("<2", None),
            ("*", None),
        ] {
            let constraint: Constraint = old.parse().unwrap();
            assert_eq!(constraint.follow(&"2.6.7".parse().unwrap()).as_deref(), followed, "{old}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(constraint in "[0-9xX*^~<>=!v.,| +-]{0,20}", version in "[0-9a-z.+-]{0,12}") {
            if let (Ok(constraint), Ok(version)) = (constraint.parse::<Constraint>(), version.parse::<Version>()) {
                let _ = constraint.takes(&version);
                let _ = constraint.follow(&version);
            }
        }
    }
}
