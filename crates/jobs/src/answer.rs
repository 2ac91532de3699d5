//! What errors of the API mean to jobs, where [`classify`](jobwright_engine::classify) alone does not tell.

use jobwright_engine::{Failure, Refusal};

/// The cause of every conflict of a server-side apply (`metav1.CauseTypeFieldManagerConflict`).
const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// Whether an apply was refused because other managers own fields of it: it is, until they let go or it is forced.
pub(crate) fn is_field_conflict(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.reason == FIELD_MANAGER_CONFLICT)
}

/// What the API said, in its own words.
pub(crate) fn plain(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// A failure of a call, with the API's own words once.
pub(crate) fn failed(message: String, error: kube::Error) -> Failure {
    Failure::new(message).because(Refusal::from(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_conflict_of_managers_has_a_cause_that_says_so() {
        let conflict = |reason: &str| {
            let causes = json!([{"reason": reason, "message": "conflict with \"hand\"", "field": ".metadata.labels"}]);
            let status =
                json!({"code": 409, "reason": "Conflict", "message": "conflict with", "details": {"causes": causes}});
            kube::Error::Api(serde_json::from_value(status).unwrap())
        };
        assert!(is_field_conflict(&conflict("FieldManagerConflict")));
        assert!(!is_field_conflict(&conflict("FieldValueInvalid")));
        assert!(!is_field_conflict(&kube::Error::LinesCodecMaxLineLengthExceeded));
    }
}
