//! The entries of `metadata.managedFields`.

use crate::object::Object;
use crate::patch::fields::FieldSet;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// Entries of updates that are kept apart (apimachinery v0.34 `managedfields/internal/fieldmanager.go`).
pub(super) const MOST_UPDATERS: usize = 10;
/// Who the oldest updates belong to when there are more.
const OLD_UPDATES: &str = "ancient-changes";

/// How a manager came to its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::patch) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What tells entries apart. Who applies has one entry, whatever the version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::patch) struct Identity {
    pub(in crate::patch) manager: String,
    pub(in crate::patch) operation: Operation,
    /// Empty for appliers.
    api_version: String,
    subresource: String,
}

impl Identity {
    pub(in crate::patch) fn new(operation: Operation, manager: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
            operation,
            api_version: if operation == Operation::Apply { "" } else { api_version }.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

impl Identity {
    /// Whether an entry as it is written is the one of this identity.
    pub(super) fn is_of(&self, entry: &Value) -> bool {
        text(entry, "manager") == self.manager
            && text(entry, "operation") == self.operation.name()
            && text(entry, "subresource") == self.subresource
            && (self.operation == Operation::Apply || text(entry, "apiVersion") == self.api_version)
    }
}

/// As conflicts name a manager.
impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.manager)?;
        if !self.subresource.is_empty() {
            write!(formatter, " with subresource {:?}", self.subresource)?;
        }
        match self.operation {
            Operation::Apply => Ok(()),
            Operation::Update => write!(formatter, " using {}", self.api_version),
        }
    }
}

/// The fields of one manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::patch) struct Entry {
    pub(in crate::patch) api_version: String,
    pub(in crate::patch) fields: FieldSet,
    /// None for an applier that has changed nothing yet.
    pub(in crate::patch) time: Option<String>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::patch) struct Managers(BTreeMap<Identity, Entry>);

impl Managers {
    /// The books of an object.
    pub(in crate::patch) fn of(object: Option<&Object>) -> Result<Self, String> {
        Self::read(object.and_then(|object| object.at(&["metadata", "managedFields"])))
    }

    /// Reads `managedFields`.
    pub(in crate::patch) fn read(books: Option<&Value>) -> Result<Self, String> {
        let mut managers = BTreeMap::new();
        for (index, entry) in books.and_then(Value::as_array).into_iter().flatten().enumerate() {
            let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".to_owned()),
            };
            if text("apiVersion").is_empty() {
                return Err("apiVersion must not be empty".to_owned());
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
                other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {index}")),
            }
            let identity = Identity {
                manager: text("manager").to_owned(),
                operation,
                api_version: if operation == Operation::Apply { "" } else { text("apiVersion") }.to_owned(),
                subresource: text("subresource").to_owned(),
            };
            let fields = FieldSet::from_value(entry.get("fieldsV1").unwrap_or(&Value::Null))
                .map_err(|error| format!("error decoding set: {error}"))?;
            let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
            managers.insert(identity, Entry { api_version: text("apiVersion").to_owned(), fields, time });
        }
        Ok(Self(managers))
    }

    /// Puts the books into an object: appliers first, then the oldest.
    pub(in crate::patch) fn write(self, object: &mut Object) {
        if self.0.is_empty() {
            object.remove(&["metadata", "managedFields"]);
            return;
        }
        let mut entries = self.into_entries();
        entries.sort_by(|left, right| place(left).cmp(&place(right)));
        object.metadata_mut().insert("managedFields".to_owned(), Value::Array(entries));
    }

    /// The entries as the books write them, in no order.
    pub(super) fn into_entries(self) -> Vec<Value> {
        self.0.into_iter().map(|(identity, entry)| encode(&identity, entry)).collect()
    }

    pub(in crate::patch) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::patch) fn get(&self, identity: &Identity) -> Option<&Entry> {
        self.0.get(identity)
    }

    pub(in crate::patch) fn get_mut(&mut self, identity: &Identity) -> Option<&mut Entry> {
        self.0.get_mut(identity)
    }

    pub(in crate::patch) fn insert(&mut self, identity: Identity, entry: Entry) {
        self.0.insert(identity, entry);
    }

    pub(in crate::patch) fn remove(&mut self, identity: &Identity) -> Option<Entry> {
        self.0.remove(identity)
    }

    pub(in crate::patch) fn iter(&self) -> impl Iterator<Item = (&Identity, &Entry)> {
        self.0.iter()
    }

    /// Keeps the entries that `change` does not give up. It may change them.
    pub(in crate::patch) fn retain(&mut self, change: impl FnMut(&Identity, &mut Entry) -> bool) {
        self.0.retain(change);
    }

    /// Merges the oldest updates of each version while there are too many.
    pub(in crate::patch) fn cap(&mut self) {
        let mut updaters: Vec<Identity> =
            self.0.keys().filter(|identity| identity.operation == Operation::Update).cloned().collect();
        let mut excess = updaters.len().saturating_sub(MOST_UPDATERS);
        updaters.sort_by_key(|identity| (self.0.get(identity).map(seconds), identity.clone()));
        let mut firsts: BTreeMap<String, Identity> = BTreeMap::new();
        for identity in updaters {
            if excess == 0 {
                break;
            }
            let version = identity.api_version.clone();
            let bucket = Identity::new(Operation::Update, OLD_UPDATES, &version, "");
            let Some(first) = firsts.get(&version) else {
                firsts.insert(version, identity);
                continue;
            };
            if !self.0.contains_key(&bucket)
                && let Some(entry) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), entry);
            }
            let Some(merged) = self.0.remove(&identity) else { continue };
            if let Some(entry) = self.0.get_mut(&bucket) {
                entry.fields = std::mem::take(&mut entry.fields).union(&merged.fields);
                entry.time = merged.time;
            } else {
                self.0.insert(bucket, merged);
            }
            excess -= 1;
        }
    }
}

/// Where a written entry stands among the others.
pub(super) fn place(entry: &Value) -> (&str, i64, &str, &str, &str) {
    let time = text(entry, "time").parse::<jiff::Timestamp>().map(jiff::Timestamp::as_second).unwrap_or_default();
    (text(entry, "operation"), time, text(entry, "manager"), text(entry, "apiVersion"), text(entry, "subresource"))
}

fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn encode(identity: &Identity, entry: Entry) -> Value {
    let mut encoded = Map::new();
    let mut put = |name: &str, text: &str| {
        if !text.is_empty() {
            encoded.insert(name.to_owned(), json!(text));
        }
    };
    put("manager", &identity.manager);
    put("operation", identity.operation.name());
    put("apiVersion", &entry.api_version);
    put("time", entry.time.as_deref().unwrap_or_default());
    put("fieldsType", "FieldsV1");
    put("subresource", &identity.subresource);
    encoded.insert("fieldsV1".to_owned(), entry.fields.to_value());
    Value::Object(encoded)
}

fn seconds(entry: &Entry) -> i64 {
    let time = entry.time.as_deref().and_then(|time| time.parse::<jiff::Timestamp>().ok());
    time.map_or(0, jiff::Timestamp::as_second)
}
