//! Each API call never answers, or answers only after its deadline.

use crate::play::{Disturbance, Suite};
use jobwright_drydock::{Fault, When};
use std::time::Duration;

/// Later than the deadline of a call, which is 30 seconds.
const LATE: Duration = Duration::from_secs(45);
const LONG: Duration = Duration::from_mins(10);

#[test]
fn a_deploy_ends_well_or_with_a_true_report_when_any_call_hangs() {
    let suite = Suite::new();
    let once = |fault: Fault| (fault, None);
    let kinds = [
        once(Fault::Hang(When::Before)),
        once(Fault::Late(When::Before, LATE)),
        once(Fault::Hang(When::After)),
        once(Fault::Late(When::After, LATE)),
        once(Fault::Silence),
        (Fault::Hang(When::Before), Some(LONG)),
    ];
    let fault = |(call, (fault, lasting))| (call, Disturbance::Fault { call, fault, lasting });
    suite.play(&suite.choose(&kinds).into_iter().map(fault).collect::<Vec<_>>());
}
