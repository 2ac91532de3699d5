//! Where a chart is, and what it is recognised by.

use crate::component::files;
use crate::component::helm::Helm;
use crate::plan::Chart;
use jobwright_engine::{DeployContext, Failure};
use std::path::{Path, PathBuf};

impl Chart {
    /// The same, with paths relative to the plan resolved.
    pub(crate) fn resolve(&self, resolve: impl Fn(&Path) -> PathBuf) -> Self {
        match self {
            Self::Path(path) => Self::Path(resolve(path)),
            reference @ Self::Reference { .. } => reference.clone(),
        }
    }

    /// What it is recognised by; a reference has to have its exact version for that.
    pub(crate) fn hash(&self) -> Result<String, Failure> {
        Ok(match self {
            Self::Path(path) => files::hash(path, &files::list(path)?)?,
            Self::Reference { reference, version, repository } => {
                let part = |part: &Option<String>| part.clone().unwrap_or_default();
                files::hash_of(&[reference, &part(version), &part(repository)])
            }
        })
    }

    /// The same with its exact version: without one, or with a constraint, its repository is asked.
    pub(super) async fn pin(&self, helm: &Helm, context: &DeployContext) -> Result<Self, Failure> {
        let Self::Reference { reference, version, repository } = self else { return Ok(self.clone()) };
        if version.as_deref().is_some_and(is_exact) {
            return Ok(self.clone());
        }
        let mut arguments = vec![reference.as_str()];
        for (flag, value) in [("--version", version), ("--repo", repository)] {
            arguments.extend(value.iter().flat_map(|value| [flag, value.as_str()]));
        }
        let text = helm.show_chart(context, &arguments).await?;
        let documents = jobwright_yaml::parse(&text).unwrap_or_default();
        let found = documents.first().and_then(|document| document.root.get("version")).and_then(|node| node.as_str());
        let Some(found) = found else {
            return Err(Failure::new(format!("`helm show chart {reference}` reports no version")));
        };
        let (reference, repository) = (reference.clone(), repository.clone());
        Ok(Self::Reference { reference, version: Some(found.to_owned()), repository })
    }
}

/// Whether it is a whole version, which always means the same chart; `1.2` means 1.2.x to Helm.
fn is_exact(version: &str) -> bool {
    let bare = version.strip_prefix('v').unwrap_or(version);
    let numbers = bare.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = numbers.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_versions_are_exact() {
        for version in ["1.2.3", "v1.2.3", "1.2.3-rc.1", "1.2.3+build"] {
            assert!(is_exact(version), "{version}");
        }
        for version in ["", "1", "1.2", "^1.2.3", "~1.2", "1.x.x", ">= 1.0.0", "1.2.*", "1.2.3 - 2.0.0", "latest"] {
            assert!(!is_exact(version), "{version}");
        }
    }
}
