//! The page of benchmarks. A section is a file in `bench/` with one function; what it measures is done by a process of
//! its own (`bench/` at the root), so that nothing is in the way of anything.

mod backfill;
mod charts;
mod engine;
mod http;
mod jobs;
mod machine;
mod objects;
mod program;
mod real;

use anyhow::{Context as _, Result};
use program::{Peer, Program};
use std::path::{Path, PathBuf};

/// What sections measure with.
struct Bench {
    root: PathBuf,
    /// drydock, in process.
    drydock: Program,
    /// What else there is in Rust, if it could be built.
    peer: Peer,
    /// Fewer and smaller measurements, to try a section out.
    quick: bool,
}

/// How a section comes about.
type Section = fn(&Bench) -> Result<String>;

/// The sections of the page, in order.
const SECTIONS: &[(&str, Section)] = &[
    ("drydock: objects", objects::section),
    ("drydock: Jobs", jobs::section),
    ("drydock: over HTTP", http::section),
    ("engine: many jobs", engine::section),
    ("deploy: many charts", charts::section),
    ("backfill: many objects", backfill::section),
];

/// Measures everything and writes the page; or tries some of it out, and only shows it.
pub(crate) fn run(quick: bool, only: Option<&str>) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the repository")?.to_owned();
    // Together, so that what both stand on is built once.
    let packages = ["--package", "jobwright-bench", "--package", "jobwright"];
    let drydock = Program::build(&root, &packages, "target/release/jobwright-bench")?;
    let peer = Peer::build(&root);
    let bench = Bench { root, drydock, peer, quick };
    let path = bench.root.join("docs/benchmarks.md");
    let head = format!(
        "# Benchmarks\n\nMade by `cargo xtask bench`, every section in one run. Instructions are the same on every run; times are those of\n\
         this machine, so their ratios say more. A ratio is what drydock takes to what the other takes. Less is better throughout.\n\n{}",
        machine::describe(&bench)
    );
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let kept = if machine::is_same(&before, &head) { before.as_str() } else { "" };
    let mut page = head;
    for (title, section) in SECTIONS {
        let heading = format!("\n## {title}\n\n");
        if only.is_none_or(|only| title.contains(only)) {
            println!("measuring {title}");
            page.push_str(&heading);
            page.push_str(&section(&bench)?);
        } else if let Some((_, rest)) = kept.split_once(&heading) {
            page.push_str(&heading);
            page.push_str(rest.split_once("\n## ").map_or(rest, |(text, _)| text));
        }
    }
    if quick {
        println!("{page}");
        return Ok(());
    }
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote docs/benchmarks.md");
    Ok(())
}

impl Bench {
    /// A number of things, or a tenth of it to try a section out.
    fn size(&self, size: usize) -> usize {
        if self.quick { size / 10 } else { size }
    }
}

/// A whole number with commas: `1,234,567`.
fn whole(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0.0 { format!("-{text}") } else { text }
}

/// How many times as much, in two digits.
fn ratio(one: f64, other: f64) -> String {
    if other <= 0.0 {
        return "–".to_owned();
    }
    let ratio = one / other;
    if ratio >= 10.0 {
        format!("{ratio:.0}")
    } else if ratio >= 1.0 {
        format!("{ratio:.1}")
    } else {
        format!("{ratio:.2}")
    }
}

/// A count to reckon with.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn units(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_easy_to_read() {
        assert_eq!([whole(1_234_567.4), whole(999.0), whole(-1000.0)], ["1,234,567", "999", "-1,000"]);
        assert_eq!([ratio(30.0, 2.0), ratio(3.0, 2.0), ratio(1.0, 3.0), ratio(1.0, 0.0)], ["15", "1.5", "0.33", "–"]);
    }
}
