//! Renders a chart with its defaults: `cargo run --example template -- 3.17.3 NAME CHART`.

use jobwright_chart::{
    Capabilities, Entropy, Helm, LIMITS, NoCluster, Package, Release, RenderOptions, Session, Shown, Values,
};
use std::io::Write as _;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [version, name, chart] = arguments.as_slice() else { return Err("three arguments: VERSION NAME CHART".into()) };
    let numbers = version.split('.').map(str::parse).collect::<Result<Vec<u16>, _>>()?;
    let [major, minor, patch] = numbers[..] else { return Err("a version has three numbers".into()) };
    let helm = Helm::new(major, minor, patch);
    let options = RenderOptions {
        helm,
        release: Release { name: name.clone(), namespace: "default".to_owned(), revision: 1, is_upgrade: false },
        capabilities: Capabilities::of(helm).with_kube_version("1.30.0")?,
        entropy: Entropy::fixed(1, "2026-01-02T03:04:05Z".parse()?),
        lookup: &NoCluster,
        limits: LIMITS,
        skip_schema: false,
    };
    let rendered = Session::new(Package::load(Path::new(chart))?).render(&Values::new(), &options)?;
    std::io::stdout().write_all(rendered.to_text(&Shown::default())?.as_bytes())?;
    Ok(())
}
