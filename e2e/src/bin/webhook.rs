//! `webhook ADDRESS DIRECTORY`: serves reviews of admission in a pod, with the certificate in the directory.

use anyhow::Context as _;
use std::path::Path;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, directory] = words.as_slice() else { anyhow::bail!("use: webhook ADDRESS DIRECTORY") };
    jobwright_e2e::webhook::serve(address, Path::new(directory)).context("cannot serve")
}
