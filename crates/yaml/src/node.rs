//! Documents as trees whose every value knows where it came from.

use serde_json::Number;
use std::ops::Range;

/// One of the documents of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// What it says.
    pub root: Node,
    /// What is said beside it.
    pub comments: Vec<Comment>,
}

/// A comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Where it is, with its `#`.
    pub span: Range<usize>,
    /// What it says, without it.
    pub text: String,
}

/// A value, and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The bytes of the text. Of what an alias stands for, those of the alias.
    pub span: Range<usize>,
    /// How it is written.
    pub style: Style,
    /// What it is.
    pub value: Value,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes, or a collection over several lines.
    Plain,
    /// In quotes.
    Quoted,
    /// A block of text after `|` or `>`.
    Block,
    /// A collection in brackets.
    Flow,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    String(String),
    /// Values in order.
    List(Vec<Node>),
    /// Values by key, as they were written: of equal keys, the last counts.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key, as a text.
    pub key: String,
    /// Where the key is.
    pub key_span: Range<usize>,
    /// Its value.
    pub value: Node,
    /// Whether it came through a merge key.
    pub is_merged: bool,
}

impl Node {
    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The entries, none if it is no map.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items, none if it is no list.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The entry of a key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().rev().find(|entry| entry.key == key)
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The value at a path of keys and positions in lists.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, step| match &node.value {
            Value::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => node.get(step),
        })
    }

    /// The keys that stand twice in a map, here and below: where each stands again.
    pub fn duplicates(&self) -> Vec<&Entry> {
        let mut found = Vec::new();
        let mut queue = vec![self];
        while let Some(node) = queue.pop() {
            let mut seen = std::collections::BTreeSet::new();
            for entry in node.entries() {
                if !entry.is_merged && !seen.insert(entry.key.as_str()) {
                    found.push(entry);
                }
                queue.push(&entry.value);
            }
            queue.extend(node.items());
        }
        found.sort_by_key(|entry| entry.key_span.start);
        found
    }

    /// The value as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(bool) => serde_json::Value::Bool(*bool),
            Value::Number(number) => serde_json::Value::Number(number.clone()),
            Value::String(text) => serde_json::Value::String(text.clone()),
            Value::List(items) => serde_json::Value::Array(items.iter().map(Node::to_json).collect()),
            Value::Map(entries) => {
                let pairs = entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json()));
                serde_json::Value::Object(pairs.collect())
            }
        }
    }
}

/// A place in a text, for people: both counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// Where a byte of a text is.
pub fn position(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    Position { line: before.matches('\n').count() + 1, column: before[start..].chars().count() + 1 }
}
