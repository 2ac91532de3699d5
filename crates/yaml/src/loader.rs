//! From text to documents.

use crate::node::{Comment, Document, Entry, Node, Style, Value};
use crate::scalar::resolve;
use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle, Tag};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// How much is taken of a text from who knows where.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the text.
    pub bytes: usize,
    /// Collections within collections.
    pub depth: usize,
    /// Values, those that aliases stand for counted each time.
    pub values: usize,
}

impl Error {
    /// The message of go-yaml, as far as it is known, with the line where that has one; `text` is what was read.
    pub fn in_go(&self, text: &str) -> String {
        crate::go::describe(self, text)
    }
}

/// More than any manifest needs.
pub const LIMITS: Limits = Limits { bytes: 64 * 1024 * 1024, depth: 200, values: 4_000_000 };

/// A text that is no YAML, or too much of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What is wrong.
    pub message: String,
    /// The byte at which it shows.
    pub offset: usize,
}

/// What becomes of keys that are no texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// The text of what they mean, as in Go: `on` is `true`.
    AsMeant,
    /// The text that stands there: `on` is `on`. For files of one's own.
    AsWritten,
}

/// Reads all documents of a text.
pub fn parse(text: &str) -> Result<Vec<Document>, Error> {
    parse_with(text, Keys::AsMeant, LIMITS)
}

/// Reads all documents of a text, within limits.
pub fn parse_with(text: &str, keys: Keys, limits: Limits) -> Result<Vec<Document>, Error> {
    if text.len() > limits.bytes {
        let message = format!("the text has {} bytes, and {} are taken at most", text.len(), limits.bytes);
        return Err(Error { message, offset: 0 });
    }
    let mut loader = Loader {
        limits,
        keys,
        text,
        values: 0,
        open: Vec::new(),
        anchors: BTreeMap::new(),
        comments: Vec::new(),
        done: Vec::new(),
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| Error {
            message: error.kind().to_string(),
            offset: error.marker().byte_offset().unwrap_or(text.len()).min(text.len()),
        })?;
        loader.take(event, &span)?;
    }
    Ok(loader.done)
}

struct Loader<'a> {
    limits: Limits,
    keys: Keys,
    text: &'a str,
    values: usize,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Anchored>,
    comments: Vec<Comment>,
    done: Vec<Document>,
}

/// What an alias may stand for, and what that costs.
struct Anchored {
    node: Node,
    values: usize,
    depth: usize,
}

/// A collection that is being read.
struct Open {
    start: usize,
    anchor: usize,
    style: Style,
    kind: Kind,
}

enum Kind {
    Document(Option<Node>),
    List(Vec<Node>),
    Map { entries: Vec<Entry>, key: Option<Node> },
}

