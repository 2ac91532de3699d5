//! Sets of fields: which parts of an object somebody manages (structured-merge-diff v6.3 `fieldpath`).

mod element;
mod wire;

pub(crate) use element::{PathElement, Plain, equal};

use std::collections::BTreeMap;

/// A set of paths into an object. A path in the set says nothing of the paths above and below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// No node is empty: it is in the set, or something below it is.
    nodes: BTreeMap<PathElement, Node>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    is_member: bool,
    below: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }
}

impl FieldSet {
    /// A set of paths of field names.
    pub(crate) fn of(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<PathElement> = path.iter().map(|name| PathElement::Field((*name).to_owned())).collect();
            set.insert(&path);
        }
        set
    }

    /// Adds a path. The empty path, the whole object, is nobody's.
    pub(crate) fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let node = self.nodes.entry(first.clone()).or_default();
        if rest.is_empty() {
            node.is_member = true;
        } else {
            node.below.insert(rest);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(crate) fn contains(&self, path: &[PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        self.nodes
            .get(first)
            .is_some_and(|node| if rest.is_empty() { node.is_member } else { node.below.contains(rest) })
    }

    /// Whether a path of one element is in the set.
    pub(super) fn has(&self, element: &PathElement) -> bool {
        self.nodes.get(element).is_some_and(|node| node.is_member)
    }

    /// The paths below an element, without it.
    pub(super) fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.nodes.get(element).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    /// The first elements of all paths, and whether they are in the set themselves.
    pub(super) fn elements(&self) -> impl Iterator<Item = (&PathElement, bool)> {
        self.nodes.iter().map(|(element, node)| (element, node.is_member))
    }

    /// What either set has.
    #[must_use]
    pub(crate) fn union(mut self, other: &Self) -> Self {
        for (element, node) in &other.nodes {
            let own = self.nodes.entry(element.clone()).or_default();
            own.is_member |= node.is_member;
            own.below = std::mem::take(&mut own.below).union(&node.below);
        }
        self
    }

    /// What both sets have.
    #[must_use]
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.combine(|element, node| {
            let other = other.nodes.get(element)?;
            Some(Node { is_member: node.is_member && other.is_member, below: node.below.intersection(&other.below) })
        })
    }

    /// What only this set has. Paths below those of the other set stay.
    #[must_use]
    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.combine(|element, node| match other.nodes.get(element) {
            None => Some(node.clone()),
            Some(other) => {
                Some(Node { is_member: node.is_member && !other.is_member, below: node.below.difference(&other.below) })
            }
        })
    }

    /// What lies neither at nor below a path of the other set.
    #[must_use]
    pub(crate) fn outside(&self, other: &Self) -> Self {
        self.combine(|element, node| match other.nodes.get(element) {
            None => Some(node.clone()),
            Some(other) if other.is_member => None,
            Some(other) => Some(Node { is_member: node.is_member, below: node.below.outside(&other.below) }),
        })
    }

    fn combine(&self, with: impl Fn(&PathElement, &Node) -> Option<Node>) -> Self {
        let nodes = self.nodes.iter().filter_map(|(element, node)| {
            let node = with(element, node)?;
            (!node.is_empty()).then(|| (element.clone(), node))
        });
        Self { nodes: nodes.collect() }
    }

    /// A set with the same structure, in which more elements are members: those for which `add` says so. It gets the
    /// context of the level, and gives that of the level below.
    pub(super) fn with_members<C: Copy>(
        &self,
        context: C,
        add: &impl Fn(C, &PathElement) -> bool,
        descend: &impl Fn(C, &PathElement) -> C,
    ) -> Self {
        let nodes = self.nodes.iter().map(|(element, node)| {
            let below = node.below.with_members(descend(context, element), add, descend);
            let is_member = node.is_member || (!below.is_empty() && add(context, element));
            (element.clone(), Node { is_member, below })
        });
        Self { nodes: nodes.collect() }
    }

    /// All paths: those that end on a level before those that go on.
    pub(crate) fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
        for (element, _) in self.nodes.iter().filter(|(_, node)| node.is_member) {
            paths.push(prefix.iter().chain([element]).cloned().collect());
        }
        for (element, node) in &self.nodes {
            prefix.push(element.clone());
            node.below.collect_paths(prefix, paths);
            prefix.pop();
        }
    }
}

/// A path as people read it: `.spec.containers[name="a"].image`.
pub(crate) fn path_text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

/// Which changes are written into the books: those of fields that the endpoint resets are not.
#[derive(Clone, Debug, Default)]
pub(crate) enum Tracked {
    /// All of them.
    #[default]
    All,
    /// All but those at and below these fields.
    Except(FieldSet),
    /// Only those at, above and below these paths of field names, in which `*` stands for any element.
    Only(&'static [&'static [&'static str]]),
}

impl Tracked {
    pub(super) fn filter(&self, set: &FieldSet) -> FieldSet {
        match self {
            Self::All => set.clone(),
            Self::Except(except) => set.outside(except),
            Self::Only(patterns) => only(set, patterns),
        }
    }
}

fn only(set: &FieldSet, patterns: &[&[&str]]) -> FieldSet {
    set.combine(|element, node| {
        let matches = |pattern: &str| pattern == "*" || matches!(element, PathElement::Field(name) if name == pattern);
        let rests: Vec<&[&str]> = patterns
            .iter()
            .filter_map(|pattern| pattern.split_first().filter(|(first, _)| matches(first)))
            .map(|(_, rest)| rest)
            .collect();
        match rests.as_slice() {
            [] => None,
            rests if rests.iter().any(|rest| rest.is_empty()) => Some(node.clone()),
            rests => Some(Node { is_member: node.is_member, below: only(&node.below, rests) }),
        }
    })
}

#[cfg(test)]
mod tests;
