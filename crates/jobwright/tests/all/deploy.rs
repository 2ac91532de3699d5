//! `deploy`, `plan`, `run`, `status`, `history` and `logs` as they are typed, on a cluster in memory over HTTP.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod cancel;
mod clock;
mod early;
mod exits;
mod follow;
mod front;
mod ledger;
mod lock;
mod locked;
mod orphan;
mod plans;
mod secrets;
pub(crate) mod stage;
mod story;
mod supersede;
mod tables;