impl Loader<'_> {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Error> {
        let range = span.byte_range().unwrap_or_default();
        match event {
            Event::DocumentStart(..) => {
                self.anchors.clear();
                self.push(range.start, 0, Style::Plain, Kind::Document(None))
            }
            Event::DocumentEnd => {
                if let Some(Open { kind: Kind::Document(root), .. }) = self.open.pop() {
                    let nothing = || Node { span: range.clone(), style: Style::Plain, value: Value::Null };
                    let comments = std::mem::take(&mut self.comments);
                    self.done.push(Document { root: root.unwrap_or_else(nothing), comments });
                }
                Ok(())
            }
            Event::SequenceStart(style, anchor, _) => {
                self.push(range.start, anchor, flow(style), Kind::List(Vec::new()))
            }
            Event::MappingStart(style, anchor, _) => {
                self.push(range.start, anchor, flow(style), Kind::Map { entries: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(range.end),
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(text, style, tag.as_deref());
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
                    _ => Style::Block,
                };
                let node = Node { span: range, style, value };
                self.remember(anchor, &node);
                self.add(node)
            }
            Event::Alias(anchor) => {
                let Some(target) = self.anchors.get(&anchor) else {
                    return Err(Error { message: "an alias cannot stand for itself".to_owned(), offset: range.start });
                };
                // Counted before it is copied: aliases of aliases unfold to more than any memory holds.
                self.values = self.values.saturating_add(target.values);
                let depth = self.open.len() + target.depth;
                if self.values > self.limits.values || depth > self.limits.depth {
                    let message = "its aliases unfold to more than is taken".to_owned();
                    return Err(Error { message, offset: range.start });
                }
                let node = Node { span: range, ..target.node.clone() };
                self.add(node)
            }
            Event::Comment(text, _) => {
                self.comments.push(Comment { span: range, text: text.into_owned() });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn push(&mut self, start: usize, anchor: usize, style: Style, kind: Kind) -> Result<(), Error> {
        if self.open.len() > self.limits.depth {
            let message = format!("collections go deeper than {} levels", self.limits.depth);
            return Err(Error { message, offset: start });
        }
        self.open.push(Open { start, anchor, style, kind });
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<(), Error> {
        let Some(Open { start, anchor, style, kind }) = self.open.pop() else { return Ok(()) };
        let value = match kind {
            Kind::List(items) => Value::List(items),
            Kind::Map { entries, .. } => Value::Map(entries),
            Kind::Document(_) => return Ok(()),
        };
        let node = Node { span: start..end.max(start), style, value };
        self.remember(anchor, &node);
        self.add(node)
    }

    fn remember(&mut self, anchor: usize, node: &Node) {
        if anchor > 0 {
            let (values, depth) = measure(node);
            self.anchors.insert(anchor, Anchored { node: node.clone(), values, depth });
        }
    }

    fn add(&mut self, node: Node) -> Result<(), Error> {
        self.values += 1;
        if self.values > self.limits.values {
            let message = format!("it holds more than {} values, aliases included", self.limits.values);
            return Err(Error { message, offset: node.span.start });
        }
        match self.open.last_mut().map(|open| &mut open.kind) {
            Some(Kind::Document(root)) => *root = Some(node),
            Some(Kind::List(items)) => items.push(node),
            Some(Kind::Map { key: key @ None, .. }) => *key = Some(node),
            Some(Kind::Map { entries, key }) => {
                if let Some(key) = key.take() {
                    let name = match self.keys {
                        Keys::AsWritten if key.style == Style::Plain => self.text[key.span.clone()].to_owned(),
                        _ => key_text(&key),
                    };
                    enter(entries, name, &key, node);
                }
            }
            None => {}
        }
        Ok(())
    }
}

/// Puts a value under its key, or merges it where the key says so.
fn enter(entries: &mut Vec<Entry>, name: String, key: &Node, value: Node) {
    if key.as_str() == Some("<<") && key.style == Style::Plain {
        let sources: Vec<&Node> = match &value.value {
            Value::List(items) => items.iter().collect(),
            _ => vec![&value],
        };
        for entry in sources.into_iter().flat_map(Node::entries) {
            // What is written out counts more than what is merged, and what was merged first more than what came later.
            if !entries.iter().any(|known| known.key == entry.key) {
                entries.push(Entry { is_merged: true, key_span: key.span.clone(), ..entry.clone() });
            }
        }
        return;
    }
    entries.retain(|known| !(known.is_merged && known.key == name));
    entries.push(Entry { key: name, key_span: key.span.clone(), value, is_merged: false });
}

/// A key as JSON has it: a text.
fn key_text(key: &Node) -> String {
    match &key.value {
        Value::String(text) => text.clone(),
        _ => key.to_json().to_string(),
    }
}

fn flow(style: StructureStyle) -> Style {
    if style == StructureStyle::Flow { Style::Flow } else { Style::Plain }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let core = tag.and_then(|tag| tag.core_suffix());
    match core {
        Some("str") => Value::String(text.into_owned()),
        Some(_) => resolve(&text),
        // A tag of somebody's own says nothing to us; the text stays a text.
        None if tag.is_some() || style != ScalarStyle::Plain => Value::String(text.into_owned()),
        None => resolve(&text),
    }
}

/// How many values a value is made of, and how deep they go.
fn measure(node: &Node) -> (usize, usize) {
    let below = node.items().iter().chain(node.entries().iter().map(|entry| &entry.value)).map(measure);
    let (values, depth) = below.fold((0, 0), |(values, depth), (more, deep)| (values + more, depth.max(deep)));
    (values + 1, depth + 1)
}

#[cfg(test)]
mod tests;
