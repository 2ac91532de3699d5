//! The plan: `jobwright.yaml`, parsed into types, with the file, line and column of every error.
//!
//! `form` is how a plan is written, and makes the schema; `schema`, `format` and `rules` check the file against it;
//! `check` resolves references; `read` makes of it what it means: `model`.

mod backfill;
mod check;
mod finding;
mod form;
mod format;
mod init_cert;
mod model;
mod period;
mod read;
mod renewal;
mod rules;
mod schema;

pub use backfill::{Auth, AuthPlace, Backfill, Compression, MetricNames, ObjectStorage, Tls};
pub use finding::{Finding, Findings};
pub use init_cert::InitCert;
pub use model::{
    Adopt, Chart, Command, Component, GrowVolume, Helm, Job, Manifests, Object, Occasions, OnDrift, OnRemovedComponent,
    Phase, Plan, PodFrom, PodPolicies, Release, Retires, Source, Work, Workload, WorkloadKind,
};
pub use period::{NoPeriod, Period};
pub use renewal::{NoRenewal, Renewal};

use jobwright_yaml::{Keys, Limits};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A plan, and where it was read from: paths in it are relative to its directory.
#[derive(Clone, Debug)]
pub struct PlanFile {
    /// The file.
    pub path: PathBuf,
    /// What it means.
    pub plan: Plan,
    /// Problems that are no errors.
    pub warnings: Findings,
    /// What it says, as JSON.
    pub(crate) source: serde_json::Value,
}

/// The schema, made once.
static SCHEMA: LazyLock<schemars::Schema> = LazyLock::new(plan_schema);

/// The limits of a plan.
const LARGEST: Limits = Limits { bytes: 4 * 1024 * 1024, depth: 100, values: 200_000 };

impl PlanFile {
    /// Reads a plan, and reports every error in one pass.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Findings> {
        let findings = |findings: Vec<Finding>| Findings { file: path.to_owned(), text: text.to_owned(), findings };
        let documents = jobwright_yaml::parse_with(text, Keys::AsWritten, LARGEST).map_err(|error| {
            let end = (error.offset + 1).min(text.len());
            findings(vec![Finding::new(error.offset.min(end)..end, error.message)])
        })?;
        let root = match documents.as_slice() {
            [] => {
                return Err(findings(vec![
                    Finding::new(0..0, "the file is empty").help("docs/deploy.md shows a plan"),
                ]));
            }
            [one] => &one.root,
            [_, second, ..] => {
                let message = "a plan is one document, and this is a second one";
                return Err(findings(vec![Finding::new(second.root.span.clone(), message)]));
            }
        };
        let mut found: Vec<Finding> = root
            .duplicates()
            .into_iter()
            .map(|entry| Finding::new(entry.key_span.clone(), format!("duplicate field `{}`", entry.key)))
            .collect();
        found.extend(schema::check(root, SCHEMA.as_value()));
        let (mut more, warnings) = check::check(root);
        found.append(&mut more);
        let source = root.to_json();
        if found.is_empty() {
            let form = serde_json::from_value::<form::Plan>(source.clone()).map_err(|error| error.to_string());
            match form.and_then(read::plan) {
                Ok(plan) => {
                    return Ok(Self { path: path.to_owned(), plan, warnings: findings(warnings), source });
                }
                Err(problem) => found.push(Finding::new(root.span.start..root.span.start, problem)),
            }
        }
        found.sort_by_key(|finding| finding.span.start);
        found.dedup();
        Err(findings(found))
    }

    /// A path of the plan, relative to its directory.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }
}

/// The schema of the file.
pub fn plan_schema() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<form::Plan>()
}

#[cfg(test)]
mod tests;
