//! A cluster: objects, kinds and a time, and what requests do to them. No input or output: whoever holds a
//! cluster tells it the time and passes requests in.

use crate::access::{Attributes, Token, rbac};
use crate::bootstrap::Furniture;
use crate::containers::logs::Logs;
use crate::containers::script::Script;
use crate::containers::witness::Witness;
use crate::kinds::{Kind, Kinds, Storage};
use crate::life::nodes::Outages;
use crate::life::{Lives, Told};
use crate::object::Object;
use crate::request::{Request, Verb};
use crate::status::Status;
use crate::store::{Key, Store};
use crate::verbs::logs::LogPlan;
use crate::verbs::watch::WatchPlan;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state of a cluster.
pub(crate) struct Cluster {
    pub(crate) store: Store,
    pub(crate) kinds: Kinds,
    pub(crate) now: Timestamp,
    pub(crate) random: fastrand::Rng,
    /// Who a token stands for.
    pub(crate) tokens: BTreeMap<String, Token>,
    /// Whether requests are refused that no role allows.
    pub(crate) rbac: bool,
    /// What the client of the current request is warned of.
    pub(crate) warnings: Vec<String>,
    /// What containers do.
    pub(crate) script: Script,
    pub(crate) logs: Logs,
    pub(crate) witness: Witness,
    /// Nodes that have stopped reporting.
    pub(crate) outages: Outages,
    lives: Lives,
    /// Events that were told lately.
    pub(crate) told: Told,
    /// Whether anything happens by itself but what is part of the API.
    is_alive: bool,
}

/// How a cluster is to be.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// What uids and generated names are made from.
    pub(crate) seed: u64,
    /// How many writes of each kind are remembered.
    pub(crate) window: usize,
    /// Whether requests are refused that no role allows.
    pub(crate) rbac: bool,
    /// Whether anything happens by itself but what is part of the API.
    pub(crate) lives: bool,
    pub(crate) script: Script,
    /// How many nodes there are.
    pub(crate) nodes: u32,
    /// Whether it runs what clusters run for themselves.
    pub(crate) system: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { seed: 0, window: 10_000, rbac: false, lives: true, script: Script::default(), nodes: 1, system: false }
    }
}

/// What a request gets.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum Answer {
    Object {
        code: u16,
        kind: Arc<Kind>,
        object: Arc<Object>,
    },
    /// Something that is stored nowhere: a `Status`, a `Scale`, a review.
    Other {
        code: u16,
        value: Value,
    },
    List(List),
    Watch(WatchPlan),
    Log(LogPlan),
}

/// Many objects of a kind.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) kind: Arc<Kind>,
    pub(crate) items: Vec<Arc<Object>>,
    pub(crate) revision: u64,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl Reply {
    pub(crate) fn object(code: u16, kind: &Arc<Kind>, object: Arc<Object>) -> Self {
        Self { answer: Answer::Object { code, kind: Arc::clone(kind), object }, warnings: Vec::new() }
    }

    pub(crate) fn other(code: u16, value: Value) -> Self {
        Self { answer: Answer::Other { code, value }, warnings: Vec::new() }
    }

    pub(crate) fn warn(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }
}

impl Cluster {
    /// A cluster with what every cluster has: namespaces, the API's own Service, the standard roles.
    pub(crate) fn new(now: Timestamp, settings: Settings) -> Self {
        let Settings { seed, window, rbac, lives, script, nodes, system } = settings;
        let mut cluster = Self {
            store: Store::new(window),
            kinds: Kinds::default(),
            now,
            random: fastrand::Rng::with_seed(seed),
            tokens: BTreeMap::new(),
            rbac,
            warnings: Vec::new(),
            script,
            logs: Logs::default(),
            witness: Witness::default(),
            outages: Outages::default(),
            is_alive: lives,
            told: Told::default(),
            lives: if lives { Lives::of_a_cluster() } else { Lives::of_the_api() },
        };
        let furniture = Furniture { nodes, system };
        crate::bootstrap::fill(&mut cluster, lives.then_some(&furniture));
        cluster.settle();
        cluster
    }

    /// Carries a request out.
    pub(crate) fn execute(&mut self, request: &Request) -> Result<Reply, Status> {
        self.authorise(request)?;
        self.warnings.clear();
        self.warnings.extend(request.target.kind.custom().and_then(|custom| custom.deprecation.clone()));
        let reply = match request.verb {
            Verb::Get => self.get(request),
            Verb::List => self.list(request),
            Verb::Watch => self.watch(request),
            Verb::Create => self.create(request),
            Verb::Update => self.update(request),
            Verb::Patch => self.patch(request),
            Verb::Delete => self.delete(request),
            Verb::DeleteCollection => self.delete_collection(request),
        };
        let warnings = std::mem::take(&mut self.warnings);
        if request.verb.writes() {
            self.settle();
        }
        reply.map(|reply| reply.warn(warnings))
    }

    /// Whether anything happens by itself but what is part of the API.
    pub(crate) fn lives(&self) -> bool {
        self.is_alive
    }

    /// Lets the controllers do what has become due.
    pub(crate) fn settle(&mut self) {
        let mut lives = std::mem::take(&mut self.lives);
        lives.settle(self);
        self.lives = lives;
    }

    /// When something happens by itself, if nobody asks for anything until then.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.lives.next_due()
    }

    fn authorise(&self, request: &Request) -> Result<(), Status> {
        if !self.rbac {
            return Ok(());
        }
        let target = &request.target;
        let resource = match &target.subresource {
            Some(subresource) => format!("{}/{subresource}", target.kind.plural),
            None => target.kind.plural.clone(),
        };
        // A namespace is in itself, for those who may only do things in it.
        let namespace = match &target.namespace {
            None if target.kind.plural == "namespaces" && target.kind.group.is_empty() => target.object_name(),
            _ => target.storage_namespace(),
        };
        let attributes = Attributes::Resource {
            verb: request.verb.name(),
            group: &target.kind.group,
            resource: &resource,
            namespace,
            name: target.object_name(),
        };
        match rbac::allows(&self.store, &request.user, &attributes) {
            Some(_) => Ok(()),
            None => Err(Status::forbidden(&target.kind, target.object_name(), &attributes.refusal(&request.user))),
        }
    }

    /// A stored object, in the words of a kind's version.
    pub(crate) fn fetch(&self, kind: &Kind, key: &Key) -> Option<Arc<Object>> {
        self.store.get(&kind.storage, key).map(|object| kind.served(object))
    }

    /// A stored object of a built-in kind, by the kind's plural.
    pub(crate) fn find(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.store.get(&Storage::new(group, plural), &Key::new(namespace, name))
    }

    /// A random uid.
    pub(crate) fn new_uid(&mut self) -> String {
        let bits = self.random.u128(..);
        let bits = (bits & !(0xf << 76)) | (0x4 << 76);
        let bits = (bits & !(0x3 << 62)) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// The end of a generated name.
    pub(crate) fn new_suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| char::from(LETTERS[self.random.usize(..LETTERS.len())])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_uids() {
        let cluster = || Cluster::new(Timestamp::UNIX_EPOCH, Settings { seed: 7, ..Settings::default() });
        let (mut one, mut two) = (cluster(), cluster());
        let uid = one.new_uid();
        assert_eq!(uid, two.new_uid());
        assert_eq!((uid.len(), &uid[14..15]), (36, "4"));
        assert_eq!(one.new_suffix(), two.new_suffix());
        assert_eq!(one.store.revision(), two.store.revision());
    }
}
