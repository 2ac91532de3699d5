//! `backfill` as it is typed, on a cluster in memory over HTTP, to a server that takes what comes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

pub(crate) mod collector;
mod exits;
mod kill;
mod once;
mod plan;
pub(crate) mod play;
