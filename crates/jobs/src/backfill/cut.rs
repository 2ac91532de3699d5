//! From an object as the server sends it to a line as it leaves: without what is secret, and without a tree in between.
//!
//! The text is walked over once. What has to go is noted by its place; everything else is copied as it was written, to
//! the byte. What is secret is said in [`sensitive`].

mod cursor;
mod edits;
pub(crate) mod sensitive;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod values;
mod words;

pub(crate) use cursor::Unreadable;

use super::filter::Filters;
use super::kind::Kind;
use cursor::{Cursor, Text};
use edits::Edits;
use sensitive::{REMOVED, quoted};
use std::borrow::Cow;
use std::sync::Arc;
use text::Manner;
use values::Values;
use words::{Meaning, meaning};

/// The version of what is taken out: a run resumes nothing that an older version has sent.
pub(crate) const RULES: u32 = 2;
/// How deep an object may be. The server itself takes no deeper ones.
const DEEPEST: usize = 512;

/// Makes lines of objects of one kind.
#[derive(Debug)]
pub(crate) struct Cutter<'r> {
    kind: KnownKind,
    /// `{"apiVersion":"v1","kind":"Pod"`
    head: Vec<u8>,
    filters: &'r Filters,
    /// Whether nothing else goes out. A server that cannot leave it out sends it all the same.
    metadata_only: bool,
    /// Values of Secrets.
    values: Arc<Values>,
    edits: Edits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KnownKind {
    Secret,
    ConfigMap,
    Other,
}

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its line was written.
    Written,
    /// Nobody wants it.
    Skipped,
}

/// Where in an object something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Root,
    Metadata,
    Labels,
    Annotations,
    /// The data of a ConfigMap.
    Settings,
    /// The variables of a container: a list, or a map.
    Variables,
    /// One of such a list.
    Variable,
    /// What a container is called with.
    Arguments,
    /// What has the name of a secret: the values in it are secret.
    Guarded,
    /// What has the name of several: whatever is in it is secret.
    Confidential,
    Other,
}

impl<'r> Cutter<'r> {
    pub(crate) fn new(kind: &Kind, filters: &'r Filters, metadata_only: bool) -> Self {
        let text = |text: &str| String::from_utf8_lossy(&quoted(text)).into_owned();
        let head = format!("{{\"apiVersion\":{},\"kind\":{}", text(&kind.api_version()), text(&kind.kind));
        let known = match kind.kind.as_str() {
            "Secret" if kind.group.is_empty() => KnownKind::Secret,
            "ConfigMap" if kind.group.is_empty() => KnownKind::ConfigMap,
            _ => KnownKind::Other,
        };
        let (head, values) = (head.into_bytes(), Arc::default());
        Self { kind: known, head, filters, metadata_only, values, edits: Edits::default() }
    }

    /// Takes out these values, too, wherever they are.
    pub(crate) fn without(mut self, values: Arc<Values>) -> Self {
        self.values = values;
        self
    }

    /// Writes an object as a line, if somebody wants it.
    pub(crate) fn cut(&mut self, object: &[u8], out: &mut Vec<u8>) -> Result<Fate, Unreadable> {
        if !self.filters.names.is_empty() {
            let name = Cursor::new(object, 0).find(b"metadata").and_then(|metadata| metadata.find_text(b"name"));
            if !self.filters.names.lets_through(&name.map(|name| name.read()).unwrap_or_default()) {
                return Ok(Fate::Skipped);
            }
        }
        self.edits.clear();
        let mut cursor = Cursor::new(object, 0);
        cursor.peek()?;
        let start = cursor.at();
        let mut walk = Walk {
            text: object,
            cursor,
            kind: self.kind,
            filters: self.filters,
            metadata_only: self.metadata_only,
            edits: &mut self.edits,
            has_addresses: sensitive::may_hold_address(object),
            values: &self.values,
            has_values: self.values.are_in(object),
        };
        walk.object(Role::Root, 0)?;
        let end = walk.cursor.at();
        let line = out.len();
        out.extend_from_slice(&self.head);
        let comma = out.len();
        out.push(b',');
        self.edits.write(object, start + 1..end, out);
        if out[comma + 1..].trim_ascii_start() == b"}" {
            out.truncate(comma);
            out.push(b'}');
        }
        // Line ends in a text are escaped, so these are only blank.
        for at in memchr::memchr2_iter(b'\n', b'\r', &out[line..]).collect::<Vec<_>>() {
            out[line + at] = b' ';
        }
        out.push(b'\n');
        Ok(Fate::Written)
    }
}

