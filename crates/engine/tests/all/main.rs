//! The engine on a cluster in memory. One program for all of it: each further one would link the whole cluster again.

mod crash;
mod limits;
mod pods;
mod runner;
mod secrets;
mod support;
mod weather;
