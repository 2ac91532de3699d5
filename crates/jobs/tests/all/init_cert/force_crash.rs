//! Marks under faults: killed at every call, followed by nothing, an ordinary deploy or a forced one; each call late,
//! lost or failing; two processes. The judges are the certificates themselves and the model of servers.

use super::crash::judge;
use super::force::{certificates, marking, tracked};
use super::model::SECRET;
use super::world::{World, options};
use crate::release::{Deploy, NAME};
use jobwright_drydock::{Call, Fault, Faults, When};
use jobwright_jobs::init_cert::{Action, Options, Stage, check, init_cert};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What precedes the run that is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scene {
    /// The release was installed, and has run; a forced deploy.
    Forced,
    /// The same; an ordinary deploy.
    Ordinary,
    /// Nothing: the run issues the first certificate.
    First,
    /// A stage before this one has issued the certificate: the run sees the ConfigMap first.
    Adopted,
}

/// What follows the run that was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The same Job tries again.
    Retry,
    Ordinary,
    Forced,
}

/// How the run is disturbed.
#[derive(Clone, Debug)]
enum Disturbance {
    None,
    Kill(usize, When, Then),
    /// A call fails; the process lives.
    Fail(usize, Fault),
    /// A call takes this long, and meanwhile another process does everything; perhaps after another forced deploy.
    Late(usize, Duration, Option<Deploy>),
}

impl Scene {
    async fn set(self) -> World {
        let world = match self {
            Self::First => World::new().await,
            Self::Forced | Self::Ordinary | Self::Adopted => World::running().await,
        };
        tracked(&world).deploy(Deploy::Patch, "1.a").await;
        if matches!(self, Self::Forced | Self::Ordinary) {
            world.run(&marking(Stage::Inject)).await.unwrap();
            let how = if self == Self::Forced { Deploy::Replace } else { Deploy::Patch };
            tracked(&world).deploy(how, "2.a").await;
        }
        world
    }

    fn options(self) -> Options {
        marking(if self == Self::First { Stage::All } else { Stage::Inject })
    }

    /// Whether the run issues a certificate.
    fn issues(self) -> bool {
        matches!(self, Self::Forced | Self::First)
    }
}

/// The certificate that the Secret has, if there is one.
async fn certificate(world: &World) -> Option<String> {
    match world.secret(SECRET).await {
        Some(_) => Some(certificates(world).await.0),
        None => None,
    }
}

/// Whether the process has remembered its mark; its own note, which only tells the window in which a force is lost.
async fn is_remembered(world: &World) -> bool {
    let annotations = world.secret("hook-tls-ca").await.and_then(|secret| secret.metadata.annotations);
    annotations.unwrap_or_default().keys().any(|key| key.starts_with("jobwright.io/mark-"))
}

/// What a play came to: its calls, and whether a forced deploy after the kill was lost.
type Played = (Vec<Call>, bool);

async fn play(scene: Scene, disturbance: &Disturbance) -> Result<Played, String> {
    let mut world = scene.set().await;
    let wanted = scene.options();
    let before = certificate(&world).await;
    world.faults = Faults::new(0);
    let calls = world.faults.clone();
    let mut is_lost = false;
    match disturbance {
        Disturbance::None => drop(run(&world, &wanted).await?),
        Disturbance::Fail(call, fault) => {
            calls.on(|_| true).skip(call - 1).times(1).fail(fault.clone());
            run(&world, &wanted).await?;
        }
        Disturbance::Late(call, pause, meanwhile) => {
            calls.on(|_| true).skip(call - 1).times(1).fail(Fault::Slow(*pause));
            let first = world.surroundings(None);
            world.faults = Faults::new(0);
            let second = async {
                while calls.calls().len() < *call {
                    world.pass(Duration::from_millis(1)).await;
                }
                if let Some(how) = meanwhile {
                    tracked(&world).deploy(*how, "3.a").await;
                }
                init_cert(&world.surroundings(None), &wanted).await
            };
            let (first, second) = tokio::join!(init_cert(&first, &wanted), second);
            first.and(second).map_err(|error| error.to_string())?;
        }
        Disturbance::Kill(call, when, then) => {
            calls.stop_at(*call, *when);
            let first = world.surroundings(Some("first"));
            tokio::select! {
                result = init_cert(&first, &wanted) => drop(result.map_err(|error| error.to_string())?),
                () = calls.stopped() => {}
            }
            drop(first);
            world.faults = Faults::new(0);
            is_lost = follow(&world, scene, *then, before.as_deref()).await?;
        }
    }
    let after = certificate(&world).await.ok_or("there is no certificate")?;
    let is_new = before.as_ref() != Some(&after);
    let wants_new = match disturbance {
        Disturbance::Kill(_, _, Then::Forced) => !is_lost || scene.issues(),
        Disturbance::Late(_, _, Some(Deploy::Replace)) => true,
        _ => scene.issues(),
    };
    if is_new != wants_new {
        return Err(format!("a new certificate: {is_new}, expected: {wants_new}"));
    }
    // Whatever has happened, it is over: nothing is owed, an ordinary deploy is one, and the next forced deploy counts.
    for (how, identity, expected) in [(Deploy::Patch, "8.a", Action::Kept), (Deploy::Replace, "9.a", Action::Renewed)] {
        tracked(&world).deploy(how, identity).await;
        let report = check(&world.surroundings(None), &wanted).await.map_err(|error| error.to_string())?;
        if report.action != expected {
            return Err(format!("later, {how:?} is {}: {}", report.action, report.whole_reason()));
        }
    }
    judge(&world).await.map(|()| (calls.calls(), is_lost))
}

