//! `init-cert` on a cluster in memory, with servers that really speak TLS.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod crash;
mod model;
mod openssl;
mod stories;
mod targets;
mod world;
