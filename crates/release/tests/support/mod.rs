//! What several suites of this crate use to judge a deploy.

pub(crate) mod cluster;
pub(crate) mod journal;
