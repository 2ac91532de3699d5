//! Scripts: what containers do when it is not what their command says.
//!
//! ```
//! use jobwright_drydock::{Behaviour, Match, Script};
//! use std::time::Duration;
//!
//! let script = Script::new()
//!     .on(Match::any().image("shop/api:*").attempt(1), Behaviour::exits(1).after(Duration::from_secs(5)).says("no database"))
//!     .on(Match::any().container("server"), Behaviour::serves().ready_after(Duration::from_secs(30)));
//! # let _ = script;
//! ```
//!
//! The same as YAML, for `jobwright drydock --script FILE`:
//!
//! ```yaml
//! containers:
//! - match: {image: "shop/api:*", attempt: 1}
//!   then: {exit: 1, after: 5s, logs: [no database]}
//! - match: {container: server}
//!   then: {serves: true, readyAfter: 30s}
//! ```

use super::shell::{Command, Part, Word};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;

/// What containers do: the first entry that matches a container decides.
#[derive(Clone, Debug, Default)]
pub struct Script {
    entries: Vec<(Match, Behaviour)>,
}

/// A script could not be read.
#[derive(Debug, Error)]
#[error("cannot read the script: {0}")]
pub struct ScriptError(String);

impl Script {
    /// An empty script: containers do what their commands say.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry after those that are there.
    #[must_use]
    pub fn on(mut self, containers: Match, behaviour: Behaviour) -> Self {
        self.entries.push((containers, behaviour));
        self
    }

    /// Reads a script from YAML.
    pub fn from_yaml(text: &str) -> Result<Self, ScriptError> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| ScriptError(error.to_string()))?;
        let entries = file.containers.into_iter().map(|entry| Ok((entry.matches, entry.then.try_into()?)));
        Ok(Self { entries: entries.collect::<Result<_, ScriptError>>()? })
    }

    /// What a container does, if the script has a word on it.
    pub(crate) fn behaviour(&self, container: &Container<'_>) -> Option<&Behaviour> {
        self.entries.iter().find(|(containers, _)| containers.fits(container)).map(|(_, behaviour)| behaviour)
    }
}

/// A container that is about to start.
pub(crate) struct Container<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) labels: &'a dyn Fn(&str) -> Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) image: &'a str,
    pub(crate) command: &'a [String],
    pub(crate) attempt: u32,
}

/// Which containers an entry is about: those that fit everything it says. `*` stands for any text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[must_use]
pub struct Match {
    namespace: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    container: Option<String>,
    image: Option<String>,
    command: Option<String>,
    attempt: Option<u32>,
}

impl Match {
    /// All containers.
    pub fn any() -> Self {
        Self::default()
    }

    /// Those in a namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Those of pods with a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Those of a name.
    pub fn container(mut self, name: &str) -> Self {
        self.container = Some(name.to_owned());
        self
    }

    /// Those of an image.
    pub fn image(mut self, image: &str) -> Self {
        self.image = Some(image.to_owned());
        self
    }

    /// Those whose command, words joined by spaces, looks like this.
    pub fn command(mut self, command: &str) -> Self {
        self.command = Some(command.to_owned());
        self
    }

    /// The n-th start of a container of the same Job, Deployment or pod, counted from 1.
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = Some(attempt);
        self
    }

    fn fits(&self, container: &Container<'_>) -> bool {
        let like = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|pattern| matches(pattern, text));
        like(&self.namespace, container.namespace)
            && like(&self.container, container.name)
            && like(&self.image, container.image)
            && like(&self.command, &container.command.join(" "))
            && self.attempt.is_none_or(|attempt| attempt == container.attempt)
            && self
                .labels
                .iter()
                .all(|(key, pattern)| (container.labels)(key).is_some_and(|value| matches(pattern, value)))
    }
}

/// Whether a text looks like a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// What a container does.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Behaviour {
    pub(crate) end: End,
    pub(crate) after: Duration,
    pub(crate) logs: Vec<String>,
    pub(crate) never_pulled: bool,
    /// When the container gets ready, unless its probe says it never does.
    pub(crate) ready_after: Option<Duration>,
    pub(crate) never_ready: bool,
    pub(crate) message: Option<String>,
}

/// How a container ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exits(i32),
    /// Only a signal ends it.
    Serves,
    /// Nothing but the end of its patience ends it.
    Hangs,
}

impl Default for End {
    fn default() -> Self {
        Self::Exits(0)
    }
}

impl Behaviour {
    /// Ends by itself with this code.
    pub fn exits(code: i32) -> Self {
        Self { end: End::Exits(code), ..Self::default() }
    }

    /// Runs until it is told to stop, and then stops.
    pub fn serves() -> Self {
        Self { end: End::Serves, ..Self::default() }
    }

    /// Runs for ever and listens to nobody.
    pub fn hangs() -> Self {
        Self { end: End::Hangs, ..Self::default() }
    }

    /// Its image cannot be pulled.
    pub fn never_pulled() -> Self {
        Self { never_pulled: true, ..Self::default() }
    }

    /// How long it runs before it ends.
    pub fn after(mut self, duration: Duration) -> Self {
        self.after = duration;
        self
    }

