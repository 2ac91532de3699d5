//! The binary as it is typed.

mod backfill;
mod command_line;
mod deploy;
