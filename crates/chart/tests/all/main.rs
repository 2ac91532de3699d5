//! Charts rendered by real Helm, and by this library.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests are tests, too")]

mod helm;
mod session;