    /// Prints a line when it starts.
    pub fn says(mut self, line: &str) -> Self {
        self.logs.push(line.to_owned());
        self
    }

    /// Passes its readiness probe from then on.
    pub fn ready_after(mut self, duration: Duration) -> Self {
        self.ready_after = Some(duration);
        self
    }

    /// Never passes its readiness probe.
    pub fn never_ready(mut self) -> Self {
        self.never_ready = true;
        self
    }

    /// Leaves a termination message.
    pub fn message(mut self, message: &str) -> Self {
        self.message = Some(message.to_owned());
        self
    }

    /// The behaviour as commands of a shell.
    pub(crate) fn commands(&self) -> Command {
        let simple = |words: &[&str]| {
            let word = |text: &&str| Word { parts: vec![Part::Text((*text).to_owned())], quoted: true };
            Command::Simple { assignments: Vec::new(), words: words.iter().map(word).collect(), output: None }
        };
        let mut commands: Vec<Command> = self.logs.iter().map(|line| simple(&["echo", line])).collect();
        if self.end == End::Serves {
            commands.insert(0, simple(&["trap", "exit 0", "TERM"]));
        }
        if !self.after.is_zero() {
            commands.push(simple(&["sleep", &self.after.as_secs_f64().to_string()]));
        }
        match self.end {
            End::Exits(code) => commands.push(simple(&["exit", &code.to_string()])),
            End::Hangs => commands.push(simple(&["sleep", "infinity"])),
            End::Serves => {
                commands.push(Command::Background(Box::new(simple(&["sleep", "infinity"]))));
                commands.push(simple(&["wait"]));
            }
        }
        Command::Sequence(commands)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    containers: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default, rename = "match")]
    matches: Match,
    then: Then,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "these are the fields of a file")]
struct Then {
    exit: Option<i32>,
    serves: bool,
    hangs: bool,
    never_pulled: bool,
    never_ready: bool,
    after: Option<String>,
    ready_after: Option<String>,
    logs: Vec<String>,
    message: Option<String>,
}

impl TryFrom<Then> for Behaviour {
    type Error = ScriptError;

    fn try_from(then: Then) -> Result<Self, ScriptError> {
        let duration = |text: Option<String>| text.map(|text| parse_duration(&text)).transpose();
        let end = match (then.exit, then.serves, then.hangs) {
            (exit, false, false) => End::Exits(exit.unwrap_or_default()),
            (None, true, false) => End::Serves,
            (None, false, true) => End::Hangs,
            _ => return Err(ScriptError("a container either exits, serves or hangs: give one of them".to_owned())),
        };
        Ok(Self {
            end,
            after: duration(then.after)?.unwrap_or_default(),
            logs: then.logs,
            never_pulled: then.never_pulled,
            ready_after: duration(then.ready_after)?,
            never_ready: then.never_ready,
            message: then.message,
        })
    }
}

/// `90s`, `10m`, `1h30m`, `500ms`.
fn parse_duration(text: &str) -> Result<Duration, ScriptError> {
    let refuse = || ScriptError(format!("`{text}` is no duration: write `90s`, `10m`, `1h30m`"));
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(refuse());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(refuse)?;
        let number: u64 = rest[..digits].parse().map_err(|_| refuse())?;
        let unit = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |length| digits + length);
        let part = match &rest[digits..unit] {
            "ms" => Some(Duration::from_millis(number)),
            "s" => Some(Duration::from_secs(number)),
            "m" => number.checked_mul(60).map(Duration::from_secs),
            "h" => number.checked_mul(3600).map(Duration::from_secs),
            _ => None,
        };
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(refuse)?;
        rest = &rest[unit..];
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(image: &str, attempt: u32) -> Container<'_> {
        Container {
            namespace: "shop",
            labels: &|key| (key == "app").then_some("api"),
            name: "main",
            image,
            command: &[],
            attempt,
        }
    }

    #[test]
    fn the_first_entry_that_fits_decides() {
        let script = Script::from_yaml(
            "containers:\n- match: {image: \"shop/*:1\", attempt: 1, labels: {app: a*}}\n  then: {exit: 3, after: 1m30s}\n\
             - then: {serves: true, readyAfter: 500ms}\n",
        )
        .unwrap();
        let first = script.behaviour(&container("shop/api:1", 1)).unwrap();
        assert_eq!((first.end, first.after), (End::Exits(3), Duration::from_secs(90)));
        let second = script.behaviour(&container("shop/api:1", 2)).unwrap();
        assert_eq!((second.end, second.ready_after), (End::Serves, Some(Duration::from_millis(500))));
        assert!(Script::new().behaviour(&container("x", 1)).is_none());
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("containers: [{then: {exit: 1, serves: true}}]", "either exits, serves or hangs"),
            ("containers: [{then: {after: soon}}]", "`soon` is no duration"),
            ("containers: [{then: {exitt: 1}}]", "exitt"),
            ("containers: [{match: {img: x}, then: {}}]", "img"),
        ] {
            let error = Script::from_yaml(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, text, expected) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "abd", false),
            ("*", "", true),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("*b*d", "abcd", true),
            ("*b*d", "abc", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
