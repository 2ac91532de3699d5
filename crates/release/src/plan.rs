//! The plan: `jobwright.yaml`, read with the place of everything in it.

mod backfill;
mod check;
mod finding;
mod init_cert;
mod model;
mod period;
mod renewal;
mod schema;

pub use backfill::{Auth, Backfill, Compression, MetricNames, ObjectStorage, Tls};
pub use finding::{Finding, Findings};
pub use init_cert::InitCert;
pub use model::{
    Adopt, Chart, Command, Component, GrowVolume, Helm, Job, Manifests, Object, Occasion, Phase, Plan, Pod, PodFrom,
    Release, Retires, Retries, SkipIf, Template, Workload, WorkloadKind,
};
pub use period::{NoPeriod, Period};
pub use renewal::{NoRenewal, Renewal};

use jobwright_yaml::{Keys, Limits};
use std::path::{Path, PathBuf};

/// A plan, and where it was read from: paths in it begin at its directory.
#[derive(Clone, Debug)]
pub struct PlanFile {
    /// The file.
    pub path: PathBuf,
    /// What it says.
    pub plan: Plan,
    /// What is no error but should be looked at.
    pub warnings: Findings,
}

/// The most that a plan takes.
const LARGEST: Limits = Limits { bytes: 4 * 1024 * 1024, depth: 100, values: 200_000 };

impl PlanFile {
    /// Reads a plan. Everything that is wrong in it is told at once.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Findings> {
        let findings = |findings: Vec<Finding>| Findings { file: path.to_owned(), text: text.to_owned(), findings };
        let documents = jobwright_yaml::parse_with(text, Keys::AsWritten, LARGEST).map_err(|error| {
            let end = (error.offset + 1).min(text.len());
            findings(vec![Finding::new(error.offset.min(end)..end, error.message)])
        })?;
        let root = match documents.as_slice() {
            [] => {
                return Err(findings(vec![
                    Finding::new(0..0, "the file is empty").help("see docs/deploy.md for a plan"),
                ]));
            }
            [one] => &one.root,
            [_, second, ..] => {
                let message = "a plan is one document, and here begins another";
                return Err(findings(vec![Finding::new(second.root.span.clone(), message)]));
            }
        };
        let mut found: Vec<Finding> = root
            .duplicates()
            .into_iter()
            .map(|entry| Finding::new(entry.key_span.clone(), format!("`{}` stands here twice", entry.key)))
            .collect();
        found.extend(schema::check(root, plan_schema().as_value()));
        // What has the wrong form cannot be looked at any further, but references still can.
        let plan: Option<Plan> = if found.is_empty() {
            serde_json::from_value(root.to_json())
                .map_err(|error| found.push(Finding::new(root.span.start..root.span.start, error.to_string())))
                .ok()
        } else {
            None
        };
        let (mut more, warnings) = check::check(root);
        found.append(&mut more);
        found.sort_by_key(|finding| finding.span.start);
        found.dedup();
        match plan.filter(|_| found.is_empty()) {
            Some(plan) => Ok(Self { path: path.to_owned(), plan, warnings: findings(warnings) }),
            None => Err(findings(found)),
        }
    }

    /// A path of the plan, from its directory on.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }
}

/// The schema of the file.
pub fn plan_schema() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Plan>()
}

#[cfg(test)]
mod tests;
