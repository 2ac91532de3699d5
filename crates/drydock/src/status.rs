//! Refusals: the API's `Status` object, with the real server's codes, reasons and texts
//! (apimachinery v0.34 `api/errors`).

use crate::field::{FieldError, aggregate, quote};
use crate::kinds::Kind;
use crate::object::Object;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value, json};
use thiserror::Error;

/// A request was refused. This is what the client gets as the body of the answer.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{message}")]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason: `NotFound`, `AlreadyExists`, …
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
    details: Map<String, Value>,
    /// Where an expired list may go on.
    continue_token: Option<String>,
    /// Not JSON but this text, for paths that no API serves.
    pub(crate) plain: bool,
}

/// Fields come in the order of the real server: some clients compare texts.
impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let continue_token = self.continue_token.as_deref();
        let mut status = serializer.serialize_map(None)?;
        status.serialize_entry("kind", "Status")?;
        status.serialize_entry("apiVersion", "v1")?;
        status.serialize_entry(
            "metadata",
            &continue_token.map_or_else(|| json!({}), |token| json!({"continue": token})),
        )?;
        status.serialize_entry("status", "Failure")?;
        status.serialize_entry("message", &self.message)?;
        if !self.reason.is_empty() {
            status.serialize_entry("reason", self.reason)?;
        }
        if !self.details.is_empty() {
            let order = ["name", "group", "kind", "uid", "causes", "retryAfterSeconds"];
            status.serialize_entry("details", &Ordered { map: &self.details, order: &order })?;
        }
        status.serialize_entry("code", &self.code)?;
        status.end()
    }
}

/// A map whose known fields come first, in their order.
struct Ordered<'a> {
    map: &'a Map<String, Value>,
    order: &'a [&'a str],
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.map.len()))?;
        let known = self.order.iter().filter_map(|name| self.map.get_key_value(*name));
        let others = self.map.iter().filter(|(name, _)| !self.order.contains(&name.as_str()));
        for (name, value) in known.chain(others) {
            match value {
                Value::Array(causes) if name == "causes" => {
                    let order = ["reason", "message", "field"];
                    let causes = causes.iter().filter_map(Value::as_object);
                    let causes: Vec<_> = causes.map(|map| Ordered { map, order: &order }).collect();
                    map.serialize_entry(name, &causes)?;
                }
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

impl Status {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Map::new(), continue_token: None, plain: false }
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        for (field, text) in [("name", name), ("group", group), ("kind", kind)] {
            if !text.is_empty() {
                self.details.insert(field.to_owned(), json!(text));
            }
        }
        self
    }

    fn about_resource(self, kind: &Kind, name: &str) -> Self {
        self.about(&kind.group, &kind.plural, name)
    }

    pub(crate) fn with_causes(mut self, causes: Vec<Value>) -> Self {
        if !causes.is_empty() {
            self.details.insert("causes".to_owned(), Value::Array(causes));
        }
        self
    }

    /// Whether one of the causes has this reason.
    pub(crate) fn has_cause(&self, reason: &str) -> bool {
        let causes = self.details.get("causes").and_then(Value::as_array).into_iter().flatten();
        causes.into_iter().any(|cause| cause["reason"] == reason)
    }

    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.details.insert("retryAfterSeconds".to_owned(), json!(seconds));
        self
    }

    /// The seconds after which the client may try again.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds").and_then(Value::as_u64)
    }

    /// Whether something was not made because its namespace is going.
    pub(crate) fn is_because_namespace_goes(&self) -> bool {
        self.has_cause("NamespaceTerminating")
    }

    pub(crate) fn with_continue(mut self, token: String) -> Self {
        self.continue_token = Some(token);
        self
    }

    /// The object as the client sees it.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {} not found", kind.group_resource(), quote(name));
        Self::new(404, "NotFound", message).about_resource(kind, name)
    }

    pub(crate) fn already_exists(kind: &Kind, known: &Object) -> Self {
        let going = if known.is_being_deleted() { "object is being deleted: " } else { "" };
        let message = format!("{going}{} {} already exists", kind.group_resource(), quote(known.name()));
        Self::new(409, "AlreadyExists", message).about_resource(kind, known.name())
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {}: {why}", kind.group_resource(), quote(name));
        Self::new(409, "Conflict", message).about_resource(kind, name)
    }

    /// As [`Status::conflict`], naming the kind and not the resource.
    pub(crate) fn conflict_of_kind(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {}: {why}", kind.group_kind(), quote(name));
        Self::new(409, "Conflict", message).about(&kind.group, &kind.kind, name)
    }

    /// Somebody else wrote in between.
    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", kind.group_resource())
        } else {
            format!("{} {} is forbidden: {why}", kind.group_resource(), quote(name))
        };
        Self::new(403, "Forbidden", message).about_resource(kind, name)
    }

    /// A path, not a resource, is forbidden.
    pub(crate) fn forbidden_path(why: &str) -> Self {
        Self::new(403, "Forbidden", format!("forbidden: {why}"))
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> Self {
        let message = format!("{} {} is invalid: {}", kind.group_kind(), quote(name), aggregate(errors));
        Self::new(422, "Invalid", message).about(&kind.group, &kind.kind, name).with_causes(causes(errors))
    }

    /// As [`Status::invalid`], naming the resource and not the kind.
    pub(crate) fn invalid_resource(kind: &Kind, name: &str, errors: &[FieldError]) -> Self {
        let message = format!("{} {} is invalid: {}", kind.group_resource(), quote(name), aggregate(errors));
        Self::new(422, "Invalid", message).about_resource(kind, name).with_causes(causes(errors))
    }

    /// Query options that do not fit together.
    pub(crate) fn invalid_options(kind: &str, errors: &[FieldError]) -> Self {
        let message = format!("{kind}.meta.k8s.io \"\" is invalid: {}", aggregate(errors));
        Self::new(422, "Invalid", message).about("meta.k8s.io", kind, "").with_causes(causes(errors))
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message)
    }

    pub(crate) fn method_not_allowed(kind: &Kind, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind {}", quote(&kind.group_resource()));
        Self::new(405, "MethodNotAllowed", message).about_resource(kind, "")
    }

    pub(crate) fn unknown_method() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    /// The group is served, the resource is not.
    pub(crate) fn unknown_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    /// No API serves the path.
    pub(crate) fn unknown_path() -> Self {
        Self { plain: true, ..Self::new(404, "NotFound", "404 page not found\n") }
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn too_old(asked: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {asked} ({oldest})"))
    }

    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        Self::new(504, "Timeout", format!("Timeout: Too large resource version: {asked}, current: {current}"))
            .with_causes(vec![cause])
            .retry_after(1)
    }

    pub(crate) fn too_large_body(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::new(406, "NotAcceptable", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn too_many_requests(message: impl Into<String>, retry_after: u32) -> Self {
        Self::new(429, "TooManyRequests", message).retry_after(retry_after)
    }

    pub(crate) fn internal(why: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {why}"))
            .with_causes(vec![json!({"message": why})])
    }

    pub(crate) fn unavailable(why: &str) -> Self {
        Self::new(503, "ServiceUnavailable", why)
    }

    pub(crate) fn timeout(why: &str) -> Self {
        Self::new(504, "Timeout", format!("Timeout: {why}"))
    }
}

fn causes(errors: &[FieldError]) -> Vec<Value> {
    let cause =
        |error: &FieldError| json!({"reason": error.reason.cause(), "message": error.body(), "field": error.field});
    errors.iter().map(cause).collect()
}
