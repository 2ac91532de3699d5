//! Lists that the server ends without a way to continue: they are retried for as long as anything else is.

use super::stage::{Collector, Deed, PATHS, Stage, backfill, compare};
use http_body_util::BodyExt as _;
use jobwright_jobs::backfill::{Backfill, Ending, Patience, Summary, Surroundings};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

const PATIENCE: Duration = Duration::from_mins(2);

/// Answers lists of ConfigMaps with a status instead of a page, where `refuses` says so of their number, from 0 on.
struct Refusing {
    lists: Arc<AtomicUsize>,
    surroundings: Surroundings,
}

impl Refusing {
    fn new(stage: &Stage, status: u16, refuses: fn(usize) -> bool) -> Self {
        let lists = Arc::new(AtomicUsize::new(0));
        let (counted, drydock) = (Arc::clone(&lists), stage.drydock.clone());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let is_list = request.uri().path() == "/api/v1/configmaps";
            let is_refused = is_list && refuses(counted.fetch_add(1, Ordering::Relaxed));
            let drydock = drydock.clone();
            async move {
                if is_refused {
                    let body = json!({"kind": "Status", "code": status, "message": "refused on demand"}).to_string();
                    let response = http::Response::builder().status(status).body(Body::from(body.into_bytes()));
                    return Ok(response.unwrap());
                }
                let (parts, body) = drydock.oneshot(request).await?.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                Ok::<_, std::convert::Infallible>(http::Response::from_parts(parts, Body::from(body.to_vec())))
            }
        });
        let surroundings = Surroundings { client: Client::new(service, "default"), ..stage.surroundings() };
        Self { lists, surroundings }
    }

    async fn run(&self, kinds: &[&str], sink: &Arc<Collector>) -> Summary {
        let backfill = Backfill {
            kinds: kinds.iter().map(|kind| (*kind).into()).collect(),
            patience: Patience { total: PATIENCE, ..Patience::default() },
            ..backfill()
        };
        let run = backfill.run(self.surroundings.clone(), sink.clone(), None, CancellationToken::new());
        tokio::time::timeout(Duration::from_hours(2), run).await.unwrap().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn list_that_always_expires_fails_at_the_retry_limit_and_not_the_others() {
    let always: fn(usize) -> bool = |_| true;
    let after_each_first_page: fn(usize) -> bool = |number| number % 2 == 1;
    for (status, refuses) in [(410, always), (410, after_each_first_page), (400, after_each_first_page)] {
        let stage = Stage::new(30).await;
        let refusing = Refusing::new(&stage, status, refuses);
        let sink = Collector::new(|_| Deed::Take);
        let begun = tokio::time::Instant::now();
        let summary = refusing.run(&["configmaps", "pods"], &sink).await;
        let lists = refusing.lists.load(Ordering::Relaxed);
        assert!(lists < 100 && begun.elapsed() <= PATIENCE * 2, "{lists} lists in {:?}", begun.elapsed());
        let maps = summary.kinds.iter().find(|kind| kind.kind == "ConfigMap").unwrap();
        assert_eq!((summary.ending(), maps.finished), (Ending::Partial, false), "{summary:?}");
        assert_eq!(maps.errors[0].to_string(), format!("{status}: refused on demand"));
        assert!(summary.kinds.iter().any(|kind| kind.kind == "Pod" && kind.finished), "{summary:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn list_that_expires_a_few_times_starts_over_and_completes() {
    let stage = Stage::new(30).await;
    let refusing = Refusing::new(&stage, 410, |number| (1..5).contains(&number));
    let sink = Collector::new(|_| Deed::Take);
    let summary = refusing.run(&["configmaps"], &sink).await;
    assert!(summary.complete, "{summary:?}");
    compare(&sink.objects().0, &stage.expected(&PATHS[..1]).await, "in the end");
}

#[tokio::test(start_paused = true)]
async fn list_that_gets_further_each_time_is_not_given_up() {
    let stage = Stage::new(60).await;
    // Of the seven pages one more can be read each time: 0, 0 1, 0 1 2, …
    let refusing = Refusing::new(&stage, 410, |number| [1, 4, 8, 13].contains(&number));
    let sink = Collector::new(|_| Deed::Take);
    let summary = refusing.run(&["configmaps"], &sink).await;
    assert!(summary.complete, "{summary:?}");
    assert_eq!(summary.total().expired, 4);
    compare(&sink.objects().0, &stage.expected(&PATHS[..1]).await, "in the end");
}
