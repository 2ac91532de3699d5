//! The tools that scenarios run: found by name and version, checked once.

use crate::command::Command;
use crate::error::Error;
use crate::version::HelmVersion;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of kubectl that reads state; scenarios compare what it prints.
const KUBECTL: &str = "1.34.10";

/// Where the tools are.
#[derive(Debug)]
pub struct Tools {
    kubectl: PathBuf,
    helm: BTreeMap<HelmVersion, PathBuf>,
}

impl Tools {
    /// The directory of the tools: the given one, else `${XDG_CACHE_HOME:-~/.cache}/jobwright/tools`.
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the environment where tools are")]
    pub fn directory(given: Option<PathBuf>) -> Result<PathBuf, Error> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
        let directory =
            given.or_else(|| variable("JOBWRIGHT_TOOLS")).or_else(|| Some(cache()?.join("jobwright/tools")));
        let directory = directory.ok_or_else(|| Error::Tool {
            tool: "the directory of the tools".to_owned(),
            reason: "none of JOBWRIGHT_TOOLS, XDG_CACHE_HOME and HOME is set".to_owned(),
        })?;
        std::path::absolute(&directory).map_err(Error::io(format!("find `{}`", directory.display())))
    }

    /// Finds kubectl and these versions of Helm in `DIRECTORY/NAME-VERSION/NAME`, and asks each Helm for its version.
    pub fn find(directory: &Path, versions: impl IntoIterator<Item = HelmVersion>) -> Result<Self, Error> {
        // That of a cluster of the same version is the same.
        let beside = directory.join(format!("kubernetes-{KUBECTL}/kubectl"));
        let kubectl =
            find(directory, "kubectl", KUBECTL).or_else(|error| beside.is_file().then_some(beside).ok_or(error))?;
        let mut helm = BTreeMap::new();
        for version in versions {
            let path = find(directory, "helm", version.number())?;
            let said = Command::new(&path)
                .arguments(["version", "--template", "{{.Version}}"])
                .deadline(Duration::from_secs(30))
                .run()?
                .successful()?;
            if said.trim().trim_start_matches('v') != version.number() {
                let reason = format!("`{}` says that it is {}", path.display(), said.trim());
                return Err(Error::Tool { tool: format!("helm {version}"), reason });
            }
            helm.insert(version, path);
        }
        Ok(Self { kubectl, helm })
    }

    /// kubectl.
    pub fn kubectl(&self) -> &Path {
        &self.kubectl
    }

    /// Helm in this version.
    pub fn helm(&self, version: HelmVersion) -> Result<&Path, Error> {
        self.helm.get(&version).map(PathBuf::as_path).ok_or_else(|| Error::Tool {
            tool: format!("helm {version}"),
            reason: "it was not asked for when the tools were found".to_owned(),
        })
    }
}

fn find(directory: &Path, name: &str, version: &str) -> Result<PathBuf, Error> {
    let path = directory.join(format!("{name}-{version}")).join(name);
    if path.is_file() {
        Ok(path)
    } else {
        Err(Error::Tool {
            tool: format!("{name} {version}"),
            reason: format!("`{}` does not exist: run `cargo xtask tools`, or set JOBWRIGHT_TOOLS", path.display()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let error = Tools::find(directory.path(), [HelmVersion::V4_3_1]).unwrap_err().to_string();
        assert!(error.starts_with("kubectl 1.34.10 is missing"), "{error}");
    }
}
