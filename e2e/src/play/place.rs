//! Where a scenario is played: a namespace, and a directory with charts and the homes of the tools.

use super::Stage;
use crate::chart::{self, Places};
use crate::clock;
use crate::command::Command;
use crate::error::Error;
use crate::kubectl::Kubectl;
use crate::normalise::Normaliser;
use crate::scenario::Scenario;
use crate::target::{Opened, Target};
use crate::version::HelmVersion;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// How long a namespace may take to be usable: on a cluster that may be busy, and on a drydock of its own.
const USABLE: Duration = Duration::from_secs(10);
const USABLE_ALONE: Duration = Duration::from_secs(1);

/// A place of its own; dropping it removes it.
#[derive(Debug)]
pub(super) struct Place {
    kubectl: Kubectl,
    places: Places,
    /// Charts and files, by the name that commands use.
    paths: BTreeMap<String, PathBuf>,
    shared: bool,
    // The target before the directory that its files are in.
    opened: Opened,
    directory: TempDir,
}

impl Place {
    pub(super) fn new(stage: &Stage, scenario: &Scenario, version: HelmVersion) -> Result<Self, Error> {
        let directory = tempfile::tempdir().map_err(Error::io("make a temporary directory"))?;
        let opened = stage.target.open(directory.path())?;
        let namespace = namespace(&scenario.name, version);
        let home = directory.path().join("home");
        let kubectl = Kubectl::new(stage.tools.kubectl(), opened.kubeconfig(), &home, &namespace);
        let places = Places { namespace, image: stage.image.clone() };
        let paths = write_files(scenario, directory.path(), &places)?;
        let shared = matches!(stage.target, Target::Cluster(_));
        let place = Self { kubectl, places, paths, shared, opened, directory };
        place.make_namespace()?;
        Ok(place)
    }

    pub(super) fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    /// Words with charts, files and places filled in.
    pub(super) fn fill(&self, words: &[String]) -> Vec<String> {
        let fill = |word: &String| match word.strip_prefix('@').and_then(|name| self.paths.get(name)) {
            Some(path) => path.display().to_string(),
            None => self.places.fill(word),
        };
        words.iter().map(fill).collect()
    }

    /// A command of Helm with homes of its own.
    pub(super) fn helm(&self, program: &Path, words: &[String]) -> Command {
        let directory = self.directory.path();
        Command::new(program)
            .arguments(self.fill(words))
            .environment("HOME", directory.join("home"))
            .environment("HELM_CACHE_HOME", directory.join("helm/cache"))
            .environment("HELM_CONFIG_HOME", directory.join("helm/config"))
            .environment("HELM_DATA_HOME", directory.join("helm/data"))
            .environment("HELM_PLUGINS", directory.join("plugins"))
            .environment("HELM_NAMESPACE", &self.places.namespace)
            .environment("KUBECONFIG", self.opened.kubeconfig())
    }

    /// Replaces what is particular to this place.
    pub(super) fn normaliser(&self) -> Normaliser {
        let is_chart = |path: &Path| path.starts_with(self.directory.path().join("charts"));
        let name = |name: &str, path: &Path| if is_chart(path) { "CHART".to_owned() } else { name.to_owned() };
        let paths = self.paths.iter().map(|(key, path)| (path.display().to_string(), name(key, path)));
        let places = [(self.places.namespace.clone(), "NS".to_owned()), (self.places.image.clone(), "IMG".to_owned())];
        Normaliser::new(paths.chain(places))
    }

    /// Takes the finalizers off these Jobs, so that the namespace can go.
    pub(super) fn release<'a>(&self, jobs: impl Iterator<Item = &'a str>) {
        for job in jobs {
            // It may be gone by now.
            let _ =
                self.kubectl.run(&["patch", "job", job, "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
        }
    }

    fn make_namespace(&self) -> Result<(), Error> {
        self.kubectl.run(&["create", "namespace", &self.places.namespace])?;
        let limit = if self.shared { USABLE } else { USABLE_ALONE };
        let start = clock::now();
        // Without its default ServiceAccount no Pod can be made. A target that never makes one shows that by itself.
        while start.elapsed() < limit && self.kubectl.run(&["get", "serviceaccount", "default"]).is_err() {
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.shared {
            // Nobody is left to tell if it cannot be removed.
            let _ = self.kubectl.run(&["delete", "namespace", &self.places.namespace, "--wait=false"]);
        }
    }
}

/// A name that no other play has: of this run by scenario and version, of other runs by time and process.
fn namespace(scenario: &str, version: HelmVersion) -> String {
    let run = (clock::seconds() << 16) + u64::from(std::process::id() & 0xffff);
    let version: String = version.number().chars().filter(char::is_ascii_digit).collect();
    format!("e2e-{}-{version}-{run:x}", scenario.to_lowercase().replace('_', "-"))
}

fn write_files(scenario: &Scenario, directory: &Path, places: &Places) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut paths = BTreeMap::new();
    for (name, chart) in &scenario.charts {
        let path = directory.join("charts").join(name);
        chart.write(&path, places)?;
        paths.insert(name.clone(), path);
    }
    for (name, text) in &scenario.files {
        let path = directory.join("files").join(name);
        write_executable(&path, text)?;
        paths.insert(name.clone(), path);
    }
    for (name, text) in &scenario.plugins {
        write_executable(&directory.join("plugins").join(name), text)?;
    }
    Ok(paths)
}

fn write_executable(path: &Path, text: &str) -> Result<(), Error> {
    chart::write(path, text)?;
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, permissions).map_err(Error::io(format!("make `{}` executable", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_have_valid_names_of_bearable_length() {
        let name = namespace("w2_with_a_Name_that_is_as_long_as_any", HelmVersion::V4_3_1);
        assert!(name.len() <= 63 && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
    }
}
