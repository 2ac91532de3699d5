//! The binary as it is typed.

mod cascade;
mod command_line;
mod deploy;
mod init_cert;
