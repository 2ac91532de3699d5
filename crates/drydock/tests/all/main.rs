//! drydock as its clients see it. One program for all of it: each further one would link the whole cluster again.

mod apps;
mod controller;
mod fuzz;
mod jobs;
mod lab;
mod nodes;
mod pods;
mod stateful;
