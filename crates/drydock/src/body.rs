//! Request bodies: JSON, YAML or protobuf to an object of a kind, with the server's words for what is wrong.

use crate::field::{FieldError, Path, quote};
use crate::kinds::Kind;
use crate::object::Object;
use crate::options::FieldValidation;
use crate::protobuf;
use crate::request::Body;
use crate::schema::Schema;
use crate::schema::decode::{self, Decoded};
use crate::schema::syntax;
use crate::status::Status;
use serde_json::Value;

const ACCEPTED: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
    Protobuf,
}

impl Format {
    pub(crate) fn of(content_type: &str) -> Result<Self, Status> {
        match media_type(content_type) {
            "" | "application/json" | "*/*" => Ok(Self::Json),
            "application/yaml" => Ok(Self::Yaml),
            "application/vnd.kubernetes.protobuf" => Ok(Self::Protobuf),
            _ => Err(Status::unsupported_media_type(ACCEPTED)),
        }
    }
}

/// A content type without its parameters.
pub(crate) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// What a body holds, and what the client is warned of.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) object: Object,
    pub(crate) warnings: Vec<String>,
}

/// Reads the body of a create or update of a kind.
pub(crate) fn read(body: &Body, kind: &Kind, validation: FieldValidation) -> Result<Read, Status> {
    let decoded = decode_body(body, kind.schema(), &kind.kind, &kind.version)?;
    if kind.custom().is_some() {
        require_envelope(&decoded.value, &body.bytes, kind)?;
    }
    let mut object = envelope(decoded.value, kind)?;
    object.fields_mut().insert("apiVersion".to_owned(), kind.api_version().into());
    object.fields_mut().insert("kind".to_owned(), kind.kind.clone().into());
    let warnings = strictly(decoded.strict, validation).map_err(|error| {
        Status::bad_request(format!(
            "{0} in version {1} cannot be handled as a {0}: {error}",
            kind.kind,
            quote(&kind.version)
        ))
    })?;
    Ok(Read { object, warnings })
}

/// Reads the body of a subresource whose kind is another one, such as a `Scale`.
pub(crate) fn read_other(body: &Body, schema: &Schema, kind: &str, version: &str) -> Result<Object, Status> {
    let decoded = decode_body(body, schema, kind, version)?;
    Object::from_value(decoded.value).map_err(|_| unrecognised(kind, "expected an object"))
}

/// What strict readers refuse: an error, warnings, or nothing at all.
pub(crate) fn strictly(strict: Vec<String>, validation: FieldValidation) -> Result<Vec<String>, String> {
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(strict),
        FieldValidation::Strict if strict.is_empty() => Ok(strict),
        FieldValidation::Strict => Err(format!("strict decoding error: {}", strict.join(", "))),
    }
}

fn decode_body(body: &Body, schema: &Schema, kind: &str, version: &str) -> Result<Decoded, Status> {
    let result = match Format::of(&body.content_type)? {
        Format::Json => {
            serde_json::from_slice::<serde::de::IgnoredAny>(&body.bytes)
                .map_err(|error| syntax::error(&body.bytes).unwrap_or_else(|| error.to_string()))
                .map_err(|error| unrecognised(kind, &format!("json parse error: {error}")))?;
            decode::decode_json(Some(schema), &body.bytes)
        }
        Format::Yaml => decode::decode(Some(schema), yaml(&body.bytes).map_err(|error| unrecognised(kind, &error))?),
        Format::Protobuf => decode::decode(
            Some(schema),
            protobuf::decode(schema, &body.bytes).map_err(|error| unrecognised(kind, &error))?,
        ),
    };
    result.map_err(|error| {
        Status::bad_request(format!("{kind} in version {} cannot be handled as a {kind}: {error}", quote(version)))
    })
}

fn unrecognised(kind: &str, why: &str) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; {why}"
    ))
}

/// YAML as JSON, within limits that no manifest reaches.
pub(crate) fn yaml(bytes: &[u8]) -> Result<Value, String> {
    serde_saphyr::from_slice(bytes).map_err(|error| format!("yaml parse error: {error}"))
}

/// A custom resource must say what it is.
fn require_envelope(value: &Value, bytes: &[u8], kind: &Kind) -> Result<(), Status> {
    let missing = [("kind", "Kind"), ("apiVersion", "apiVersion")]
        .into_iter()
        .find(|(field, _)| value.get(field).and_then(Value::as_str).unwrap_or_default().is_empty());
    let Some((_, name)) = missing else { return Ok(()) };
    let text = String::from_utf8_lossy(bytes);
    let start: String = text.chars().take(30).collect();
    let start = if start.len() < text.len() { format!("{start} ...") } else { start };
    Err(Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): Object '{name}' is missing in '{text}' ({start})",
        kind.kind
    )))
}

/// Checks that the object calls itself what the path says, where it calls itself anything.
fn envelope(value: Value, kind: &Kind) -> Result<Object, Status> {
    let object = Object::from_value(value).map_err(|_| unrecognised(&kind.kind, "expected an object"))?;
    let (api_version, name) = (object.api_version(), object.kind());
    let expected = kind.api_version();
    if (api_version.is_empty() || api_version == expected) && (name.is_empty() || name == kind.kind) {
        return Ok(object);
    }
    if kind.custom().is_some() {
        if name == kind.kind {
            return Err(Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            )));
        }
        let error = FieldError::invalid(&Path::new("kind"), name, format!("must be {}", kind.kind));
        return Err(Status::invalid(kind, object.name(), &[error]));
    }
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let shown = if name.is_empty() { &kind.kind } else { name };
    Err(Status::bad_request(format!(
        "{shown} in version {} cannot be handled as a {}: no kind {} is registered for version {}",
        quote(version),
        kind.kind,
        quote(shown),
        quote(api_version)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;
    use serde_json::json;

    fn read_config_map(content_type: &str, text: &str, validation: FieldValidation) -> Result<Read, String> {
        let body = Body { content_type: content_type.to_owned(), bytes: text.to_owned().into() };
        read(&body, Kinds::default().by_kind("v1", "ConfigMap").unwrap(), validation).map_err(|status| status.message)
    }

    #[test]
    fn json_and_yaml_are_read() {
        for (content_type, text) in [
            ("application/json", r#"{"metadata":{"name":"a"},"data":{"k":"v"},"foo":1}"#),
            ("application/yaml; charset=utf-8", "metadata: {name: a}\ndata: {k: v}\nfoo: 1"),
        ] {
            let read = read_config_map(content_type, text, FieldValidation::Warn).unwrap();
            assert_eq!(read.object.get("data"), Some(&json!({"k": "v"})));
            assert_eq!(read.object.kind(), "ConfigMap");
            assert_eq!(read.warnings, [r#"unknown field "foo""#]);
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_the_servers_words() {
        let strict = |text| read_config_map("", text, FieldValidation::Strict).unwrap_err();
        assert_eq!(
            strict(r#"{"foo":1,"bar":1}"#),
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "foo", unknown field "bar""#
        );
        assert!(strict("{bad").starts_with(
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: "
        ));
        assert_eq!(
            strict(r#"{"data":[]}"#),
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"#
        );
        assert!(
            strict(r#"{"kind":"Pod","apiVersion":"v1"}"#)
                .starts_with(r#"Pod in version "v1" cannot be handled as a ConfigMap: "#)
        );
        assert_eq!(
            read_config_map("text/plain", "", FieldValidation::Warn).unwrap_err(),
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
        );
    }
}
