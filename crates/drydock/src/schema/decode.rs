//! Reads JSON by a schema, as the API server's decoder does: fields in the order of the document, unknown and
//! doubled ones noted and left out, values of a wrong type refused in Go's words, empty ones dropped.
//!
//! Parts of custom resources that no built-in type describes are only pruned; their values are judged later.

use super::{Schema, Shape, Struct, View, Width};
use crate::quantity;
use base64::Engine as _;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::fmt;

/// What was read.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    /// What a strict reader refuses: `unknown field "spec.x"`, `duplicate field "spec.y"`.
    pub(crate) strict: Vec<String>,
}

/// Reads a document. The error is the text of Go's decoder.
pub(crate) fn decode<'de, D>(schema: Option<&Schema>, deserializer: D) -> Result<Decoded, String>
where
    D: Deserializer<'de>,
    D::Error: fmt::Display,
{
    let state = RefCell::new(State::default());
    let seed = Seed { view: schema.map(Schema::root), state: &state };
    let value = seed.deserialize(deserializer).map_err(|error| error.to_string())?;
    let state = state.into_inner();
    match state.refusal {
        Some(refusal) => Err(refusal),
        None => Ok(Decoded { value, strict: state.strict }),
    }
}

/// Reads a document from JSON text.
pub(crate) fn decode_json(schema: Option<&Schema>, text: &[u8]) -> Result<Decoded, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let decoded = decode(schema, &mut deserializer).map_err(|error| super::syntax::error(text).unwrap_or(error))?;
    deserializer.end().map_err(|error| super::syntax::error(text).unwrap_or_else(|| error.to_string()))?;
    Ok(decoded)
}

#[derive(Default)]
struct State {
    /// For strict readers: `spec.containers[0].x`.
    path: Vec<Segment>,
    /// The built-in struct that is being read, innermost last; `None` for parts that no built-in type describes.
    structs: Vec<Option<GoStruct>>,
    strict: Vec<String>,
    refusal: Option<String>,
}

/// A Go struct that is being read.
struct GoStruct {
    name: String,
    /// How much of the path lies outside of what Go reads as structs.
    base: usize,
}

enum Segment {
    /// A field of a struct.
    Field(String),
    /// An entry of a map, which Go leaves out of its messages.
    Key(String),
    Index(usize),
}

impl State {
    fn path_of(&self, name: &str) -> String {
        let mut text = String::new();
        for segment in &self.path {
            match segment {
                Segment::Field(name) | Segment::Key(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(name);
                }
                Segment::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        if !text.is_empty() {
            text.push('.');
        }
        text + name
    }

    fn is_typed(&self) -> bool {
        self.structs.last().is_some_and(Option::is_some)
    }

    fn refuse(&mut self, text: impl FnOnce() -> String) {
        if self.refusal.is_none() && self.is_typed() {
            self.refusal = Some(text());
        }
    }

    fn mismatch(&mut self, found: &str, wanted: View<'_>) {
        let place = match self.structs.last() {
            Some(Some(GoStruct { name, base })) if self.path.len() > *base => {
                let fields: Vec<&str> = self.path[*base..]
                    .iter()
                    .filter_map(|segment| match segment {
                        Segment::Field(name) => Some(name.as_str()),
                        _ => None,
                    })
                    .collect();
                format!("Go struct field {name}.{}", fields.join("."))
            }
            _ => "Go value".to_owned(),
        };
        self.refuse(|| format!("json: cannot unmarshal {found} into {place} of type {}", go_type(wanted)));
    }
}

/// The Go type of a node, as Go prints it.
fn go_type(view: View<'_>) -> String {
    match view.shape() {
        Shape::Any => "interface {}".to_owned(),
        Shape::Text => "string".to_owned(),
        Shape::Flag => "bool".to_owned(),
        Shape::Integer(Width::Int32) => "int32".to_owned(),
        Shape::Integer(Width::Int64) => "int64".to_owned(),
        Shape::Number => "float64".to_owned(),
        Shape::Bytes => "[]uint8".to_owned(),
        Shape::Time => "v1.Time".to_owned(),
        Shape::MicroTime => "v1.MicroTime".to_owned(),
        Shape::Quantity => "resource.Quantity".to_owned(),
        Shape::IntOrString => "intstr.IntOrString".to_owned(),
        Shape::List { items, .. } => format!("[]{}", go_type(view.go_to(*items))),
        Shape::Map { values, .. } => format!("map[string]{}", go_type(view.go_to(*values))),
        Shape::Struct(Struct { definition: Some(name), .. }) => {
            let start = name.rmatch_indices('.').nth(1).map_or(0, |(index, _)| index + 1);
            name[start..].to_owned()
        }
        Shape::Struct(_) => "map[string]interface {}".to_owned(),
    }
}

/// What a null item or map value of this type becomes.
fn zero(view: View<'_>) -> Value {
    match view.shape() {
        Shape::Text | Shape::Bytes => Value::from(""),
        Shape::Flag => Value::from(false),
        Shape::Integer(_) | Shape::Number | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::from("0"),
        Shape::Struct(_) => Value::Object(Map::new()),
        Shape::Any | Shape::Time | Shape::MicroTime | Shape::List { .. } | Shape::Map { .. } => Value::Null,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) => false,
    }
}

struct Seed<'a, 's> {
    view: Option<View<'a>>,
    state: &'s RefCell<State>,
}

impl<'a> Seed<'a, '_> {
    fn below(&self, segment: Segment, view: Option<View<'a>>) -> Below<'a, '_> {
        self.state.borrow_mut().path.push(segment);
        Below(Seed { view, state: self.state })
    }

