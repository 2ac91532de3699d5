//! Components on a cluster in memory, with real plans: what is applied, pruned, reported, and what helm is asked for.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod charts;
mod drift;
mod handover;
mod helm;
mod intent;
mod prune;
mod removed;
mod resume;
mod skipped;
mod stage;
mod wait;
