//! `init-cert` on a cluster in memory, with servers that really speak TLS.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "what is skipped is said")]

mod bundles;
mod calls;
mod crash;
mod decisions;
mod deployers;
pub(crate) mod force;
mod force_crash;
mod model;
mod neighbours;
mod openssl;
mod rollouts;
mod stages;
mod stories;
mod targets;
pub(crate) mod world;
