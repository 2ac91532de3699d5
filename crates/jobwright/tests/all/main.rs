//! The binary as it is typed.

mod backfill;
mod cascade;
mod command_line;
mod deploy;
mod forced;
mod init_cert;
mod render;
