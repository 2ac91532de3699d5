//! Whatever is sent, an answer comes: an API error at worst, never a panic, a hang or an internal error, and the cluster
//! goes on. `PROPTEST_CASES=20000 cargo test --release --test all fuzz` tries as many sessions, of dozens of requests each.
#![allow(unreachable_pub, missing_docs, reason = "nobody uses a test as a library")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "these are tests")]

mod definitions;
mod extremes;
mod patches;
mod request;
mod session;
mod tape;
mod typed;
mod value;
mod vocabulary;
mod world;

use proptest::collection::vec;
use proptest::prelude::*;

/// How many sessions are tried unless the environment says otherwise.
const SESSIONS: u32 = 12;

#[expect(clippy::disallowed_methods, reason = "whoever runs the test says how long")]
fn configuration() -> ProptestConfig {
    let configuration =
        ProptestConfig { max_shrink_iters: 500, failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => configuration,
        None => ProptestConfig { cases: SESSIONS, ..configuration },
    }
}

proptest! {
    #![proptest_config(configuration())]

    #[test]
    fn whatever_is_asked_is_answered(choices in vec(any::<u16>(), 0..8_000)) {
        session::play(choices);
    }
}
