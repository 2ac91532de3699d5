//! What is answered to a review.

use serde_json::{Value, json};

/// Who has this label is refused, with its value for a reason.
pub const REFUSED: &str = "jobwright.local/refused";

/// A review that was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Whether the object was let through.
    pub allowed: bool,
    /// The AdmissionReview to send.
    pub answer: Value,
    /// What is recorded of it: who asked for what, nothing of the object's content.
    pub record: Value,
}

/// Answers a review; none if this is not one.
pub fn answer(review: &Value) -> Option<Verdict> {
    let request = review["request"].as_object()?;
    let uid = request.get("uid")?.as_str()?;
    let reason = review["request"]["object"]["metadata"]["labels"][REFUSED].as_str();
    let mut response = json!({"uid": uid, "allowed": reason.is_none()});
    if let Some(reason) = reason {
        response["status"] = json!({"code": 403, "message": reason});
    }
    let field = |name: &str| review["request"][name].clone();
    let record = json!({
        "uid": uid,
        "operation": field("operation"),
        "kind": review["request"]["kind"]["kind"],
        "namespace": field("namespace"),
        "name": field("name"),
        "allowed": reason.is_none(),
    });
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    Some(Verdict { allowed: reason.is_none(), answer, record })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_labelled_is_refused() {
        let plain = answer(&json!({"request": {"uid": "1", "object": {"metadata": {"name": "a"}}}})).unwrap();
        assert_eq!(plain.answer["response"], json!({"uid": "1", "allowed": true}));
        let labelled = json!({"request": {"uid": "2", "object": {"metadata": {"labels": {REFUSED: "no"}}}}});
        let labelled = answer(&labelled).unwrap();
        assert_eq!(labelled.answer["response"]["status"]["message"], "no");
        assert!(!labelled.allowed);
    }

    #[test]
    fn what_is_no_review_has_no_answer() {
        for other in [json!(null), json!([]), json!({"request": 1}), json!({"request": {"uid": 1}})] {
            assert_eq!(answer(&other), None, "{other}");
        }
    }

    #[test]
    fn the_content_of_an_object_is_not_recorded() {
        let review =
            json!({"request": {"uid": "1", "kind": {"kind": "Secret"}, "object": {"data": {"a": "c2VjcmV0"}}}});
        assert!(!answer(&review).unwrap().record.to_string().contains("c2VjcmV0"));
    }
}
