//! The kinds that a cluster serves: those built in, and those that CustomResourceDefinitions add.

pub(crate) mod behaviour;
mod convert;
pub(crate) mod custom;
pub(crate) mod rules;
pub(crate) mod subresource;
pub(crate) mod table;

use crate::schema::Schema;
use custom::CustomKind;
use rules::Rules;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};
use table::{ROWS, Row, Verbs};

/// A resource of the API in one version.
#[derive(Debug)]
pub struct Kind {
    /// `batch`, empty for the core group.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `Job`.
    pub kind: String,
    /// `jobs`.
    pub plural: String,
    /// `job`.
    pub singular: String,
    /// `JobList`.
    pub list_kind: String,
    /// What `kubectl` also takes for the name.
    pub short_names: Vec<String>,
    /// `all` and the like.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// `status`, `scale`, `log`, …
    pub subresources: Vec<String>,
    pub(crate) verbs: Verbs,
    /// Where the objects are stored; versions of one kind share it.
    pub(crate) storage: Storage,
    pub(crate) origin: Origin,
}

/// The group and plural under which objects are stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Storage {
    pub(crate) group: Arc<str>,
    pub(crate) plural: Arc<str>,
}

impl Storage {
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        Self { group: group.into(), plural: plural.into() }
    }

    /// A storage of the core group.
    pub(crate) fn core(plural: &str) -> Self {
        Self::new("", plural)
    }

    /// Whether this is the storage of a built-in kind.
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        &*self.group == group && &*self.plural == plural
    }
}

/// Who defined a kind.
pub(crate) enum Origin {
    BuiltIn { row: &'static Row, schema: OnceLock<Schema> },
    Custom(Box<CustomKind>),
}

impl fmt::Debug for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::BuiltIn { .. } => "BuiltIn",
            Self::Custom(_) => "Custom",
        })
    }
}

impl Kind {
    fn built_in(row: &'static Row) -> Self {
        let (group, _) = row.stored_as.unwrap_or((row.group, row.version));
        Self {
            group: row.group.to_owned(),
            version: row.version.to_owned(),
            kind: row.kind.to_owned(),
            plural: row.plural.to_owned(),
            singular: row.kind.to_lowercase(),
            list_kind: format!("{}List", row.kind),
            short_names: row.short_names.iter().map(|name| (*name).to_owned()).collect(),
            categories: row.categories.iter().map(|name| (*name).to_owned()).collect(),
            namespaced: row.namespaced,
            subresources: row.subresources.iter().map(|name| (*name).to_owned()).collect(),
            verbs: row.verbs,
            storage: Storage { group: group.into(), plural: row.plural.into() },
            origin: Origin::BuiltIn { row, schema: OnceLock::new() },
        }
    }

    /// `batch/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `jobs.batch`, or `pods` for the core group.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `Job.batch`, or `Pod` for the core group.
    pub fn group_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// Whether the kind has this subresource.
    pub fn has(&self, subresource: &str) -> bool {
        self.subresources.iter().any(|name| name == subresource)
    }

    pub(crate) fn schema(&self) -> &Schema {
        match &self.origin {
            Origin::BuiltIn { row, schema } => schema.get_or_init(|| Schema::built_in(&(row.definition)())),
            Origin::Custom(custom) => &custom.schema,
        }
    }

    pub(crate) fn rules(&self) -> &'static Rules {
        match &self.origin {
            Origin::BuiltIn { row, .. } => row.rules,
            Origin::Custom(_) => &rules::CUSTOM,
        }
    }

    pub(crate) fn custom(&self) -> Option<&CustomKind> {
        match &self.origin {
            Origin::BuiltIn { .. } => None,
            Origin::Custom(custom) => Some(custom),
        }
    }
}

/// Groups in the order in which discovery lists them; groups of custom resources follow by name.
const GROUP_ORDER: &[&str] = &[
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
];

static BUILT_IN: LazyLock<Vec<Arc<Kind>>> =
    LazyLock::new(|| ROWS.iter().map(|row| Arc::new(Kind::built_in(row))).collect());

/// The kinds that every cluster serves.
pub fn built_in() -> &'static [Arc<Kind>] {
    &BUILT_IN
}

/// All kinds that a cluster serves now.
#[derive(Clone, Debug)]
pub(crate) struct Kinds {
    /// By group, version and plural.
    served: BTreeMap<(String, String, String), Arc<Kind>>,
    /// By what they are stored in, each in its preferred version.
    by_storage: BTreeMap<Storage, Arc<Kind>>,
    /// Goes up with every change, so that documents about the kinds can be kept until then.
    generation: u64,
}

