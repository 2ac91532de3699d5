//! What containers do: by script, by the shell line they run, or the simplest thing.

pub(crate) mod process;
pub(crate) mod shell;
