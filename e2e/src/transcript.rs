//! Sessions at a terminal, as text: what is typed, and what a real cluster makes of it. They play against any target.
//!
//! ```text
//! # A ConfigMap is made once
//!
//! $ kubectl create configmap a
//! configmap/a created
//! $ kubectl create configmap a
//! error: failed to create configmap: configmaps "a" already exists
//! [exit 1]
//! ```
//!
//! A command starts with `$ ` and goes on over `> ` lines. What it prints follows, standard output before standard
//! error, with everything made up by the cluster replaced (`masks`). Lines before the first command say what it is about; `# Needs
//! containers.` is one that is skipped where none run.

mod file;
mod masks;
mod play;

pub use file::{Exchange, Transcript};
pub use play::{Difference, Theatre};
