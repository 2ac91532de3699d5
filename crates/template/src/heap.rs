//! Where values live while a chart is rendered.
//!
//! All text is in one arena, and lists, maps and hosts are reached by handles: values are `Copy`, maps are shared and may
//! contain themselves without leaking.

use crate::host::Host;
use crate::value::{HostId, ListId, ListType, MapId, MapType, Text, Value};

/// Values and their text.
#[derive(Clone, Debug)]
pub struct Heap {
    text: Vec<u8>,
    lists: Vec<List>,
    maps: Vec<Map>,
    hosts: Vec<Host>,
    /// Bytes that everything takes at most.
    limit: usize,
    used: usize,
    /// What is beyond the limit is not stored; the evaluator checks this after each step.
    exhausted: bool,
    /// Nodes below this number were there before the first template ran.
    pub(crate) base_maps: u32,
    /// Whether a template has changed a map that was there before it.
    pub(crate) base_changed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) kind: ListType,
    pub(crate) items: Vec<Value>,
    /// Go's nil slice, which is empty, and `null` in JSON.
    pub(crate) is_nil: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) kind: MapType,
    /// In the order of their keys' bytes.
    pub(crate) entries: Vec<(Text, Value)>,
    pub(crate) is_nil: bool,
    /// The map that holds this one, and the entry, if it is one of the values that templates read.
    pub(crate) parent: Option<(MapId, Text)>,
    /// Whether what is read of it decides whether a file has to be executed again.
    pub(crate) is_watched: bool,
}

impl Default for Heap {
    fn default() -> Self {
        Self::with_limit(256 << 20)
    }
}

