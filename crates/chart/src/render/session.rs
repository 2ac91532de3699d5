//! A chart that is rendered again and again, with other values each time.

use super::context::build;
use super::{RenderError, RenderOptions, Rendered, check_dependencies, check_kind, find_crds, templates};
use crate::dependencies::{is_compatible, process};
use crate::package::Package;
use crate::split::split;
use crate::values::{Values, coalesce};
use jobwright_template::{Entropy, Environment, FileReads, Heap, Helm, Program, Render};
use std::collections::BTreeMap;

/// A chart that is rendered again and again.
///
/// Templates are parsed once, and a file is executed again only if something that it read has changed: see
/// [`FileReads`]. A file that changed shared values, or asked the cluster, is always executed again, and with it all that
/// follow it.
#[derive(Debug)]
pub struct Session {
    package: Package,
    memo: Option<Memo>,
    executed: usize,
}

/// What the last render leaves for the next.
#[derive(Debug)]
struct Memo {
    /// The names of all templates, which depend on the charts that are enabled.
    names: Vec<String>,
    program: Program,
    helm: Helm,
    entropy: Entropy,
    files: BTreeMap<String, Memorized>,
}

/// What a file printed, and what decides it.
#[derive(Clone, Debug)]
struct Memorized {
    text: String,
    reads: FileReads,
}

impl Session {
    /// A session that has rendered nothing yet.
    pub fn new(package: Package) -> Self {
        Self { package, memo: None, executed: 0 }
    }

    /// How many files the last render executed; it took the others over.
    pub fn executed(&self) -> usize {
        self.executed
    }

    /// Renders the chart with the values that a user gives.
    pub fn render(&mut self, given: &Values, options: &RenderOptions<'_>) -> Result<Rendered, RenderError> {
        let mut package = self.package.clone();
        check_kind(&package)?;
        check_dependencies(&package)?;
        process(&mut package, given).map_err(RenderError::Chart)?;
        let kube_version = &options.capabilities.kube_version;
        let values = coalesce(&package, given.clone()).map_err(RenderError::Chart)?;
        if !options.skip_schema {
            crate::schema::validate(&package, &values).map_err(RenderError::Chart)?;
        }
        let wanted = &package.metadata.kube_version;
        if !wanted.is_empty() && !is_compatible(wanted, kube_version) {
            let message =
                format!("chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {kube_version}");
            return Err(RenderError::Chart(message));
        }
        let printed = self.execute(&package, &values, options)?;
        let mut notes = String::new();
        let own_notes = format!("{}/templates/NOTES.txt", package.name());
        let mut files = BTreeMap::new();
        for (name, text) in printed {
            if name == own_notes {
                notes = text;
            } else if !name.ends_with("NOTES.txt") {
                files.insert(name, text);
            }
        }
        let split = split(&files).map_err(RenderError::Chart)?;
        let mut crds = Vec::new();
        find_crds(&package, package.name(), &mut crds);
        Ok(Rendered { split, crds, notes })
    }

    /// Prints every template that is no partial.
    fn execute(
        &mut self,
        package: &Package,
        values: &Values,
        options: &RenderOptions<'_>,
    ) -> Result<Vec<(String, String)>, RenderError> {
        self.executed = 0;
        let mut found = Vec::new();
        templates(package, package.name(), &mut found);
        let owners: BTreeMap<&str, &str> = found.iter().map(|(name, _, path)| (name.as_str(), path.as_str())).collect();
        let names: Vec<String> = owners.keys().map(|name| (*name).to_owned()).collect();
        let entropy = &options.entropy;
        let is_reusable = |memo: &Memo| {
            memo.names == names
                && memo.helm == options.helm
                && memo.entropy.seed == entropy.seed
                && memo.entropy.now == entropy.now
                && memo.entropy.keys == entropy.keys
                && memo.entropy.zone == entropy.zone
        };
        // What fails leaves nothing to go on from.
        let mut memo = if let Some(memo) = self.memo.take().filter(is_reusable) {
            memo
        } else {
            let sources = found.iter().map(|(name, text, _)| (name.as_str(), *text));
            let program = Program::parse(options.helm, sources).map_err(RenderError::Parse)?;
            Memo { names, program, helm: options.helm, entropy: entropy.clone(), files: BTreeMap::new() }
        };
        let mut heap = Heap::with_limit(options.limits.heap);
        let contexts = build(&mut heap, package, values, options);
        let environment = Environment {
            helm: options.helm,
            limits: options.limits,
            entropy: options.entropy.clone(),
            lookup: options.lookup,
        };
        let program = memo.program.clone();
        let mut render = Render::new(&program, heap, &environment);
        let mut printed = Vec::new();
        let mut follows_a_change = false;
        for name in program.order() {
            let base = name.rsplit('/').next().unwrap_or_default();
            let Some(owner) = owners.get(name.as_str()).filter(|_| !base.starts_with('_')) else { continue };
            let Some(dot) = contexts.enter(&mut render, owner, name) else { continue };
            let known = memo.files.get(name);
            let is_known = |known: &&Memorized| {
                let reads = &known.reads;
                !reads.wrote && !reads.looked_up && reads.finds_the_same(render.heap(), contexts.root())
            };
            if !follows_a_change && let Some(known) = known.filter(is_known) {
                printed.push((name.clone(), known.text.clone()));
                continue;
            }
            follows_a_change |= known.is_some_and(|known| known.reads.wrote);
            let text = render.file(name, dot).map_err(RenderError::Execute)?;
            let text = String::from_utf8_lossy(&text).into_owned();
            let reads = render.take_reads();
            follows_a_change |= reads.wrote;
            self.executed += 1;
            printed.push((name.clone(), text.clone()));
            memo.files.insert(name.clone(), Memorized { text, reads });
        }
        self.memo = Some(memo);
        Ok(printed)
    }
}
