//! What a file reads of the values, so that it is executed again only if something of that has changed.
//!
//! A read is a path and what was found there. A file whose reads find the same in other values prints the same, because
//! nothing else reaches it: maps and lists below what was read are reached by further reads only.

use crate::heap::Heap;
use crate::value::{MapId, Text, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What was found at a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// Nothing.
    Absent,
    /// A map, of which more may be read by further reads.
    Map,
    /// Whether the map is empty.
    Emptiness(bool),
    /// The keys of a map.
    Keys(Vec<Vec<u8>>),
    /// Anything else, or all of a map, by its Go syntax.
    Everything(Vec<u8>),
}

/// A path, from the outermost map on.
pub type Path = Vec<Vec<u8>>;

/// What a file read, and what else decides what it prints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReads {
    /// What was found at which paths, each path below the values that were watched.
    pub found: BTreeMap<Path, BTreeSet<Found>>,
    /// Whether the file changed values that others see.
    pub wrote: bool,
    /// Whether it drew something at random, or asked for the time.
    pub drew: bool,
    /// Whether it asked the cluster.
    pub looked_up: bool,
}

/// What is recorded while files are executed.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    seen: BTreeSet<(MapId, Option<Vec<u8>>, u8)>,
    found: BTreeMap<Path, BTreeSet<Found>>,
    pub(crate) drew: bool,
    pub(crate) looked_up: bool,
}

impl Reads {
    fn path(heap: &Heap, map: MapId) -> Path {
        let mut path = Vec::new();
        let mut map = map;
        while let Some((parent, key)) = heap.get_map(map).parent {
            path.push(heap.bytes(key).to_vec());
            map = parent;
        }
        path.reverse();
        path
    }

    fn note(&mut self, path: Path, found: Found) {
        self.found.entry(path).or_default().insert(found);
    }

    /// Whether reads of a map count, and this one is new.
    fn is_new(&mut self, heap: &Heap, map: MapId, key: Option<&[u8]>, kind: u8) -> bool {
        heap.get_map(map).is_watched && self.seen.insert((map, key.map(<[u8]>::to_vec), kind))
    }

    /// A key was looked up in a map.
    pub(crate) fn lookup(&mut self, heap: &Heap, map: MapId, key: &[u8], found: Option<Value>) {
        if !self.is_new(heap, map, Some(key), 0) {
            return;
        }
        let mut path = Self::path(heap, map);
        path.push(key.to_vec());
        let found = match found {
            None => Found::Absent,
            Some(Value::Map(_)) => Found::Map,
            Some(value) => Found::Everything(syntax(heap, value)),
        };
        self.note(path, found);
    }

    /// An entry of a map was visited.
    pub(crate) fn entry(&mut self, heap: &Heap, map: MapId, key: Text) {
        let key = heap.bytes(key);
        self.lookup(heap, map, key, heap.get(map, key));
    }

    /// Whether a map is empty was asked.
    pub(crate) fn emptiness(&mut self, heap: &Heap, map: MapId) {
        if self.is_new(heap, map, None, 1) {
            self.note(Self::path(heap, map), Found::Emptiness(heap.get_map(map).entries.is_empty()));
        }
    }

    /// The keys of a map were listed.
    pub(crate) fn keys(&mut self, heap: &Heap, map: MapId) {
        if self.is_new(heap, map, None, 2) {
            let keys = heap.get_map(map).entries.iter().map(|(key, _)| heap.bytes(*key).to_vec()).collect();
            self.note(Self::path(heap, map), Found::Keys(keys));
        }
    }

    /// A value was handed to something that may read all of it.
    pub(crate) fn everything(&mut self, heap: &Heap, value: Value) {
        let mut queue = vec![value];
        let mut visited = BTreeSet::new();
        while let Some(value) = queue.pop() {
            match value {
                Value::Map(map) => {
                    if !visited.insert(map) {
                        continue;
                    }
                    if self.is_new(heap, map, None, 3) {
                        self.note(Self::path(heap, map), Found::Everything(syntax(heap, value)));
                    } else if !heap.get_map(map).is_watched {
                        queue.extend(heap.get_map(map).entries.iter().map(|(_, item)| *item));
                    }
                }
                Value::List(list) => {
                    // Lists of the values are read entirely when they are looked up; others may hold maps.
                    queue.extend(
                        heap.get_list(list).items.iter().filter(|item| matches!(item, Value::Map(_) | Value::List(_))),
                    );
                }
                _ => {}
            }
        }
    }

    /// What has been read, to begin anew.
    pub(crate) fn take(&mut self, heap: &mut Heap) -> FileReads {
        self.seen.clear();
        FileReads {
            found: std::mem::take(&mut self.found),
            wrote: std::mem::take(&mut heap.base_changed),
            drew: std::mem::take(&mut self.drew),
            looked_up: std::mem::take(&mut self.looked_up),
        }
    }
}

/// A value in Go syntax, which has types and all that is below it.
fn syntax(heap: &Heap, value: Value) -> Vec<u8> {
    let verb: &[u8] = if matches!(value, Value::Text(_)) { b"%q" } else { b"%T%#v" };
    let values: &[Value] = if matches!(value, Value::Text(_)) { &[value] } else { &[value, value] };
    crate::format::sprintf(heap, verb, values).unwrap_or_default()
}

impl FileReads {
    /// Whether other values look the same to the file. Changes, chance and the cluster are not considered.
    pub fn finds_the_same(&self, heap: &Heap, root: MapId) -> bool {
        self.found.iter().all(|(path, found)| {
            let mut value = Some(Value::Map(root));
            for key in path {
                value = match value {
                    Some(Value::Map(map)) => heap.get(map, key),
                    _ => None,
                };
            }
            found.iter().all(|found| match (found, value) {
                (Found::Absent, None) | (Found::Map, Some(Value::Map(_))) => true,
                (Found::Emptiness(empty), Some(Value::Map(map))) => heap.get_map(map).entries.is_empty() == *empty,
                (Found::Keys(keys), Some(Value::Map(map))) => {
                    let entries = &heap.get_map(map).entries;
                    entries.len() == keys.len()
                        && entries.iter().zip(keys).all(|((key, _), known)| heap.bytes(*key) == known)
                }
                (Found::Everything(known), Some(value)) => syntax(heap, value) == *known,
                _ => false,
            })
        })
    }
}
