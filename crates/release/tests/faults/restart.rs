//! The process is killed at every API call and restarted later, after the timeouts of its jobs.

use crate::play::{Disturbance, Suite};
use jobwright_drydock::When;
use std::time::Duration;

#[test]
fn a_deploy_that_is_killed_at_any_call_is_finished_by_a_late_restart() {
    let suite = Suite::new();
    let pauses = [Duration::ZERO, Duration::from_mins(2), Duration::from_hours(2)];
    let kinds: Vec<(Duration, When)> =
        [When::Before, When::After].iter().flat_map(|when| pauses.map(|pause| (pause, *when))).collect();
    let kill = |(call, (pause, when))| (call, Disturbance::Kill { call, when, pause });
    suite.play(&suite.choose(&kinds).into_iter().map(kill).collect::<Vec<_>>());
}
