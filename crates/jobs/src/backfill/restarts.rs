//! How often a list may start over or skip to a later snapshot: as often as it gets further, and else for as long as anything
//! else is retried.

use super::patience::{Patience, Trying};
use jobwright_engine::Clock;
use std::time::Duration;

/// The interruptions of one list.
pub(crate) struct Restarts {
    patience: Patience,
    clock: Clock,
    /// The most objects that were read before an interruption.
    furthest: u64,
    /// Counts the time since a list was interrupted without having got further.
    trying: Option<Trying>,
}

impl Restarts {
    pub(crate) fn new(patience: Patience, clock: &Clock) -> Self {
        Self { patience, clock: clock.clone(), furthest: 0, trying: None }
    }

    /// The pause after an interruption that came after this many objects; none if there were enough of them.
    pub(crate) fn pause(&mut self, reached: u64) -> Option<Duration> {
        if reached > self.furthest {
            self.furthest = reached;
            self.trying = None;
            return Some(Duration::ZERO);
        }
        self.trying.get_or_insert_with(|| self.patience.begin(&self.clock)).pause(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[tokio::test(start_paused = true)]
    async fn interruptions_without_progress_end_at_the_limit_and_progress_starts_over() {
        let begun = tokio::time::Instant::now();
        let clock = Clock::new(move || Timestamp::UNIX_EPOCH + begun.elapsed());
        let patience = Patience { total: Duration::from_mins(1), ..Patience::default() };
        let mut restarts = Restarts::new(patience, &clock);
        for reached in [10, 20] {
            let begun = tokio::time::Instant::now();
            assert_eq!(restarts.pause(reached), Some(Duration::ZERO));
            while let Some(pause) = restarts.pause(reached) {
                assert!(pause > Duration::ZERO);
                tokio::time::sleep(pause).await;
            }
            assert!(begun.elapsed() <= Duration::from_mins(1) && begun.elapsed() > Duration::from_secs(30));
        }
    }
}
