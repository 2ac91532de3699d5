//! Objects of every built-in kind: as a real server took them, or as their schemas allow them, and then nearly so.

use crate::fuzz::tape::Tape;
use crate::fuzz::value::{arbitrary, mutate};
use crate::fuzz::vocabulary::{NAMES, integer, scalar, text};
use jobwright_drydock::{Drydock, Kind, kinds};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

macro_rules! recorded { ($($name:literal),*) => { [$(include_str!(concat!("../../../src/kinds/rules/recorded/", $name, ".txt"))),*] } }
const RECORDED: [&str; 6] = recorded!["api", "apps", "core", "job", "pod", "service"];

/// What was once sent to a real server, by API version and kind.
static BODIES: LazyLock<BTreeMap<(&str, &str), Vec<Value>>> = LazyLock::new(|| {
    let mut bodies: BTreeMap<_, Vec<Value>> = BTreeMap::new();
    for line in RECORDED.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("create ")) {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().unwrap();
        bodies.entry((word(), word())).or_default().push(serde_json::from_str(word()).unwrap());
    }
    bodies
});

/// The definitions of all built-in types, by name, from the documents that are served.
static DEFINITIONS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    // On a thread of its own, since this one is in a runtime already.
    let read = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let drydock = Drydock::builder().bare().build();
        runtime.block_on(crate::fuzz::world::get(&drydock, "/openapi/v2"))
    };
    let document = std::thread::spawn(read).join().unwrap();
    document["definitions"].as_object().unwrap().clone()
});

static BY_KIND: LazyLock<BTreeMap<(String, String), &Value>> = LazyLock::new(|| {
    let mut found = BTreeMap::new();
    for definition in DEFINITIONS.values() {
        let kind = &definition["x-kubernetes-group-version-kind"][0];
        let text = |field: &str| kind[field].as_str().unwrap_or_default().to_owned();
        let group = text("group");
        let api = if group.is_empty() { text("version") } else { format!("{group}/{}", text("version")) };
        found.insert((api, text("kind")), definition);
    }
    found
});

/// A built-in kind; those that live a life of their own more often than others.
pub fn kind(tape: &mut Tape) -> &'static Kind {
    #[rustfmt::skip]
    const LIVELY: &[&str] = &[
        "Pod", "Job", "CronJob", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Service",
        "PersistentVolumeClaim", "Node", "Namespace", "CustomResourceDefinition", "PodDisruptionBudget", "ConfigMap",
        "HorizontalPodAutoscaler",
    ];
    let all = kinds();
    if tape.once_in(4) {
        return &all[tape.below(all.len())];
    }
    let name = tape.choose(LIVELY);
    all.iter().find(|kind| kind.kind == *name).unwrap()
}

/// An object of a kind, with a name of ours.
pub fn object(tape: &mut Tape, kind: &Kind) -> Value {
    let api = kind.api_version();
    let bodies = BODIES.get(&(api.as_str(), kind.kind.as_str())).map_or(&[][..], Vec::as_slice);
    let mut object = if !bodies.is_empty() && !tape.once_in(4) {
        tape.choose(bodies).clone()
    } else {
        match BY_KIND.get(&(kind.api_version(), kind.kind.clone())) {
            Some(definition) => of_schema(tape, definition, 8),
            None => arbitrary(tape, 4),
        }
    };
    if let Some(fields) = object.as_object_mut().filter(|_| !tape.once_in(20)) {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.kind.clone().into());
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut().filter(|_| kind.kind != "CustomResourceDefinition") {
            metadata.insert("name".to_owned(), (*tape.choose(NAMES)).into());
            metadata.remove("namespace");
            metadata.remove("resourceVersion");
        }
    }
    mutate(tape, &mut object);
    object
}

fn of_schema(tape: &mut Tape, schema: &Value, depth: usize) -> Value {
    if depth == 0 || tape.once_in(40) {
        return scalar(tape);
    }
    let reference = schema.get("$ref").or_else(|| schema["allOf"][0].get("$ref")).and_then(Value::as_str);
    if let Some(name) = reference.and_then(|path| path.rsplit('/').next()) {
        return DEFINITIONS.get(name).map_or(Value::Null, |definition| of_schema(tape, definition, depth - 1));
    }
    match schema["type"].as_str().unwrap_or_default() {
        "string" if schema["format"] == "date-time" => {
            let years = ["2026", "9999", "0001", "1969", "2025", "12345"];
            json!(format!("{}-12-31T23:59:59Z", tape.choose(&years)))
        }
        "string" => json!(text(tape)),
        "integer" => json!(integer(tape)),
        "boolean" => json!(tape.once_in(2)),
        "array" => (0..tape.below(4)).map(|_| of_schema(tape, &schema["items"], depth - 1)).collect(),
        "object" => fields(tape, schema, depth),
        _ => scalar(tape),
    }
}

fn fields(tape: &mut Tape, schema: &Value, depth: usize) -> Value {
    let mut made = Map::new();
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let properties = schema["properties"].as_object();
    let rarity = 1 + properties.map_or(0, Map::len) / 4;
    for (name, below) in properties.into_iter().flatten() {
        let is_required = required.iter().any(|field| field == name) || matches!(name.as_str(), "spec" | "status");
        if (is_required && !tape.once_in(20)) || tape.once_in(rarity + 1) {
            made.insert(name.clone(), of_schema(tape, below, depth - 1));
        }
    }
    if let Some(values) = schema.get("additionalProperties") {
        for _ in 0..tape.below(4) {
            made.insert(text(tape), of_schema(tape, values, depth - 1));
        }
    }
    Value::Object(made)
}
