//! `Chart.lock`: the versions that were taken, and a digest over what was asked for and what was taken.

use super::edit::Edits;
use crate::error::Error;
use crate::metadata::File;
use crate::version::Version;
use jiff::Timestamp;
use jobwright_yaml::Node;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// The fields of a dependency in the order in which Helm writes them (helm v3.17 pkg/chart/dependency.go), and whether one
/// that is empty is written, too.
const FIELDS: [(&str, bool); 8] = [
    ("name", true),
    ("version", false),
    ("repository", true),
    ("condition", false),
    ("tags", false),
    ("enabled", false),
    ("import-values", false),
    ("alias", false),
];

/// A lock with new versions of some dependencies. `wanted` is the file that says what is depended on, as it will be.
pub(super) fn rewrite(
    lock: &File,
    wanted: &File,
    bumped: &[(String, &Version)],
    now: Timestamp,
) -> Result<String, Error> {
    let root = lock.parse()?;
    let mut edits = Edits::of(lock);
    for node in items(&root) {
        let name = node.get("name").and_then(Node::as_str).unwrap_or_default();
        let version = bumped.iter().find(|(bumped, _)| bumped == name);
        if let Some(((_, version), value)) = version.zip(node.get("version")) {
            edits.replace_scalar(value.span.clone(), version.as_str());
        }
    }
    let taken = File { path: lock.path.clone(), text: edits.finish() };
    let digest = digest(&wanted.parse()?, &taken.parse()?);
    let root = taken.parse()?;
    let mut edits = Edits::of(&taken);
    let mut replace = |key: &str, new: &str| {
        if let Some(value) = root.get(key) {
            edits.replace_scalar(value.span.clone(), new);
        }
    };
    replace("digest", &digest);
    replace("generated", &now.to_string());
    Ok(edits.finish())
}

fn items(root: &Node) -> &[Node] {
    root.get("dependencies").map(Node::items).unwrap_or_default()
}

/// What Helm calls the digest of a lock: over the JSON of both lists (helm v3.17 internal/resolver/resolver.go, `HashReq`).
fn digest(wanted: &Node, taken: &Node) -> String {
    let list = |root: &Node| {
        let items: Vec<String> = items(root).iter().map(write_dependency).collect();
        if items.is_empty() { "null".to_owned() } else { format!("[{}]", items.join(",")) }
    };
    let mut digest = String::from("sha256:");
    for byte in Sha256::digest(format!("[{},{}]", list(wanted), list(taken))) {
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}

/// A dependency as Go writes it.
fn write_dependency(node: &Node) -> String {
    let value = |key: &str| node.get(key).map_or(Value::Null, Node::to_json);
    let field = |(key, always): &(&str, bool)| {
        let value = match value(key) {
            // Numbers where a text is wanted are taken for one.
            Value::Number(number) if !matches!(*key, "tags" | "import-values") => Value::String(number.to_string()),
            value => value,
        };
        let is_empty = match &value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        match (is_empty, always) {
            (true, false) => None,
            (true, true) => Some(format!("\"{key}\":\"\"")),
            (false, _) => Some(format!("\"{key}\":{}", escape(&value.to_string()))),
        }
    };
    format!("{{{}}}", FIELDS.iter().filter_map(field).collect::<Vec<_>>().join(","))
}

/// Go keeps what could be markup out of JSON.
fn escape(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text
}
