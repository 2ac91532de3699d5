//! Strategic merge patch: a merge patch that also merges lists, by what the schema says of them
//! (apimachinery v0.34 `util/strategicpatch/patch.go`). Directives in the patch change how:
//!
//! - `$patch: delete | replace` in an object or as an item of a list;
//! - `$retainKeys: [..]` drops all other fields of an object;
//! - `$deleteFromPrimitiveList/x: [..]` takes values out of the list `x`;
//! - `$setElementOrder/x: [..]` orders the list `x`.
//!
//! The server visits the fields of a patch in random order; here it is that of their names.

mod convert;
mod list;
mod order;

use super::merge::without_nulls;
use super::{go, unforeseen, unreadable_strategic};
use crate::schema::facts::Merge;
use crate::schema::{Shape, Struct, View};
use crate::status::Status;
use serde_json::{Map, Value};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// Merges a patch into an object of the kind that the schema describes. If the patch is refused, the object stays as
/// it was. What comes out has the types of the schema but may hold unknown fields and nulls, and quantities and times
/// that are none; the caller refuses those with [`unreadable_strategic`](super::unreadable_strategic).
pub(crate) fn apply(schema: View<'_>, object: &mut Value, patch: &Value) -> Result<(), Status> {
    if !schema.is_typed() {
        return Err(Status::bad_request("strategic merge patch format is not supported"));
    }
    let changes = match patch {
        Value::Null => Map::new(),
        Value::Object(changes) => changes.clone(),
        other => {
            return Err(Status::bad_request(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                go::json_name(other)
            )));
        }
    };
    let original = object.as_object().cloned().unwrap_or_default();
    let mut merged = Value::Object(merge_objects(schema, original, changes)?);
    convert::convert(schema, &mut merged).map_err(|why| unreadable_strategic(patch, &why))?;
    *object = merged;
    Ok(())
}

fn merge_objects(
    schema: View<'_>,
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Result<Map<String, Value>, Status> {
    match patch.get(DIRECTIVE) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(Map::new()),
        Some(other) => return Err(unknown_directive(other, &patch)),
    }
    retain_keys(&mut original, &mut patch)?;
    order::merge_ordered_lists(schema, &mut original, &mut patch)?;
    for (name, change) in patch {
        let (name, deletes) = match name.strip_prefix(DELETE_FROM_LIST) {
            None => (name, false),
            Some(rest) => match rest.strip_prefix('/') {
                Some(list) => (list.to_owned(), true),
                None => return Err(Status::bad_request("invalid patch format of primitive list")),
            },
        };
        if change.is_null() {
            original.remove(&name);
            continue;
        }
        let merged = match (original.remove(&name), change) {
            (Some(Value::Object(current)), Value::Object(change)) => {
                let (field, merge) = look_up(schema, &name)?;
                let merged = if merge.replace { change } else { merge_objects(field, current, change)? };
                Some(Value::Object(merged))
            }
            (Some(Value::Array(current)), Value::Array(change)) => {
                let (items, merge) = look_up_list(schema, &name)?;
                let merged = match merge.by {
                    _ if deletes => list::merge(items, current, change, merge.by.unwrap_or_default(), true)?.items,
                    Some(key) => list::merge(items, current, change, key, false)?.items,
                    None => change,
                };
                Some(Value::Array(merged))
            }
            (Some(current), change) if deletes && go::type_name(&current) != go::type_name(&change) => Some(current),
            (None, _) if deletes => None,
            (_, change) => without_directives(without_nulls(&change)),
        };
        if let Some(merged) = merged {
            original.insert(name, merged);
        }
    }
    Ok(original)
}

/// Applies and takes away `$retainKeys`.
fn retain_keys(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), Status> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || Status::bad_request("invalid patch format of retainKeys");
    let Value::Array(retained) = directive else { return Err(malformed()) };
    let is_retained = |name: &str| retained.iter().any(|retained| retained == name);
    let is_parallel = |name: &str| name.starts_with(DELETE_FROM_LIST) || name.starts_with(ELEMENT_ORDER);
    if patch.iter().any(|(name, change)| !change.is_null() && !is_parallel(name) && !is_retained(name)) {
        return Err(malformed());
    }
    original.retain(|name, _| is_retained(name));
    Ok(())
}

/// What is left of a new value without the objects that hold a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(
            map.into_iter()
                .filter_map(|(name, value)| Some((name, without_directives(value)?)))
                .collect::<Map<_, _>>()
                .into(),
        ),
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        other => Some(other),
    }
}

/// The schema of a field and how it is merged.
fn look_up<'a>(schema: View<'a>, name: &str) -> Result<(View<'a>, &'a Merge), Status> {
    match schema.shape() {
        Shape::Struct(Struct { definition, .. }) => {
            let holder = definition.as_deref().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
            let field = schema.field(name).ok_or_else(|| no_such_field(holder, name))?;
            Ok((schema.go_to(field.node), &field.merge))
        }
        // The types that hold any JSON are structs without fields.
        Shape::Any => Err(no_such_field("JSON", name)),
        other => Err(unforeseen(format!(
            "merging an object in json but data type is not struct, instead is: {}",
            go_kind(other)
        ))),
    }
}

/// The schema of a list's items and how the list is merged.
fn look_up_list<'a>(schema: View<'a>, name: &str) -> Result<(View<'a>, &'a Merge), Status> {
    let (field, merge) = look_up(schema, name)?;
    match field.items() {
        Some(items) => Ok((items, merge)),
        None => Err(unforeseen("expected slice or array type, but got: struct")),
    }
}

fn no_such_field(holder: &str, name: &str) -> Status {
    unforeseen(format!("unable to find api field in struct {holder} for the json field {name:?}"))
}

fn unknown_directive(directive: &Value, holder: &Map<String, Value>) -> Status {
    let holder = go::plain(&Value::Object(holder.clone()));
    unforeseen(format!("unknown patch type: {} in map: {holder}", go::text(directive)))
}

fn no_merge_key(item: &Value, key: &str) -> Status {
    unforeseen(format!("map: {} does not contain declared merge key: {key}", go::plain(item)))
}

fn bad_argument(expected: &str, found: &Value) -> Status {
    unforeseen(format!("expected a {expected}, but received a {}", go::type_name(found)))
}

fn go_kind(shape: &Shape) -> &'static str {
    match shape {
        Shape::Any | Shape::Struct(_) | Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::IntOrString => {
            "struct"
        }
        Shape::Text => "string",
        Shape::Flag => "bool",
        Shape::Integer(crate::schema::Width::Int32) => "int32",
        Shape::Integer(crate::schema::Width::Int64) => "int64",
        Shape::Number => "float64",
        Shape::Bytes | Shape::List { .. } => "slice",
        Shape::Map { .. } => "map",
    }
}

#[cfg(test)]
mod tests;
