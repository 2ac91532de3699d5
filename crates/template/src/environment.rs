//! What a render is told from outside: the Helm to be, limits, chance, the time and the cluster.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The version of Helm that templates are rendered as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Helm {
    /// 3 in 3.17.3.
    pub major: u16,
    /// 17 in 3.17.3.
    pub minor: u16,
    /// 3 in 3.17.3.
    pub patch: u16,
}

impl Helm {
    /// A version.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch }
    }

    /// The minor version of Go 1 that it was built with.
    pub(crate) fn go(self) -> u16 {
        match (self.major, self.minor) {
            (..=3, ..=13) => 21,
            (..=3, 14..=15) => 22,
            (..=3, 16..=17) => 23,
            (..=3, 18..=19) | (4, 0) => 24,
            (..=3, 20..=21) | (4, 1..=2) => 25,
            _ => 26,
        }
    }

    /// Whether errors of comparisons name the types.
    pub(crate) fn names_compared_types(self) -> bool {
        self.go() >= 25
    }

    pub(crate) fn has_else_with(self) -> bool {
        self.go() >= 23
    }

    pub(crate) fn ranges_over_integers(self) -> bool {
        self.go() >= 24
    }

    /// The package that `.Values` has its type from.
    pub fn values_type(self) -> &'static str {
        if self.major >= 4 { "common.Values" } else { "chartutil.Values" }
    }
}

impl fmt::Display for Helm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Limits of a render. None of them is a time: what is rendered today is rendered tomorrow.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Steps of all templates together.
    pub steps: u64,
    /// Bytes that a template prints.
    pub output: usize,
    /// Bytes that all values take.
    pub heap: usize,
    /// How deep `tpl` is nested.
    pub tpl: usize,
}

/// More than any chart needs.
pub const LIMITS: Limits = Limits { steps: 50_000_000, output: 64 << 20, heap: 256 << 20, tpl: 1000 };

/// Which keys are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// RSA, as Sprig does.
    Rsa,
    /// P-256, which takes no time.
    Fast,
}

/// Where chance and the time come from.
#[derive(Clone, Debug)]
pub struct Entropy {
    /// Equal seeds draw equal values.
    pub seed: [u8; 32],
    /// What `now` returns.
    pub now: Timestamp,
    /// Which keys are generated.
    pub keys: Keys,
    /// What `Local` is to dates.
    pub zone: TimeZone,
}

impl Entropy {
    /// What is always the same: the seed is a number, the time is given, and zones are UTC.
    pub fn fixed(seed: u64, now: Timestamp) -> Self {
        Self { seed: Sha256::digest(seed.to_le_bytes()).into(), now, keys: Keys::Rsa, zone: TimeZone::UTC }
    }

    /// A source of bytes for a draw of a file. Other files draw the same, however often this one does.
    pub(crate) fn draw(&self, file: &str, index: u64) -> Random {
        let digest =
            Sha256::new().chain_update(self.seed).chain_update(file).chain_update(index.to_le_bytes()).finalize();
        Random { key: digest.into(), counter: 0, buffer: Vec::new() }
    }
}

/// Bytes that look random.
pub(crate) struct Random {
    key: [u8; 32],
    counter: u64,
    buffer: Vec<u8>,
}

impl Random {
    pub(crate) fn byte(&mut self) -> u8 {
        loop {
            if let Some(byte) = self.buffer.pop() {
                return byte;
            }
            let block = Sha256::new().chain_update(self.key).chain_update(self.counter.to_le_bytes()).finalize();
            self.counter += 1;
            self.buffer.extend_from_slice(&block);
        }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    pub(crate) fn number(&mut self) -> u64 {
        (0..8).fold(0, |sum, _| sum << 8 | u64::from(self.byte()))
    }

    /// A number below another one.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        let limit = limit.max(1);
        let most = u64::MAX - u64::MAX % limit;
        loop {
            let number = self.number();
            if number < most {
                return number % limit;
            }
        }
    }
}

/// Objects of a cluster, for `lookup`.
pub trait Lookup {
    /// The object of a name, or the list of all if the name is empty; nothing if there is none.
    fn lookup(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<serde_json::Value>;
}

/// A cluster that has nothing, as `helm template` sees it.
#[derive(Clone, Copy, Debug)]
pub struct NoCluster;

impl Lookup for NoCluster {
    fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Option<serde_json::Value> {
        None
    }
}

/// What a render is told from outside.
pub struct Environment<'e> {
    /// The Helm to be.
    pub helm: Helm,
    /// How much is taken.
    pub limits: Limits,
    /// Chance and the time.
    pub entropy: Entropy,
    /// The cluster.
    pub lookup: &'e dyn Lookup,
}
