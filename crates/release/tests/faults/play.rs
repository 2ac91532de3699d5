//! A play: the scenario is deployed, something goes wrong at one call, and a fresh runner finishes what is left.

use crate::judge::{Ending, ending, judge};
use crate::programs::write_script;
use crate::scenario::{Scenario, VERSIONS};
use crate::support::cluster::block_on;
use crate::world::{Outcome, Runner, World};
use jobwright_drydock::{Call, Fault, Faults, Rule, When};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A scenario with fewer calls would explore less, and so would a sample of fewer.
const FEWEST_CALLS: usize = 150;
const FEWEST_SAMPLED: usize = 38;

/// What goes wrong in a play.
#[derive(Clone, Debug)]
pub(crate) enum Disturbance {
    None,
    /// A call fails once, and the deploy must succeed all the same.
    Once {
        call: usize,
        fault: Fault,
    },
    /// A call meets a fault, and so do the same calls for a while.
    Fault {
        call: usize,
        fault: Fault,
        lasting: Option<Duration>,
    },
    /// The process is killed at a call; the next one starts after a pause.
    Kill {
        call: usize,
        when: When,
        pause: Duration,
    },
}

/// What a play showed.
pub(crate) struct Shown {
    /// The calls of the runners that met the disturbance.
    pub(crate) calls: Vec<Call>,
    pub(crate) ending: Ending,
    pub(crate) problems: Vec<String>,
    /// Whether the disturbance came to pass.
    pub(crate) was_disturbed: bool,
    /// Whether another version came first, so that some jobs need not run.
    pub(crate) was_overtaken: bool,
}

impl fmt::Display for Disturbance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(formatter, "undisturbed"),
            Self::Once { call, fault } => write!(formatter, "{fault:?} once at call {call}"),
            Self::Fault { call, fault, lasting } => {
                let lasting = lasting.map(|span| format!(" for {span:?}")).unwrap_or_default();
                write!(formatter, "{fault:?}{lasting} at call {call}")
            }
            Self::Kill { call, when, pause } => {
                write!(formatter, "killed {when:?} call {call}, restarted after {pause:?}")
            }
        }
    }
}

impl Disturbance {
    /// Prepares the faults. `calls` are those of an undisturbed run: a fault hits the call that is the same there.
    fn prepare(&self, faults: &Faults, calls: &[Call]) {
        match self {
            Self::None => {}
            Self::Kill { call, when, .. } => faults.stop_at(*call, *when),
            Self::Once { call, fault } | Self::Fault { call, fault, lasting: None } => {
                rule(faults, calls, *call).times(1).fail(fault.clone());
            }
            Self::Fault { call, fault, lasting: Some(span) } => {
                rule(faults, calls, *call).lasting(*span).fail(fault.clone());
            }
        }
    }

    /// How long nothing is tried after a deploy that did not succeed.
    fn pause(&self) -> Duration {
        match self {
            Self::None | Self::Once { .. } => Duration::ZERO,
            Self::Kill { pause, .. } => *pause,
            Self::Fault { lasting, .. } => lasting.unwrap_or(Duration::from_mins(1)),
        }
    }
}

/// A rule for the call with this number.
fn rule(faults: &Faults, calls: &[Call], number: usize) -> Rule {
    let wanted = calls[number - 1].clone();
    let before = calls[..number - 1].iter().filter(|call| **call == wanted).count();
    faults.on(move |call| *call == wanted).skip(before)
}

/// Deploys both versions under a disturbance. A deploy that does not succeed is repeated by a fresh runner, which must.
pub(crate) async fn play(scenario: &Scenario, number: usize, disturbance: &Disturbance, calls: &[Call]) -> Shown {
    let world = World::new(scenario, number).await;
    let faults = Faults::new(0);
    let mut runner = Runner::new("first", faults.clone());
    disturbance.prepare(&faults, calls);
    if let Disturbance::Fault { call, fault: Fault::Late(When::Before, _), .. } = disturbance {
        runner.overdue = Some(calls[call - 1].clone());
    }
    let mut problems = Vec::new();
    for version in VERSIONS {
        let done = world.deploy(&runner, version).await;
        problems.extend(judge(&world, &done).await);
        if done.succeeded() {
            continue;
        }
        if matches!(disturbance, Disturbance::None | Disturbance::Once { .. }) {
            problems.push(format!("it failed: {:?}", done.outcome));
            break;
        }
        tokio::time::sleep(disturbance.pause()).await;
        runner = Runner::new(format!("after-{version}"), Faults::new(0));
        finish(&world, &runner, version, &mut problems).await;
    }
    // What comes late has come by then.
    tokio::time::sleep(Duration::from_mins(2)).await;
    finish(&world, &Runner::new("last", Faults::new(0)), VERSIONS[1], &mut problems).await;
    let (ending, wrong) = ending(&world).await;
    problems.extend(wrong.into_iter().map(|wrong| format!("at the end: {wrong}")));
    let was_disturbed = faults.hits() > 0 || faults.is_stopped();
    Shown { calls: faults.calls(), ending, problems, was_disturbed, was_overtaken: false }
}

