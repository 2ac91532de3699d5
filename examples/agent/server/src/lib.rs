//! A small admission server: it admits what is not labelled otherwise, records every review, takes up a new certificate
//! without a restart, and drains before it ends. The example chart runs it, and so do the tests of certificates.

pub mod admission;
pub mod certificate;
mod health;
pub mod serve;

pub use serve::{Options, Serving};
