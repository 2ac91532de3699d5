//! How one object becomes another. Everything here is a pure function of values and a schema.

pub(crate) mod fields;
mod go;
pub(crate) mod json;
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
