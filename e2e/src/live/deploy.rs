//! `jobwright` on the stage of a test: a plan, the helm that it finds, and what it says.

use super::Stage;
use crate::command::Command;
use crate::error::Error;
use crate::outcome::Exit;
use crate::target;
use crate::version::HelmVersion;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Deploys from a directory of its own.
#[derive(Debug)]
pub struct Deploys<'a> {
    stage: &'a Stage<'a>,
    binary: PathBuf,
    directory: PathBuf,
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Said {
    /// Its exit code; -1 if it was killed.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it told people.
    pub stderr: String,
}

impl Said {
    /// The one document of `-o json`.
    pub fn json(&self) -> Result<Value, Error> {
        serde_json::from_str(&self.stdout)
            .map_err(Error::json(format!("what jobwright printed ({}): {}", self.code, self.stderr)))
    }
}

impl<'a> Deploys<'a> {
    /// A directory for a plan.
    pub fn new(stage: &'a Stage<'a>, name: &str) -> Result<Self, Error> {
        let deploys = Self { stage, binary: target::jobwright()?, directory: stage.directory().join(name) };
        std::fs::create_dir_all(deploys.directory.join("bin")).map_err(Error::io("make the directory of a plan"))?;
        Ok(deploys)
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes the plan of a release in the namespace of the stage; `rest` is what comes below its release.
    pub fn plan(&self, release: &str, version: &str, rest: &str) -> Result<(), Error> {
        let namespace = self.stage.namespace();
        let head = format!(
            "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {{name: {release}, namespace: {namespace}, version: {version}}}\n"
        );
        self.file("jobwright.yaml", &(head + rest))
    }

    /// Writes a file beside the plan.
    pub fn file(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.directory.join(name);
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, text));
        written.map_err(Error::io(format!("write `{name}`")))
    }

    /// Makes this the helm that is found.
    pub fn use_helm(&self, version: HelmVersion) -> Result<(), Error> {
        let helm = self.stage.live().tools().helm(version)?.display().to_string();
        self.use_script(&format!("exec {helm} \"$@\""))
    }

    /// Makes a shell script the helm that is found.
    pub fn use_script(&self, script: &str) -> Result<(), Error> {
        self.file("bin/helm", &format!("#!/bin/sh\n{script}\n"))?;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.directory.join("bin/helm"), mode).map_err(Error::io("make helm a program"))
    }

    fn path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.directory.join("bin").display())
    }

    /// Runs a command to its end.
    pub fn run(&self, words: &[&str]) -> Result<Said, Error> {
        let ended = Command::new(&self.binary)
            .arguments(words)
            .environment("KUBECONFIG", self.stage.live().kubeconfig())
            .environment("HOME", self.stage.directory())
            .environment("PATH", self.path())
            .directory(&self.directory)
            .deadline(Duration::from_mins(5))
            .run()?;
        let code = if let Exit::Code(code) = ended.exit { code } else { -1 };
        Ok(Said { code, stdout: ended.stdout, stderr: ended.stderr })
    }

    /// Runs a command to its end, and expects this exit code.
    pub fn expect(&self, code: i32, words: &[&str]) -> Result<Said, Error> {
        let said = self.run(words)?;
        if said.code == code {
            return Ok(said);
        }
        let reason = format!("exit {} instead of {code}\n{}\n{}", said.code, said.stdout, said.stderr);
        Err(Error::Command { command: format!("jobwright {}", words.join(" ")), reason })
    }

    /// Starts a command, to be killed.
    pub fn start(&self, words: &[&str]) -> Result<Child, Error> {
        std::process::Command::new(&self.binary)
            .args(words)
            .env_clear()
            .env("KUBECONFIG", self.stage.live().kubeconfig())
            .env("HOME", self.stage.directory())
            .env("PATH", self.path())
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::io("start jobwright"))
    }
}