/// A deploy that must succeed.
pub(crate) async fn finish(world: &World<'_>, runner: &Runner, version: &'static str, problems: &mut Vec<String>) {
    let done = world.deploy(runner, version).await;
    problems.extend(judge(world, &done).await);
    if !done.succeeded() {
        let why = match &done.outcome {
            Outcome::Reported(report) => format!("{:?} {:?}", report.components, report.jobs),
            other => format!("{other:?}"),
        };
        problems.push(format!("a fresh deploy of {version} by {} failed: {why}", runner.name));
    }
}

/// How much of a suite is played.
enum Extent {
    /// The first call of each kind and every twelfth call, with one fault each.
    Sample,
    /// Every call, with one fault each.
    EveryCall,
    /// Every call with every fault.
    EveryFault,
}

impl Extent {
    #[expect(clippy::disallowed_methods, reason = "switches for `.ci/run` and `.ci/nightly`")]
    fn wanted() -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some();
        match (is_set("JOBWRIGHT_EVERY_FAULT"), is_set("JOBWRIGHT_EVERY_CALL")) {
            (true, _) => Self::EveryFault,
            (false, true) => Self::EveryCall,
            (false, false) => Self::Sample,
        }
    }
}

impl Extent {
    /// How many plays a suite has at least, with this many faults.
    fn fewest_plays(&self, faults: usize) -> usize {
        match self {
            Self::Sample => FEWEST_SAMPLED,
            Self::EveryCall => FEWEST_CALLS,
            Self::EveryFault => FEWEST_CALLS * faults,
        }
    }
}

/// A suite: an undisturbed run, and plays on all processors.
pub(crate) struct Suite {
    pub(crate) scenario: Scenario,
    pub(crate) calls: Vec<Call>,
    ending: Ending,
    next: AtomicUsize,
}

impl Suite {
    pub(crate) fn new() -> Self {
        let scenario = Scenario::write();
        write_script(scenario.path());
        let shown = block_on(play(&scenario, 0, &Disturbance::None, &[]));
        assert!(shown.problems.is_empty(), "undisturbed: {:#?}", shown.problems);
        assert!(shown.calls.len() >= FEWEST_CALLS, "the scenario makes only {} calls", shown.calls.len());
        Self { scenario, calls: shown.calls, ending: shown.ending, next: AtomicUsize::new(1) }
    }

    /// The calls that are disturbed, numbered from 1, each with a fault. All faults take their turn.
    pub(crate) fn choose<F: Clone>(&self, faults: &[F]) -> Vec<(usize, F)> {
        let calls = 1..=self.calls.len();
        let extent = Extent::wanted();
        let fewest = extent.fewest_plays(faults.len());
        let in_turn = |calls: Vec<usize>| calls.into_iter().zip(faults.iter().cycle().cloned()).collect();
        let chosen: Vec<(usize, F)> = match extent {
            Extent::EveryFault => {
                calls.flat_map(|call| faults.iter().map(move |fault| (call, fault.clone()))).collect()
            }
            Extent::EveryCall => in_turn(calls.collect()),
            Extent::Sample => {
                let mut kinds = BTreeSet::new();
                let is_new = |call: &Call| kinds.insert((call.verb, call.group.clone(), call.resource.clone()));
                let first: BTreeSet<usize> = self
                    .calls
                    .iter()
                    .map(is_new)
                    .zip(1..)
                    .filter_map(|(is_new, call)| is_new.then_some(call))
                    .collect();
                in_turn(calls.filter(|call| first.contains(call) || call % 12 == 0).collect())
            }
        };
        assert!(chosen.len() >= fewest, "the suite has only {} plays, and had {fewest}", chosen.len());
        chosen
    }

    /// Plays the scenario with each disturbance.
    pub(crate) fn play(&self, disturbances: &[(usize, Disturbance)]) {
        self.run(disturbances, |number, disturbance| block_on(play(&self.scenario, number, disturbance, &self.calls)));
    }

    /// Runs plays on all processors, each at a call. Fails with everything that went wrong, and unless each play was
    /// disturbed.
    pub(crate) fn run<P: fmt::Display + Sync>(&self, points: &[(usize, P)], play: impl Fn(usize, &P) -> Shown + Sync) {
        let (next, wrong, covered) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(BTreeSet::new()));
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    let take = || next.fetch_add(1, Ordering::Relaxed);
                    while let Some((index, (call, point))) =
                        Some(take()).and_then(|index| Some((index, points.get(index)?)))
                    {
                        let mut shown = play(self.next.fetch_add(1, Ordering::Relaxed), point);
                        shown.problems.extend(shown.ending.differences(&self.ending, shown.was_overtaken));
                        if shown.was_disturbed {
                            covered.lock().unwrap().insert(index);
                        }
                        if !shown.problems.is_empty() {
                            let name = &self.calls[call - 1];
                            let problems = shown.problems.join("\n    ");
                            wrong.lock().unwrap().push(format!("{point} ({name}):\n    {problems}"));
                        }
                    }
                });
            }
        });
        let wrong = wrong.into_inner().unwrap();
        assert!(wrong.is_empty(), "{} of {} plays went wrong:\n{}", wrong.len(), points.len(), wrong.join("\n"));
        let covered = covered.into_inner().unwrap();
        let missed = points.iter().enumerate().filter(|(index, _)| !covered.contains(index));
        let missed: Vec<String> = missed.map(|(_, (_, point))| point.to_string()).collect();
        assert!(
            missed.is_empty(),
            "{} of {} plays disturbed nothing:\n{}",
            missed.len(),
            points.len(),
            missed.join("\n")
        );
    }
}
