//! ConfigMaps and Secrets.

use super::fill::{inside, make, or_text};
use super::{NameRule, PLAIN, Rules};
use crate::field::{FieldError, Path};
use crate::object::Object;
use crate::validate::{self, At, Errors, all_invalid, format};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// One mebibyte.
const LENGTH: usize = 1024 * 1024;
const SEALED: &str = "field is immutable when `immutable` is set";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

pub(crate) static CONFIG_MAP: Rules = Rules {
    check: |map| {
        let mut errors = Vec::new();
        check_config_map(map, &mut errors);
        errors
    },
    check_update: |new, old| {
        let mut errors = Vec::new();
        check_sealed(new, old, &["data", "binaryData"], &mut errors);
        errors.extend(validate::metadata(new, NameRule::Subdomain, true));
        check_config_map(new, &mut errors);
        errors
    },
    ..PLAIN
};

pub(crate) static SECRET: Rules = Rules {
    default: default_secret,
    check: |secret| {
        let mut errors = Vec::new();
        check_secret(secret, &mut errors);
        errors
    },
    check_update: |new, old| {
        let mut errors = Vec::new();
        At::top(new, "type").check_text_unchanged(&At::top(old, "type"), &mut errors);
        check_sealed(new, old, &["data"], &mut errors);
        errors.extend(validate::metadata(new, NameRule::Subdomain, true));
        check_secret(new, &mut errors);
        errors
    },
    ..PLAIN
};

/// `stringData` becomes `data`.
fn default_secret(secret: &mut Object) {
    let fields = secret.fields_mut();
    or_text(fields, "type", "Opaque");
    if let Some(Value::Object(texts)) = fields.remove("stringData") {
        let data = make(fields, "data");
        for (key, text) in texts {
            data.insert(key, Value::from(STANDARD.encode(text.as_str().unwrap_or_default())));
        }
    }
    if inside(fields, "data").is_some_and(|data| data.is_empty()) {
        fields.remove("data");
    }
}

/// What is immutable stays as it is.
fn check_sealed(new: &Object, old: &Object, fields: &[&str], errors: &mut Errors) {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    if new.get("immutable") != Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden(&Path::new("immutable"), SEALED));
    }
    for field in fields {
        if new.get(field) != old.get(field) {
            errors.push(FieldError::forbidden(&Path::new(field), SEALED));
        }
    }
}

/// The length of what is written in base64.
fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

fn check_config_map(map: &Object, errors: &mut Errors) {
    let binary = At::top(map, "binaryData");
    let mut length = 0;
    for (key, entry) in At::top(map, "data").entries() {
        errors.extend(all_invalid(&entry.path, key, format::config_key(key)));
        if binary.has(key) {
            errors.push(FieldError::invalid(&entry.path, key, "duplicate of key present in binaryData"));
        }
        length += entry.text().len();
    }
    for (key, entry) in binary.entries() {
        errors.extend(all_invalid(&entry.path, key, format::config_key(key)));
        length += decoded_length(entry.value);
    }
    if length > LENGTH {
        // The server names no field here: `field.NewPath("")` prints as this.
        errors.push(FieldError::too_long(&Path::new("[]"), LENGTH));
    }
}

fn check_secret(secret: &Object, errors: &mut Errors) {
    let data = At::top(secret, "data");
    let mut length = 0;
    for (key, entry) in data.entries() {
        errors.extend(all_invalid(&entry.path, key, format::config_key(key)));
        length += decoded_length(entry.value);
    }
    if length > LENGTH {
        errors.push(FieldError::too_long(&data.path, LENGTH));
    }
    let missing = |key: &str| FieldError::required(&data.path.key(key), "");
    match secret.text(&["type"]) {
        "kubernetes.io/service-account-token" if secret.annotation(ACCOUNT_NAME).unwrap_or_default().is_empty() => {
            let path = Path::new("metadata").child("annotations").key(ACCOUNT_NAME);
            errors.push(FieldError::required(&path, ""));
        }
        "kubernetes.io/dockercfg" => check_json(&data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => check_json(&data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !data.has("username") && !data.has("password") => {
            errors.extend([missing("username"), missing("password")]);
        }
        "kubernetes.io/ssh-auth" if data.text_of("ssh-privatekey").is_empty() => {
            errors.push(missing("ssh-privatekey"));
        }
        "kubernetes.io/tls" => {
            errors.extend(["tls.crt", "tls.key"].into_iter().filter(|key| !data.has(key)).map(missing));
        }
        _ => {}
    }
}

/// A key that holds a JSON object.
fn check_json(data: &At<'_>, key: &str, errors: &mut Errors) {
    let path = data.path.key(key);
    if !data.has(key) {
        errors.push(FieldError::required(&path, ""));
        return;
    }
    let text = STANDARD.decode(data.text_of(key)).unwrap_or_default();
    let why = match serde_json::from_slice::<Value>(&text) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => {
            let found = match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
        }
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(error) => {
            let line = text.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
            // The server looks at bytes, not at characters.
            let found = line.get(error.column().saturating_sub(1)).map_or('\u{fffd}', |byte| char::from(*byte));
            let is_rest = error.to_string().starts_with("trailing characters");
            let place = if is_rest { "after top-level value" } else { "looking for beginning of value" };
            format!("invalid character '{found}' {place}")
        }
    };
    errors.push(FieldError::invalid(&path, "<secret contents redacted>", why));
}
