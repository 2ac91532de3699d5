//! Each API call answers with an error for ten minutes.

use crate::play::{Disturbance, Suite};
use jobwright_drydock::Fault;
use std::time::Duration;

const LONG: Duration = Duration::from_mins(10);

#[test]
fn a_deploy_ends_in_time_with_a_true_report_when_any_call_fails_for_ten_minutes() {
    let suite = Suite::new();
    let kinds = [Fault::Conflict, Fault::TooManyRequests { retry_after: 2 }, Fault::Internal, Fault::Unavailable];
    let fault = |(call, fault)| (call, Disturbance::Fault { call, fault, lasting: Some(LONG) });
    suite.play(&suite.choose(&kinds).into_iter().map(fault).collect::<Vec<_>>());
}
