//! Stopped at every call, with a fault at every call, and two at once: nothing that is served is ever not trusted, and
//! in the end everything is in its place.
//!
//! The judge is the model of servers, which sees every write and knows nothing of the code under test.

use super::model::{NAMESPACE, SECRET, covers};
use super::targets::{api_service, definition, names};
use super::world::{World, options, webhooks};
use jobwright_drydock::{Call, Fault, Faults, When};
use jobwright_jobs::init_cert::{Dialling, Error, Options, RenewBefore, Targets, init_cert};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Longer than a whole rotation takes.
const LATE: Duration = Duration::from_mins(2);
const DAY: Duration = Duration::from_hours(24);

/// What a play begins with, and what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scene {
    /// Nothing is there but a Deployment that waits and a configuration without a bundle.
    Create,
    /// A new CA is asked for.
    Forced,
    /// The certificate has to be renewed, its CA need not.
    Leaf,
    /// Both have to be.
    Both,
    /// A new CA is asked for, and servers load the Secret again by themselves.
    Reload,
    /// A new CA is asked for, and nobody can be asked what it shows.
    Unseen,
    /// A new CA is asked for, and objects of all kinds trust it.
    Kinds,
}

/// What goes wrong in a play.
#[derive(Clone, Debug)]
enum Disturbance {
    None {
        lock: bool,
    },
    /// The process is stopped at a call, and another one started.
    Stop {
        call: usize,
        when: When,
    },
    /// A call fails.
    Fault {
        call: usize,
        fault: Fault,
    },
    /// The process is told to end at a call, as by SIGTERM, and another one started once it has.
    Signal {
        call: usize,
    },
    /// A call comes late, and another run does all of its work meanwhile: neither waits for the other.
    Late {
        call: usize,
    },
}

impl Scene {
    async fn set(self) -> World {
        match self {
            Self::Create => World::new().await,
            Self::Both => {
                let world = World::running_with(&Options { authority_validity: DAY * 365, ..options() }).await;
                world.pass(DAY * 40).await;
                world
            }
            Self::Reload => {
                let world = World::running().await;
                world.model.reload_after(Duration::from_secs(15));
                world
            }
            Self::Unseen => {
                let world = World::running().await;
                World { dialling: Dialling::Not("nobody answers here".to_owned()), ..world }
            }
            Self::Kinds => {
                let world = World::new().await;
                all_kinds(&world).await;
                world.model.look_at_all_kinds();
                world.run(&with_all_kinds()).await.unwrap();
                world.pass(Duration::from_hours(1)).await;
                world.begin().await;
                world
            }
            Self::Forced | Self::Leaf => World::running().await,
        }
    }

    fn options(self) -> Options {
        match self {
            Self::Create => options(),
            Self::Kinds => Options { force: true, ..with_all_kinds() },
            Self::Forced | Self::Unseen => Options { force: true, ..options() },
            Self::Reload => Options { force: true, deployments: Vec::new(), ..options() },
            Self::Leaf => {
                Options { renew_before: RenewBefore::Left(DAY * 364 + Duration::from_mins(23 * 60 + 30)), ..options() }
            }
            Self::Both => Options { renew_before: RenewBefore::Left(DAY * 330), ..options() },
        }
    }
}

/// Objects of the other kinds.
async fn all_kinds(world: &World) {
    world
        .apply(webhooks(
            "MutatingWebhookConfiguration",
            "shop",
            &[("a.shop.example", "hook"), ("b.shop.example", "hook")],
        ))
        .await;
    world.apply(definition()).await;
    world.apply(api_service(serde_json::json!({}))).await;
}

fn with_all_kinds() -> Options {
    let targets = Targets {
        validating_webhooks: names(&["shop"]),
        mutating_webhooks: names(&["shop"]),
        definitions: names(&["orders.shop.example"]),
        api_services: names(&["v1.stock.example"]),
        webhook_selector: None,
    };
    Options { targets, ..options() }
}