    fn mismatch(&self, found: &str, value: Value) -> Value {
        let Some(view) = self.view else { return value };
        let mut state = self.state.borrow_mut();
        if state.is_typed() || matches!(view.shape(), Shape::Struct(Struct { definition: Some(_), .. })) {
            state.mismatch(found, view);
            return Value::Null;
        }
        value
    }

    /// A number that fits no integer, or no integer of this width.
    fn number(&self, text: &str, value: Value) -> Value {
        match self.view.map(View::shape) {
            None | Some(Shape::Any | Shape::Number) => value,
            Some(Shape::Integer(_)) => self.mismatch(&format!("number {text}"), value),
            Some(Shape::Quantity) => self.quantity(text, value),
            Some(_) => self.mismatch("number", value),
        }
    }

    fn quantity(&self, text: &str, value: Value) -> Value {
        let mut state = self.state.borrow_mut();
        match quantity::canonical(text) {
            Ok(text) if state.is_typed() => Value::from(text),
            Ok(_) => value,
            Err(error) => {
                state.refuse(|| error.to_string());
                value
            }
        }
    }

    fn text(&self, text: &str) -> Value {
        let value = Value::from(text);
        match self.view.map(View::shape) {
            None | Some(Shape::Any | Shape::Text | Shape::IntOrString) => value,
            Some(Shape::Quantity) => self.quantity(text, value),
            Some(Shape::Bytes) => {
                if let Err(error) = base64::engine::general_purpose::STANDARD.decode(text) {
                    self.state.borrow_mut().refuse(|| base64_refusal(&error));
                }
                value
            }
            Some(Shape::Time) => self.time(text, false),
            Some(Shape::MicroTime) => self.time(text, true),
            Some(_) => self.mismatch("string", value),
        }
    }

    fn time(&self, text: &str, micro: bool) -> Value {
        match text.parse::<jiff::Timestamp>() {
            Ok(time) if micro => Value::from(crate::clock::micro_time(time)),
            Ok(time) => Value::from(crate::clock::time(time)),
            Err(_) => {
                let layout = if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
                self.state
                    .borrow_mut()
                    .refuse(|| format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""));
                Value::from(text)
            }
        }
    }
}

fn base64_refusal(error: &base64::DecodeError) -> String {
    let offset = match error {
        base64::DecodeError::InvalidByte(offset, _) | base64::DecodeError::InvalidLastSymbol(offset, _) => *offset,
        base64::DecodeError::InvalidLength(length) => *length,
        base64::DecodeError::InvalidPadding => 0,
    };
    format!("illegal base64 data at input byte {offset}")
}

/// A seed for what lies below; its path segment is taken away when it has been read.
struct Below<'a, 's>(Seed<'a, 's>);

