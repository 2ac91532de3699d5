//! Renders charts as `helm template` does.

mod context;
mod session;

pub use session::Session;

use crate::capabilities::Capabilities;
use crate::package::{Package, PackageFile};
use crate::split::{Split, documents};
use crate::values::Values;
use jobwright_template::{Entropy, ExecError, Helm, Limits, Lookup, ParseError};

/// The release that a chart is rendered for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its revision.
    pub revision: i64,
    /// Whether it is upgraded, not installed.
    pub is_upgrade: bool,
}

/// How a chart is rendered.
pub struct RenderOptions<'a> {
    /// The Helm to be.
    pub helm: Helm,
    /// The release.
    pub release: Release,
    /// What the cluster can.
    pub capabilities: Capabilities,
    /// Chance and the time.
    pub entropy: Entropy,
    /// The cluster.
    pub lookup: &'a dyn Lookup,
    /// How much is taken.
    pub limits: Limits,
    /// Whether schemas of values are ignored.
    pub skip_schema: bool,
}

/// What a chart is rendered to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// Objects and hooks.
    pub split: Split,
    /// The files below `crds/`, with the paths of their charts.
    pub crds: Vec<PackageFile>,
    /// What `NOTES.txt` says.
    pub notes: String,
}

/// Why a chart cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// Its values, its dependencies or its objects are wrong, in Helm's words.
    #[error("{0}")]
    Chart(String),
    /// A template cannot be parsed.
    #[error("{}", .0.helm_message())]
    Parse(ParseError),
    /// A template cannot be executed.
    #[error("{}", .0.helm_message())]
    Execute(Box<ExecError>),
}

/// Renders a chart with the values that a user gives.
pub fn render(package: &Package, given: &Values, options: &RenderOptions<'_>) -> Result<Rendered, RenderError> {
    Session::new(package.clone()).render(given, options)
}

fn check_kind(package: &Package) -> Result<(), RenderError> {
    match package.metadata.kind.as_str() {
        "" | "application" => Ok(()),
        kind => Err(RenderError::Chart(format!("{kind} charts are not installable"))),
    }
}

/// Refuses a chart that lacks one that it needs.
fn check_dependencies(package: &Package) -> Result<(), RenderError> {
    let missing: Vec<&str> = package
        .metadata
        .dependencies
        .iter()
        .filter(|requirement| !package.dependencies.iter().any(|subchart| subchart.name() == requirement.name))
        .map(|requirement| requirement.name.as_str())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(RenderError::Chart(format!(
        "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {}",
        missing.join(", ")
    )))
}

/// The templates of a chart and of those in it: name, text, and the path of the chart.
fn templates<'p>(package: &'p Package, path: &str, found: &mut Vec<(String, &'p [u8], String)>) {
    for subchart in &package.dependencies {
        templates(subchart, &format!("{path}/charts/{}", subchart.name()), found);
    }
    for template in &package.templates {
        let base = template.name.rsplit('/').next().unwrap_or_default();
        if !package.is_library() || base.starts_with('_') {
            found.push((format!("{path}/{}", template.name), &template.data, path.to_owned()));
        }
    }
}

fn find_crds(package: &Package, path: &str, found: &mut Vec<PackageFile>) {
    let is_manifest = |name: &str| ["yaml", "yml", "json"].iter().any(|kind| crate::package::has_extension(name, kind));
    for file in &package.files {
        if file.name.starts_with("crds/") && is_manifest(&file.name) {
            found.push(PackageFile { name: format!("{path}/{}", file.name), data: file.data.clone() });
        }
    }
    for subchart in &package.dependencies {
        find_crds(subchart, &format!("{path}/charts/{}", subchart.name()), found);
    }
}

/// What is printed of a rendered chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Whether the files below `crds/` are.
    pub crds: bool,
    /// Whether hooks are not.
    pub no_hooks: bool,
    /// Whether hooks that are tests are not.
    pub skip_tests: bool,
    /// Only what these templates print, if there are any.
    pub only: Vec<String>,
}

impl Rendered {
    /// All of it as `helm template` prints it; `Err` has Helm's message.
    pub fn to_text(&self, shown: &Shown) -> Result<String, String> {
        let mut text = String::new();
        if shown.crds {
            for crd in &self.crds {
                let content = String::from_utf8_lossy(&crd.data);
                text.push_str(&format!("---\n# Source: {}\n{content}\n", crd.name));
            }
        }
        for manifest in &self.split.manifests {
            text.push_str(&format!("---\n# Source: {}\n{}\n", manifest.source, manifest.text));
        }
        let mut text = format!("{}\n", text.trim_matches(char::is_whitespace));
        if !shown.no_hooks {
            let is_test = |hook: &&crate::Hook| hook.events.iter().any(|event| event == "test");
            for hook in self.split.hooks.iter().filter(|hook| !(shown.skip_tests && is_test(hook))) {
                text.push_str(&format!("---\n# Source: {}\n{}\n", hook.manifest.source, hook.manifest.text));
            }
        }
        if shown.only.is_empty() { Ok(text) } else { only(&text, &shown.only) }
    }
}

/// What the templates of some paths printed, in the order of the paths.
fn only(text: &str, wanted: &[String]) -> Result<String, String> {
    let documents = documents(text);
    let mut output = String::new();
    for pattern in wanted {
        let mut is_missing = true;
        for document in &documents {
            let source = document.lines().find_map(|line| line.strip_prefix("# Source: "));
            let Some((_, path)) = source.and_then(|source| source.split_once('/')) else { continue };
            if crate::package::matches(pattern, path) == Some(true) {
                output.push_str(&format!("---\n{document}\n"));
                is_missing = false;
            }
        }
        if is_missing {
            return Err(format!("could not find template {pattern} in chart"));
        }
    }
    Ok(output)
}
