//! The pages of a list, one after the other. The next one is asked for while the last one is worked on.

use super::checkpoint::Position;
use super::list::{Fetched, Lister, Query};
use super::page::Page;
use super::summary::Problem;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

/// A page of this size is large enough: the ones after it have fewer objects if it is larger.
const WANTED_PAGE: usize = 4 * 1024 * 1024;

/// Hears of calls that are made again.
pub(crate) type Retry = Arc<dyn Fn(&Problem, Duration) + Send + Sync>;

/// The pages of one list.
pub(crate) struct Pages {
    lister: Lister,
    retry: Retry,
    /// The page that comes next; none at the end.
    next: Option<Query>,
    coming: Option<Coming>,
    /// Memory of a page that has been worked on.
    room: Vec<u8>,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Step {
    /// A page, and where it begins.
    Page(Page, Position),
    /// The list continues with a later snapshot, because of this answer.
    WentOn(Problem),
    /// The list starts over, because of this answer.
    Restarted(Problem),
    /// There is nothing more.
    End,
}

/// A page that has been asked for.
type Coming = AbortOnDropHandle<Result<Fetched, Problem>>;

impl Pages {
    /// A list from its beginning, or from a place of it.
    pub(crate) fn new(lister: Lister, start: Query, position: &Position, retry: Retry) -> Self {
        let next = Query { token: position.token.clone(), version: position.version.clone(), ..start };
        Self { lister, retry, next: Some(next), coming: None, room: Vec::new() }
    }

    /// Waits for what comes next. With a page, the one after it is asked for.
    pub(crate) async fn next(&mut self) -> Result<Step, Problem> {
        let Some(query) = self.next.clone() else { return Ok(Step::End) };
        let coming = self.coming.take().unwrap_or_else(|| Self::ask(&self.lister, &query, &self.retry, Vec::new()));
        let fetched = coming.await.map_err(|error| Problem::of(format!("a page was given up: {error}")))?;
        match fetched? {
            Fetched::Page(page) => {
                let start =
                    Position { token: query.token.clone(), version: page.version.clone(), ..Position::default() };
                self.next = page.token.clone().map(|token| Query {
                    token: Some(token),
                    version: None,
                    limit: fitting(query.limit, &page),
                    ..query
                });
                if let Some(next) = &self.next {
                    let room = std::mem::take(&mut self.room);
                    self.coming = Some(Self::ask(&self.lister, next, &self.retry, room));
                }
                Ok(Step::Page(page, start))
            }
            Fetched::TooLarge => {
                self.next = Some(Query { limit: (query.limit / 4).max(1), ..query });
                Box::pin(self.next()).await
            }
            Fetched::Expired(Some(token), problem) => {
                self.next = Some(Query { token: Some(token), version: None, ..query });
                Ok(Step::WentOn(problem))
            }
            Fetched::Expired(None, problem) => {
                self.next = Some(Query { token: None, version: None, ..query });
                Ok(Step::Restarted(problem))
            }
        }
    }

    /// Takes the memory of a page back.
    pub(crate) fn give_back(&mut self, page: Page) {
        self.room = page.into_room();
    }

    fn ask(lister: &Lister, query: &Query, retry: &Retry, room: Vec<u8>) -> Coming {
        let (lister, query, retry) = (lister.clone(), query.clone(), Arc::clone(retry));
        Coming::new(tokio::spawn(async move { lister.fetch(&query, room, &*retry).await }))
    }
}

/// How many objects the next page may have, so that it is not much too large.
fn fitting(limit: usize, page: &Page) -> usize {
    if page.size() <= WANTED_PAGE {
        return limit;
    }
    (page.items().len().max(1) * WANTED_PAGE / page.size()).clamp(1, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_too_large_get_smaller() {
        let page = |items: usize, size: usize| {
            let item = format!("\"{}\"", "x".repeat(size));
            let text = format!("{{\"items\":[{}]}}", vec![item; items].join(","));
            Page::read(text.into_bytes()).unwrap()
        };
        assert_eq!(fitting(500, &page(500, 1000)), 500);
        assert_eq!(fitting(500, &page(100, 100_000)), 41);
        assert_eq!(fitting(500, &page(1, 8_000_000)), 1);
    }
}
