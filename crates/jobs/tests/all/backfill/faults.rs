//! What goes wrong on the side of the cluster, and what goes wrong on the side of the sink.

use super::stage::{Collector, Deed, Happening, KINDS, PATHS, PLANTED, Stage, backfill, compare};
use jobwright_drydock::{Drydock, Fault, When};
use jobwright_jobs::backfill::{Backfill, Ending, Patience, Summary};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn counts(summary: &Summary, kind: &str) -> jobwright_jobs::backfill::Counts {
    summary.kinds.iter().find(|found| found.kind == kind).unwrap().counts
}

async fn expect_all(stage: &Stage, sink: &Collector, summary: &Summary) -> usize {
    let (arrived, again) = sink.objects();
    compare(&arrived, &stage.expected(&PATHS).await, "in the end");
    assert!(summary.complete, "{summary:?}");
    assert_eq!(summary.ending(), Ending::Complete);
    assert!(stage.notes().iter().all(|note| !note.contains(PLANTED)), "{:?}", stage.notes());
    again
}

#[tokio::test(start_paused = true)]
async fn what_arrives_is_what_is_there() {
    let stage = Stage::new(40).await;
    let sink = Collector::new(|_| Deed::Take);
    let summary = stage.run(&backfill(), &sink).await;
    assert_eq!(expect_all(&stage, &sink, &summary).await, 0);
    let maps = counts(&summary, "ConfigMap");
    assert_eq!((maps.listed, maps.sent, maps.skipped, maps.pages), (40, 40, 0, 4));
    assert_eq!(summary.batches.sent, 12);
    let ids = sink.ids();
    assert!(ids.contains(&format!("{}/configmaps/000006", summary.run)), "{ids:?}");
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_a_cluster_arrives_unless_it_is_left_out() {
    let stage = Stage::new(5).await;
    let sink = Collector::new(|_| Deed::Take);
    let summary = stage.run(&Backfill { exclude_kinds: vec!["events".into()], ..Backfill::default() }, &sink).await;
    assert!(summary.complete, "{summary:?}");
    let kinds: Vec<&str> = summary.kinds.iter().map(|kind| kind.kind.as_str()).collect();
    for kind in ["Namespace", "Node", "ConfigMap", "Widget", "CustomResourceDefinition", "ClusterRole", "Deployment"] {
        assert_eq!(kinds.iter().filter(|found| **found == kind).count(), 1, "{kind} in {kinds:?}");
    }
    assert!(!kinds.contains(&"Event") && !kinds.contains(&"ComponentStatus"), "{kinds:?}");
    let (arrived, _) = sink.objects();
    for (key, object) in stage.expected(&PATHS).await {
        assert_eq!(arrived[&key], object);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_moment_is_forgotten_goes_on_without_loss_and_says_so() {
    let stage = Arc::new(Stage::new(60).await);
    let happening = |number| match number {
        3 => Deed::Meanwhile(Happening::Forget),
        _ => Deed::Take,
    };
    let sink = Collector::in_stage(Some(Arc::clone(&stage)), happening);
    let backfill = Backfill { concurrency: 1, ..backfill() };
    let summary = stage.run(&backfill, &sink).await;
    assert_eq!(expect_all(&stage, &sink, &summary).await, 0);
    assert_eq!(counts(&summary, "ConfigMap").expired, 1, "{summary:?}");
    assert!(stage.notes().iter().any(|note| note.contains("goes on at a later one")), "{:?}", stage.notes());
}

#[tokio::test(start_paused = true)]
async fn dropped_connections_and_refusals_in_passing_lose_nothing() {
    for fault in [
        Fault::Disconnect(When::Before),
        Fault::Disconnect(When::After),
        Fault::Internal,
        Fault::Unavailable,
        Fault::TimeOut(When::After),
        Fault::TooManyRequests { retry_after: 3 },
    ] {
        let stage = Stage::new(40).await;
        stage.faults.on(|call| call.verb == "list").probability(0.4).fail(fault.clone());
        let sink = Collector::new(|_| Deed::Take);
        let summary = stage.run(&backfill(), &sink).await;
        assert_eq!(expect_all(&stage, &sink, &summary).await, 0, "{fault:?}");
        assert!(summary.total().retried > 0, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_429_is_waited_out() {
    let stage = Stage::new(20).await;
    // The first list is that of the Secrets, whose values must not leave.
    stage.faults.on(|call| call.verb == "list").skip(1).times(60).fail(Fault::TooManyRequests { retry_after: 5 });
    let begun = tokio::time::Instant::now();
    let sink = Collector::new(|_| Deed::Take);
    let summary = stage.run(&backfill(), &sink).await;
    expect_all(&stage, &sink, &summary).await;
    assert_eq!(summary.total().retried, 60);
    assert!(begun.elapsed() >= Duration::from_secs(5) * 60 / 4, "each was waited for: {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_stays_broken_fails_a_kind_and_not_the_others() {
    let stage = Stage::new(20).await;
    stage.faults.on(|call| call.resource == "pods").skip(1).fail(Fault::Internal);
    let sink = Collector::new(|_| Deed::Take);
    let patience = Patience { total: Duration::from_mins(2), ..Patience::default() };
    let summary = stage.run(&Backfill { patience, page_size: 3, ..backfill() }, &sink).await;
    assert_eq!(summary.ending(), Ending::Partial);
    let pods = summary.kinds.iter().find(|kind| kind.kind == "Pod").unwrap();
    assert_eq!((pods.counts.listed, pods.counts.sent, pods.finished), (3, 3, false), "what was read was sent");
    assert_eq!(pods.errors[0].status, Some(500));
    assert_eq!(counts(&summary, "ConfigMap").sent, 20);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_fails_every_third_batch_gets_everything() {
    let stage = Stage::new(60).await;
    let sink = Collector::new(|number| if number % 3 == 0 { Deed::Fail(None) } else { Deed::Take });
    let summary = stage.run(&backfill(), &sink).await;
    assert_eq!(expect_all(&stage, &sink, &summary).await, 0);
    assert!(summary.batches.retried >= 5 && summary.batches.failed == 0, "{:?}", summary.batches);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_asks_for_time_gets_it() {
    let stage = Stage::new(3).await;
    let sink =
        Collector::new(|number| if number == 1 { Deed::Fail(Some(Duration::from_secs(90))) } else { Deed::Take });
    let begun = tokio::time::Instant::now();
    let summary = stage.run(&Backfill { kinds: vec!["configmaps".into()], ..backfill() }, &sink).await;
    assert!(summary.complete && begun.elapsed() >= Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_refused_for_good_is_told_and_the_rest_arrives() {
    let stage = Stage::new(60).await;
    let sink = Collector::new(|number| if number == 4 { Deed::Refuse } else { Deed::Take });
    let summary = stage.run(&backfill(), &sink).await;
    assert_eq!((summary.ending(), summary.batches.failed), (Ending::Partial, 1));
    let (arrived, _) = sink.objects();
    let missing = stage.expected(&PATHS).await.len() - arrived.len();
    assert!((1..=7).contains(&missing), "{missing}");
    let total = summary.total();
    assert_eq!(total.listed - total.sent, missing as u64);
    let errors: Vec<_> = summary.kinds.iter().flat_map(|kind| &kind.errors).collect();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].status, Some(400));
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_takes_nothing_ends_the_run() {
    let stage = Stage::new(60).await;
    let sink = Collector::new(|_| Deed::Refuse);
    let summary = stage.run(&backfill(), &sink).await;
    assert_eq!(summary.ending(), Ending::Failed);
    assert!(summary.stopped.as_ref().unwrap().contains("the sink takes nothing: 400"), "{summary:?}");
    assert!(summary.batches.failed < 8, "it did not go on for long: {:?}", summary.batches);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_gone_for_too_long_ends_the_run() {
    let stage = Stage::new(60).await;
    let sink = Collector::new(|number| if number < 4 { Deed::Take } else { Deed::Fail(None) });
    let patience = Patience { total: Duration::from_mins(2), ..Patience::default() };
    let summary = stage.run(&Backfill { patience, ..backfill() }, &sink).await;
    assert_eq!(summary.ending(), Ending::Partial);
    assert!(summary.stopped.as_ref().unwrap().contains("has not arrived: 503"), "{summary:?}");
    assert_eq!(summary.batches.sent, 3);
}

#[tokio::test(start_paused = true)]
async fn what_was_there_all_the_time_arrives_though_others_come_and_go() {
    for forgets in [false, true] {
        let stage = Arc::new(Stage::new(60).await);
        let sink = Collector::in_stage(Some(Arc::clone(&stage)), move |number| match number {
            1 => Deed::Meanwhile(Happening::Create("aaa-new".to_owned())),
            2 => Deed::Meanwhile(Happening::Delete("map-055".to_owned())),
            3 => Deed::Meanwhile(Happening::Create("map-030-new".to_owned())),
            4 if forgets => Deed::Meanwhile(Happening::Forget),
            5 => Deed::Meanwhile(Happening::Delete("map-001".to_owned())),
            6 => Deed::Meanwhile(Happening::Delete("map-058".to_owned())),
            _ => Deed::Take,
        });
        let before = stage.expected(&PATHS).await;
        let summary = stage.run(&Backfill { concurrency: 1, ..backfill() }, &sink).await;
        assert!(summary.complete);
        let after = stage.expected(&PATHS).await;
        let (arrived, again) = sink.objects();
        assert_eq!(again, 0);
        if !forgets {
            compare(&arrived, &before, "a list shows the moment of its beginning");
        }
        for (key, object) in before.iter().filter(|(key, _)| after.contains_key(*key)) {
            assert_eq!(arrived.get(key), Some(object), "{key} was there all the time");
        }
        for key in arrived.keys() {
            assert!(before.contains_key(key) || after.contains_key(key), "{key} was never there");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_that_may_not_be_listed_are_told_and_the_others_arrive() {
    let mut stage = Stage::on(Drydock::builder().bare().rbac(true), 9).await;
    stage.user = Some("visitor");
    let sink = Collector::new(|_| Deed::Take);
    let rules = json!([{"nonResourceURLs": ["/api", "/apis"], "verbs": ["get"]}]);
    stage.allow("discovery", &rules).await;
    let summary = stage.run(&backfill(), &sink).await;
    assert_eq!(summary.ending(), Ending::Forbidden);
    assert!(summary.kinds.iter().all(|kind| kind.errors[0].status == Some(403)), "{summary:?}");

    stage.allow("maps", &json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}])).await;
    let summary = stage.run(&backfill(), &sink).await;
    assert_eq!((summary.ending(), summary.kinds.len()), (Ending::Partial, KINDS.len()));
    assert_eq!((counts(&summary, "ConfigMap").sent, sink.objects().0.len()), (9, 9));
    let secrets = summary.kinds.iter().find(|kind| kind.kind == "Secret").unwrap();
    assert!(secrets.errors[0].message.contains("cannot list resource \"secrets\""), "{secrets:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_says_nothing_is_an_error() {
    let stage = Stage::new(1).await;
    stage.faults.on(|_| true).fail(Fault::Disconnect(When::Before));
    let patience = Patience { total: Duration::from_secs(20), ..Patience::default() };
    let backfill = Backfill { patience, ..backfill() };
    let sink = Collector::new(|_| Deed::Take);
    let error = backfill.run(stage.surroundings(), sink, None, CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot ask the cluster for its kinds: connection reset by a fault on demand");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_there_is_an_error() {
    let stage = Stage::new(1).await;
    let backfill = Backfill { kinds: vec!["confgmaps".into()], ..backfill() };
    let sink = Collector::new(|_| Deed::Take);
    let error = backfill.run(stage.surroundings(), sink, None, CancellationToken::new()).await.unwrap_err();
    let told = "the cluster has no kind `confgmaps` that can be listed; did you mean `configmaps`?";
    assert_eq!(error.to_string(), told);
}