impl Default for Kinds {
    fn default() -> Self {
        let mut kinds = Self { served: BTreeMap::new(), by_storage: BTreeMap::new(), generation: 0 };
        for kind in BUILT_IN.iter() {
            kinds.add(Arc::clone(kind));
        }
        kinds
    }
}

impl Kinds {
    pub(crate) fn add(&mut self, kind: Arc<Kind>) {
        self.generation += 1;
        // What is stored as a kind of another group is preferred there.
        if kind.storage.is(&kind.group, &kind.plural) {
            let preferred = self.by_storage.entry(kind.storage.clone()).or_insert_with(|| Arc::clone(&kind));
            if version_rank(&kind.version) >= version_rank(&preferred.version) {
                *preferred = Arc::clone(&kind);
            }
        }
        self.served.insert((kind.group.clone(), kind.version.clone(), kind.plural.clone()), kind);
    }

    /// Takes all versions of a kind away.
    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        self.generation += 1;
        self.by_storage.remove(&Storage::new(group, plural));
        self.served.retain(|(its_group, _, its_plural), _| its_group != group || its_plural != plural);
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The kind at `/apis/GROUP/VERSION/PLURAL`.
    pub(crate) fn by_resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.served.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The kind that an object calls itself by.
    pub(crate) fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.in_version(group, version).find(|candidate| candidate.kind == kind)
    }

    /// The kinds of one version of a group.
    pub(crate) fn in_version(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Kind>> {
        let (group, version) = (group.to_owned(), version.to_owned());
        let start = (group.clone(), version.clone(), String::new());
        self.served
            .range(start..)
            .take_while(move |((its_group, its_version, _), _)| *its_group == group && *its_version == version)
            .map(|(_, kind)| kind)
    }

    /// The kind whose objects a storage holds, in its preferred version.
    pub(crate) fn of_storage(&self, storage: &Storage) -> Option<&Arc<Kind>> {
        self.by_storage.get(storage)
    }

    /// Every kind, once for each version it is served in.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.served.values()
    }

    /// The groups with their versions, each in the order of preference.
    pub(crate) fn groups(&self) -> Vec<(String, Vec<String>)> {
        let mut groups: BTreeMap<(usize, &str), Vec<&str>> = BTreeMap::new();
        for (group, version, _) in self.served.keys() {
            let rank = GROUP_ORDER.iter().position(|known| known == group).unwrap_or(GROUP_ORDER.len());
            let versions = groups.entry((rank, group)).or_default();
            if !versions.contains(&version.as_str()) {
                versions.push(version);
            }
        }
        groups
            .into_iter()
            .map(|((_, group), mut versions)| {
                versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
                (group.to_owned(), versions.into_iter().map(str::to_owned).collect())
            })
            .collect()
    }
}

/// How much a version is preferred: stable over beta over alpha, then the higher number.
pub(crate) fn version_rank(version: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let number = |text: &str| text.parse::<u32>().ok();
    let parsed = version.strip_prefix('v').and_then(|rest| {
        if let Some((major, minor)) = rest.split_once("beta") {
            return Some((2, number(major)?, number(minor)?));
        }
        if let Some((major, minor)) = rest.split_once("alpha") {
            return Some((1, number(major)?, number(minor)?));
        }
        Some((3, number(rest)?, 0))
    });
    let (stability, major, minor) = parsed.unwrap_or_default();
    (stability, major, minor, std::cmp::Reverse(version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_path_and_by_name() {
        let kinds = Kinds::default();
        let job = kinds.by_resource("batch", "v1", "jobs").unwrap();
        assert_eq!((job.kind.as_str(), job.namespaced), ("Job", true));
        assert_eq!(job.group_resource(), "jobs.batch");
        assert_eq!(kinds.by_kind("v1", "Namespace").unwrap().group_kind(), "Namespace");
        assert!(kinds.by_kind("v2", "Namespace").is_none());
        assert_eq!(kinds.by_kind("events.k8s.io/v1", "Event").unwrap().storage.group.as_ref(), "");
    }

    #[test]
    fn groups_come_in_the_order_of_discovery() {
        let groups = Kinds::default().groups();
        assert_eq!(groups[0].0, "");
        let autoscaling = groups.iter().find(|(group, _)| group == "autoscaling").unwrap();
        assert_eq!(autoscaling.1, ["v2", "v1"]);
    }

    #[test]
    fn versions_are_ranked_as_kubernetes_ranks_them() {
        let mut versions = vec!["v1beta1", "v10", "foo", "v2", "v1alpha3", "v1beta2", "bar"];
        versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        assert_eq!(versions, ["v10", "v2", "v1beta2", "v1beta1", "v1alpha3", "bar", "foo"]);
    }
}
