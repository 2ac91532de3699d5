//! Tests of the faults: which calls they hit, and what a client sees of them.

use super::*;
use crate::Drydock;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, PostParams, WatchEvent, WatchParams};
use serde_json::json;

fn call(verb: &'static str) -> Call {
    Call { verb, resource: "jobs".to_owned(), ..Call::default() }
}

#[test]
fn rules_count_and_choose() {
    let faults = Faults::new(1);
    faults.on(|call| call.verb == "create").skip(1).times(2).fail(Fault::Conflict);
    let verdicts: Vec<Verdict> = (0..4).map(|_| faults.judge(call("create"))).collect();
    let conflict = Verdict::Fail(Fault::Conflict);
    assert_eq!(verdicts, [Verdict::Pass, conflict.clone(), conflict, Verdict::Pass]);
    assert_eq!(faults.judge(call("get")), Verdict::Pass);
    assert_eq!(faults.calls().len(), 5);
}

#[test]
fn a_seed_decides_what_probability_hits() {
    let hits = |seed| {
        let faults = Faults::new(seed);
        faults.on(|_| true).probability(0.5).fail(Fault::Internal);
        (0..64).map(|_| faults.judge(call("get")) == Verdict::Pass).collect::<Vec<_>>()
    };
    assert_eq!(hits(3), hits(3));
    assert_ne!(hits(3), hits(4));
    assert!(hits(3).contains(&true) && hits(3).contains(&false));
}

#[test]
fn nothing_passes_after_a_stop() {
    let faults = Faults::new(0);
    faults.stop_at(2, When::After);
    assert_eq!(faults.judge(call("get")), Verdict::Pass);
    assert_eq!(faults.judge(call("get")), Verdict::Stop(When::After));
    assert_eq!(faults.judge(call("get")), Verdict::Stop(When::Before));
}

#[tokio::test(start_paused = true)]
async fn a_lasting_rule_holds_for_its_span_from_the_first_hit() {
    let faults = Faults::new(0);
    let wanted = Call { name: "x".to_owned(), ..call("get") };
    let like = wanted.clone();
    faults.on(move |call| *call == like).skip(1).lasting(Duration::from_mins(10)).fail(Fault::Internal);
    let judge = || faults.judge(wanted.clone());
    assert_eq!(judge(), Verdict::Pass, "the first one is skipped");
    tokio::time::advance(Duration::from_hours(1)).await;
    assert_eq!(judge(), Verdict::Fail(Fault::Internal));
    assert_eq!(faults.judge(call("get")), Verdict::Pass, "another object");
    tokio::time::advance(Duration::from_secs(599)).await;
    assert_eq!(judge(), Verdict::Fail(Fault::Internal));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(judge(), Verdict::Pass);
    assert_eq!(faults.hits(), 2);
}

const SECOND: Duration = Duration::from_secs(1);

fn maps(service: impl Into<Option<Faults>>, drydock: &Drydock) -> Api<ConfigMap> {
    let client = match service.into() {
        Some(faults) => Client::new(faults.around(drydock.clone()), "default"),
        None => Client::new(drydock.clone(), "default"),
    };
    Api::default_namespaced(client)
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

/// Creates a ConfigMap with a fault and gives up after 30 seconds. Gives whether it was answered, and whether the map
/// exists after this and after a minute.
async fn create_with(fault: Fault) -> (bool, bool, bool) {
    let (drydock, faults) = (Drydock::new(), Faults::new(0));
    faults.on(|call| call.verb == "create").fail(fault);
    let (disturbed, undisturbed) = (maps(faults, &drydock), maps(None, &drydock));
    let (map, parameters) = (map("a"), PostParams::default());
    let answered = tokio::time::timeout(30 * SECOND, disturbed.create(&parameters, &map)).await.is_ok();
    let exists = || async { undisturbed.get_opt("a").await.unwrap().is_some() };
    let soon = exists().await;
    tokio::time::sleep(30 * SECOND).await;
    (answered, soon, exists().await)
}

#[tokio::test(start_paused = true)]
async fn calls_hang_and_are_late_before_or_after_their_effect() {
    assert_eq!(create_with(Fault::Hang(When::Before)).await, (false, false, false));
    assert_eq!(create_with(Fault::Hang(When::After)).await, (false, true, true));
    assert_eq!(create_with(Fault::Silence).await, (false, true, true));
    assert_eq!(create_with(Fault::Late(When::Before, 20 * SECOND)).await, (true, true, true));
    assert_eq!(create_with(Fault::Late(When::After, 20 * SECOND)).await, (true, true, true));
    // Also when the caller no longer waits; but for a slow call, which ends with its caller.
    assert_eq!(create_with(Fault::Late(When::Before, 45 * SECOND)).await, (false, false, true));
    assert_eq!(create_with(Fault::Late(When::After, 45 * SECOND)).await, (false, true, true));
    assert_eq!(create_with(Fault::Slow(45 * SECOND)).await, (false, false, false));
}

#[tokio::test(start_paused = true)]
async fn a_watch_hangs_or_opens_and_stays_silent() {
    for (fault, opens) in [(Fault::Hang(When::Before), false), (Fault::Silence, true)] {
        let (drydock, faults) = (Drydock::new(), Faults::new(0));
        faults.on(|call| call.verb == "watch").fail(fault);
        let (disturbed, undisturbed) = (maps(faults, &drydock), maps(None, &drydock));
        undisturbed.create(&PostParams::default(), &map("a")).await.unwrap();
        let parameters = WatchParams::default();
        let opened = tokio::time::timeout(60 * SECOND, disturbed.watch(&parameters, "0")).await;
        assert_eq!(opened.is_ok(), opens);
        if let Ok(watch) = opened {
            let mut events = std::pin::pin!(watch.unwrap());
            assert!(tokio::time::timeout(600 * SECOND, events.next()).await.is_err());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_caller_is_held_back_until_it_is_woken() {
    let (drydock, faults) = (Drydock::new(), Faults::new(0));
    let (held, free) = (maps(faults.clone(), &drydock), maps(None, &drydock));
    let mut events = Box::pin(held.watch(&WatchParams::default(), "0").await.unwrap());
    events.next().await.unwrap().unwrap();
    faults.pause_at(2);
    let created = tokio::spawn({
        let held = held.clone();
        async move { held.create(&PostParams::default(), &map("a")).await }
    });
    faults.paused().await;
    // Given up meanwhile: it never reaches the server.
    let (given_up, parameters) = (map("b"), PostParams::default());
    assert!(tokio::time::timeout(30 * SECOND, held.create(&parameters, &given_up)).await.is_err());
    free.create(&parameters, &map("c")).await.unwrap();
    assert!(tokio::time::timeout(60 * SECOND, events.next()).await.is_err(), "its watches are held back, too");
    assert!(free.get_opt("a").await.unwrap().is_none());
    faults.wake();
    created.await.unwrap().unwrap();
    let seen = events.next().await.unwrap().unwrap();
    assert!(matches!(seen, WatchEvent::Added(map) if map.metadata.name.as_deref() == Some("c")));
    assert!(free.get_opt("b").await.unwrap().is_none());
    held.get("a").await.unwrap();
}
