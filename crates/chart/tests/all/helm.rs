//! Every line of `helm-3.17.3.jsonl` is a chart, arguments of `helm template rel CHART`, and what Helm 3.17.3 answers.

use jobwright_chart::{
    Assignment, Capabilities, Entropy, Helm, LIMITS, NoCluster, Package, Release, RenderOptions, Shown, UserValues,
    render,
};
use serde_json::Value;
use std::path::Path;

const HELM: Helm = Helm::new(3, 17, 3);

/// What a chart is rendered to with some arguments of Helm, or why it is not.
fn template(chart: &str, arguments: &[String]) -> Result<String, String> {
    let mut given = UserValues::default();
    let mut capabilities = Capabilities::of(HELM);
    let mut release =
        Release { name: "rel".to_owned(), namespace: "default".to_owned(), revision: 1, is_upgrade: false };
    let mut shown = Shown::default();
    let mut skip_schema = false;
    let mut words = arguments.iter().cloned();
    while let Some(word) = words.next() {
        let mut next = || words.next().expect("an argument of the flag");
        match word.as_str() {
            "--set" => given.assignments.push(Assignment::Typed(next())),
            "--set-string" => given.assignments.push(Assignment::Text(next())),
            "--set-json" => given.assignments.push(Assignment::Json(next())),
            "--set-literal" => given.assignments.push(Assignment::Literal(next())),
            "--is-upgrade" => release.is_upgrade = true,
            "-n" => release.namespace = next(),
            "--api-versions" => capabilities.api_versions.push(next()),
            "--kube-version" => capabilities = capabilities.with_kube_version(&next())?,
            "--include-crds" => shown.crds = true,
            "--skip-tests" => shown.skip_tests = true,
            "--no-hooks" => shown.no_hooks = true,
            "-s" => shown.only.push(next()),
            "--skip-schema-validation" => skip_schema = true,
            other => return Err(format!("the test does not know {other}")),
        }
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/charts").join(chart);
    let package = Package::load(&directory).map_err(|error| error.to_string())?;
    let values = given.merged().map_err(|error| error.to_string())?;
    let options = RenderOptions {
        helm: HELM,
        release,
        capabilities,
        entropy: Entropy::fixed(1, "2026-01-02T03:04:05Z".parse().expect("a time")),
        lookup: &NoCluster,
        limits: LIMITS,
        skip_schema,
    };
    let rendered = render(&package, &values, &options).map_err(|error| error.to_string())?;
    rendered.to_text(&shown)
}

#[test]
fn charts_render_to_the_bytes_of_helm_and_fail_in_its_words() {
    let mut wrong = Vec::new();
    for line in include_str!("helm-3.17.3.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        let chart = case["chart"].as_str().expect("a chart");
        let arguments = case["args"].as_array().expect("arguments").iter();
        let arguments: Vec<String> = arguments.filter_map(|word| Some(word.as_str()?.to_owned())).collect();
        let expected = case["out"].as_str().expect("an answer");
        let found = template(chart, &arguments);
        let (is_ok, text) = match &found {
            Ok(text) => (true, text.as_str()),
            Err(text) => (false, text.trim()),
        };
        if (case["ok"] == true) != is_ok || text != expected {
            let difference = expected.lines().zip(text.lines()).find(|(one, other)| one != other);
            wrong.push(format!("{chart} {arguments:?}\n  first difference: {difference:#?}\n  ours: {text}"));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
