//! The binary as it is typed.

mod command_line;
mod deploy;
