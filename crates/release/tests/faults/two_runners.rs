//! Two runners deploy the same release. One is paused at every API call, for longer than its lease holds; another takes
//! over, with the same version or the other one; then the first is woken. Or a stranger deletes the Lease of the first, and
//! the second creates it anew while the first may still be working.

use crate::judge::{differences, ending, judge, judge_witnesses};
use crate::play::{Shown, Suite, finish};
use crate::scenario::{Scenario, VERSIONS};
use crate::support::cluster::block_on;
use crate::world::{Deployed, Runner, World};
use jobwright_drydock::Faults;
use std::fmt;
use std::time::Duration;

/// A pause of the first runner.
#[derive(Clone, Copy, Debug)]
struct Pause {
    call: usize,
    second: Second,
    wake: Wake,
    way: Way,
}

/// What the second runner deploys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Second {
    SameVersion,
    OtherVersion,
}

/// When the first runner is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wake {
    WhileTheSecondHolds,
    AfterTheSecond,
}

/// How the second runner comes by the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The first has not renewed it.
    Expiry,
    /// A stranger deletes the Lease, and it is created anew.
    Deletion,
}

impl fmt::Display for Pause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, second, wake, way } = self;
        write!(formatter, "paused at call {call}, second deploys {second:?} after {way:?}, woken {wake:?}")
    }
}

async fn play(scenario: &Scenario, number: usize, pause: Pause) -> Shown {
    let world = World::new(scenario, number).await;
    let faults = Faults::new(0);
    faults.pause_at(pause.call);
    let first = Runner::new("first", faults.clone());
    let mut problems = Vec::new();
    let mut was_disturbed = false;
    for version in VERSIONS {
        let mut deploy = Box::pin(world.deploy(&first, version));
        tokio::select! {
            biased;
            () = faults.paused() => {}
            done = &mut deploy => {
                problems.extend(judge(&world, &done).await);
                continue;
            }
        }
        was_disturbed = true;
        if pause.way == Way::Deletion {
            world.delete_lease().await;
        }
        let held = world.journal.holder().as_deref() == Some("first");
        let is_complete = differences(&world, version).await.is_empty();
        let (done, overtaken) = tokio::join!(deploy, overtake(&world, &faults, pause, version));
        let (overtaken, wrong) = overtaken;
        problems.extend(wrong);
        problems.extend(judge_witnesses(&world, &done).await);
        // It may have had nothing left to do but to release the lease. Nobody tells it at once that the Lease was deleted.
        if done.succeeded() && held && !is_complete && pause.way == Way::Expiry {
            problems.push("the first runner reports success after it lost the lease".to_owned());
        }
        if !overtaken.succeeded() {
            problems.push(format!("the second runner failed: {:?}", overtaken.outcome));
        }
        break;
    }
    for version in VERSIONS {
        finish(&world, &Runner::new(format!("last-{version}"), Faults::new(0)).older(), version, &mut problems).await;
    }
    let (ending, wrong) = ending(&world).await;
    problems.extend(wrong.into_iter().map(|wrong| format!("at the end: {wrong}")));
    let was_overtaken = pause.second == Second::OtherVersion;
    Shown { calls: faults.calls(), ending, problems, was_disturbed, was_overtaken }
}

/// A second runner deploys while the first is paused; the first is woken. Gives also what is wrong with the deploy of the
/// second: it is judged at once, because the first may have waited for its turn.
async fn overtake(world: &World<'_>, faults: &Faults, pause: Pause, version: &'static str) -> (Deployed, Vec<String>) {
    let other = VERSIONS.into_iter().find(|other| *other != version).unwrap();
    let second = Runner::new("second", Faults::new(0)).older();
    let deploy = world.deploy(&second, if pause.second == Second::SameVersion { version } else { other });
    let wake = async {
        if pause.wake == Wake::WhileTheSecondHolds {
            while world.journal.leaseholder().as_deref() != Some("second") {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            faults.wake();
        }
        std::future::pending::<()>().await;
    };
    let deployed = tokio::select! {
        deployed = deploy => deployed,
        () = wake => unreachable!(),
    };
    let problems = judge(world, &deployed).await;
    faults.wake();
    (deployed, problems)
}

#[test]
fn only_one_of_two_runners_works_when_the_other_is_paused_at_any_call() {
    let suite = Suite::new();
    let kinds = [
        (Second::SameVersion, Wake::AfterTheSecond, Way::Expiry),
        (Second::OtherVersion, Wake::WhileTheSecondHolds, Way::Expiry),
        (Second::SameVersion, Wake::WhileTheSecondHolds, Way::Deletion),
        (Second::SameVersion, Wake::WhileTheSecondHolds, Way::Expiry),
        (Second::OtherVersion, Wake::AfterTheSecond, Way::Expiry),
        (Second::OtherVersion, Wake::AfterTheSecond, Way::Deletion),
    ];
    let pause = |(call, (second, wake, way))| (call, Pause { call, second, wake, way });
    let pauses: Vec<_> = suite.choose(&kinds).into_iter().map(pause).collect();
    suite.run(&pauses, |number, pause| block_on(play(&suite.scenario, number, *pause)));
}