/// Plays a scene, and gives the calls that were made.
async fn play(scene: Scene, disturbance: &Disturbance) -> Result<Vec<Call>, String> {
    let mut world = scene.set().await;
    let wanted = scene.options();
    world.faults = Faults::new(0);
    match disturbance {
        Disturbance::Stop { call, when } => world.faults.stop_at(*call, *when),
        Disturbance::Fault { call, fault } => {
            world.faults.on(|_| true).skip(call - 1).times(1).fail(fault.clone());
        }
        Disturbance::Late { call } => {
            world.faults.on(|_| true).skip(call - 1).times(1).fail(Fault::Slow(LATE));
        }
        Disturbance::None { .. } | Disturbance::Signal { .. } => {}
    }
    let calls = world.faults.clone();
    let is_alone = !matches!(disturbance, Disturbance::Late { .. } | Disturbance::None { lock: false });
    let first = world.surroundings(is_alone.then_some("first"));
    let run = init_cert(&first, &wanted);
    if let Disturbance::Late { call } = disturbance {
        world.faults = Faults::new(0);
        let second = async {
            while calls.calls().len() < *call {
                world.pass(Duration::from_millis(1)).await;
            }
            init_cert(&world.surroundings(None), &wanted).await
        };
        let (first, second) = tokio::join!(run, second);
        first.and(second).map_err(|error| error.to_string())?;
    } else {
        let signalled = async {
            let Disturbance::Signal { call } = disturbance else { return std::future::pending().await };
            while calls.calls().len() < *call {
                world.pass(Duration::from_millis(1)).await;
            }
            first.cancellation.cancel();
            // Longer than anything that is still recorded after a signal.
            world.pass(Duration::from_secs(15)).await;
        };
        let ended = tokio::select! {
            result = run => Some(result),
            () = calls.stopped() => None,
            () = signalled => return Err("it does not end".to_owned()),
        };
        let ended = ended.filter(|result| !matches!(result, Err(Error::Cancelled)));
        if let Some(result) = ended {
            result.map_err(|error| error.to_string())?;
        } else {
            // A new process knows nothing, its calls go well, and nobody asks it to force anything.
            world.faults = Faults::new(0);
            let again = Options { force: false, ..wanted };
            let second = world.surroundings(Some("second"));
            init_cert(&second, &again).await.map_err(|error| format!("again: {error}"))?;
        }
    }
    judge(&world).await.map(|()| calls.calls())
}

/// What is true at the end, whatever happened.
pub(super) async fn judge(world: &World) -> Result<(), String> {
    world.pass(Duration::from_mins(2)).await;
    world.model.look().await;
    let (gaps, _) = world.model.verdict();
    if let Some(gap) = gaps.first() {
        return Err(format!("{gap} ({} in all)", gaps.len()));
    }
    let secret = world.secret(SECRET).await.ok_or("there is no pair")?;
    if secret.metadata.annotations.unwrap_or_default().contains_key("jobwright.io/unfinished") {
        return Err("the pair is still unfinished".to_owned());
    }
    if !world.secret_text("hook-tls-ca", "previous.crt").await.is_empty() {
        return Err("an older CA is still kept".to_owned());
    }
    if world.trusted().await.len() != 1 {
        return Err(format!("{} CAs are trusted", world.trusted().await.len()));
    }
    let authority = world.secret_text("hook-tls-ca", "tls.crt").await;
    let servers = world.servers().await;
    for server in &servers {
        let shown = world.model.shown_by(server).ok_or("a server shows nothing")?;
        if shown.certificate != world.secret_text(SECRET, "tls.crt").await.into_bytes() {
            return Err(format!("pod {server} shows another certificate"));
        }
        if !covers(&authority, &shown, world.drydock.now()) {
            return Err(format!("pod {server} is not vouched for"));
        }
    }
    if servers.len() == 2 { Ok(()) } else { Err(format!("{} servers in namespace {NAMESPACE}", servers.len())) }
}

