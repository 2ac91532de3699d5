//! From an object as the server sends it to a line as it leaves: without what is secret, and without a tree in between.
//!
//! The text is walked over once. What has to go is noted by its place; everything else is copied as it was written, to
//! the byte. What is secret is said in [`sensitive`].

mod cursor;
mod edits;
pub(crate) mod sensitive;
#[cfg(test)]
mod tests;

pub(crate) use cursor::Unreadable;

use super::filter::Filters;
use super::kind::Kind;
use cursor::{Cursor, Text};
use edits::Edits;
use sensitive::{REMOVED, quoted};

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
        Self { kind: known, head: head.into_bytes(), filters, metadata_only, edits: Edits::default() }
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
}

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
        if sensitive::is_secret_annotation(name) {
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
            (_, b"args" | b"command") => self.value(Role::Arguments, depth),
            _ if sensitive::is_secret_field(name) && self.is_scalar()? => self.blank(),
            _ => self.value(Role::Other, depth),
        }
    }

    /// A label or an annotation.
    fn mark(&mut self, role: Role, key: &[u8]) -> Result<bool, Unreadable> {
        let patterns = if role == Role::Labels { &self.filters.labels } else { &self.filters.annotations };
        if patterns.is_empty() || self.cursor.peek()? != b'"' {
            return self.value(Role::Other, 0);
        }
        let value = self.cursor.clone().string()?.read();
        if !patterns.lets_through(&String::from_utf8_lossy(key), &value) {
            return self.drop();
        }
        self.value(Role::Other, 0)
    }

    /// The value of a variable.
    fn variable(&mut self, name: &str, depth: usize) -> Result<bool, Unreadable> {
        if !self.is_scalar()? {
            return self.value(Role::Other, depth);
        }
        let value = self.cursor.clone().string().map(|text| text.read()).unwrap_or_default();
        if sensitive::is_secret_variable(name, &value) { self.blank() } else { self.value(Role::Other, depth) }
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
            b'[' => self.list(role, depth + 1)?,
            b'"' => self.text()?,
            _ => {
                self.cursor.skip()?;
            }
        }
        Ok(true)
    }

    fn list(&mut self, role: Role, depth: usize) -> Result<(), Unreadable> {
        self.cursor.expect(b'[')?;
        if self.cursor.take(b']') {
            return Ok(());
        }
        let mut is_next_secret = false;
        loop {
            let is_text = self.cursor.peek()? == b'"';
            match role {
                Role::Arguments if is_text => is_next_secret = self.argument(is_next_secret)?,
                Role::Variables => {
                    self.value(Role::Variable, depth)?;
                }
                _ => {
                    self.value(Role::Other, depth)?;
                }
            }
            if !self.cursor.take(b',') {
                return self.cursor.expect(b']');
            }
        }
    }

    /// An argument. Says whether the next one is a secret.
    fn argument(&mut self, is_secret: bool) -> Result<bool, Unreadable> {
        let text = self.cursor.string()?;
        let argument = text.read();
        if is_secret && !argument.starts_with('-') {
            self.edits.replace(text.range, quoted(REMOVED));
            return Ok(false);
        }
        let without = sensitive::without_assignments(&argument);
        let whole = without.as_deref().unwrap_or(&argument);
        let without = sensitive::without_passwords(whole).or(without);
        if let Some(without) = without {
            self.edits.replace(text.range, quoted(&without));
        }
        Ok(sensitive::announces_secret(&argument))
    }

    /// A text, which may hold addresses.
    fn text(&mut self) -> Result<(), Unreadable> {
        let text = self.cursor.string()?;
        if self.has_addresses
            && sensitive::may_hold_address(text.raw)
            && let Some(without) = sensitive::without_passwords(&text.read())
        {
            self.edits.replace(text.range, quoted(&without));
        }
        Ok(())
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
