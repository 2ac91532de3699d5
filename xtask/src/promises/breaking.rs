//! Breaks promises on purpose, in a copy of the sources, and sees whether their tests notice.

use super::{Mutation, Promise, Promises, Test};
use anyhow::{Context as _, Result, bail, ensure};
use jobwright_e2e::cargo::{cargo, workspace};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long a test may take, with its build. One that does not end has noticed the mutation.
const LIMIT: Duration = Duration::from_mins(15);
const POLL: Duration = Duration::from_millis(100);

/// What a test did.
#[derive(PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    /// It did not compile, or no test has this name; with what Cargo printed.
    NotRun(String),
}

/// Breaks each promise whose text contains `only`. Fails if a test fails on the sources as they are, or passes although
/// its promise is broken.
pub(crate) fn run(only: Option<&str>) -> Result<()> {
    let promises = Promises::read()?;
    let wanted: Vec<&Promise> =
        promises.all().filter(|promise| only.is_none_or(|part| promise.text.contains(part))).collect();
    ensure!(!wanted.is_empty(), "no promise contains `{}`", only.unwrap_or_default());
    let sources = copy_sources()?;
    let mut kept = Vec::new();
    let mut guarded = Vec::new();
    // All tests on the sources as they are come first: they need one build.
    println!("{} tests on the sources as they are", wanted.len());
    for promise in &wanted {
        match run_test(&promise.test, &sources)? {
            Verdict::Passed => guarded.push(*promise),
            Verdict::Failed => kept.push(format!("{}: its test fails on the sources as they are", promise.text)),
            Verdict::NotRun(output) => kept.push(format!("{}: its test cannot be run: {output}", promise.text)),
        }
    }
    for (promise, number) in guarded.iter().zip(1..) {
        println!("{number} of {}: {}", guarded.len(), promise.text);
        if let Some(problem) = break_promise(promise, &sources)? {
            println!("    {problem}");
            kept.push(format!("{}: {problem}", promise.text));
        }
    }
    ensure!(kept.is_empty(), "{} of {} promises are not guarded:\n{}", kept.len(), wanted.len(), kept.join("\n"));
    println!("{} promises: each test passes, and fails when its promise is broken", wanted.len());
    Ok(())
}

/// What is wrong with the test of a promise: it has to fail when the promise is broken.
fn break_promise(promise: &Promise, sources: &Path) -> Result<Option<String>> {
    let Promise { test, mutation, .. } = promise;
    let Mutation { file, replace, with } = mutation;
    let path = sources.join(file);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
    fs::write(&path, text.replacen(replace.as_str(), with, 1))?;
    let verdict = run_test(test, sources);
    fs::write(&path, text)?;
    Ok(match verdict? {
        Verdict::Failed => None,
        Verdict::Passed => Some("its test passes although the promise is broken".to_owned()),
        Verdict::NotRun(output) => Some(format!("the mutation does not compile: {output}")),
    })
}

fn run_test(test: &Test, sources: &Path) -> Result<Verdict> {
    let mut command = cargo();
    command.current_dir(sources).args(["test", "--quiet", "--package", &test.package]);
    match &test.target {
        Some(target) => command.args(["--test", target]),
        None => command.arg("--lib"),
    };
    // The build of the copy is kept apart, and outlives this run.
    command.env("CARGO_TARGET_DIR", workspace().join("target/promises/target"));
    command.args(["--", "--exact", &test.name]);
    let Some((status, text)) = run_within(command, LIMIT)? else {
        return Ok(Verdict::Failed);
    };
    let has = |summary: &str| text.lines().any(|line| line.starts_with("test result:") && line.contains(summary));
    Ok(if status.success() && has(" 1 passed; 0 failed") {
        Verdict::Passed
    } else if has(" 0 passed; 1 failed") {
        Verdict::Failed
    } else {
        Verdict::NotRun(text)
    })
}

/// Runs a command, and gives what it printed; none if it was ended because it takes too long.
fn run_within(mut command: Command, limit: Duration) -> Result<Option<(ExitStatus, String)>> {
    let path = workspace().join("target/promises/output");
    let file = fs::File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
    let mut child = command.spawn().context("cannot start cargo")?;
    for _ in 0..limit.as_millis() / POLL.as_millis() {
        if let Some(status) = child.try_wait()? {
            return Ok(Some((status, String::from_utf8_lossy(&fs::read(&path)?).into_owned())));
        }
        std::thread::sleep(POLL);
    }
    // Cargo, the test, and what the test has started.
    Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status().context("cannot start kill")?;
    child.wait()?;
    Ok(None)
}

/// Copies the sources as they are, committed or not.
fn copy_sources() -> Result<PathBuf> {
    let to = workspace().join("target/promises/sources");
    if to.exists() {
        fs::remove_dir_all(&to).with_context(|| format!("cannot remove {}", to.display()))?;
    }
    let mut command = Command::new("git");
    let listed = command
        .current_dir(workspace())
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("cannot start git")?;
    if !listed.status.success() {
        bail!("git cannot list the sources: {}", String::from_utf8_lossy(&listed.stderr));
    }
    for name in listed.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = str::from_utf8(name).context("a file's name is not UTF-8")?;
        let (from, to) = (workspace().join(name), to.join(name));
        // What is deleted and not committed is still listed.
        if !from.is_file() {
            continue;
        }
        if let Some(directory) = to.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::copy(&from, &to).with_context(|| format!("cannot copy {name}"))?;
    }
    Ok(to)
}