impl Heap {
    /// A heap that takes so many bytes at most.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            text: Vec::new(),
            lists: Vec::new(),
            maps: Vec::new(),
            hosts: Vec::new(),
            limit: limit.min(u32::MAX as usize),
            used: 0,
            exhausted: false,
            base_maps: 0,
            base_changed: false,
        }
    }

    /// Counts bytes that are about to be stored. Beyond the limit, it is noted, and nothing is stored.
    fn charge(&mut self, bytes: usize) -> bool {
        self.used = self.used.saturating_add(bytes);
        self.exhausted |= self.used > self.limit;
        !self.exhausted
    }

    /// Whether something was not stored, so that what is computed is wrong.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Whether so many bytes more would fit.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.used.saturating_add(bytes) <= self.limit
    }

    /// Stores a text.
    pub fn text(&mut self, text: impl AsRef<[u8]>) -> Text {
        let text = text.as_ref();
        if !self.charge(text.len()) {
            return Text { start: 0, length: 0 };
        }
        let start = self.text.len() as u32;
        self.text.extend_from_slice(text);
        Text { start, length: text.len() as u32 }
    }

    /// Stores a text as a value.
    pub fn string(&mut self, text: impl AsRef<[u8]>) -> Value {
        Value::Text(self.text(text))
    }

    /// The bytes of a text.
    pub fn bytes(&self, text: Text) -> &[u8] {
        self.text.get(text.start as usize..(text.start + text.length) as usize).unwrap_or_default()
    }

    /// A text as Rust's, broken characters replaced.
    pub(crate) fn str(&self, text: Text) -> String {
        String::from_utf8_lossy(self.bytes(text)).into_owned()
    }

    /// Stores a list.
    pub fn list(&mut self, kind: ListType, items: Vec<Value>) -> Value {
        Value::List(self.list_id(kind, items, false))
    }

    pub(crate) fn list_id(&mut self, kind: ListType, items: Vec<Value>, is_nil: bool) -> ListId {
        let items = if self.charge(64 + items.len() * size_of::<Value>()) { items } else { Vec::new() };
        self.lists.push(List { kind, items, is_nil });
        ListId(self.lists.len() as u32 - 1)
    }

    /// A nil slice.
    pub(crate) fn nil_list(&mut self, kind: ListType) -> Value {
        Value::List(self.list_id(kind, Vec::new(), true))
    }

    /// A list of `interface {}`.
    pub(crate) fn any_list(&mut self, items: Vec<Value>) -> Value {
        self.list(ListType::Any, items)
    }

    /// A list of `string`.
    pub(crate) fn texts(&mut self, items: impl IntoIterator<Item = Vec<u8>>) -> Value {
        let items = items.into_iter().map(|item| self.string(item)).collect();
        self.list(ListType::Texts, items)
    }

    pub(crate) fn get_list(&self, id: ListId) -> &List {
        &self.lists[id.0 as usize]
    }

    /// Stores an empty map.
    pub fn map(&mut self, kind: MapType) -> MapId {
        self.charge(96);
        let map = Map { kind, entries: Vec::new(), is_nil: false, parent: None, is_watched: false };
        self.maps.push(map);
        MapId(self.maps.len() as u32 - 1)
    }

    /// A nil map.
    pub(crate) fn nil_map(&mut self) -> Value {
        let id = self.map(MapType::Any);
        self.maps[id.0 as usize].is_nil = true;
        Value::Map(id)
    }

    pub(crate) fn get_map(&self, id: MapId) -> &Map {
        &self.maps[id.0 as usize]
    }

    fn find(&self, map: MapId, key: &[u8]) -> Result<usize, usize> {
        self.maps[map.0 as usize].entries.binary_search_by(|(known, _)| self.bytes(*known).cmp(key))
    }

    /// What a map has under a key.
    pub fn get(&self, map: MapId, key: &[u8]) -> Option<Value> {
        let index = self.find(map, key).ok()?;
        Some(self.maps[map.0 as usize].entries[index].1)
    }

    /// Puts a value into a map, under a text that is on the heap.
    pub(crate) fn set_text(&mut self, map: MapId, key: Text, value: Value) {
        self.note_change(map);
        let found = self.maps[map.0 as usize].entries.binary_search_by(|(known, _)| {
            let text = &self.text;
            let bytes = |text_of: Text| &text[text_of.start as usize..(text_of.start + text_of.length) as usize];
            bytes(*known).cmp(bytes(key))
        });
        match found {
            Ok(index) => self.maps[map.0 as usize].entries[index].1 = value,
            Err(index) => {
                if self.charge(size_of::<(Text, Value)>()) {
                    self.maps[map.0 as usize].entries.insert(index, (key, value));
                }
            }
        }
    }

    /// Puts a value into a map.
    pub fn set(&mut self, map: MapId, key: impl AsRef<[u8]>, value: Value) {
        let key = key.as_ref();
        match self.find(map, key) {
            Ok(index) => {
                self.note_change(map);
                self.maps[map.0 as usize].entries[index].1 = value;
            }
            Err(_) => {
                let key = self.text(key);
                self.set_text(map, key, value);
            }
        }
    }

    /// Takes a value out of a map.
    pub(crate) fn remove(&mut self, map: MapId, key: &[u8]) {
        if let Ok(index) = self.find(map, key) {
            self.note_change(map);
            self.maps[map.0 as usize].entries.remove(index);
        }
    }

    fn note_change(&mut self, map: MapId) {
        self.base_changed |= map.0 < self.base_maps;
    }

    /// From here on, changes of maps that exist now are noted.
    pub(crate) fn freeze(&mut self) {
        self.base_maps = self.maps.len() as u32;
        self.base_changed = false;
    }

    /// Stores a host.
    pub(crate) fn host(&mut self, host: Host) -> Value {
        self.charge(128);
        self.hosts.push(host);
        Value::Host(HostId(self.hosts.len() as u32 - 1))
    }

    pub(crate) fn get_host(&self, id: HostId) -> &Host {
        &self.hosts[id.0 as usize]
    }

    /// Stores bytes as a `[]uint8`.
    pub fn byte_list(&mut self, bytes: &[u8]) -> Value {
        let items = bytes.iter().copied().map(Value::Byte).collect();
        self.list(ListType::Bytes, items)
    }

    /// Stores a struct.
    pub fn structure(&mut self, structure: crate::host::Struct) -> Value {
        self.host(Host::Struct(structure))
    }

    /// Lets a map have another type.
    pub fn retype(&mut self, map: MapId, kind: MapType) {
        self.maps[map.0 as usize].kind = kind;
    }

    /// From here on, what is read of a map, and of the maps in it, is recorded with its path.
    pub fn watch(&mut self, root: MapId) {
        let mut queue = vec![(root, None)];
        while let Some((map, parent)) = queue.pop() {
            let node = &mut self.maps[map.0 as usize];
            if std::mem::replace(&mut node.is_watched, true) {
                continue;
            }
            node.parent = parent;
            for (key, value) in &node.entries {
                if let Value::Map(inner) = value {
                    queue.push((*inner, Some((map, *key))));
                }
            }
        }
    }
}

