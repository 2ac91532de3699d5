//! Real kubectl says the same to a drydock as to a cluster: `transcripts/kubectl/*.txt`, one test each.
//!
//! With `JOBWRIGHT_TARGET` (a cluster of `cluster up`, or a kubeconfig) they play on a cluster, with an image of it that
//! has `sh` in `JOBWRIGHT_IMAGE`; with `JOBWRIGHT_RECORD=1` what it answers is written into the transcripts. What needs
//! containers is skipped on a light cluster.

#![expect(clippy::disallowed_methods, reason = "the environment says where to play")]
#![expect(clippy::print_stdout, reason = "what is skipped is said")]

use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::results;
use jobwright_e2e::target::Target;
use jobwright_e2e::tools::Tools;
use jobwright_e2e::transcript::{Theatre, Transcript};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value, json};
use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How many are played at a time, unless said otherwise.
const AT_A_TIME: usize = 6;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They wait for others most of the time.
    arguments.test_threads = arguments.test_threads.or(Some(AT_A_TIME));
    match trials(arguments.list) {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            println!("cannot play the transcripts: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn trials(quiet: bool) -> Result<Vec<Trial>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts/kubectl");
    let files = std::fs::read_dir(&directory).with_context(|| format!("cannot read `{}`", directory.display()))?;
    let mut paths = files.map(|file| Ok(file?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    let target = Target::named(&env::var("JOBWRIGHT_TARGET").unwrap_or_else(|_| "drydock".to_owned()))?;
    let containers = target.runs_containers();
    let mut trials = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let transcript = Transcript::parse(&text);
        let skipped = transcript.needs_containers() && !containers;
        if skipped && !quiet {
            println!("skipped: {name}: needs containers: `cluster up --tier full`");
            record(&json!({"case": name, "skipped": "needs containers"}))?;
        }
        let target = target.clone();
        let play = {
            let name = name.clone();
            move || play(&name, &path, &transcript, target).map_err(|error| Failed::from(format!("{error:#}")))
        };
        trials.push(Trial::test(name, play).with_ignored_flag(skipped));
    }
    Ok(trials)
}

fn play(name: &str, path: &PathBuf, expected: &Transcript, target: Target) -> Result<()> {
    ensure!(!expected.exchanges.is_empty(), "{} has no command", path.display());
    let tools = Tools::find(&Tools::directory(None)?, [])?;
    let image = env::var("JOBWRIGHT_IMAGE").unwrap_or_else(|_| "busybox:1".to_owned());
    let programs = vec![("kubectl".to_owned(), tools.kubectl().to_owned())];
    let played = Theatre { target, programs, image }.play(name, expected)?;
    if env::var_os("JOBWRIGHT_RECORD").is_some() {
        return Ok(std::fs::write(path, played.to_string())?);
    }
    let differences = expected.differences(&played);
    let lines: Vec<usize> = differences.iter().map(|difference| difference.line).collect();
    record(&json!({"case": name, "commands": expected.exchanges.len(), "differ": lines}))?;
    let texts: Vec<String> = differences.iter().map(|difference| format!("{name}.txt {difference}")).collect();
    ensure!(texts.is_empty(), "{} of {} differ\n{}", texts.len(), expected.exchanges.len(), texts.join("\n"));
    Ok(())
}

/// Writes down how a transcript was answered, if anybody wants to know.
fn record(line: &Value) -> Result<()> {
    let Some(file) = env::var_os(results::FILE) else { return Ok(()) };
    Ok(results::add(Path::new(&file), line)?)
}
