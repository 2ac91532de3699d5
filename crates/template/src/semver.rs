//! Versions and constraints as Masterminds/semver v3.3.0 reads them, which Sprig and Helm use.

use regex::Regex;
use std::cmp::Ordering;
use std::fmt;
use std::sync::LazyLock;

/// A version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
    pub(crate) pre_release: String,
    pub(crate) metadata: String,
    pub(crate) original: String,
}

const VERSION: &str = concat!(
    r"v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?",
    r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?",
    r"(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?"
);
const WILDCARD: &str = concat!(
    r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?",
    r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?",
    r"(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?"
);
const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";

/// The patterns, which are known to be good.
struct Patterns {
    version: Option<Regex>,
    constraint: Option<Regex>,
    range: Option<Regex>,
    find: Option<Regex>,
    valid: Option<Regex>,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    Patterns {
    version: Regex::new(&format!("^{VERSION}$")).ok(),
    constraint: Regex::new(&format!(r"^[\t\n\f\r ]*({OPERATORS})[\t\n\f\r ]*({WILDCARD})[\t\n\f\r ]*$")).ok(),
    range: Regex::new(&format!(r"[\t\n\f\r ]*({WILDCARD})[\t\n\f\r ]+-[\t\n\f\r ]+({WILDCARD})[\t\n\f\r ]*")).ok(),
    find: Regex::new(&format!(r"({OPERATORS})[\t\n\f\r ]*({WILDCARD})")).ok(),
    valid: Regex::new(&format!(
        r"^([\t\n\f\r ]*({OPERATORS})[\t\n\f\r ]*({WILDCARD})[\t\n\f\r ]*)((?:[\t\n\f\r ]+|,[\t\n\f\r ]*)({OPERATORS})[\t\n\f\r ]*({WILDCARD})[\t\n\f\r ]*)*$"
    ))
    .ok(),
}
});

