//! What no schema says: names that lead nowhere, contradictions between parts of the plan, cycles.

use super::finding::{Finding, did_you_mean};
use jobwright_engine::find_cycle;
use jobwright_yaml::Node;
use std::collections::BTreeMap;

/// Errors and warnings in a plan, whatever else is wrong with it.
pub(super) fn check(root: &Node) -> (Vec<Finding>, Vec<Finding>) {
    let (components, jobs) = (items(root, "components"), items(root, "jobs"));
    let mut checker = Checker { components, jobs, errors: Vec::new(), warnings: Vec::new() };
    checker.check_components();
    checker.check_jobs();
    (checker.errors, checker.warnings)
}

struct Checker<'a> {
    components: &'a [Node],
    jobs: &'a [Node],
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

fn items<'a>(node: &'a Node, key: &str) -> &'a [Node] {
    node.get(key).map(Node::items).unwrap_or_default()
}

fn text<'a>(node: &'a Node, key: &str) -> Option<(&'a Node, &'a str)> {
    let value = node.get(key)?;
    Some((value, value.as_str()?))
}

/// The names that some nodes have.
fn names<'a>(nodes: &'a [Node], key: &'a str) -> impl Iterator<Item = &'a str> + Clone {
    nodes.iter().filter_map(move |node| Some(text(node, key)?.1))
}

impl<'a> Checker<'a> {
    fn error(&mut self, node: &Node, message: String) {
        self.errors.push(Finding::new(node.span.clone(), message));
    }

    fn check_components(&mut self) {
        let components = self.components;
        self.check_unique(components, "name", "component");
        for component in components {
            if let Some((node, "global")) = text(component, "name") {
                self.error(node, "`global` is reserved: choose another name for the component".to_owned());
            }
            for other in items(component, "dependsOn") {
                self.check_reference(other, "component", names(components, "name"));
            }
        }
        self.check_cycle(components, "name", "dependsOn");
    }

    fn check_jobs(&mut self) {
        let (jobs, components) = (self.jobs, self.components);
        self.check_unique(jobs, "id", "job");
        for job in jobs {
            let Some((id_node, id)) = text(job, "id") else { continue };
            if let Some(component) = job.get("component") {
                self.check_reference(component, "component", names(components, "name"));
            }
            self.check_after(job);
            self.check_adopt(job, id);
            self.check_pod_from(job, id);
            if job.get("retires").is_none() {
                let message = format!("job `{id}` does not say when it retires");
                let help = "add `retires: {at: 2.0.0}`, or `retires: {never: \"why\"}`";
                self.warnings.push(Finding::new(id_node.span.clone(), message).help(help));
            }
        }
        self.check_cycle(jobs, "id", "after");
    }

    fn check_after(&mut self, job: &'a Node) {
        let place = |job: &Node| {
            let part = |key: &str| text(job, key).map(|(_, text)| text.to_owned());
            (part("component"), part("phase"))
        };
        for other in items(job, "after") {
            let Some(wanted) = other.as_str() else { continue };
            let found = self.jobs.iter().find(|job| text(job, "id").is_some_and(|(_, id)| id == wanted));
            match found {
                None => self.check_reference(other, "job", names(self.jobs, "id")),
                Some(found) if place(found) != place(job) => {
                    let message = format!("`{wanted}` belongs to another component or phase");
                    let help = "`after` orders jobs of the same component and phase; the phases are in order anyway";
                    self.errors.push(Finding::new(other.span.clone(), message).help(help));
                }
                Some(_) => {}
            }
        }
    }

    /// Objects are adopted by a Helm release: the one that is named, or that of the component.
    fn check_adopt(&mut self, job: &Node, id: &str) {
        let Some(adopt) = job.get("adopt").filter(|adopt| adopt.get("release").is_none()) else { return };
        let component = text(job, "component").map(|(_, name)| name);
        let found = component.and_then(|name| {
            self.components.iter().find(|component| text(component, "name").is_some_and(|(_, other)| other == name))
        });
        let why = match (component, found) {
            (None, _) => "belongs to no component".to_owned(),
            (Some(name), Some(component)) if component.get("chart").is_none() => {
                format!("belongs to component `{name}`, which is no chart")
            }
            _ => return,
        };
        self.error(adopt, format!("job `{id}` {why}: `adopt` has to name its `release`"));
    }

    /// Before a component is deployed, its Deployments have the image of the previous version.
    fn check_pod_from(&mut self, job: &Node, id: &str) {
        let is_pre = text(job, "phase").is_some_and(|(_, phase)| phase == "pre");
        if let Some(entry) = job.entry("podFrom").filter(|_| is_pre)
            && !entry.value.entries().is_empty()
            && entry.value.get("image").is_none()
        {
            let message = format!(
                "job `{id}` would run the previous version's image: `podFrom` with `phase: pre` needs an `image`"
            );
            let help = "set `podFrom.image`, use `pod`, or run it with `phase: post`";
            self.errors.push(Finding::new(entry.key_span.clone(), message).help(help));
        }
    }

    fn check_unique(&mut self, nodes: &[Node], key: &str, what: &str) {
        let mut seen: BTreeMap<&str, &Node> = BTreeMap::new();
        for (node, name) in nodes.iter().filter_map(|node| text(node, key)) {
            if seen.insert(name, node).is_some() {
                self.error(node, format!("duplicate {what} `{name}`"));
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
            self.error(node, format!("{} depend on each other", cycle.join(" → ")));
        }
    }

    /// A name has to be among the names.
    fn check_reference(&mut self, node: &Node, what: &str, names: impl Iterator<Item = &'a str> + Clone) {
        let Some(name) = node.as_str() else { return };
        if names.clone().any(|other| other == name) {
            return;
        }
        let finding = Finding::new(node.span.clone(), format!("unknown {what} `{name}`"));
        let help = did_you_mean(name, names);
        self.errors.push(match help {
            Some(help) => finding.help(help),
            None => finding,
        });
    }
}