async fn run(world: &World, wanted: &Options) -> Result<(), String> {
    init_cert(&world.surroundings(Some("test")), wanted).await.map(drop).map_err(|error| error.to_string())
}

/// What comes after a kill. Says whether a forced deploy was lost.
async fn follow(world: &World, scene: Scene, then: Then, before: Option<&str>) -> Result<bool, String> {
    let killed_with = certificate(world).await;
    let was_remembered = is_remembered(world).await;
    match then {
        Then::Retry => {}
        Then::Ordinary => tracked(world).deploy(Deploy::Patch, "3.a").await,
        Then::Forced => tracked(world).deploy(Deploy::Replace, "3.a").await,
    }
    run(world, &scene.options()).await.map_err(|error| format!("after the kill: {error}"))?;
    let after = certificate(world).await;
    let is_newer = killed_with.is_some() && after != killed_with;
    match then {
        // What the killed process has issued is kept, and what it has not is issued once.
        Then::Retry | Then::Ordinary if is_newer && killed_with.as_deref() != before => {
            Err("two certificates for one forced deploy".to_owned())
        }
        Then::Retry | Then::Ordinary => Ok(false),
        Then::Forced if killed_with.is_none() => Ok(false),
        Then::Forced if is_newer => Ok(false),
        Then::Forced if was_remembered => Err("the forced deploy after the kill does not count".to_owned()),
        Then::Forced => Ok(true),
    }
}

