//! A value together with its place, so that checks read as sentences about fields.

use super::format;
use crate::field::{FieldError, Path};
use crate::object::Object;
use serde_json::Value;

/// What is wrong with an object, in the order in which the server says it.
pub(crate) type Errors = Vec<FieldError>;

static NULL: Value = Value::Null;

/// A value and where it stands in its object. What is absent is null.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    pub(crate) value: &'a Value,
    pub(crate) path: Path,
}

impl<'a> At<'a> {
    pub(crate) fn new(value: &'a Value, path: Path) -> Self {
        Self { value, path }
    }

    /// A top-level field of an object.
    pub(crate) fn top(object: &'a Object, field: &str) -> Self {
        Self::new(object.get(field).unwrap_or(&NULL), Path::new(field))
    }

    /// A field of this value.
    pub(crate) fn field(&self, name: &str) -> Self {
        Self::new(self.value.get(name).unwrap_or(&NULL), self.path.child(name))
    }

    /// A field below several others.
    pub(crate) fn below(&self, names: &[&str]) -> Self {
        names.iter().fold(self.clone(), |at, name| at.field(name))
    }

    /// This value, said to be somewhere else.
    pub(crate) fn called(&self, path: Path) -> Self {
        Self::new(self.value, path)
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> impl Iterator<Item = Self> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(|(index, item)| Self::new(item, self.path.index(index)))
    }

    /// The entries of a map.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(|(key, value)| (key.as_str(), Self::new(value, self.path.key(key))))
    }

    /// The number of items or entries.
    pub(crate) fn len(&self) -> usize {
        match self.value {
            Value::Array(items) => items.len(),
            Value::Object(entries) => entries.len(),
            _ => 0,
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// The text of a field of this value.
    pub(crate) fn text_of(&self, name: &str) -> &'a str {
        self.value.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The texts of a list.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'a str> {
        self.value.as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    pub(crate) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    pub(crate) fn is_true(&self) -> bool {
        self.value == &Value::Bool(true)
    }

    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether a field of this value is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some_and(|value| !value.is_null())
    }

    /// Absent, or an empty text, list or map.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(entries) => entries.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    pub(crate) fn required(&self, detail: impl Into<String>) -> FieldError {
        FieldError::required(&self.path, detail)
    }

    pub(crate) fn invalid(&self, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(&self.path, self.value.clone(), detail)
    }

    pub(crate) fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::forbidden(&self.path, detail)
    }

    pub(crate) fn not_supported(&self, supported: &[&str]) -> FieldError {
        FieldError::not_supported(&self.path, self.value_or_text(), supported)
    }

    pub(crate) fn duplicate(&self) -> FieldError {
        FieldError::duplicate(&self.path, self.value_or_text())
    }

    pub(crate) fn not_found(&self) -> FieldError {
        FieldError::not_found(&self.path, self.value_or_text())
    }

    /// An error for each message about the text.
    pub(crate) fn all_invalid(&self, messages: Vec<String>) -> impl Iterator<Item = FieldError> {
        messages.into_iter().map(|message| FieldError::invalid(&self.path, self.value_or_text(), message))
    }

    /// A text that is absent is empty.
    fn value_or_text(&self) -> Value {
        if self.value.is_null() { Value::from("") } else { self.value.clone() }
    }

    /// The text is there and is one of those.
    pub(crate) fn check_one_of(&self, supported: &[&str], errors: &mut Errors) {
        if self.text().is_empty() {
            errors.push(self.required(""));
        } else if !supported.contains(&self.text()) {
            errors.push(self.not_supported(supported));
        }
    }

    /// The text, where it is there, is one of those.
    pub(crate) fn check_optional(&self, supported: &[&str], errors: &mut Errors) {
        if self.is_set() && !supported.contains(&self.text()) {
            errors.push(self.not_supported(supported));
        }
    }

    /// The number, where it is there, is not negative.
    pub(crate) fn check_not_negative(&self, errors: &mut Errors) {
        if self.number().is_some_and(|number| number < 0) {
            errors.push(self.invalid("must be greater than or equal to 0"));
        }
    }

    /// The text is a path that starts with a domain: `acme.io/foo`.
    pub(crate) fn check_domain_path(&self, errors: &mut Errors) {
        match self.text().split_once('/') {
            _ if self.text().is_empty() => errors.push(self.required("")),
            Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
                errors.extend(super::all_invalid(&self.path, domain, format::dns_subdomain(domain)));
                let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
                if !path.bytes().all(is_path) {
                    let why = format::mismatch("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
                    errors.push(FieldError::invalid(&self.path, path, why));
                }
            }
            _ => errors.push(self.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")")),
        }
    }

    /// The value is what it was.
    pub(crate) fn check_unchanged(&self, old: &Self, errors: &mut Errors) {
        if self.value != old.value {
            errors.push(self.invalid(IMMUTABLE));
        }
    }

    /// The text is what it was.
    pub(crate) fn check_text_unchanged(&self, old: &Self, errors: &mut Errors) {
        if self.text() != old.text() {
            errors.push(FieldError::invalid(&self.path, self.text(), IMMUTABLE));
        }
    }
}

/// The text about fields that may not change.
pub(crate) const IMMUTABLE: &str = "field is immutable";
