//! An S3 server that checks signatures and keeps objects as files.

use crate::Test;
use crate::stage::{MAPS, PLANTED, Server, Stage, free_address};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const TESTS: &[Test] = &[
    ("a_bucket_has_every_object_and_a_manifest", has_every_object),
    ("a_bucket_is_not_written_with_a_wrong_key", is_not_written),
];

/// What the server lets in, in another region than the usual one.
const KEY: &str = "backfill";
const SECRET: &str = "k3y-of-the-b4ckfill";
const REGION: &str = "eu-central-1";

struct Bucket {
    stage: Stage,
    address: String,
    _server: Server,
}

impl Bucket {
    fn new(program: &Path) -> Result<Self> {
        let stage = Stage::new()?;
        let address = free_address()?;
        let place = |name: &str| stage.directory.path().join(name);
        for name in ["files/bucket", "sidecar"] {
            std::fs::create_dir_all(place(name))?;
        }
        let mut command = Command::new(program);
        command.env("ROOT_ACCESS_KEY", KEY).env("ROOT_SECRET_KEY", SECRET);
        command.args(["--quiet", "--region", REGION, "--port", &address, "posix", "--sidecar"]);
        command.arg(place("sidecar")).arg(place("files"));
        let mut server = Server::start(&mut command)?;
        server.until(|| TcpStream::connect(&address).ok())?;
        Ok(Self { stage, address, _server: server })
    }

    fn backfill(&self, secret: &str) -> Result<Value> {
        let endpoint = format!("http://{}", self.address);
        let words = ["--sink", "s3://bucket/of/one", "--s3-endpoint", &endpoint, "--s3-region", REGION];
        let environment = [("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", secret)];
        self.stage.backfill(&[&words[..], &["--s3-path-style"]].concat(), &environment)
    }

    /// Every file in the bucket, and what is in it.
    fn files(&self) -> Result<Vec<(PathBuf, String)>> {
        let mut files = Vec::new();
        let mut directories = vec![self.stage.directory.path().join("files/bucket")];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory)? {
                let path = entry?.path();
                if path.is_dir() {
                    directories.push(path);
                } else {
                    let text = std::fs::read_to_string(&path)?;
                    ensure!(!text.contains(PLANTED), "a secret has left: {}", path.display());
                    files.push((path, text));
                }
            }
        }
        Ok(files)
    }
}

fn has_every_object(program: &Path) -> Result<()> {
    let bucket = Bucket::new(program)?;
    let summary = bucket.backfill(SECRET)?;
    let run = summary["run"].as_str().context("a run has a name")?;
    let files = bucket.files()?;
    let start = bucket.stage.directory.path().join("files/bucket/of/one").join(run);
    ensure!(files.iter().all(|(path, _)| path.starts_with(&start)), "{files:?}");
    let (manifests, batches): (Vec<_>, Vec<_>) = files.iter().partition(|(path, _)| path.ends_with("manifest.json"));
    let [(_, manifest)] = manifests[..] else { anyhow::bail!("{} manifests", manifests.len()) };
    let manifest: Value = serde_json::from_str(manifest)?;
    ensure!(manifest["complete"] == true && manifest["run"] == run, "{manifest}");
    ensure!(summary["batches"]["sent"] == batches.len(), "{} files: {summary}", batches.len());
    let mut names = BTreeSet::new();
    for line in batches.iter().flat_map(|(_, text)| text.lines()) {
        let object: Value = serde_json::from_str(line)?;
        let metadata = &object["metadata"];
        let name =
            [&object["kind"], &metadata["namespace"], &metadata["name"]].map(|part| part.as_str().unwrap_or("?"));
        let name = name.join("/");
        ensure!(names.insert(name), "it came twice: {object}");
    }
    let listed = summary["kinds"].as_array().into_iter().flatten().filter_map(|kind| kind["listed"].as_u64());
    ensure!(u64::try_from(names.len())? == listed.sum::<u64>() && names.len() > MAPS, "{names:?}: {summary}");
    for index in 0..MAPS {
        ensure!(names.contains(&format!("ConfigMap/default/map-{index:03}")), "{index} is not in {names:?}");
    }
    Ok(())
}

fn is_not_written(program: &Path) -> Result<()> {
    let bucket = Bucket::new(program)?;
    let wrong = "another-s3cret";
    let Err(refused) = bucket.backfill(wrong) else { anyhow::bail!("it was let in with a wrong key") };
    let told = format!("{refused:#}");
    ensure!(told.contains("403") && !told.contains(wrong), "{told}");
    ensure!(bucket.files()?.is_empty(), "something was written");
    Ok(())
}
