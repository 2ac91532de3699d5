//! Prometheus is told by remote write, and queried back.

use crate::Test;
use crate::stage::{MAPS, PLANTED, Server, Stage, ask, free_address};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

pub(crate) const TESTS: &[Test] = &[("prometheus_is_told_and_tells", told_and_tells)];

fn told_and_tells(program: &Path) -> Result<()> {
    let stage = Stage::new()?;
    let address = free_address()?;
    let directory = stage.directory.path();
    std::fs::write(directory.join("prometheus.yml"), "scrape_configs: []\n")?;
    let mut command = Command::new(program);
    command.args(["--web.enable-remote-write-receiver", "--log.level=error"]);
    command.arg(format!("--web.listen-address={address}"));
    command.arg(format!("--config.file={}", directory.join("prometheus.yml").display()));
    command.arg(format!("--storage.tsdb.path={}", directory.join("data").display()));
    let mut server = Server::start(&mut command)?;
    server.until(|| ask(&address, "GET", "/-/ready", "").ok())?;

    let summary = stage.backfill(&["--sink", &format!("remote-write:http://{address}/api/v1/write")], &[])?;
    let listed = |kind: &str| {
        let kinds = summary["kinds"].as_array().into_iter().flatten();
        kinds.filter(|found| found["kind"] == kind).filter_map(|found| found["listed"].as_u64()).sum::<u64>()
    };
    let maps = query(&address, "cloudzero_configmap_labels")?;
    let found = u64::try_from(maps.len())?;
    ensure!(found == listed("ConfigMap") && maps.len() >= MAPS, "{found} series, {summary}");
    ensure!(u64::try_from(query(&address, "cloudzero_secret_labels")?.len())? == listed("Secret"), "{summary}");
    for index in 0..MAPS {
        let name = format!("map-{index:03}");
        let series = maps.iter().find(|series| series["metric"]["workload"] == name.as_str());
        let series = series.with_context(|| format!("{name} is not there"))?;
        let expected = json!({
            "__name__": "cloudzero_configmap_labels", "workload": name, "namespace": "default",
            "resource_type": "configmap", "label_app_kubernetes_io_name": "shop", "label_number": format!("n{index}"),
        });
        ensure!(series["metric"] == expected, "{series} is not {expected}");
        ensure!(series["value"][1] == "1", "{series}");
    }
    let annotations = query(&address, "cloudzero_configmap_annotations")?;
    let quoted = annotations.iter().filter(|series| series["metric"]["label_team_owner"] == "q\"u\\o\nte").count();
    ensure!(quoted == MAPS, "{quoted} annotations, of {}: {:?}", annotations.len(), annotations.first());
    Ok(())
}

/// The series of a name.
fn query(address: &str, name: &str) -> Result<Vec<Value>> {
    let text = ask(address, "GET", &format!("/api/v1/query?query={name}"), "")?;
    ensure!(!text.contains(PLANTED), "a secret has left: {text}");
    let answer: Value = serde_json::from_str(&text)?;
    answer["data"]["result"].as_array().cloned().with_context(|| format!("no series: {text}"))
}