impl Version {
    /// Reads a version; `Err` has the library's message.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let invalid = || "Invalid Semantic Version".to_owned();
        let pattern = PATTERNS.version.as_ref().ok_or_else(invalid)?;
        let found = pattern.captures(text).ok_or_else(invalid)?;
        let group = |index: usize| found.get(index).map_or("", |group| group.as_str());
        let segment = |index: usize| match group(index).trim_start_matches('.') {
            "" => Ok(0),
            digits => digits.parse::<u64>().map_err(|_| {
                format!("Error parsing version segment: strconv.ParseUint: parsing \"{digits}\": value out of range")
            }),
        };
        let version = Self {
            major: segment(1)?,
            minor: segment(2)?,
            patch: segment(3)?,
            pre_release: group(5).to_owned(),
            metadata: group(8).to_owned(),
            original: text.to_owned(),
        };
        let starts_with_zero = |part: &str| part.len() > 1 && part.starts_with('0') && is_number(part);
        if version.pre_release.split('.').any(starts_with_zero) {
            return Err("Version segment starts with 0".to_owned());
        }
        Ok(version)
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch).cmp(&(other.major, other.minor, other.patch)).then_with(|| {
            match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_pre_releases(&self.pre_release, &other.pre_release),
            }
        })
    }

    /// The next version, as `IncMajor` and its kin say.
    pub(crate) fn increase(&self, part: usize) -> Self {
        let mut next = self.clone();
        let was_pre_release = !self.pre_release.is_empty();
        next.pre_release.clear();
        next.metadata.clear();
        match part {
            0 => (next.major, next.minor, next.patch) = (self.major.saturating_add(1), 0, 0),
            1 => (next.minor, next.patch) = (self.minor.saturating_add(1), 0),
            _ if was_pre_release => {}
            _ => next.patch = self.patch.saturating_add(1),
        }
        let prefix = if self.original.starts_with('v') { "v" } else { "" };
        next.original = format!("{prefix}{next}");
        next
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre_release.is_empty() {
            write!(formatter, "-{}", self.pre_release)?;
        }
        if !self.metadata.is_empty() {
            write!(formatter, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn compare_pre_releases(one: &str, other: &str) -> Ordering {
    let mut ones = one.split('.');
    let mut others = other.split('.');
    loop {
        let (one, other) = match (ones.next(), others.next()) {
            (None, None) => return Ordering::Equal,
            (one, other) => (one.unwrap_or(""), other.unwrap_or("")),
        };
        let order = match (one.parse::<u64>(), other.parse::<u64>()) {
            _ if one == other => Ordering::Equal,
            _ if one.is_empty() => Ordering::Less,
            _ if other.is_empty() => Ordering::Greater,
            (Err(_), Err(_)) => one.cmp(other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Ok(one), Ok(other)) => one.cmp(&other),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Which versions are taken: one of these lists, all of its parts.
#[derive(Clone, Debug)]
pub(crate) struct Constraint {
    alternatives: Vec<Vec<Part>>,
}

#[derive(Clone, Debug)]
struct Part {
    version: Version,
    operator: String,
    minor_is_open: bool,
    patch_is_open: bool,
    is_open: bool,
}

impl Constraint {
    /// Reads a constraint; `Err` has the library's message.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = rewrite_ranges(text);
        let mut alternatives = Vec::new();
        for alternative in text.split("||") {
            let improper = || format!("improper constraint: {alternative}");
            let (valid, find) = PATTERNS.valid.as_ref().zip(PATTERNS.find.as_ref()).ok_or_else(improper)?;
            if !valid.is_match(alternative) {
                return Err(improper());
            }
            let parts = find.find_iter(alternative).map(|part| Part::parse(part.as_str()));
            alternatives.push(parts.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(Self { alternatives })
    }

    /// Whether a version is taken.
    pub(crate) fn takes(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|parts| parts.iter().all(|part| part.takes(version)))
    }
}

/// `1.2 - 1.4` as `>= 1.2, <= 1.4`.
fn rewrite_ranges(text: &str) -> String {
    let Some(pattern) = &PATTERNS.range else { return text.to_owned() };
    let mut output = text.to_owned();
    for found in pattern.captures_iter(text) {
        let group = |index: usize| found.get(index).map_or("", |group| group.as_str());
        output = output.replacen(group(0), &format!(">= {}, <= {} ", group(1), group(11)), 1);
    }
    output
}

impl Part {
    fn parse(text: &str) -> Result<Self, String> {
        let improper = || format!("improper constraint: {text}");
        let found = PATTERNS.constraint.as_ref().and_then(|pattern| pattern.captures(text)).ok_or_else(improper)?;
        let group = |index: usize| found.get(index).map_or("", |group| group.as_str());
        let is_open = |text: &str| matches!(text.trim_start_matches('.'), "" | "x" | "X" | "*");
        let (mut minor_is_open, mut patch_is_open, mut any_is_open) = (false, false, true);
        let version = if is_open(group(3)) {
            format!("0.0.0{}", group(6))
        } else if is_open(group(4)) {
            minor_is_open = true;
            format!("{}.0.0{}", group(3), group(6))
        } else if is_open(group(5)) {
            patch_is_open = true;
            format!("{}{}.0{}", group(3), group(4), group(6))
        } else {
            any_is_open = false;
            group(2).to_owned()
        };
        let version = Version::parse(&version).map_err(|_| "constraint Parser Error".to_owned())?;
        Ok(Self { version, operator: group(1).to_owned(), minor_is_open, patch_is_open, is_open: any_is_open })
    }

    fn takes(&self, version: &Version) -> bool {
        let own = &self.version;
        let order = version.compare(own);
        let is_unwanted_pre_release = !version.pre_release.is_empty() && own.pre_release.is_empty();
        if self.operator == "!=" {
            return self.differs(version, is_unwanted_pre_release);
        }
        if is_unwanted_pre_release {
            return false;
        }
        match self.operator.as_str() {
            ">" if !self.is_open => order == Ordering::Greater,
            ">" if version.major != own.major => version.major > own.major,
            ">" if self.minor_is_open => false,
            ">" if self.patch_is_open => version.minor > own.minor,
            ">" => order == Ordering::Greater,
            "<" => order == Ordering::Less,
            ">=" | "=>" => order != Ordering::Less,
            "<=" | "=<" if !self.is_open => order != Ordering::Greater,
            "<=" | "=<" => {
                version.major <= own.major
                    && !(version.major == own.major && version.minor > own.minor && !self.minor_is_open)
            }
            "^" => order != Ordering::Less && self.has_same_leading_part(version),
            "~" | "~>" => self.is_near(version),
            _ if self.is_open => self.is_near(version),
            _ => order == Ordering::Equal,
        }
    }

    /// `~`
    fn is_near(&self, version: &Version) -> bool {
        let own = &self.version;
        if version.compare(own) == Ordering::Less {
            return false;
        }
        if (own.major, own.minor, own.patch) == (0, 0, 0) && !self.minor_is_open && !self.patch_is_open {
            return true;
        }
        version.major == own.major && (version.minor == own.minor || self.minor_is_open)
    }

    /// `^`
    fn has_same_leading_part(&self, version: &Version) -> bool {
        let own = &self.version;
        if own.major > 0 || self.minor_is_open {
            return version.major == own.major;
        }
        if version.major > 0 {
            return false;
        }
        if own.minor > 0 || self.patch_is_open {
            return version.minor == own.minor;
        }
        version.minor == 0 && version.patch == own.patch
    }

    /// `!=`
    fn differs(&self, version: &Version, is_unwanted_pre_release: bool) -> bool {
        let own = &self.version;
        if self.is_open {
            if is_unwanted_pre_release {
                return false;
            }
            if own.major != version.major || (own.minor != version.minor && !self.minor_is_open) {
                return true;
            }
            if self.minor_is_open {
                return false;
            }
            if own.patch != version.patch && !self.patch_is_open {
                return true;
            }
            if self.patch_is_open {
                let has_pre_release = !version.pre_release.is_empty() || !own.pre_release.is_empty();
                return has_pre_release && version.pre_release != own.pre_release;
            }
        }
        version.compare(own) != Ordering::Equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(constraint: &str, version: &str) -> bool {
        let constraint = Constraint::parse(constraint).unwrap_or_else(|error| panic!("{error}"));
        constraint.takes(&Version::parse(version).unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn constraints_take_what_masterminds_takes() {
        for (constraint, version, expected) in [
            (">=1.19-0", "v1.35.0", true),
            (">=1.19", "1.21.3-gke.100", false),
            (">=1.21-0 <2", "1.21.3-gke.100", false),
            ("^1.2", "1.3.0", true),
            ("^0.2", "0.3.0", false),
            ("~1.2.x || >3", "1.2.9", true),
            ("~1.2.x || >3", "3.9.0", false),
            ("1.2 - 1.4.5", "1.4.6", false),
            ("1.2", "1.2.7", true),
            ("1.2.x", "1.3.0", false),
            ("*", "7.0.0", true),
            ("!=1.2.x", "1.2.3", false),
            ("!=1.2.x", "1.3.0", true),
            (">1.2", "1.2.9", false),
            ("<=1.2", "1.2.9", true),
            (">= 1.2, < 2.0.0, != 1.5.0", "1.5.0", false),
            ("~0", "0.9.0", true),
            ("^0.0.3", "0.0.4", false),
            ("=1.2.3", "1.2.3+build", true),
        ] {
            assert_eq!(check(constraint, version), expected, "{constraint} {version}");
        }
        assert_eq!(Constraint::parse(">>1").err().as_deref(), Some("improper constraint: >>1"));
        assert_eq!(Version::parse("1.2.3.4"), Err("Invalid Semantic Version".to_owned()));
        assert_eq!(Version::parse("1.2.3-01"), Err("Version segment starts with 0".to_owned()));
    }

    #[test]
    fn versions_are_ordered() {
        let ordered =
            ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0", "v1.10"];
        for pair in ordered.windows(2) {
            let [one, other] = [pair[0], pair[1]].map(|text| Version::parse(text).expect("a version"));
            assert_eq!(one.compare(&other), Ordering::Less, "{pair:?}");
        }
        assert_eq!(Version::parse("v1.2.3-rc.1").expect("a version").increase(2).original, "v1.2.3");
    }
}
