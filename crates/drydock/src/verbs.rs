//! What the verbs of the API do to a cluster: one file a verb, and one each for subresources of their own.

mod apply;
mod create;
pub(crate) mod delete;
mod get;
mod list;
pub(crate) mod logs;
mod patch;
mod pods;
mod scale;
mod update;
pub(crate) mod watch;
pub(crate) mod write;
