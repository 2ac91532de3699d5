//! Charts below an umbrella chart, also twice under aliases.

use crate::{Test, repository};
use anyhow::{Result, ensure};
use jobwright_e2e::render::{Rendered, Renderer, name};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use tempfile::TempDir;

pub(crate) const TESTS: &[Test] = &[
    ("a chart that is twice in an umbrella has every name once", twice),
    ("a Service leads to pods of its own alias only", selectors),
    ("charts of two umbrellas below one have names of their own", nested),
    ("a chart of its own is called as its release, and one with a fullname as that", called),
];

const MODES: [&str; 2] = ["hook", "plain"];

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// A chart with others in it, by their names and aliases.
fn umbrella(at: &Path, called: &str, charts: &[(&str, Option<&str>)]) -> Result<()> {
    let mut text = format!("apiVersion: v2\nname: {called}\nversion: 1.0.0\ndependencies:\n");
    for (chart, alias) in charts {
        let alias = alias.map(|alias| format!(", alias: {alias}")).unwrap_or_default();
        writeln!(text, "- {{name: {chart}, version: '>=1', repository: 'file://unused'{alias}}}")?;
    }
    std::fs::create_dir_all(at)?;
    Ok(std::fs::write(at.join("Chart.yaml"), text)?)
}

/// The migration and the agent, each twice.
fn pairs() -> Result<TempDir> {
    let directory = tempfile::tempdir()?;
    let charts =
        [("migration", None), ("migration", Some("second")), ("agent", Some("third")), ("agent", Some("Fourth_one"))];
    umbrella(directory.path(), "shop", &charts)?;
    for chart in ["migration", "agent"] {
        copy(&repository(&format!("examples/{chart}")), &directory.path().join("charts").join(chart))?;
    }
    Ok(directory)
}

fn render(helm: &Renderer, chart: &Path, mode: &str) -> Result<Rendered> {
    let set: Vec<_> = ["migration", "second", "third", "Fourth_one", "one.agent", "two.agent"]
        .iter()
        .map(|chart| format!("{chart}.releaseHooks.mode={mode}"))
        .collect();
    Ok(helm.template("shop", chart, &["--set", &set.join(",")])?)
}

fn check_unique(rendered: &Rendered) -> Result<()> {
    let mut names = BTreeSet::new();
    for object in rendered.objects() {
        let key = (object["kind"].to_string(), name(object).to_owned());
        ensure!(names.insert(key), "{} {} is there twice", object["kind"], name(object));
    }
    Ok(())
}

fn twice(helm: &Renderer) -> Result<()> {
    let chart = pairs()?;
    for mode in MODES {
        let rendered = render(helm, chart.path(), mode)?;
        check_unique(&rendered)?;
        ensure!(rendered.all("Deployment").count() == 4 && rendered.all("Job").count() > 4, "{mode}");
        rendered.one("Job", "shop-second-migrate")?;
        rendered.one("Deployment", "shop-third")?;
    }
    Ok(())
}

fn selectors(helm: &Renderer) -> Result<()> {
    let chart = pairs()?;
    let rendered = render(helm, chart.path(), "hook")?;
    let leads = |selector: &Value, deployment: &Value| {
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        selector.as_object().is_some_and(|selector| selector.iter().all(|(key, value)| labels[key] == *value))
    };
    let services = rendered.all("Service").map(|service| &service["spec"]["selector"]);
    let selectors = services.chain(rendered.all("Deployment").map(|one| &one["spec"]["selector"]["matchLabels"]));
    for selector in selectors {
        let found = rendered.all("Deployment").filter(|deployment| leads(selector, deployment)).count();
        ensure!(found == 1, "{selector} selects the pods of {found} Deployments");
    }
    Ok(())
}

fn nested(helm: &Renderer) -> Result<()> {
    let directory = tempfile::tempdir()?;
    umbrella(directory.path(), "shop", &[("part", Some("one")), ("part", Some("two"))])?;
    let part = directory.path().join("charts/part");
    umbrella(&part, "part", &[("agent", None)])?;
    copy(&repository("examples/agent"), &part.join("charts/agent"))?;
    for mode in MODES {
        let rendered = render(helm, directory.path(), mode)?;
        check_unique(&rendered)?;
        rendered.one("Deployment", "shop-one-agent")?;
        rendered.one("Deployment", "shop-two-agent")?;
    }
    Ok(())
}

fn called(helm: &Renderer) -> Result<()> {
    let names = |rendered: &Rendered| -> BTreeSet<(String, String)> {
        let key = |object: &Value| (object["kind"].to_string(), name(object).to_owned());
        // The name of a plain Job is its content, too.
        rendered.objects().iter().filter(|object| object["kind"] != "Job").map(key).collect()
    };
    let own = helm.template("shop", &repository("examples/agent"), &[])?;
    own.one("Deployment", "shop")?;
    let directory = tempfile::tempdir()?;
    umbrella(directory.path(), "umbrella", &[("agent", None)])?;
    copy(&repository("examples/agent"), &directory.path().join("charts/agent"))?;
    let values = directory.path().join("kept.yaml");
    std::fs::write(&values, "agent: {releaseHooks: {fullname: '{{ .Release.Name }}'}}\n")?;
    let kept = helm.template("shop", directory.path(), &["--values", &values.display().to_string()])?;
    ensure!(names(&own) == names(&kept), "{:?}\n{:?}", names(&own), names(&kept));
    let selector =
        |rendered: &Rendered| -> Result<Value> { Ok(rendered.one("Deployment", "")?["spec"]["selector"].clone()) };
    ensure!(selector(&own)? == selector(&kept)?, "a Deployment of version 1 cannot be changed");
    let below = helm.template("shop", directory.path(), &[])?;
    below.one("Deployment", "shop-agent")?;
    Ok(())
}
