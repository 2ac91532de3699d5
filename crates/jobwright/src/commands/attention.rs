//! What ends a deploy before its time: signals, and a time limit that counts from the start of the command.

use super::session::Prepared;
use super::signals::Signals;
use crate::failure::{ErrorExt as _, Failure, Kind};
use jobwright_release::Period;
use std::time::Duration;
use tokio::time::Instant;

/// Pays attention to signals and to the time limit.
pub(super) struct Attention {
    signals: Signals,
    limit: Option<Duration>,
    begun: Instant,
    /// Whether the limit has passed, and was noticed.
    is_late: bool,
}

/// Why a deploy is to end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Interruption {
    Signal,
    /// The time limit, which has passed.
    Late(Duration),
}

impl Attention {
    /// Begins, with the time limit of the command.
    pub(super) fn begin(limit: Option<Period>) -> Result<Self, Failure> {
        let signals = Signals::listen().or_fail(Kind::Internal)?;
        Ok(Self { signals, limit: limit.map(Period::duration), begun: Instant::now(), is_late: false })
    }

    /// Waits for a signal, or for the limit if that was not noticed before.
    pub(super) async fn next(&mut self) -> Interruption {
        let left = self.limit.filter(|_| !self.is_late).map(|limit| (limit, self.begun + limit));
        let late = async {
            match left {
                Some((limit, end)) => {
                    tokio::time::sleep_until(end).await;
                    limit
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.signals.next() => Interruption::Signal,
            limit = late => {
                self.is_late = true;
                Interruption::Late(limit)
            }
        }
    }

    /// Does what comes before a deploy. It is dropped where it stands when it is interrupted.
    pub(super) async fn before_deploy<T>(
        &mut self,
        prepared: &Prepared,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            done = work => done,
            interruption = self.next() => Err(interruption.end_early(prepared)),
        }
    }
}

impl Interruption {
    /// The failure of a command whose deploy has not begun.
    pub(super) fn end_early(self, prepared: &Prepared) -> Failure {
        let (kind, ended) = self.tell();
        Failure::new(kind, format!("{ended} before the deploy began; {}", prepared.summary()))
    }

    /// What it means for the exit code, in words.
    pub(super) fn tell(self) -> (Kind, String) {
        match self {
            Self::Signal => (Kind::Cancelled, "cancelled".to_owned()),
            Self::Late(limit) => (Kind::Negative, format!("timed out after {}", Period::from(limit))),
        }
    }
}
