//! Questions about access: the reviews of the authorization and authentication groups.

use super::rbac::{self, Attributes};
use super::{API_AUDIENCE, Token, User};
use crate::object::Object;
use crate::store::Store;
use serde_json::{Map, Value, json};

/// Answers a review by filling in its status. `None`: the kind is no review.
pub(crate) fn review<'a>(
    store: &Store,
    asker: &User,
    mut question: Object,
    valid: impl Fn(&str) -> Option<&'a Token>,
) -> Option<Object> {
    let status = match question.kind() {
        "SelfSubjectAccessReview" => access(store, asker, &question),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => access(store, &subject(&question), &question),
        "SelfSubjectRulesReview" => rules(store, asker, question.text(&["spec", "namespace"])),
        "SelfSubjectReview" => json!({"userInfo": asker.to_value()}),
        "TokenReview" => token(&question, valid),
        _ => return None,
    };
    question.set(&["status"], status);
    Some(question)
}

fn subject(question: &Object) -> User {
    let groups: Vec<&str> = question.list(&["spec", "groups"]).iter().filter_map(Value::as_str).collect();
    let name = question.text(&["spec", "user"]).to_owned();
    User { name, groups: groups.into_iter().map(str::to_owned).collect() }
}

fn access(store: &Store, user: &User, question: &Object) -> Value {
    let attribute = |field: &str| question.text(&["spec", "resourceAttributes", field]);
    let resource = match attribute("subresource") {
        "" => attribute("resource").to_owned(),
        subresource => format!("{}/{subresource}", attribute("resource")),
    };
    let attributes = if question.at(&["spec", "resourceAttributes"]).is_some() {
        Attributes::Resource {
            verb: attribute("verb"),
            group: attribute("group"),
            resource: &resource,
            namespace: attribute("namespace"),
            name: attribute("name"),
        }
    } else {
        Attributes::Path {
            verb: question.text(&["spec", "nonResourceAttributes", "verb"]),
            path: question.text(&["spec", "nonResourceAttributes", "path"]),
        }
    };
    let allowed = rbac::allows(store, user, &attributes);
    let mut status = Map::new();
    status.insert("allowed".to_owned(), json!(allowed.is_some()));
    if let Some(reason) = allowed.filter(|reason| !reason.is_empty()) {
        status.insert("reason".to_owned(), json!(reason));
    }
    Value::Object(status)
}

fn rules(store: &Store, user: &User, namespace: &str) -> Value {
    let (paths, resources): (Vec<Value>, Vec<Value>) =
        rbac::rules_of(store, user, namespace).into_iter().partition(|rule| rule.get("nonResourceURLs").is_some());
    json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
}

fn token<'a>(question: &Object, valid: impl Fn(&str) -> Option<&'a Token>) -> Value {
    let refuse = |why: &str| json!({"user": {}, "error": format!("[invalid bearer token, {why}]")});
    let Some(token) = valid(question.text(&["spec", "token"])) else { return refuse("unknown") };
    let asked: Vec<&str> = question.list(&["spec", "audiences"]).iter().filter_map(Value::as_str).collect();
    let asked = if asked.is_empty() { vec![API_AUDIENCE] } else { asked };
    let meant: Vec<&str> = asked.iter().copied().filter(|one| token.audiences.iter().any(|own| own == one)).collect();
    if meant.is_empty() {
        let (own, asked) = (token.audiences.join(" "), asked.join(" "));
        return refuse(&format!("token audiences [{own}] is invalid for the target audiences [{asked}]"));
    }
    json!({"authenticated": true, "user": token.user.to_value(), "audiences": meant})
}
