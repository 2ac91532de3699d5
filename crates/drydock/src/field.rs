//! Field paths and field errors, worded as the API server words them
//! (apimachinery v0.34 `util/validation/field`).

use serde_json::Value;
use std::fmt;

/// Where in an object something is wrong: `spec.template.spec.containers[0].name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(String);

impl Path {
    /// The path of a top-level field.
    pub(crate) fn new(field: &str) -> Self {
        Self(field.to_owned())
    }

    /// The path of the object itself.
    pub(crate) fn root() -> Self {
        Self("<nil>".to_owned())
    }

    /// A field below this path.
    #[must_use]
    pub(crate) fn child(&self, field: &str) -> Self {
        if self.0 == "<nil>" { Self::new(field) } else { Self([&self.0, ".", field].concat()) }
    }

    /// An item of the list at this path.
    #[must_use]
    pub(crate) fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// An entry of the map at this path.
    #[must_use]
    pub(crate) fn key(&self, key: &str) -> Self {
        Self([&self.0, "[", key, "]"].concat())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What kind of field error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The value is missing.
    Required,
    /// The value is malformed or not allowed here.
    Invalid,
    /// The value has another type than the schema says.
    TypeInvalid,
    /// The value is not one of a list.
    NotSupported,
    /// The value may not be set here.
    Forbidden,
    /// The value occurs twice.
    Duplicate,
    /// The value names something that does not exist.
    NotFound,
    /// The value is too long.
    TooLong,
    /// The list has too many items.
    TooMany,
}

impl Reason {
    fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }

    /// The `reason` of a status cause.
    pub(crate) fn cause(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }
}

/// One thing that is wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    /// Where.
    pub(crate) field: String,
    /// What kind.
    pub(crate) reason: Reason,
    /// The value as the message shows it.
    value: Option<String>,
    detail: String,
}

impl FieldError {
    fn make(path: &Path, reason: Reason, value: Option<Value>, detail: impl Into<String>) -> Self {
        let value = value.map(|value| match value {
            Value::String(text) => quote(&text),
            other => go_json(&other),
        });
        Self { field: path.to_string(), reason, value, detail: detail.into() }
    }

    /// The value is missing.
    pub(crate) fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::make(path, Reason::Required, None, detail)
    }

    /// The value is malformed or not allowed here.
    pub(crate) fn invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::make(path, Reason::Invalid, Some(value.into()), detail)
    }

    /// As [`FieldError::invalid`], without showing the value.
    pub(crate) fn invalid_omitted(path: &Path, detail: impl Into<String>) -> Self {
        Self::make(path, Reason::Invalid, None, detail)
    }

    /// As [`FieldError::invalid`], with a value that has been printed already.
    pub(crate) fn invalid_printed(path: &Path, printed: String, detail: impl Into<String>) -> Self {
        Self { value: Some(printed), ..Self::make(path, Reason::Invalid, None, detail) }
    }

    /// The value has another type than the schema says.
    pub(crate) fn type_invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::make(path, Reason::TypeInvalid, Some(value.into()), detail)
    }

    /// The value is not one of `supported`.
    pub(crate) fn not_supported(path: &Path, value: impl Into<Value>, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|value| quote(value)).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        Self::make(path, Reason::NotSupported, Some(value.into()), detail)
    }

    /// The value may not be set here.
    pub(crate) fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::make(path, Reason::Forbidden, None, detail)
    }

    /// The value occurs twice.
    pub(crate) fn duplicate(path: &Path, value: impl Into<Value>) -> Self {
        Self::make(path, Reason::Duplicate, Some(value.into()), "")
    }

    /// The value names something that does not exist.
    pub(crate) fn not_found(path: &Path, value: impl Into<Value>) -> Self {
        Self::make(path, Reason::NotFound, Some(value.into()), "")
    }

    /// The same error about a value that has been printed already.
    #[must_use]
    pub(crate) fn showing(self, printed: String) -> Self {
        Self { value: Some(printed), ..self }
    }

    /// The same error with another explanation.
    #[must_use]
    pub(crate) fn because(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// The value has more than `limit` bytes.
    pub(crate) fn too_long(path: &Path, limit: usize) -> Self {
        let bytes = if limit == 1 { "byte" } else { "bytes" };
        Self::make(path, Reason::TooLong, None, format!("may not be more than {limit} {bytes}"))
    }

    /// The list has more than `limit` items.
    pub(crate) fn too_many(path: &Path, count: usize, limit: usize) -> Self {
        let items = if limit == 1 { "item" } else { "items" };
        Self::make(path, Reason::TooMany, Some(count.into()), format!("must have at most {limit} {items}"))
    }

    /// The error without the field's name.
    pub(crate) fn body(&self) -> String {
        let mut text = self.reason.words().to_owned();
        if let Some(value) = &self.value {
            text.push_str(": ");
            text.push_str(value);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.body())
    }
}

/// A string as Go's `%q` shows it.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            other if (other as u32) < 0x20 || other as u32 == 0x7f => {
                quoted.push_str(&format!("\\x{:02x}", other as u32));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// JSON as Go writes it, which escapes what HTML could mistake for markup.
pub(crate) fn go_json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '<' => escaped.push_str(r"\u003c"),
            '>' => escaped.push_str(r"\u003e"),
            '&' => escaped.push_str(r"\u0026"),
            '\u{2028}' => escaped.push_str(r"\u2028"),
            '\u{2029}' => escaped.push_str(r"\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Several errors in one text: alone as it is, otherwise in brackets, each once.
pub(crate) fn aggregate(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_the_server_words_them() {
        let spec = Path::new("spec");
        assert_eq!(
            FieldError::invalid(&spec.child("completions"), 2, "field is immutable").to_string(),
            "spec.completions: Invalid value: 2: field is immutable"
        );
        assert_eq!(FieldError::required(&spec.child("selector"), "").to_string(), "spec.selector: Required value");
        assert_eq!(
            FieldError::not_supported(&spec.child("a").index(0).key("k"), "x", &["A", "B"]).to_string(),
            r#"spec.a[0][k]: Unsupported value: "x": supported values: "A", "B""#
        );
        assert_eq!(FieldError::too_many(&spec, 3, 1).to_string(), "spec: Too many: 3: must have at most 1 item");
    }

    #[test]
    fn values_are_shown_as_go_shows_them() {
        let path = Path::new("spec");
        assert_eq!(
            FieldError::invalid(&path, serde_json::json!(["a<b"]), "no").to_string(),
            r#"spec: Invalid value: ["a\u003cb"]: no"#
        );
        assert_eq!(FieldError::invalid(&path, "a<b", "no").to_string(), r#"spec: Invalid value: "a<b": no"#);
        assert_eq!(
            FieldError::invalid_printed(&path, "{\"B\":1,\"A\":2}".to_owned(), "no").to_string(),
            r#"spec: Invalid value: {"B":1,"A":2}: no"#
        );
    }

    #[test]
    fn equal_errors_are_said_once() {
        let error = FieldError::required(&Path::new("spec"), "");
        assert_eq!(aggregate(&[error.clone(), error.clone()]), "spec: Required value");
        let other = FieldError::forbidden(&Path::new("status"), "no");
        assert_eq!(aggregate(&[error, other]), "[spec: Required value, status: Forbidden: no]");
    }
}
