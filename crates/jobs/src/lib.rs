//! Release jobs that many releases need.
//!
//! Each is a [`Job`](jobwright_engine::Job): it looks first whether there is anything to do, finds out whether it can
//! before it changes anything, and can be stopped and started again anywhere.

pub mod access;
mod adopt;
mod answer;
pub mod backfill;
mod command;
pub mod files;
mod grow_volume;
pub mod init_cert;
pub mod lines;
pub mod locked;
pub mod mark;
mod place;
pub mod process;
mod quantity;
pub mod readiness;
mod waiting;

pub use adopt::{Adopt, ObjectReference};
pub use command::Command;
pub use grow_volume::{GrowVolume, Workload};
pub use init_cert::InitCert;
pub use mark::Mark;
pub use place::Place;
pub use quantity::{NoQuantity, Quantity};
