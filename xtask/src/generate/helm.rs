//! The page on Helm: every scenario with every version, on drydock and on a real cluster.

use anyhow::{Context as _, Result};
use jobwright_e2e::report::{Results, page as write};
use jobwright_e2e::scenario::load;
use std::path::Path;

pub(super) fn page() -> Result<String> {
    let scenarios = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/scenarios/helm"))?;
    Ok(write(&scenarios, &results("helm.drydock.jsonl")?, &results("helm.cluster.jsonl")?))
}

fn results(file: &str) -> Result<Results> {
    let path = super::results(file);
    if !path.exists() {
        return Ok(Results::default());
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Results::read(&text).with_context(|| format!("{} is not what `helm-scenarios --results` writes", path.display()))
}
