//! Each API call meets one error that passes. The deploy retries and succeeds.

use crate::play::{Disturbance, Suite};
use jobwright_drydock::{Fault, When};

#[test]
fn a_deploy_succeeds_when_any_call_fails_once() {
    let suite = Suite::new();
    let kinds = [
        Fault::Conflict,
        Fault::TooManyRequests { retry_after: 2 },
        Fault::Internal,
        Fault::TimeOut(When::After),
        Fault::Disconnect(When::After),
        Fault::Disconnect(When::Before),
    ];
    let fault = |(call, fault)| (call, Disturbance::Once { call, fault });
    suite.play(&suite.choose(&kinds).into_iter().map(fault).collect::<Vec<_>>());
}
