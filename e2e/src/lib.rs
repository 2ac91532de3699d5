//! Plays what real deployers do on real clusters against any Kubernetes API, and compares.
//!
//! A scenario (`scenarios/helm/*.yaml`) is charts, commands, and what each version of Helm does with them in reality:
//! what it says, the revisions it records, the objects it leaves, the containers that ran. [`scenario::load`] reads them,
//! [`play::Stage`] plays one in a namespace of its own, on a cluster or on a drydock, and [`report`] tells how they ended.

pub mod cargo;
pub mod chart;
mod clock;
pub mod cluster;
mod command;
pub mod compare;
pub mod error;
pub mod image;
pub mod install;
mod kubectl;
pub mod live;
mod lock;
mod normalise;
mod object;
pub mod outcome;
pub mod play;
pub mod render;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
mod state;
pub mod target;
pub mod tools;
pub mod transcript;
pub mod version;
mod witness;
