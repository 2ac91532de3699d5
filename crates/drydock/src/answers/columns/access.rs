//! Roles, policies, and what extends the API.

use super::{AGE, CREATED, Column, NAME, column, length, number, text, text_or};
use crate::object::Object;
use serde_json::{Value, json};

static ROLE: &[Column] = &[NAME, CREATED];
static CLUSTER_ROLE: &[Column] = &[NAME, CREATED];

static BINDING: &[Column] = &[
    NAME,
    column("Role", |binding, _| {
        json!(format!("{}/{}", binding.text(&["roleRef", "kind"]), binding.text(&["roleRef", "name"])))
    }),
    AGE,
    column("Users", |binding, _| json!(subjects(binding, "User"))).wide(),
    column("Groups", |binding, _| json!(subjects(binding, "Group"))).wide(),
    column("ServiceAccounts", |binding, _| json!(subjects(binding, "ServiceAccount"))).wide(),
];

static LEASE: &[Column] = &[NAME, column("Holder", |lease, _| text(lease, &["spec", "holderIdentity"])), AGE];

static DISRUPTION_BUDGET: &[Column] = &[
    NAME,
    column("Min Available", |budget, _| json!(shown(budget.at(&["spec", "minAvailable"])))),
    column("Max Unavailable", |budget, _| json!(shown(budget.at(&["spec", "maxUnavailable"])))),
    column("Allowed Disruptions", |budget, _| json!(number(budget, &["status", "disruptionsAllowed"])))
        .typed("integer"),
    AGE,
];

static PRIORITY_CLASS: &[Column] = &[
    NAME,
    column("Value", |class, _| json!(number(class, &["value"]))).typed("integer"),
    column("Global-Default", |class, _| json!(class.at(&["globalDefault"]) == Some(&json!(true)))).typed("boolean"),
    AGE,
    column("PreemptionPolicy", |class, _| text_or(class, &["preemptionPolicy"], "PreemptLowerPriority")),
];

static RUNTIME_CLASS: &[Column] = &[NAME, column("Handler", |class, _| text(class, &["handler"])), AGE];

static WEBHOOKS: &[Column] =
    &[NAME, column("Webhooks", |object, _| json!(length(object, &["webhooks"]))).typed("integer"), AGE];

static POLICY: &[Column] = &[
    NAME,
    column("Validations", |policy, _| json!(length(policy, &["spec", "validations"]))).typed("integer"),
    column("ParamKind", |policy, _| match policy.text(&["spec", "paramKind", "kind"]) {
        "" => json!("<unset>"),
        kind => json!(format!("{}/{kind}", policy.text(&["spec", "paramKind", "apiVersion"]))),
    }),
    AGE,
];

static POLICY_BINDING: &[Column] = &[
    NAME,
    column("PolicyName", |binding, _| text(binding, &["spec", "policyName"])),
    column("ParamRef", |binding, _| match binding.text(&["spec", "paramRef", "name"]) {
        "" => json!("<unset>"),
        name => match binding.text(&["spec", "paramRef", "namespace"]) {
            "" => json!(format!("*/{name}")),
            namespace => json!(format!("{namespace}/{name}")),
        },
    }),
    AGE,
];

static API_SERVICE: &[Column] = &[
    NAME,
    column("Service", |object, _| match object.text(&["spec", "service", "name"]) {
        "" => json!("Local"),
        name => json!(format!("{}/{name}", object.text(&["spec", "service", "namespace"]))),
    }),
    column("Available", |object, _| {
        let conditions = object.list(&["status", "conditions"]);
        let available = conditions.iter().find(|condition| condition["type"] == "Available");
        json!(match available {
            None => "Unknown".to_owned(),
            Some(condition) if condition["status"] == "True" => "True".to_owned(),
            Some(condition) => format!(
                "{} ({})",
                condition["status"].as_str().unwrap_or_default(),
                condition["reason"].as_str().unwrap_or_default()
            ),
        })
    }),
    AGE,
];

static SIGNING_REQUEST: &[Column] = &[
    NAME,
    AGE,
    column("SignerName", |request, _| text_or(request, &["spec", "signerName"], "<none>")),
    column("Requestor", |request, _| text(request, &["spec", "username"])),
    column("RequestedDuration", |request, _| {
        let seconds = request.integer(&["spec", "expirationSeconds"]);
        json!(seconds.map_or("<none>".to_owned(), super::super::table::human_duration))
    }),
    column("Condition", |request, _| json!(signing_condition(request))),
];

pub(super) fn of(plural: &str) -> Option<&'static [Column]> {
    Some(match plural {
        "roles" => ROLE,
        "clusterroles" => CLUSTER_ROLE,
        "rolebindings" | "clusterrolebindings" => BINDING,
        "leases" => LEASE,
        "poddisruptionbudgets" => DISRUPTION_BUDGET,
        "priorityclasses" => PRIORITY_CLASS,
        "runtimeclasses" => RUNTIME_CLASS,
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => WEBHOOKS,
        "validatingadmissionpolicies" => POLICY,
        "validatingadmissionpolicybindings" => POLICY_BINDING,
        "apiservices" => API_SERVICE,
        "certificatesigningrequests" => SIGNING_REQUEST,
        _ => return None,
    })
}

fn subjects(binding: &Object, kind: &str) -> String {
    let names: Vec<String> = binding
        .list(&["subjects"])
        .iter()
        .filter(|subject| subject["kind"] == kind)
        .map(|subject| {
            let name = subject["name"].as_str().unwrap_or_default();
            match subject["namespace"].as_str() {
                Some(namespace) if kind == "ServiceAccount" => format!("{namespace}/{name}"),
                _ => name.to_owned(),
            }
        })
        .collect();
    names.join(", ")
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None => "N/A".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn signing_condition(request: &Object) -> String {
    let mut words: Vec<&str> =
        request.list(&["status", "conditions"]).iter().filter_map(|condition| condition["type"].as_str()).collect();
    if words.is_empty() {
        return "Pending".to_owned();
    }
    if !request.text(&["status", "certificate"]).is_empty() {
        words.push("Issued");
    }
    words.join(",")
}