/// Plays a scene once for each disturbance, on all processors. Gives the calls, the plays, and those that lost a force.
fn play_all(scene: Scene, disturb: impl Fn(&[Call]) -> Vec<Disturbance>) -> (usize, usize, Vec<String>) {
    let run = |disturbance: &Disturbance| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(scene, disturbance))
    };
    let (calls, _) = run(&Disturbance::None).unwrap_or_else(|problem| panic!("{scene:?}: {problem}"));
    let plays = disturb(&calls);
    let (next, wrong, lost) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let name = |disturbance: &Disturbance| match disturbance {
        Disturbance::None => String::new(),
        Disturbance::Kill(call, ..) | Disturbance::Fail(call, _) | Disturbance::Late(call, ..) => {
            calls[call - 1].to_string()
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(disturbance) = plays.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match run(disturbance) {
                        Ok((_, true)) => lost.lock().unwrap().push(name(disturbance)),
                        Ok(_) => {}
                        Err(problem) => {
                            let at = name(disturbance);
                            wrong.lock().unwrap().push(format!("{disturbance:?} ({at}): {problem}"));
                        }
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{scene:?}: {} of {} went wrong:\n{}", wrong.len(), plays.len(), wrong.join("\n"));
    (calls.len(), plays.len(), lost.into_inner().unwrap())
}

/// Killed before the first call, after each call of the marks, and after each write up to the certificate, with everything
/// that may follow. Later calls belong to the rotation, which has its own suite.
fn kills(calls: &[Call]) -> Vec<Disturbance> {
    let last = calls.iter().rposition(|call| call.writes() && call.name == SECRET).map_or(0, |index| index + 1);
    let marks = marking_calls(calls);
    let writes = (marks.end() + 1..=last).filter(|call| calls[call - 1].writes());
    let after = marks.chain(writes).map(|call| (call, When::After));
    let points = std::iter::once((1, When::Before)).chain(after);
    let thens = [Then::Retry, Then::Ordinary, Then::Forced];
    points.flat_map(|(call, when)| thens.map(|then| Disturbance::Kill(call, when, then))).collect()
}

/// The calls that marks take: everything before the lease.
fn marking_calls(calls: &[Call]) -> std::ops::RangeInclusive<usize> {
    let first = calls.iter().position(|call| call.resource == "leases").unwrap_or(calls.len());
    1..=first.min(8)
}

#[test]
fn a_kill_at_any_call_neither_invents_nor_loses_a_forced_deploy() {
    let mut points = 0;
    for scene in [Scene::Forced, Scene::Ordinary, Scene::First] {
        let (calls, plays, lost) = play_all(scene, kills);
        println!("{scene:?}: {calls} calls, {plays} plays");
        assert!(lost.is_empty(), "{scene:?}: {lost:?}");
        points += plays;
    }
    assert!(points >= 100, "{points}");
}

/// The one exception: a first run that is killed after it has marked and before it has remembered.
#[test]
fn a_first_run_killed_between_mark_and_memory_loses_a_force_and_nothing_else_does() {
    let (_, plays, lost) = play_all(Scene::Adopted, kills);
    assert!(plays >= 20, "{plays}");
    let lost: std::collections::BTreeSet<&str> = lost.iter().map(String::as_str).collect();
    // Before it has marked, it is no run that could notice anything.
    let expected =
        ["get configmaps/shop/agent-release", "get secrets/shop/hook-tls-ca", "patch configmaps/shop/agent-release"];
    assert_eq!(lost.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_fault_or_a_hang_at_any_call_of_a_mark_changes_nothing() {
    let faults = [
        Fault::Conflict,
        Fault::TooManyRequests { retry_after: 2 },
        Fault::Internal,
        Fault::Unavailable,
        Fault::TimeOut(When::After),
        Fault::Disconnect(When::After),
        // Longer than a call may take: it never arrives.
        Fault::Slow(Duration::from_mins(3)),
    ];
    let mut points = 0;
    for scene in [Scene::Forced, Scene::Ordinary, Scene::First, Scene::Adopted] {
        let (_, plays, _) = play_all(scene, |calls| {
            let fail = |call: usize, fault: &Fault| {
                let is_possible = calls[call - 1].writes() || *fault != Fault::Conflict;
                is_possible.then(|| Disturbance::Fail(call, fault.clone()))
            };
            marking_calls(calls).flat_map(|call| faults.iter().filter_map(move |fault| fail(call, fault))).collect()
        });
        points += plays;
    }
    println!("{points} faults");
    assert!(points >= 100, "{points}");
}

#[test]
fn two_processes_and_late_calls_issue_one_certificate() {
    let mut points = 0;
    let pause = Duration::from_secs(20);
    for scene in [Scene::Forced, Scene::Ordinary, Scene::First, Scene::Adopted] {
        // A first certificate that is issued meanwhile may or may not be the one of the other forced deploy.
        let meanwhile: &[Option<Deploy>] = match scene {
            Scene::Forced | Scene::Ordinary => &[None, Some(Deploy::Patch), Some(Deploy::Replace)],
            Scene::First | Scene::Adopted => &[None, Some(Deploy::Patch)],
        };
        let (_, plays, _) = play_all(scene, |calls| {
            let late = |call| meanwhile.iter().map(move |how| Disturbance::Late(call, pause, *how));
            marking_calls(calls).flat_map(late).collect()
        });
        points += plays;
    }
    println!("{points} late calls");
    assert!(points >= 40, "{points}");
}

/// A lasting error ends the run with its cause, after the limit of retries.
#[tokio::test(start_paused = true)]
async fn a_lasting_error_ends_with_its_cause() {
    for (verb, doing) in [("patch", "mark ConfigMap"), ("get", "read ConfigMap")] {
        let mut world = Scene::Adopted.set().await;
        world.faults = Faults::new(0);
        world.faults.on(move |call| call.name == NAME && call.verb == verb).fail(Fault::Unavailable);
        let start = world.drydock.now();
        let error = world.run(&marking(Stage::Inject)).await.unwrap_err();
        assert!(error.to_string().contains(doing), "{error}");
        let took = world.drydock.now().duration_since(start).as_secs();
        assert!((300..330).contains(&took), "{took}");
        world.faults = Faults::new(0);
        world.run(&Options { mark: None, ..options() }).await.unwrap();
    }
}
