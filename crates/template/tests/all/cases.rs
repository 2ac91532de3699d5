//! Every line of `go/*.jsonl` is a template and what Helm 3.17.3 makes of it; `e2e/oracle` writes them.

use crate::context::render;
use jobwright_template::{Helm, LIMITS};
use serde_json::Value;

const HELM: Helm = Helm::new(3, 17, 3);

fn check(cases: &str, helpers: &str, values: &str) {
    let documents = jobwright_yaml::parse(values).expect("values");
    let values = documents[0].root.to_json();
    let mut wrong = Vec::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        let template = case["tpl"].as_str().expect("a template");
        let (ok, expected) = (case["ok"] == true, case["out"].as_str().expect("an answer"));
        let found = render(HELM, template, helpers, &values, LIMITS);
        let is_right = match &found {
            Ok(printed) => ok && printed == expected,
            Err(error) => !ok && error == expected,
        };
        if !is_right {
            wrong.push(format!("{template}\n  helm: {expected:?}\n  ours: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), cases.lines().count(), wrong.join("\n"));
}

#[test]
fn given_templates_render_as_with_helm() {
    check(include_str!("go/given.jsonl"), include_str!("go/given.tpl"), include_str!("go/given.yaml"));
}

#[test]
fn every_function_and_verb_does_what_it_does_in_helm() {
    check(include_str!("go/more.jsonl"), include_str!("go/given.tpl"), include_str!("go/given.yaml"));
}