impl Heap {
    /// The Go type of a value.
    pub(crate) fn type_name(&self, value: Value) -> String {
        match value {
            Value::Nil => "<nil>".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Int(_) => "int".to_owned(),
            Value::Int64(_) => "int64".to_owned(),
            Value::Uint64(_) => "uint64".to_owned(),
            Value::Byte(_) => "uint8".to_owned(),
            Value::Float(_) => "float64".to_owned(),
            Value::Text(_) => "string".to_owned(),
            Value::List(list) => self.get_list(list).kind.name().to_owned(),
            Value::Map(map) => self.get_map(map).kind.name().to_owned(),
            Value::Host(host) => self.get_host(host).type_name(),
        }
    }

    /// The Go kind of a value.
    pub(crate) fn kind(&self, value: Value) -> &'static str {
        match value {
            Value::Nil => "invalid",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Int64(_) => "int64",
            Value::Uint64(_) => "uint64",
            Value::Byte(_) => "uint8",
            Value::Float(_) => "float64",
            Value::Text(_) => "string",
            Value::List(_) => "slice",
            Value::Map(_) => "map",
            Value::Host(host) => self.get_host(host).kind(),
        }
    }

    /// Whether Sprig takes a value for empty.
    pub(crate) fn is_empty(&self, value: Value) -> bool {
        match value {
            Value::Nil => true,
            Value::Bool(value) => !value,
            Value::Int(number) | Value::Int64(number) => number == 0,
            Value::Uint64(number) => number == 0,
            Value::Byte(number) => number == 0,
            Value::Float(number) => number == 0.0,
            Value::Text(text) => text.len() == 0,
            Value::List(list) => self.get_list(list).items.is_empty(),
            Value::Map(map) => self.get_map(map).entries.is_empty(),
            Value::Host(host) => matches!(self.get_host(host), Host::Duration(0)),
        }
    }

    /// Whether two values are equal in type and content (`reflect.DeepEqual`).
    pub(crate) fn deep_equal(&self, one: Value, other: Value, depth: usize) -> bool {
        if depth > 1000 {
            return one == other;
        }
        match (one, other) {
            (Value::Text(one), Value::Text(other)) => self.bytes(one) == self.bytes(other),
            (Value::List(one), Value::List(other)) => {
                let (first, second) = (self.get_list(one), self.get_list(other));
                one == other
                    || (first.kind == second.kind
                        && first.is_nil == second.is_nil
                        && first.items.len() == second.items.len()
                        && first
                            .items
                            .iter()
                            .zip(&second.items)
                            .all(|(one, other)| self.deep_equal(*one, *other, depth + 1)))
            }
            (Value::Map(one), Value::Map(other)) => {
                let (first, second) = (self.get_map(one), self.get_map(other));
                let same = |((key, value), (other_key, other_value)): (&(Text, Value), &(Text, Value))| {
                    self.bytes(*key) == self.bytes(*other_key) && self.deep_equal(*value, *other_value, depth + 1)
                };
                one == other
                    || (first.kind == second.kind
                        && first.is_nil == second.is_nil
                        && first.entries.len() == second.entries.len()
                        && first.entries.iter().zip(&second.entries).all(same))
            }
            (Value::Host(one), Value::Host(other)) => {
                one == other
                    || match (self.get_host(one), self.get_host(other)) {
                        (Host::Time(one), Host::Time(other)) => one == other,
                        (Host::Duration(one), Host::Duration(other)) => one == other,
                        (Host::Semver(one), Host::Semver(other)) => one == other,
                        (Host::Struct(one), Host::Struct(other)) => {
                            one.type_name == other.type_name
                                && one
                                    .fields
                                    .iter()
                                    .zip(&other.fields)
                                    .all(|(one, other)| self.deep_equal(one.value, other.value, depth + 1))
                        }
                        _ => false,
                    }
            }
            _ => one == other,
        }
    }
}
