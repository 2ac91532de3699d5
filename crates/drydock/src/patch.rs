//! How one object becomes another: JSON patches, merge patches, strategic merge patches and server-side apply,
//! with the books that are kept on who manages which field.
//!
//! Everything here is a pure function of values and a schema. The order of a write is
//!
//! 1. change the object: [`json::apply`], [`merge::apply`], [`strategic::apply`] or [`apply::apply`];
//! 2. read the outcome by its schema again (it may hold nulls and unknown fields) and fill in defaults;
//! 3. unless it was an apply, [`managers::track_update`];
//! 4. admission, what the kind generates and carries over, validation;
//! 5. [`managers::keep_times`], after which an object that equals the stored one is no write.

pub(crate) mod apply;
pub(crate) mod fields;
mod go;
pub(crate) mod json;
pub(crate) mod managers;
pub(crate) mod merge;
pub(crate) mod strategic;
#[cfg(test)]
mod testing;
mod typed;

use crate::field::{FieldError, Path};
use crate::status::Status;
use serde_json::{Value, json};

/// A patched document does not read as an object of its kind: `why`, in the words of the decoder.
pub(crate) fn unreadable(patched: &Value, why: &str) -> Status {
    refused(&patched.to_string(), why)
}

/// As [`unreadable`] for a strategic merge patch, which the server quotes in place of its outcome.
pub(crate) fn unreadable_strategic(patch: &Value, why: &str) -> Status {
    refused(&go::plain(patch), why)
}

fn refused(quoted: &str, why: &str) -> Status {
    let error = FieldError::invalid(&Path::new("patch"), quoted, why);
    let cause = json!({"reason": error.reason.cause(), "message": error.body(), "field": error.field});
    Status::unprocessable(format!(" \"\" is invalid: {error}")).with_causes(vec![cause])
}

/// What the server says of a patch that does not apply; why, it keeps to itself.
const REJECTED: &str = "the server rejected our request due to an error in our request";

/// An error that the server did not foresee.
fn unforeseen(message: impl Into<String>) -> Status {
    Status::new(500, "", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_outcomes_are_quoted() {
        let status =
            unreadable_strategic(&json!({"spec": {"nope": 1}}), "strict decoding error: unknown field \"spec.nope\"");
        assert_eq!(
            status.message,
            r#" "" is invalid: patch: Invalid value: "map[spec:map[nope:1]]": strict decoding error: unknown field "spec.nope""#
        );
        assert_eq!((status.code, status.reason), (422, "Invalid"));
        assert_eq!(status.to_value()["details"]["causes"][0]["field"], json!("patch"));
        assert!(unreadable(&json!([]), "x").message.contains(r#"Invalid value: "[]": x"#));
    }
}
