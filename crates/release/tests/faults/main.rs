//! Deploys under faults: errors that pass, errors that last, calls that hang, kills and late restarts, two runners.
//!
//! One scenario, two versions of a small release, is deployed once without a fault. Then each suite deploys it again for
//! API calls of that run, with a fault at that call, and asserts that it disturbed each of them. What must hold is in
//! `judge.rs`; it is judged by the cluster's witness and objects, by the journal of what reached the API server, and by the
//! programs that were started. Ledgers and the record are never asked.
//!
//! `cargo test` plays a sample: the first call of each kind and every twelfth, all faults in turn. `JOBWRIGHT_EVERY_CALL=1`
//! plays every call with one fault each (`.ci/run`), `JOBWRIGHT_EVERY_FAULT=1` every fault at every call (`.ci/nightly`).

#![allow(clippy::option_option, clippy::unused_self, clippy::match_bool, reason = "suites read as tables")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot continue has failed")]

mod hang;
mod judge;
mod lasting;
mod once;
mod play;
mod programs;
mod restart;
mod scenario;
#[path = "../support/mod.rs"]
mod support;
mod two_runners;
mod world;
