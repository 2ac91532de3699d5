//! How a drydock is made.

use super::{Drydock, Shared};
use crate::access::{Token, User};
use crate::clock::Clock;
use crate::cluster::{Cluster, Settings};
use crate::containers::script::Script;
use jiff::Timestamp;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// Settings of a [`Drydock`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Builder {
    clock: Option<Clock>,
    settings: Settings,
    tokens: Vec<(String, User)>,
}

/// When time starts in a cluster unless told otherwise: 2026-01-01, midnight UTC.
const EPOCH_SECONDS: i64 = 1_767_225_600;

impl Builder {
    /// Follows this clock. Otherwise time starts at 2026-01-01 and passes as tokio's clock does.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Makes uids and generated names from this seed. The same requests with the same seed give the same objects.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Remembers this many writes of each kind. Watches and pages from before them are told that they are gone (410).
    pub fn window(mut self, writes: usize) -> Self {
        self.settings.window = writes;
        self
    }

    /// Refuses what no role allows.
    pub fn rbac(mut self, on: bool) -> Self {
        self.settings.rbac = on;
        self
    }

    /// Says what containers do.
    pub fn script(mut self, script: Script) -> Self {
        self.settings.script = script;
        self
    }

    /// Has this many nodes: `drydock`, `drydock-2` and so on. Otherwise there is one.
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.settings.nodes = nodes;
        self
    }

    /// Runs what clusters run for themselves, as far as clients look at it: a DNS in `kube-system`.
    pub fn system(mut self) -> Self {
        self.settings.system = true;
        self
    }

    /// Only the API: objects are stored and served, owners and namespaces take along what is theirs, nothing else happens.
    pub fn bare(mut self) -> Self {
        self.settings.lives = false;
        self
    }

    /// Takes who sends this bearer token for `user`, and refuses requests without a known token.
    pub fn token(mut self, token: &str, user: User) -> Self {
        self.tokens.push((token.to_owned(), user));
        self
    }

    /// The cluster.
    pub fn build(self) -> Drydock {
        let epoch = || Timestamp::from_second(EPOCH_SECONDS).unwrap_or(Timestamp::UNIX_EPOCH);
        let clock = self.clock.unwrap_or_else(|| Clock::starting_at(epoch()));
        let mut cluster = Cluster::new(clock.now(), self.settings);
        let requires_token = !self.tokens.is_empty();
        cluster.tokens.extend(self.tokens.into_iter().map(|(token, user)| (token, Token::lasting(user))));
        let address = Mutex::new("drydock".to_owned());
        Drydock {
            shared: Arc::new(Shared {
                cluster: Mutex::new(cluster),
                clock,
                requires_token,
                address,
                driven: AtomicBool::new(false),
                changed: Arc::new(Notify::new()),
            }),
        }
    }
}