impl<'de> DeserializeSeed<'de> for Below<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let state = self.0.state;
        let value = self.0.deserialize(deserializer);
        state.borrow_mut().path.pop();
        value
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(match self.view.map(View::shape) {
            None | Some(Shape::Any | Shape::Flag) => Value::from(flag),
            Some(_) => self.mismatch("bool", Value::from(flag)),
        })
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Value, E> {
        Ok(match self.view.map(View::shape) {
            Some(Shape::Integer(Width::Int64)) => Value::from(number),
            Some(Shape::Integer(Width::Int32) | Shape::IntOrString) if i32::try_from(number).is_ok() => {
                Value::from(number)
            }
            _ => self.number(&number.to_string(), Value::from(number)),
        })
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Value, E> {
        match i64::try_from(number) {
            Ok(number) => self.visit_i64(number),
            Err(_) => Ok(self.number(&number.to_string(), Value::from(number))),
        }
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(self.number(&number.to_string(), Value::from(number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(self.text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let item_view = self.view.and_then(View::items);
        if item_view.is_none() && !matches!(self.view.map(View::shape), None | Some(Shape::Any)) {
            let mut list = Vec::new();
            while let Some(item) = items.next_element::<Value>()? {
                list.push(item);
            }
            return Ok(self.mismatch("array", Value::Array(list)));
        }
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.below(Segment::Index(list.len()), item_view))? {
            let typed = self.state.borrow().is_typed();
            list.push(match (item, item_view) {
                (Value::Null, Some(view)) if typed => zero(view),
                (item, _) => item,
            });
        }
        // The segment of the item that was not there.
        self.state.borrow_mut().path.pop();
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        match self.view.map(View::shape) {
            Some(Shape::Struct(object)) => self.read_struct(object, entries),
            None | Some(Shape::Any | Shape::Map { .. }) => self.read_map(entries),
            Some(_) => {
                while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(self.mismatch("object", Value::Object(Map::new())))
            }
        }
    }
}

impl Seed<'_, '_> {
    fn read_map<'de, A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let value_view = self.view.and_then(|view| view.entry(""));
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if map.contains_key(&name) {
                self.note_duplicate(&name);
            }
            let value = entries.next_value_seed(self.below(Segment::Key(name.clone()), value_view))?;
            let typed = self.state.borrow().is_typed();
            map.insert(
                name,
                match (value, value_view) {
                    (Value::Null, Some(view)) if typed => zero(view),
                    (value, _) => value,
                },
            );
        }
        Ok(Value::Object(map))
    }

    fn read_struct<'de, A: MapAccess<'de>>(self, object: &Struct, mut entries: A) -> Result<Value, A::Error> {
        let short = object.definition.as_deref().map(|name| name.rsplit('.').next().unwrap_or(name).to_owned());
        let typed = short.is_some();
        {
            let mut state = self.state.borrow_mut();
            let base = match state.structs.last() {
                Some(Some(outer)) => outer.base,
                _ => state.path.len(),
            };
            state.structs.push(short.map(|name| GoStruct { name, base }));
        }
        let mut seen = Vec::new();
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if seen.contains(&name) {
                self.note_duplicate(&name);
            }
            let field = object.fields.get(&name);
            let view = field.and_then(|field| self.view.map(|view| view.go_to(field.node)));
            let known = field.is_some() || object.open || (object.embedded && is_envelope(&name));
            if !known {
                let mut state = self.state.borrow_mut();
                let path = state.path_of(&name);
                state.strict.push(format!("unknown field {path:?}"));
                drop(state);
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = entries.next_value_seed(self.below(Segment::Field(name.clone()), view))?;
            let dropped = match field {
                Some(field) if typed => {
                    value.is_null() || (is_empty_value(&value, view) && !field.pointer && !field.keep_empty)
                }
                _ => false,
            };
            if dropped {
                map.remove(&name);
            } else {
                map.insert(name.clone(), value);
            }
            seen.push(name);
        }
        self.state.borrow_mut().structs.pop();
        Ok(Value::Object(map))
    }

    fn note_duplicate(&self, name: &str) {
        let mut state = self.state.borrow_mut();
        let path = state.path_of(name);
        state.strict.push(format!("duplicate field {path:?}"));
    }
}

/// Go writes empty maps and lists as absent, but not structs.
fn is_empty_value(value: &Value, view: Option<View<'_>>) -> bool {
    match (value, view.map(View::shape)) {
        (Value::Object(map), Some(Shape::Map { .. })) => map.is_empty(),
        (_, Some(Shape::Quantity | Shape::IntOrString | Shape::Any)) => false,
        (value, _) => is_empty(value),
    }
}

fn is_envelope(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(text: &str) -> Result<Decoded, String> {
        decode_json(Some(&Schema::built_in("io.k8s.api.batch.v1.Job")), text.as_bytes())
    }

    #[test]
    fn unknown_and_doubled_fields_are_named_in_the_order_of_the_document() {
        let decoded = job(r#"{"spec":{"zz":1,"backofLimit":0,"backoffLimit":1,"backoffLimit":2,
            "template":{"spec":{"containers":[{"name":"a"},{"name":"b","imag":"x"}]}}}}"#)
        .unwrap();
        assert_eq!(
            decoded.strict,
            [
                r#"unknown field "spec.zz""#,
                r#"unknown field "spec.backofLimit""#,
                r#"duplicate field "spec.backoffLimit""#,
                r#"unknown field "spec.template.spec.containers[1].imag""#,
            ]
        );
        assert_eq!(decoded.value["spec"]["backoffLimit"], json!(2));
        assert_eq!(decoded.value["spec"].get("zz"), None);
    }

    #[test]
    fn a_value_of_a_wrong_type_is_refused_in_gos_words() {
        for (text, refusal) in [
            (
                r#"{"spec":{"backoffLimit":"x"}}"#,
                "json: cannot unmarshal string into Go struct field JobSpec.spec.backoffLimit of type int32",
            ),
            (
                r#"{"metadata":{"annotations":{"a":1}}}"#,
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.annotations of type string",
            ),
            (
                r#"{"spec":{"backoffLimit":3000000000}}"#,
                "json: cannot unmarshal number 3000000000 into Go struct field JobSpec.spec.backoffLimit of type int32",
            ),
            (
                r#"{"spec":{"template":{"spec":{"containers":{}}}}}"#,
                "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
            ),
            (r#"{"spec":[]}"#, "json: cannot unmarshal array into Go struct field Job.spec of type v1.JobSpec"),
        ] {
            assert_eq!(job(text).unwrap_err(), refusal, "{text}");
        }
    }

    #[test]
    fn what_is_empty_is_dropped_unless_it_means_something() {
        let decoded =
            job(r#"{"metadata":{"name":"","labels":{},"annotations":null},"spec":{"backoffLimit":0,"selector":null,
            "template":{"spec":{"hostNetwork":false,"containers":[{"name":"","env":[],"resources":{}}]}}}}"#)
            .unwrap();
        assert_eq!(
            decoded.value,
            json!({"metadata": {}, "spec": {"backoffLimit": 0,
                "template": {"spec": {"containers": [{"name": "", "resources": {}}]}}}})
        );
    }

    #[test]
    fn quantities_and_times_get_their_canonical_form() {
        let decoded = job(
            r#"{"metadata":{"creationTimestamp":"2026-11-16T01:00:00.5+01:00"},"spec":{"template":{"spec":{"containers":[
            {"name":"a","resources":{"requests":{"cpu":0.5,"memory":"1024Mi"}}}]}}}}"#,
        )
        .unwrap();
        assert_eq!(decoded.value["metadata"]["creationTimestamp"], json!("2026-11-16T00:00:00Z"));
        let container = &decoded.value["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["resources"]["requests"], json!({"cpu": "500m", "memory": "1Gi"}));
        let wrong = job(r#"{"spec":{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}}}"#);
        assert!(wrong.unwrap_err().starts_with("quantities must match the regular expression"));
    }

    #[test]
    fn custom_resources_are_pruned_and_nothing_more() {
        let schema = Schema::custom(&json!({
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}},
        }));
        let text = br#"{"metadata":{"name":"a","x":1},"spec":{"size":"big","other":1,"free":{"a":null}}}"#;
        let decoded = decode_json(Some(&schema), text).unwrap();
        assert_eq!(decoded.strict, [r#"unknown field "metadata.x""#, r#"unknown field "spec.other""#]);
        assert_eq!(decoded.value, json!({"metadata": {"name": "a"}, "spec": {"size": "big", "free": {"a": null}}}));
        let wrong = decode_json(Some(&schema), br#"{"metadata":{"labels":[]}}"#).unwrap_err();
        assert_eq!(
            wrong,
            "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string"
        );
    }
}
