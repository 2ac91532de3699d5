//! Arguments of `render`, which are those of `helm template`.
#![allow(clippy::struct_excessive_bools, reason = "a flag is a bool, named as it is typed")]

use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Render {
    /// The name of the release, and the chart: its directory or its .tgz
    #[arg(value_name = "[NAME] CHART", required = true, num_args = 1..=2)]
    pub(crate) names: Vec<String>,
    /// Namespace of the release
    #[arg(short, long, default_value = "default")]
    pub(crate) namespace: String,
    /// Read values from a YAML file, or from stdin (-); later files override earlier ones
    #[arg(short = 'f', long, value_name = "FILE", value_delimiter = ',')]
    pub(crate) values: Vec<PathBuf>,
    /// Set values: a.b=1,c[0]=x,d={y,z}
    #[arg(long, value_name = "ASSIGNMENTS")]
    pub(crate) set: Vec<String>,
    /// Set strings: a=1 is the text 1
    #[arg(long, value_name = "ASSIGNMENTS")]
    pub(crate) set_string: Vec<String>,
    /// Set values to the content of files: a=FILE
    #[arg(long, value_name = "ASSIGNMENTS")]
    pub(crate) set_file: Vec<String>,
    /// Set values to JSON: a={"b":1}
    #[arg(long, value_name = "ASSIGNMENTS")]
    pub(crate) set_json: Vec<String>,
    /// Set one string; commas and brackets in it mean nothing
    #[arg(long, value_name = "ASSIGNMENT")]
    pub(crate) set_literal: Vec<String>,
    /// Render as an upgrade: .Release.IsUpgrade is true
    #[arg(long)]
    pub(crate) is_upgrade: bool,
    /// The value of .Release.Revision
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) revision: i64,
    /// Render as this version of Helm does
    #[arg(long, value_name = "VERSION", default_value = "3.22.0", value_parser = helm)]
    pub(crate) helm: jobwright_chart::Helm,
    /// The version of Kubernetes that templates see
    #[arg(long, value_name = "VERSION")]
    pub(crate) kube_version: Option<String>,
    /// API versions that templates see besides the usual ones
    #[arg(short, long, value_name = "VERSIONS", value_delimiter = ',')]
    pub(crate) api_versions: Vec<String>,
    /// Let lookup find these objects: a file of manifests
    #[arg(long, value_name = "FILE")]
    pub(crate) lookup: Option<PathBuf>,
    /// Draw the same random values, keys and time for the same number
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print the files below crds/, too
    #[arg(long)]
    pub(crate) include_crds: bool,
    /// Print only what these templates print
    #[arg(short, long, value_name = "PATH")]
    pub(crate) show_only: Vec<String>,
    /// Do not print hooks
    #[arg(long)]
    pub(crate) no_hooks: bool,
    /// Do not print tests
    #[arg(long)]
    pub(crate) skip_tests: bool,
    /// Do not check values against values.schema.json
    #[arg(long)]
    pub(crate) skip_schema_validation: bool,
}

/// Reads a version of Helm: `3.17.3`, `v4.3`.
pub(crate) fn helm(text: &str) -> Result<jobwright_chart::Helm, String> {
    let numbers: Vec<Option<u16>> = text.trim_start_matches('v').split('.').map(|part| part.parse().ok()).collect();
    let at = |index: usize| numbers.get(index).copied().unwrap_or(Some(0));
    match (at(0), at(1), at(2), numbers.len()) {
        (Some(major @ 3..=4), Some(minor), Some(patch), 1..=3) => Ok(jobwright_chart::Helm::new(major, minor, patch)),
        _ => Err("a version of Helm 3 or 4, such as 3.17.3".to_owned()),
    }
}
