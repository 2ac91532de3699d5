//! Charts as a Helm renders them, without a cluster.

use crate::command::{Command, Ended};
use crate::error::Error;
use crate::outcome::Exit;
use crate::tools::Tools;
use crate::version::HelmVersion;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A Helm that renders.
#[derive(Debug)]
pub struct Renderer {
    helm: PathBuf,
    home: tempfile::TempDir,
}

/// What was rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered(Vec<Value>);

impl Renderer {
    /// The Helm of a version, if it is installed.
    pub fn find(version: HelmVersion) -> Result<Self, Error> {
        let tools = Tools::find(&Tools::directory(None)?, [version])?;
        let home = tempfile::tempdir().map_err(Error::io("make a temporary directory"))?;
        Ok(Self { helm: tools.helm(version)?.to_owned(), home })
    }

    /// The directory of its program, for `PATH`.
    pub fn directory(&self) -> &Path {
        self.helm.parent().unwrap_or(Path::new("/"))
    }

    fn run(&self, words: &[&str]) -> Result<Ended, Error> {
        Command::new(&self.helm).arguments(words).environment("HOME", self.home.path()).run()
    }

    /// Runs Helm and expects success.
    pub fn helm(&self, words: &[&str]) -> Result<String, Error> {
        self.run(words)?.successful()
    }

    /// Renders a release of a chart.
    pub fn template(&self, release: &str, chart: &Path, words: &[&str]) -> Result<Rendered, Error> {
        let chart = chart.display().to_string();
        let text = self.helm(&[&["template", release, &chart], words].concat())?;
        let documents = jobwright_yaml::parse(&text).map_err(|error| Error::Command {
            command: format!("helm template {chart}"),
            reason: format!("what it printed is no YAML: {error}"),
        })?;
        let objects = documents.iter().map(|document| document.root.to_json());
        Ok(Rendered(objects.filter(|object| !object.is_null()).collect()))
    }

    /// Renders what cannot be rendered, and says why.
    pub fn refusal(&self, release: &str, chart: &Path, words: &[&str]) -> Result<String, Error> {
        let chart = chart.display().to_string();
        let ended = self.run(&[&["template", release, &chart], words].concat())?;
        Ok(if ended.exit == Exit::Code(0) { String::new() } else { ended.stderr })
    }
}

impl Rendered {
    /// All objects.
    pub fn objects(&self) -> &[Value] {
        &self.0
    }

    /// The objects of a kind.
    pub fn all<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |object| object["kind"] == kind)
    }

    /// The only object of a kind whose name begins so.
    pub fn one(&self, kind: &str, start: &str) -> Result<&Value, Error> {
        let named = |object: &&Value| object["kind"] == kind && name(object).starts_with(start);
        let found: Vec<&Value> = self.0.iter().filter(named).collect();
        match found.as_slice() {
            [one] => Ok(one),
            found => Err(Error::Command {
                command: format!("looking for one {kind} {start}…"),
                reason: format!("there are {}", found.len()),
            }),
        }
    }
}

/// The name of an object.
pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// An annotation of an object.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}
