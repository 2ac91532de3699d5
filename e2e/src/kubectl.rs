//! kubectl on a target: the one way in which the suite itself talks to an API.

use crate::command::{Command, Ended};
use crate::error::Error;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::process::Child;

/// kubectl with the kubeconfig of a target, in a namespace.
#[derive(Clone, Debug)]
pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
    namespace: String,
}

impl Kubectl {
    pub(crate) fn new(program: &Path, kubeconfig: &Path, home: &Path, namespace: &str) -> Self {
        Self {
            program: program.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            home: home.to_owned(),
            namespace: namespace.to_owned(),
        }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(crate) fn command(&self, words: &[impl AsRef<str>]) -> Command {
        Command::new(&self.program)
            .arguments(["--namespace", &self.namespace])
            .arguments(words.iter().map(AsRef::as_ref))
            .environment("KUBECONFIG", &self.kubeconfig)
            .environment("HOME", &self.home)
    }

    /// Runs it and expects success.
    pub(crate) fn run(&self, words: &[&str]) -> Result<String, Error> {
        self.command(words).run().and_then(Ended::successful)
    }

    /// Reads something from the API as it is.
    pub(crate) fn raw<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let text = self.run(&["get", "--raw", path])?;
        serde_json::from_str(&text).map_err(Error::json(format!("the answer to `{path}`")))
    }

    /// Starts to watch something; events come line by line.
    pub(crate) fn watch(&self, path: &str) -> Result<Child, Error> {
        self.command(&["get", "--raw", path]).start()
    }
}
