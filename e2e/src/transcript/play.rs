//! Plays a transcript on a target, in a directory and a namespace of its own.

use super::{Transcript, masks};
use crate::clock;
use crate::command::Command;
use crate::error::Error;
use crate::kubectl::Kubectl;
use crate::outcome::Exit;
use crate::target::{Opened, Target};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// How long a command may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// How long the default ServiceAccount of a namespace may take to come.
const USABLE: Duration = Duration::from_secs(10);

/// What transcripts are played with.
#[derive(Clone, Debug)]
pub struct Theatre {
    /// What answers.
    pub target: Target,
    /// Programs by the name that transcripts use: `kubectl`.
    pub programs: Vec<(String, PathBuf)>,
    /// An image that has `sh`.
    pub image: String,
}

/// A command that printed something else.
#[derive(Debug)]
pub struct Difference {
    /// The line of the command.
    pub line: usize,
    /// The command.
    pub command: String,
    /// What it should print.
    pub expected: String,
    /// What it did print.
    pub seen: String,
}

impl Theatre {
    /// Plays a transcript and says what is printed instead.
    pub fn play(&self, name: &str, transcript: &Transcript) -> Result<Transcript, Error> {
        let place = Place::new(self, name)?;
        let mut played = transcript.clone();
        for exchange in &mut played.exchanges {
            exchange.answer = place.run(&exchange.command)?;
        }
        Ok(played)
    }
}

impl Transcript {
    /// Where another play of this transcript differs.
    pub fn differences(&self, played: &Self) -> Vec<Difference> {
        let pairs = self.exchanges.iter().zip(&played.exchanges);
        pairs
            .filter(|(expected, seen)| expected.answer != seen.answer)
            .map(|(expected, seen)| Difference {
                line: expected.line,
                command: expected.command.clone(),
                expected: expected.answer.clone(),
                seen: seen.answer.clone(),
            })
            .collect()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "line {}: $ {}", self.line, self.command)?;
        let (expected, seen): (Vec<_>, Vec<_>) = (self.expected.lines().collect(), self.seen.lines().collect());
        let same = expected.iter().zip(&seen).take_while(|(expected, seen)| expected == seen).count();
        let back = same.saturating_sub(2);
        for line in &expected[back..same] {
            writeln!(formatter, "    {line}")?;
        }
        for line in expected[same..].iter().take(12) {
            writeln!(formatter, "  - {line}")?;
        }
        for line in seen[same..].iter().take(12) {
            writeln!(formatter, "  + {line}")?;
        }
        Ok(())
    }
}

/// A place of its own; dropping it removes it.
struct Place {
    kubectl: Kubectl,
    image: String,
    shared: bool,
    // The target before the directory that its files are in.
    opened: Opened,
    directory: TempDir,
}

impl Place {
    fn new(theatre: &Theatre, name: &str) -> Result<Self, Error> {
        let directory = tempfile::tempdir().map_err(Error::io("make a temporary directory"))?;
        let opened = theatre.target.open(directory.path())?;
        for part in ["bin", "home", "work"] {
            let path = directory.path().join(part);
            std::fs::create_dir_all(&path).map_err(Error::io(format!("make `{}`", path.display())))?;
        }
        for (name, program) in &theatre.programs {
            let link = directory.path().join("bin").join(name);
            std::os::unix::fs::symlink(program, &link).map_err(Error::io(format!("link `{}`", link.display())))?;
        }
        let run = (clock::seconds() << 16) + u64::from(std::process::id() & 0xffff);
        let namespace = format!("e2e-{}-{run:x}", name.replace('_', "-"));
        let home = directory.path().join("home");
        let shared = matches!(theatre.target, Target::Cluster(_));
        let kubectl = Kubectl::new(&directory.path().join("bin/kubectl"), opened.kubeconfig(), &home, &namespace);
        let place = Self { kubectl, image: theatre.image.clone(), shared, opened, directory };
        place.make_namespace()?;
        Ok(place)
    }

    /// A namespace that is the context's own, so that commands do not have to name it.
    fn make_namespace(&self) -> Result<(), Error> {
        let namespace = self.kubectl.namespace();
        self.kubectl.run(&["create", "namespace", namespace])?;
        let mine = self.kubeconfig();
        std::fs::copy(self.opened.kubeconfig(), &mine).map_err(Error::io(format!("write `{}`", mine.display())))?;
        let own = Kubectl::new(&self.directory.path().join("bin/kubectl"), &mine, &self.path("home"), namespace);
        own.run(&["config", "set-context", "--current", "--namespace", namespace])?;
        let start = clock::now();
        while self.kubectl.run(&["get", "serviceaccount", "default"]).is_err() {
            if start.elapsed() > USABLE {
                return Err(Error::Late { what: "a default ServiceAccount".to_owned(), limit: USABLE });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.path("home/kubeconfig")
    }

    /// Runs a command and gives back what is comparable of what it printed.
    fn run(&self, command: &str) -> Result<String, Error> {
        let bin = self.path("bin").display().to_string();
        let ended = Command::new(Path::new("/bin/sh"))
            .arguments(["-c", &format!("cd \"$WORK\"\n{command}")])
            .environment("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"))
            .environment("HOME", self.path("home"))
            .environment("WORK", self.path("work"))
            .environment("KUBECONFIG", self.kubeconfig())
            .environment("NS", self.kubectl.namespace())
            .environment("IMG", &self.image)
            .deadline(PATIENCE)
            .run()?;
        let mut text = format!("{}{}", ended.stdout, ended.stderr);
        for (made_up, word) in [
            (self.directory.path().display().to_string().as_str(), "DIRECTORY"),
            (self.kubectl.namespace(), "NS"),
            (&self.image, "IMG"),
        ] {
            text = text.replace(made_up, word);
        }
        let mut answer = masks::mask(&text).trim_end().to_owned();
        if ended.exit != Exit::Code(0) {
            let gap = if answer.is_empty() { "" } else { "\n" };
            answer.push_str(&format!("{gap}[exit {}]", ended.exit));
        }
        Ok(answer)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.shared {
            // Nobody is left to tell if it cannot be removed.
            let _ = self.kubectl.run(&["delete", "namespace", self.kubectl.namespace(), "--wait=false"]);
        }
    }
}