struct Walk<'a, 'e> {
    text: &'a [u8],
    cursor: Cursor<'a>,
    kind: KnownKind,
    filters: &'e Filters,
    metadata_only: bool,
    edits: &'e mut Edits,
    has_addresses: bool,
    values: &'e Values,
    /// Whether one of them is in the object as it is written. What is escaped is read first.
    has_values: bool,
}

/// Members that hold the value of what the name around them tells.
const HOLDERS: [&[u8]; 8] = [b"content", b"data", b"inline", b"literal", b"plainText", b"raw", b"string", b"value"];
/// Members that tell what the value beside them is for, and what such values are called.
const TELLERS: [&[u8]; 4] = [b"name", b"key", b"header", b"parameter"];
const TOLD: [&[u8]; 3] = [b"value", b"default", b"stringValue"];

impl<'a> Walk<'a, '_> {
    /// Goes over an object, and notes which of its members have to go.
    fn object(&mut self, role: Role, depth: usize) -> Result<(), Unreadable> {
        self.cursor.peek()?;
        let object = self.cursor.clone();
        self.cursor.expect(b'{')?;
        if self.cursor.take(b'}') {
            return Ok(());
        }
        let mut kept = None;
        loop {
            let key = self.cursor.string()?;
            self.cursor.expect(b':')?;
            self.cursor.peek()?;
            let stays = self.member(role, &object, &key, depth)?;
            let end = self.cursor.at();
            let has_more = self.cursor.take(b',');
            match (stays, has_more) {
                (true, _) => kept = Some(end),
                // A comma goes with it: the one behind, or the one in front if it was the last.
                (false, true) => {
                    self.cursor.peek()?;
                    self.edits.remove(key.range.start..self.cursor.at());
                }
                (false, false) => self.edits.remove_whole(kept.unwrap_or(key.range.start)..end),
            }
            if !has_more {
                return self.cursor.expect(b'}');
            }
        }
    }

    /// Goes over a member. Says whether it stays.
    fn member(&mut self, role: Role, object: &Cursor<'a>, key: &Text<'a>, depth: usize) -> Result<bool, Unreadable> {
        let escaped;
        let name = if key.raw.contains(&b'\\') {
            escaped = key.read();
            escaped.as_bytes()
        } else {
            key.raw
        };
        if sensitive::is_secret_annotation(name) || self.holds_value(key, name) {
            return self.drop();
        }
        match (role, name) {
            (Role::Root, b"apiVersion" | b"kind") => self.drop(),
            (Role::Root, b"metadata") => self.value(Role::Metadata, depth),
            (Role::Root, _) if self.metadata_only => self.drop(),
            (Role::Root, b"data" | b"stringData") if self.kind == KnownKind::Secret => self.drop(),
            (Role::Root, b"data") if self.kind == KnownKind::ConfigMap => {
                if holds_release(object) {
                    self.drop()
                } else {
                    self.value(Role::Settings, depth)
                }
            }
            (Role::Settings, b"logs") if is_ledger(self.text) => self.drop(),
            (Role::Metadata, b"managedFields") => self.drop(),
            // What an object is called is seen by everybody, and its receiver has to tell it from others.
            (Role::Metadata, b"name" | b"namespace" | b"uid" | b"generateName") => {
                self.cursor.skip()?;
                Ok(true)
            }
            (Role::Metadata, b"labels") => self.value(Role::Labels, depth),
            (Role::Metadata, b"annotations") => self.value(Role::Annotations, depth),
            (Role::Labels | Role::Annotations, _) => self.mark(role, name),
            (Role::Variable, b"value") => {
                let variable = object.find_text(b"name").map(|name| name.read()).unwrap_or_default();
                self.variable(&variable, depth)
            }
            (Role::Variables, _) => self.variable(&String::from_utf8_lossy(name), depth),
            (Role::Settings, _) if sensitive::is_variable(name) => self.variable(&String::from_utf8_lossy(name), depth),
            // An object inside of another: a template, a manifest.
            (_, b"data" | b"stringData") if object.find_text(b"kind").is_some_and(|kind| kind.is(b"Secret")) => {
                self.drop()
            }
            (_, b"env") => self.value(Role::Variables, depth),
            (_, b"args") => {
                let command = object.find(b"command").and_then(|command| command.last_text());
                self.arguments(command.as_ref(), depth)
            }
            (_, b"command") => self.value(Role::Arguments, depth),
            (Role::Confidential, _) if !words::is_about(name) => self.guarded(Role::Confidential, depth),
            (Role::Guarded, _) if HOLDERS.contains(&name) => self.guarded(Role::Guarded, depth),
            _ if TOLD.contains(&name) && self.is_told(object)? => self.guarded(Role::Guarded, depth),
            _ => match meaning(name) {
                Meaning::Plain => self.value(Role::Other, depth),
                Meaning::Secret => self.guarded(Role::Guarded, depth),
                Meaning::Secrets => self.guarded(Role::Confidential, depth),
            },
        }
    }

    /// Whether one of the values is in the name of a member.
    fn holds_value(&self, key: &Text<'a>, name: &[u8]) -> bool {
        (self.has_values || !key.is_plain() && !self.values.is_empty()) && self.values.are_in(name)
    }

    /// Whether the object says beside a value that it is secret: `{name: db.password, value: …}`.
    fn is_told(&mut self, object: &Cursor<'a>) -> Result<bool, Unreadable> {
        self.cursor.peek()?;
        let Some(teller) = TELLERS.iter().find_map(|teller| object.find_text(teller)) else { return Ok(false) };
        let name = teller.read();
        let value = self.cursor.clone().string().map(|text| text.read()).unwrap_or_default();
        let is_variable = sensitive::is_variable(name.as_bytes()) && sensitive::is_secret_variable(&name, &value);
        Ok(is_variable || meaning(name.as_bytes()) != Meaning::Plain)
    }

    /// Goes over what has the name of a secret. What is no text and no number says nothing.
    fn guarded(&mut self, role: Role, depth: usize) -> Result<bool, Unreadable> {
        if self.is_scalar()? { self.blank() } else { self.value(role, depth) }
    }

    /// What a container is called with. The last word of its command may announce the first of them.
    fn arguments(&mut self, command: Option<&Text<'a>>, depth: usize) -> Result<bool, Unreadable> {
        let announced = command.map(Text::read);
        if self.cursor.peek()? != b'[' {
            return self.value(Role::Arguments, depth);
        }
        self.list(Role::Arguments, announced, depth + 1)?;
        Ok(true)
    }

    /// A label or an annotation.
    fn mark(&mut self, role: Role, key: &[u8]) -> Result<bool, Unreadable> {
        let patterns = if role == Role::Labels { &self.filters.labels } else { &self.filters.annotations };
        if !patterns.is_empty() && self.cursor.peek()? == b'"' {
            let value = self.cursor.clone().string()?.read();
            if !patterns.lets_through(&String::from_utf8_lossy(key), &value) {
                return self.drop();
            }
        }
        if sensitive::is_secret_mark(key) { self.guarded(Role::Guarded, 0) } else { self.value(Role::Other, 0) }
    }

    /// The value of a variable.
    fn variable(&mut self, name: &str, depth: usize) -> Result<bool, Unreadable> {
        self.cursor.peek()?;
        let value = self.cursor.clone().string().map(|text| text.read()).unwrap_or_default();
        if sensitive::is_secret_variable(name, &value) {
            self.guarded(Role::Guarded, depth)
        } else {
            self.value(Role::Other, depth)
        }
    }

    /// Goes over a value that stays, though perhaps not whole.
    fn value(&mut self, role: Role, depth: usize) -> Result<bool, Unreadable> {
        if depth > DEEPEST {
            return Err(Unreadable);
        }
        match self.cursor.peek()? {
            b'{' => {
                let role = if role == Role::Arguments { Role::Other } else { role };
                self.object(role, depth + 1)?;
            }
            b'[' => self.list(role, None, depth + 1)?,
            b'"' => self.text(if role == Role::Arguments { Manner::Shell } else { Manner::Text })?,
            _ => {
                let range = self.cursor.skip()?;
                if self.has_values && self.values.are_in(&self.text[range.clone()]) {
                    self.edits.replace(range, quoted(REMOVED));
                }
            }
        }
        Ok(true)
    }

    /// Goes over a list. `before` is the text in front of it, which may announce its first item.
    fn list(&mut self, role: Role, before: Option<Cow<'a, str>>, depth: usize) -> Result<(), Unreadable> {
        self.cursor.expect(b'[')?;
        if self.cursor.take(b']') {
            return Ok(());
        }
        let manner = if role == Role::Arguments { Manner::Shell } else { Manner::Text };
        let mut before = before;
        loop {
            let is_text = self.cursor.peek()? == b'"';
            match role {
                Role::Variables if !is_text => {
                    self.value(Role::Variable, depth)?;
                    before = None;
                }
                Role::Confidential | Role::Guarded => {
                    let inner = if self.cursor.peek()? == b'{' { Role::Guarded } else { role };
                    self.guarded(inner, depth)?;
                }
                _ if is_text => before = Some(self.argument(before.as_deref(), manner)?),
                _ => {
                    self.value(Role::Other, depth)?;
                    before = None;
                }
            }
            if !self.cursor.take(b',') {
                return self.cursor.expect(b']');
            }
        }
    }

    /// An item of a list, which may be the value that the one before it announces.
    fn argument(&mut self, before: Option<&str>, manner: Manner) -> Result<Cow<'a, str>, Unreadable> {
        let text = self.cursor.string()?;
        let argument = text.read();
        let announced = before.and_then(|before| Some((before, text::announcement(before, manner)?)));
        if announced.is_some_and(|(before, how)| text::is_announced(how, before.as_bytes(), &argument)) {
            self.edits.replace(text.range, quoted(REMOVED));
        } else {
            self.clean(text, manner);
        }
        Ok(argument)
    }

    /// A text, which may hold something secret.
    fn text(&mut self, manner: Manner) -> Result<(), Unreadable> {
        let text = self.cursor.string()?;
        self.clean(text, manner);
        Ok(())
    }

    fn clean(&mut self, text: Text<'a>, manner: Manner) {
        let may_hold_values = self.has_values || !text.is_plain() && !self.values.is_empty();
        let may_hold_secret =
            self.has_addresses && sensitive::may_hold_address(text.raw) || text::may_hold_secret(text.raw);
        if !may_hold_values && !may_hold_secret {
            return;
        }
        let read = text.read();
        let mut parts = if may_hold_secret { text::secrets(&read, manner) } else { Vec::new() };
        if may_hold_values {
            parts.extend(self.values.find(read.as_bytes()));
        }
        if let Some(without) = text::remove(&read, parts) {
            self.edits.replace(text.range, quoted(&without));
        }
    }

    fn is_scalar(&mut self) -> Result<bool, Unreadable> {
        Ok(matches!(self.cursor.peek()?, b'"' | b'-' | b'0'..=b'9'))
    }

    fn drop(&mut self) -> Result<bool, Unreadable> {
        self.cursor.skip()?;
        Ok(false)
    }

    /// Puts a mark in the place of a value.
    fn blank(&mut self) -> Result<bool, Unreadable> {
        let range = self.cursor.skip()?;
        self.edits.replace(range, quoted(REMOVED));
        Ok(true)
    }
}

/// Whether a ConfigMap is a release of Helm, with all its values.
fn holds_release(object: &Cursor<'_>) -> bool {
    label(object, b"owner").is_some_and(|owner| owner.is(b"helm"))
}

/// Whether a ConfigMap is a ledger of ours, which keeps the ends of logs.
fn is_ledger(object: &[u8]) -> bool {
    label(&Cursor::new(object, 0), b"jobwright.io/ledger").is_some()
}

fn label<'a>(object: &Cursor<'a>, key: &[u8]) -> Option<Text<'a>> {
    object.find(b"metadata")?.find(b"labels")?.find_text(key)
}
