//! Stopped at every call, with a fault at every call, and two at once: containers start as often as they should.
//!
//! Each part of the scenario is played whole, and then again for each call that the deploying process makes to the API:
//! stopped before and after the call took effect, and started again. The judge is the witness of the cluster, which
//! nobody under test can write.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod play;
mod scenario;

use jobwright_drydock::{Call, Fault, When};
use play::{Disturbance, Play};
use scenario::{Part, Scenario};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Plays every part once for each disturbance that its calls allow, on all processors, and tells what went wrong.
/// Gives the number of calls and of plays.
fn play_all(disturb: impl Fn(&[Call]) -> Vec<Disturbance>) -> (usize, usize) {
    let scenario = Scenario::load();
    let mut calls = 0;
    let mut plays: Vec<(&Part, Disturbance)> = Vec::new();
    for part in &scenario.parts {
        let made = Play::new(part, Disturbance::None).run().unwrap();
        calls += made.len();
        plays.extend(disturb(&made).into_iter().map(|disturbance| (part, disturbance)));
    }
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((part, disturbance)) = plays.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(problem) = Play::new(part, disturbance.clone()).run() {
                        wrong.lock().unwrap().push(format!("{}, {disturbance}: {problem}", part.name));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} went wrong:\n{}", wrong.len(), plays.len(), wrong.join("\n"));
    (calls, plays.len())
}

#[test]
fn a_process_that_is_stopped_at_any_call_goes_on_when_it_is_started_again() {
    let (calls, points) = play_all(|calls| {
        let both = |call| [When::Before, When::After].map(|when| Disturbance::Stop { call, when });
        (1..=calls.len()).flat_map(both).collect()
    });
    println!("{calls} calls, stopped before and after each: {points} points");
    assert_eq!(points, calls * 2);
}

/// Each call gets one fault, all kinds in turn; all kinds at each call with `JOBWRIGHT_EVERY_FAULT=1`.
#[test]
fn a_fault_at_any_call_changes_nothing() {
    #[expect(clippy::disallowed_methods, reason = "a switch for those who have the time")]
    let every = std::env::var_os("JOBWRIGHT_EVERY_FAULT").is_some();
    let (calls, points) = play_all(|calls| {
        let faults = [
            Fault::Conflict,
            Fault::TooManyRequests { retry_after: 2 },
            Fault::Internal,
            Fault::TimeOut(When::After),
            Fault::Disconnect(When::After),
        ];
        let mut points = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            let chosen = if every { &faults[..] } else { &faults[index % faults.len()..][..1] };
            let dropped = (call.verb == "watch").then_some(Fault::DropWatch);
            let all = chosen.iter().cloned().chain(dropped);
            points.extend(all.map(|fault| Disturbance::Fault { call: index + 1, fault }));
        }
        points
    });
    println!("{calls} calls, {points} faults");
    assert!(points >= calls);
}

#[test]
fn two_at_once_do_the_work_of_one() {
    play_all(|_| [0, 1, 5, 13, 29].map(|delay| Disturbance::Second { delay: Duration::from_secs(delay) }).to_vec());
}
