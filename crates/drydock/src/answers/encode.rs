//! Objects as the client asked for them: whole, as a table, or their metadata alone.

use crate::cluster::List;
use crate::kinds::Kind;
use crate::object::Object;
use crate::status::Status;
use crate::verbs::watch::WatchEvent;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// In which form a client wants objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
    Table {
        /// What the rows carry besides their cells.
        include: Include,
    },
}

/// What the rows of a table carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    #[default]
    Metadata,
    Object,
}

/// What the server can answer in.
const OFFERED: &[&str] = &["application/json", "application/yaml"];

impl Form {
    /// Reads an `Accept` header: the first form in it that the server knows.
    pub(crate) fn of(accept: &str, include: &str) -> Result<Self, Status> {
        if accept.is_empty() {
            return Ok(Self::Whole);
        }
        for part in accept.split(',') {
            let mut parameters = part.split(';').map(str::trim);
            let media = parameters.next().unwrap_or_default();
            if !matches!(media, "application/json" | "application/*" | "*/*") {
                continue;
            }
            let parameters: Vec<(&str, &str)> = parameters.filter_map(|parameter| parameter.split_once('=')).collect();
            let parameter =
                |name: &str| parameters.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| *value);
            let known = parameter("g") == "meta.k8s.io" && matches!(parameter("v"), "v1" | "v1beta1");
            match parameter("as") {
                "" => return Ok(Self::Whole),
                "Table" if known => {
                    let include = match include {
                        "None" => Include::Nothing,
                        "Object" => Include::Object,
                        _ => Include::Metadata,
                    };
                    return Ok(Self::Table { include });
                }
                "PartialObjectMetadata" | "PartialObjectMetadataList" if known => return Ok(Self::Metadata),
                _ => {}
            }
        }
        Err(Status::not_acceptable(OFFERED))
    }

    /// One object, as JSON.
    pub(crate) fn write_object(self, kind: &Kind, object: &Object, now: jiff::Timestamp) -> Vec<u8> {
        match self {
            Self::Whole => write(object),
            other => write(&other.object(kind, object, now)),
        }
    }

    /// One object.
    fn object(self, kind: &Kind, object: &Object, now: jiff::Timestamp) -> Value {
        match self {
            Self::Whole => object.clone().into_value(),
            Self::Metadata => metadata_of(object),
            Self::Table { include } => {
                let version = object.resource_version().to_owned();
                super::table::table(kind, std::iter::once(object), include, json!({"resourceVersion": version}), now)
            }
        }
    }

    /// Many objects, as JSON.
    pub(crate) fn write_list(self, list: &List, now: jiff::Timestamp) -> Vec<u8> {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), list.revision.to_string().into());
        if let Some(token) = &list.continue_token {
            metadata.insert("continue".to_owned(), token.as_str().into());
        }
        if let Some(remaining) = list.remaining {
            metadata.insert("remainingItemCount".to_owned(), remaining.into());
        }
        let objects = list.items.iter().map(AsRef::as_ref);
        match self {
            Self::Whole => {
                let is_bare = list.kind.custom().is_none();
                let items = objects.map(|object| Item { object, is_bare }).collect();
                let (kind, api_version) = (&*list.kind.list_kind, list.kind.api_version());
                write(&WholeList { api_version, items, kind, metadata })
            }
            Self::Metadata => {
                let items: Vec<Value> = objects.map(metadata_of).collect();
                write(
                    &json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items}),
                )
            }
            Self::Table { include } => {
                write(&super::table::table(&list.kind, objects, include, Value::Object(metadata), now))
            }
        }
    }

    /// What a watch tells, as a line of JSON.
    pub(crate) fn write_event(self, kind: &Kind, event: &WatchEvent, now: jiff::Timestamp) -> Vec<u8> {
        let (name, object) = match event {
            WatchEvent::Added(object) => ("ADDED", self.write_object(kind, object, now)),
            WatchEvent::Modified(object) => ("MODIFIED", self.write_object(kind, object, now)),
            WatchEvent::Deleted(object) => ("DELETED", self.write_object(kind, object, now)),
            WatchEvent::Bookmark { revision, initial_end } => {
                ("BOOKMARK", write(&self.bookmark(kind, *revision, *initial_end, now)))
            }
            WatchEvent::Failed(status) => ("ERROR", write(&status.to_value())),
        };
        [br#"{"object":"#, &*object, br#","type":""#, name.as_bytes(), b"\"}\n"].concat()
    }

    fn bookmark(self, kind: &Kind, revision: u64, initial_end: bool, now: jiff::Timestamp) -> Value {
        let mut object = Object::default();
        object.set(&["kind"], kind.kind.as_str());
        object.set(&["apiVersion"], kind.api_version());
        object.set(&["metadata", "resourceVersion"], revision.to_string());
        if initial_end {
            object.set(&["metadata", "annotations", "k8s.io/initial-events-end"], "true");
        }
        match self {
            Self::Table { include } => {
                let version = json!({"resourceVersion": revision.to_string()});
                super::table::table(kind, std::iter::once(&object), include, version, now)
            }
            form => form.object(kind, &object, now),
        }
    }
}

/// Values of this crate can always be written.
fn write(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WholeList<'a> {
    api_version: String,
    items: Vec<Item<'a>>,
    kind: &'a str,
    metadata: Map<String, Value>,
}

/// An item of a list. Those of a built-in kind do not repeat what kind they are; those of a custom one do.
struct Item<'a> {
    object: &'a Object,
    is_bare: bool,
}

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.object.fields().iter();
        serializer
            .collect_map(fields.filter(|(name, _)| !(self.is_bare && matches!(name.as_str(), "apiVersion" | "kind"))))
    }
}

pub(crate) fn metadata_of(object: &Object) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_known_form_counts() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(Form::of(table, ""), Ok(Form::Table { include: Include::Metadata }));
        assert_eq!(Form::of(table, "Object"), Ok(Form::Table { include: Include::Object }));
        let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        assert_eq!(Form::of(metadata, ""), Ok(Form::Metadata));
        assert_eq!(Form::of("application/vnd.kubernetes.protobuf,application/json", ""), Ok(Form::Whole));
        assert_eq!(Form::of("application/json;as=Table;v=v9;g=meta.k8s.io,*/*", ""), Ok(Form::Whole));
        assert_eq!(Form::of("text/html", "").unwrap_err().code, 406);
    }
}
