//! What no schema says: names that lead nowhere, things that contradict each other, cycles.

use super::finding::{Finding, did_you_mean};
use jobwright_engine::{JsonPath, find_cycle};
use jobwright_jobs::Quantity;
use jobwright_yaml::Node;
use std::collections::BTreeMap;

/// What a job can do; exactly one of these.
const KINDS: [&str; 7] = ["pod", "podFrom", "initCert", "backfill", "adopt", "growVolume", "command"];

/// Errors and warnings in a plan, whatever else is wrong with it.
pub(super) fn check(root: &Node) -> (Vec<Finding>, Vec<Finding>) {
    let mut checker = Checker { errors: Vec::new(), warnings: Vec::new() };
    let components = items(root, "components");
    let jobs = items(root, "jobs");
    checker.check_components(components);
    checker.check_jobs(jobs, components);
    (checker.errors, checker.warnings)
}

struct Checker {
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

pub(super) fn items<'a>(node: &'a Node, key: &str) -> &'a [Node] {
    node.get(key).map(Node::items).unwrap_or_default()
}

pub(super) fn text<'a>(node: &'a Node, key: &str) -> Option<(&'a Node, &'a str)> {
    let value = node.get(key)?;
    Some((value, value.as_str()?))
}

impl Checker {
    fn error(&mut self, node: &Node, message: String) {
        self.errors.push(Finding::new(node.span.clone(), message));
    }

    fn check_components(&mut self, components: &[Node]) {
        self.check_unique(components, "name", "components");
        let names = || components.iter().filter_map(|component| Some(text(component, "name")?.1));
        for component in components {
            let Some((node, name)) = text(component, "name") else { continue };
            if name == "global" {
                self.error(node, "a component cannot be called `global`: that is what belongs to none".to_owned());
            }
            for other in items(component, "dependsOn") {
                if let Some(wanted) = other.as_str().filter(|wanted| !names().any(|name| name == *wanted)) {
                    self.unknown(other, wanted, "component", names());
                }
            }
            match (component.get("chart"), component.get("manifests")) {
                (None, None) => self.error(node, format!("component `{name}` has neither a `chart` nor `manifests`")),
                (Some(_), Some(manifests)) => {
                    self.error(manifests, format!("component `{name}` has both a `chart` and `manifests`"));
                }
                (None, Some(_)) => {
                    for key in ["values", "set", "helm"] {
                        if let Some(entry) = component.entry(key) {
                            let message = format!("`{key}` is for charts, and component `{name}` has manifests");
                            self.errors.push(Finding::new(entry.key_span.clone(), message));
                        }
                    }
                }
                (Some(chart), None) => self.check_chart(chart, name),
            }
        }
        self.check_cycle(components, "name", "dependsOn");
    }

    fn check_chart(&mut self, chart: &Node, component: &str) {
        match (chart.get("path"), chart.get("ref")) {
            (Some(_), Some(reference)) => {
                self.error(reference, format!("the chart of component `{component}` has both a `path` and a `ref`"));
            }
            (None, None) => {
                self.error(chart, format!("the chart of component `{component}` has neither a `path` nor a `ref`"));
            }
            (Some(_), None) => {
                for key in ["version", "repo"] {
                    if let Some(entry) = chart.entry(key) {
                        let message = format!("`{key}` says nothing of a chart that has a `path`");
                        self.errors.push(Finding::new(entry.key_span.clone(), message));
                    }
                }
            }
            (None, Some(_)) => {}
        }
    }

    fn check_jobs(&mut self, jobs: &[Node], components: &[Node]) {
        self.check_unique(jobs, "id", "jobs");
        let names = || components.iter().filter_map(|component| Some(text(component, "name")?.1));
        let ids = || jobs.iter().filter_map(|job| Some(text(job, "id")?.1));
        for job in jobs {
            let Some((id_node, id)) = text(job, "id") else { continue };
            if let Some((node, component)) = text(job, "component")
                && !names().any(|name| name == component)
            {
                self.unknown(node, component, "component", names());
            }
            self.check_kind(job, id_node, id);
            self.check_after(job, jobs, ids);
            self.check_retires(job, id_node, id);
            for condition in items(job, "skipIf") {
                if let Some((node, path)) = text(condition, "jsonPath")
                    && let Err(error) = path.parse::<JsonPath>()
                {
                    self.error(node, error.to_string());
                }
            }
            if let Some((node, size)) = job.get("growVolume").and_then(|grow| text(grow, "to"))
                && let Err(error) = size.parse::<Quantity>()
            {
                self.error(node, error.to_string());
            }
            if let Some(backfill) = job.get("backfill") {
                self.errors.extend(super::backfill::check(backfill));
            }
            if let Some(adopt) = job.get("adopt")
                && adopt.get("release").is_none()
                && job.get("component").is_none()
            {
                let message = format!("job `{id}` belongs to no component, so `adopt` has to name its `release`");
                self.error(adopt, message);
            }
        }
        self.check_cycle(jobs, "id", "after");
    }

