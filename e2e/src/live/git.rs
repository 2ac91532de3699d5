//! A repository that a deployer watches, and commits to it.

use crate::cluster::{Place, git_url};
use crate::command::{Command, Ended};
use crate::error::Error;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A repository with a work tree of its own. Dropping it removes it from the server.
#[derive(Debug)]
pub struct Repository {
    url: String,
    bare: PathBuf,
    work: TempDir,
}

impl Repository {
    pub(super) fn make(place: &Place, name: &str) -> Result<Self, Error> {
        let bare = place.git().join(format!("{name}.git"));
        let work = tempfile::tempdir().map_err(Error::io("make a temporary directory"))?;
        git(work.path(), &["init", "--quiet", "--bare", "--initial-branch=main", &bare.to_string_lossy()])?;
        git(work.path(), &["init", "--quiet", "--initial-branch=main", "."])?;
        Ok(Self { url: git_url(name), bare, work })
    }

    /// Where deployers find it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes these files the whole of the next commit, and says which it is.
    pub fn commit(&self, files: &[(&str, &str)]) -> Result<String, Error> {
        let work = self.work.path();
        git(work, &["rm", "--quiet", "-r", "--ignore-unmatch", "."])?;
        for (path, text) in files {
            let path = work.join(path);
            let parent = path.parent().unwrap_or(work);
            std::fs::create_dir_all(parent).map_err(Error::io(format!("create `{}`", parent.display())))?;
            std::fs::write(&path, text).map_err(Error::io(format!("write `{}`", path.display())))?;
        }
        git(work, &["add", "--all"])?;
        git(work, &["commit", "--quiet", "--allow-empty", "--message=change"])?;
        git(work, &["push", "--quiet", &self.bare.to_string_lossy(), "main"])?;
        git(work, &["rev-parse", "HEAD"]).map(|revision| revision.trim().to_owned())
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        // It ends with the cluster anyway.
        let _ = std::fs::remove_dir_all(&self.bare);
    }
}

fn git(directory: &Path, words: &[&str]) -> Result<String, Error> {
    let mut command = Command::system("git").arguments(["-C"]).arguments([directory]).arguments(words);
    for who in ["AUTHOR", "COMMITTER"] {
        command = command
            .environment(&format!("GIT_{who}_NAME"), "test")
            .environment(&format!("GIT_{who}_EMAIL"), "test@jobwright.local");
    }
    command.environment("HOME", directory).run().and_then(Ended::successful)
}
