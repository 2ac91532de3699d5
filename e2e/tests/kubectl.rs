//! Real kubectl says the same to a drydock as to a cluster: `transcripts/kubectl/*.txt`, one test each.
//!
//! With `JOBWRIGHT_TARGET` (a cluster of `cluster up`, or a kubeconfig) they play on a cluster, with an image of it that
//! has `sh` in `JOBWRIGHT_IMAGE`; with `JOBWRIGHT_RECORD=1` what it answers is written into the transcripts.

#![expect(clippy::disallowed_methods, reason = "the environment says where to play")]

use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::target::Target;
use jobwright_e2e::tools::Tools;
use jobwright_e2e::transcript::{Theatre, Transcript};
use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts/kubectl")
}

fn theatre() -> Result<Theatre> {
    let tools = Tools::find(&Tools::directory(None)?, [])?;
    let target = Target::named(&env::var("JOBWRIGHT_TARGET").unwrap_or_else(|_| "drydock".to_owned()))?;
    let image = env::var("JOBWRIGHT_IMAGE").unwrap_or_else(|_| "busybox:1".to_owned());
    Ok(Theatre { target, programs: vec![("kubectl".to_owned(), tools.kubectl().to_owned())], image })
}

fn play(name: &str) -> Result<()> {
    let path = directory().join(format!("{name}.txt"));
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let expected = Transcript::parse(&text);
    ensure!(!expected.exchanges.is_empty(), "{} has no command", path.display());
    let played = theatre()?.play(name, &expected)?;
    if env::var_os("JOBWRIGHT_RECORD").is_some() {
        return Ok(std::fs::write(&path, played.to_string())?);
    }
    let differences = expected.differences(&played);
    let texts: Vec<String> = differences.iter().map(|difference| format!("{name}.txt {difference}")).collect();
    ensure!(texts.is_empty(), "{} of {} differ\n{}", texts.len(), expected.exchanges.len(), texts.join("\n"));
    Ok(())
}

macro_rules! transcripts {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { play(stringify!($name)).unwrap_or_else(|error| panic!("{error:#}")); })*

        #[test]
        fn every_transcript_is_played() {
            let files = std::fs::read_dir(directory()).unwrap();
            let names: BTreeSet<String> = files
                .map(|file| file.unwrap().path().file_stem().unwrap_or_default().to_string_lossy().into_owned())
                .collect();
            assert_eq!(names, BTreeSet::from([$(stringify!($name).to_owned()),*]));
        }
    };
}

transcripts!(
    access,
    apply,
    create,
    custom,
    delete,
    discovery,
    errors,
    get,
    jobs,
    metadata,
    patch,
    pods,
    replace,
    rollout,
    server_side,
    wait,
    watch,
);
