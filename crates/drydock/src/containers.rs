//! What containers do, what they said, and that they started.

pub(crate) mod logs;
pub(crate) mod process;
pub(crate) mod script;
pub(crate) mod shell;
pub(crate) mod witness;