/// Plays a scene once for each disturbance that its calls allow, on all processors. Gives the calls and the plays.
fn play_all(scene: Scene, lock: bool, disturb: impl Fn(&[Call]) -> Vec<Disturbance>) -> (usize, usize) {
    let run = |disturbance: &Disturbance| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(scene, disturbance))
    };
    let calls = run(&Disturbance::None { lock }).unwrap_or_else(|problem| panic!("{scene:?}: {problem}"));
    let plays = disturb(&calls);
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(disturbance) = plays.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(problem) = run(disturbance) {
                        let at = match disturbance {
                            Disturbance::Stop { call, .. }
                            | Disturbance::Signal { call }
                            | Disturbance::Fault { call, .. }
                            | Disturbance::Late { call } => calls[call - 1].to_string(),
                            Disturbance::None { .. } => String::new(),
                        };
                        wrong.lock().unwrap().push(format!("{disturbance:?} ({at}): {problem}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{scene:?}: {} of {} went wrong:\n{}", wrong.len(), plays.len(), wrong.join("\n"));
    (calls.len(), plays.len())
}

/// Whether everything is played everywhere, by those who have the time.
fn has_time() -> bool {
    #[expect(clippy::disallowed_methods, reason = "a switch for those who have the time")]
    std::env::var_os("JOBWRIGHT_EVERY_FAULT").is_some()
}

/// Stopped before the first call, and after each: before a call is after the one before it.
fn everywhere(calls: &[Call]) -> Vec<Disturbance> {
    let after = (1..=calls.len()).map(|call| Disturbance::Stop { call, when: When::After });
    std::iter::once(Disturbance::Stop { call: 1, when: When::Before }).chain(after).collect()
}

/// Stopped before the first call and after each write: what is read in between changes nothing. Everywhere, where there
/// is the time for it.
fn at_writes(calls: &[Call]) -> Vec<Disturbance> {
    let stops = everywhere(calls).into_iter();
    let writes = |stop: &Disturbance| matches!(stop, Disturbance::Stop { call, .. } if calls[call - 1].writes());
    stops.filter(|stop| has_time() || writes(stop)).collect()
}

/// Signals at each call.
fn signals(calls: &[Call]) -> Vec<Disturbance> {
    (1..=calls.len()).map(|call| Disturbance::Signal { call }).collect()
}

/// One fault at each write and at the first read of each kind, all faults in turn; every fault at every call, where
/// there is the time for it.
fn faults(calls: &[Call]) -> Vec<Disturbance> {
    let faults = [
        Fault::Conflict,
        Fault::TooManyRequests { retry_after: 2 },
        Fault::Internal,
        Fault::TimeOut(When::After),
        Fault::Disconnect(When::After),
        Fault::Hang(When::After),
    ];
    let mut seen = std::collections::BTreeSet::new();
    let mut points = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let is_new = seen.insert(call.to_string());
        // Nobody conflicts with a read.
        let possible = if call.writes() { &faults[..] } else { &faults[1..] };
        let chosen = if has_time() { possible } else { &possible[points.len() % possible.len()..][..1] };
        if has_time() || is_new || call.writes() {
            points.extend(chosen.iter().map(|fault| Disturbance::Fault { call: index + 1, fault: fault.clone() }));
        }
    }
    points
}

#[test]
fn a_run_that_is_stopped_at_any_call_is_gone_on_with() {
    for scene in [Scene::Forced, Scene::Create] {
        let (calls, points) = play_all(scene, true, everywhere);
        println!("{scene:?}: {calls} calls, stopped at {points} points");
        assert_eq!(points, calls + 1);
    }
}

#[test]
fn a_run_that_is_stopped_at_a_write_is_gone_on_with_however_servers_are() {
    for scene in [Scene::Leaf, Scene::Both, Scene::Reload, Scene::Unseen] {
        let (calls, points) = play_all(scene, true, at_writes);
        println!("{scene:?}: {calls} calls, stopped at {points} points");
        assert!(points >= 5, "{points}");
    }
}

#[test]
fn a_fault_at_any_call_changes_nothing() {
    let (calls, points) = play_all(Scene::Forced, true, faults);
    println!("{calls} calls, {points} faults");
    assert!(points >= 15, "{points}");
}

#[test]
fn a_signal_at_any_call_ends_a_run_that_the_next_one_goes_on_with() {
    for scene in [Scene::Forced, Scene::Kinds] {
        let (calls, points) = play_all(scene, true, signals);
        println!("{scene:?}: {calls} calls, {points} signals");
        assert!(points >= 30, "{points}");
    }
}

#[test]
fn targets_of_all_kinds_survive_a_stop_and_a_fault_at_any_write() {
    let (calls, stops) = play_all(Scene::Kinds, true, at_writes);
    let (_, points) = play_all(Scene::Kinds, true, faults);
    println!("{calls} calls, stopped at {stops} points, {points} faults");
    // Two changes of each target, and what a definition gives up after each.
    assert!(stops >= 12 && points >= 25, "{stops} {points}");
}

#[test]
fn two_at_once_without_a_lock_do_not_fight() {
    let late = |calls: &[Call]| {
        let chosen = (1..=calls.len()).filter(|call| has_time() || calls[call - 1].writes());
        chosen.map(|call| Disturbance::Late { call }).collect()
    };
    for scene in [Scene::Create, Scene::Leaf, Scene::Forced] {
        let (calls, points) = play_all(scene, false, late);
        println!("{scene:?}: {calls} calls, {points} of them late");
        assert!(points >= 3, "{points}");
    }
}
