//! Backfills of a cluster in memory: what arrived equals what is there, object by object, whatever goes wrong.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod crash;
mod faults;
mod files;
mod force;
pub(crate) mod http_sink;
mod identity;
mod job;
mod keys;
mod model;
mod plant;
mod receiver;
mod restarts;
mod secret_values;
mod selection;
mod series;
mod server;
pub(crate) mod stage;
mod stop;
mod tls;
mod waits;
