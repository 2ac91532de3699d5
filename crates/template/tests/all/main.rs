//! Templates with the answers of real Helm, and properties of all of them.

#![allow(clippy::expect_used, reason = "helpers of tests are tests, too")]

mod cases;
mod context;
mod properties;
