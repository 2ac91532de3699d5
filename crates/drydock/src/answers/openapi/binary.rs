//! The older document in the binary form that Go clients ask for: what `kubectl` reads for kinds that it cannot find.
//!
//! Texts for people are left out; those clients read structure only.

use serde_json::Value;

/// How clients ask for this form, and how it is called in an answer: `@` is no part of a media type.
pub(crate) const ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
pub(crate) const MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    fn bytes(mut self, field: usize, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len());
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: usize, value: Option<&Value>) -> Self {
        match value.and_then(Value::as_str) {
            Some(text) => self.bytes(field, text.as_bytes()),
            None => self,
        }
    }

    fn message(self, field: usize, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    fn messages(self, field: usize, messages: impl IntoIterator<Item = Self>) -> Self {
        messages.into_iter().fold(self, |whole, message| whole.message(field, &message))
    }
}

/// A name and its value.
fn named(name: &str, value: &Message) -> Message {
    Message::default().bytes(1, name.as_bytes()).message(2, value)
}

fn entries(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

/// Everything that starts with `x-`, as text.
fn extensions(of: &Value) -> impl Iterator<Item = Message> {
    let extensions = entries(Some(of)).filter(|(name, _)| name.starts_with("x-"));
    extensions.map(|(name, value)| named(name, &Message::default().bytes(2, value.to_string().as_bytes())))
}

/// Writes the document.
pub(crate) fn document(document: &Value) -> Vec<u8> {
    let info = &document["info"];
    let info = Message::default().text(1, info.get("title")).text(2, info.get("version"));
    let paths = entries(document.get("paths")).map(|(name, path)| named(name, &path_item(path)));
    let definitions = entries(document.get("definitions")).map(|(name, definition)| named(name, &schema(definition)));
    Message::default()
        .text(1, document.get("swagger"))
        .message(2, &info)
        .message(8, &Message::default().messages(2, paths))
        .message(9, &Message::default().messages(1, definitions))
        .0
}

fn path_item(path: &Value) -> Message {
    let operations = [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8)];
    operations.into_iter().fold(Message::default(), |item, (name, field)| match path.get(name) {
        Some(operation) => item.message(field, &self::operation(operation)),
        None => item,
    })
}

fn operation(operation: &Value) -> Message {
    let parameters = operation.get("parameters").and_then(Value::as_array).into_iter().flatten().map(|parameter| {
        let query = Message::default()
            .text(2, parameter.get("in"))
            .text(4, parameter.get("name"))
            .text(6, parameter.get("type"));
        // A parameter, which is no body, and in the query.
        [3, 2, 1].into_iter().fold(query, |inner, field| Message::default().message(field, &inner))
    });
    Message::default().text(5, operation.get("operationId")).messages(8, parameters).messages(13, extensions(operation))
}

fn schema(schema: &Value) -> Message {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let mut message = Message::default().text(1, schema.get("$ref")).text(2, schema.get("format"));
    for name in required {
        message = message.text(19, Some(name));
    }
    if let Some(additional @ Value::Object(_)) = schema.get("additionalProperties") {
        message = message.message(21, &Message::default().message(1, &self::schema(additional)));
    }
    if schema.get("type").is_some() {
        message = message.message(22, &Message::default().text(1, schema.get("type")));
    }
    if let Some(items) = schema.get("items") {
        message = message.message(23, &Message::default().message(1, &self::schema(items)));
    }
    let properties = entries(schema.get("properties")).map(|(name, property)| named(name, &self::schema(property)));
    let properties = Message::default().messages(1, properties);
    if !properties.0.is_empty() {
        message = message.message(25, &properties);
    }
    message.messages(31, extensions(schema))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_written_in_the_order_of_the_wire() {
        let definition = json!({"type": "object", "properties": {"a": {"$ref": "#/b"}}, "x-k": [1]});
        let expected = [
            // type: ["object"]
            b"\xb2\x01\x08\x0a\x06object".as_slice(),
            // properties: a: $ref
            b"\xca\x01\x0c\x0a\x0a\x0a\x01a\x12\x05\x0a\x03#/b".as_slice(),
            // x-k: [1]
            b"\xfa\x01\x0c\x0a\x03x-k\x12\x05\x12\x03[1]".as_slice(),
        ];
        assert_eq!(schema(&definition).0, expected.concat());
    }
}
