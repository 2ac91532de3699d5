//! The files that a plan names, as one hash: whether a deploy is of the same files as the one that was interrupted.

use crate::component::files;
use crate::plan::{Chart, PlanFile, Source};
use std::path::Path;

/// Whether a plan names a chart of a repository without its version: what it stands for may change at any time.
pub(crate) fn is_unpinned(file: &PlanFile) -> bool {
    file.plan.components.iter().any(|component| {
        matches!(&component.source, Source::Chart { chart: Chart::Reference { version: None, .. }, .. })
    })
}

/// A hash over all files of the components of a plan. What cannot be read counts by its error.
pub(crate) fn hash(file: &PlanFile) -> String {
    let of = |path: &Path| {
        let path = file.resolve(path);
        files::list(&path).and_then(|found| files::hash(&path, &found)).unwrap_or_else(|error| error.to_string())
    };
    let mut hashes = Vec::new();
    for component in &file.plan.components {
        match &component.source {
            Source::Manifests(manifests) => hashes.push(of(&manifests.path)),
            Source::Chart { chart, values, .. } => {
                if let Chart::Path(path) = chart {
                    hashes.push(of(path));
                }
                hashes.extend(values.iter().map(|path| of(path)));
            }
        }
    }
    let hashes: Vec<&str> = hashes.iter().map(String::as_str).collect();
    files::hash_of(&hashes)
}