    fn check_kind(&mut self, job: &Node, id_node: &Node, id: &str) {
        let mut kinds: Vec<_> = KINDS.iter().filter_map(|kind| job.entry(kind)).collect();
        kinds.sort_by_key(|entry| entry.key_span.start);
        let listed = || KINDS.map(|kind| format!("`{kind}`")).join(", ");
        match kinds.as_slice() {
            [] => self.errors.push(
                Finding::new(id_node.span.clone(), format!("job `{id}` does nothing"))
                    .help(format!("give it one of {}", listed())),
            ),
            [_] => {}
            [_, rest @ ..] => {
                for entry in rest {
                    let message = format!("job `{id}` does more than one thing");
                    self.errors
                        .push(Finding::new(entry.key_span.clone(), message).help(format!("one of {}", listed())));
                }
            }
        }
        let has_both = kinds.iter().any(|entry| entry.key == "initCert");
        if job.get("phase").is_none() && !kinds.is_empty() && !has_both {
            let message = format!("job `{id}` has no `phase`");
            self.errors.push(Finding::new(id_node.span.clone(), message).help("`phase: pre` or `phase: post`"));
        }
        let is_pod = kinds.iter().any(|entry| entry.key.starts_with("pod"));
        for key in ["skipIf", "onSupersede", "onUnknown", "onCancel", "keep"] {
            if let Some(entry) = job.entry(key).filter(|_| !is_pod && !kinds.is_empty()) {
                let message = format!("`{key}` is for jobs that are pods");
                self.errors.push(Finding::new(entry.key_span.clone(), message));
            }
        }
    }

    fn check_after<'a, I: Iterator<Item = &'a str>>(&mut self, job: &Node, jobs: &'a [Node], ids: impl Fn() -> I) {
        let place = |job: &Node| {
            let part = |key: &str| text(job, key).map(|(_, text)| text.to_owned());
            (part("component"), part("phase"))
        };
        for other in items(job, "after") {
            let Some(wanted) = other.as_str() else { continue };
            let found = jobs.iter().find(|job| text(job, "id").is_some_and(|(_, id)| id == wanted));
            match found {
                None => self.unknown(other, wanted, "job", ids()),
                Some(found) if place(found) != place(job) => {
                    let message = format!("`{wanted}` belongs to another component or phase");
                    let help =
                        "a job comes after others of its own component and phase; the phases themselves are in order";
                    self.errors.push(Finding::new(other.span.clone(), message).help(help));
                }
                Some(_) => {}
            }
        }
    }

    fn check_retires(&mut self, job: &Node, id_node: &Node, id: &str) {
        match job.get("retires") {
            None => self.warnings.push(
                Finding::new(id_node.span.clone(), format!("job `{id}` does not say when it retires"))
                    .help("`retires: {at: 2.0.0}`, or `retires: {never: \"why\"}`"),
            ),
            Some(retires) => {
                if retires.get("at").is_some() == retires.get("never").is_some() {
                    self.error(retires, "it is either `at` a version or `never`".to_owned());
                }
            }
        }
    }

    fn check_unique(&mut self, nodes: &[Node], key: &str, what: &str) {
        let mut seen: BTreeMap<&str, &Node> = BTreeMap::new();
        for (node, name) in nodes.iter().filter_map(|node| text(node, key)) {
            if seen.insert(name, node).is_some() {
                self.error(node, format!("there are two {what} `{name}`"));
            }
        }
    }

    fn check_cycle(&mut self, nodes: &[Node], key: &str, after: &str) {
        let edges: Vec<(String, Vec<String>)> = nodes
            .iter()
            .filter_map(|node| {
                let others = items(node, after).iter().filter_map(|other| other.as_str().map(str::to_owned));
                Some((text(node, key)?.1.to_owned(), others.collect()))
            })
            .collect();
        if let Some(cycle) = find_cycle(&edges)
            && let Some((node, _)) = nodes.iter().filter_map(|node| text(node, key)).find(|(_, name)| *name == cycle[0])
        {
            self.error(node, format!("{} wait for each other", cycle.join(" → ")));
        }
    }

    fn unknown<'a>(&mut self, node: &Node, name: &str, what: &str, names: impl Iterator<Item = &'a str>) {
        let finding = Finding::new(node.span.clone(), format!("there is no {what} `{name}`"));
        self.errors.push(match did_you_mean(name, names) {
            Some(help) => finding.help(help),
            None => finding,
        });
    }
}
