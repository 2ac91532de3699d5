//! Bearer tokens: whose they are, for whom, and until when.

use super::User;
use jiff::Timestamp;

/// Who tokens are for unless told otherwise: this API.
pub(crate) const API_AUDIENCE: &str = "https://kubernetes.default.svc";

/// A token that was given out.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) user: User,
    pub(crate) audiences: Vec<String>,
    /// It is good before this time; for ever, if there is none.
    pub(crate) expires: Option<Timestamp>,
}

impl Token {
    /// A token for this API that does not expire.
    pub(crate) fn lasting(user: User) -> Self {
        Self { user, audiences: vec![API_AUDIENCE.to_owned()], expires: None }
    }

    pub(crate) fn is_valid(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    /// Whether this API takes it.
    pub(crate) fn opens_the_api(&self, now: Timestamp) -> bool {
        self.is_valid(now) && self.audiences.iter().any(|audience| audience == API_AUDIENCE)
    }
}
