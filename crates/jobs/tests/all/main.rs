//! Jobs on a cluster in memory. One program for all of it: each further one would link the whole cluster again.

mod adopt;
mod backfill;
mod command;
mod grow_volume;
mod hang;
mod init_cert;
mod lasting;
mod release;
mod support;
