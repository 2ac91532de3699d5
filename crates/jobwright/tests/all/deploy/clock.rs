//! A cluster whose clock differs from this machine's.

use crate::deploy::stage::{Stage, job};
use jiff::SignedDuration;
use jobwright_drydock::Drydock;

#[test]
fn a_job_gets_its_time_in_a_cluster_whose_clock_is_an_hour_behind() {
    let plan = format!("jobs:\n{}", job("migrate", "sleep 20", "phase: pre, timeout: 10m"));
    let stage = Stage::shifted(Drydock::builder(), SignedDuration::from_hours(-1), &plan);
    let said = stage.jobwright("deploy -o json").expect(0);
    assert_eq!(said.json()["jobs"][0]["outcome"], "succeeded");
    let report = "warning: the cluster's clock is ";
    assert_eq!(said.error.matches(report).count(), 1, "{}", said.error);
    assert!(said.error.contains("behind this machine's"), "{}", said.error);
}

#[test]
fn equal_clocks_are_not_reported() {
    let said = Stage::in_real_time("").jobwright("deploy").expect(0);
    assert!(!said.error.contains("clock"), "{}", said.error);
}
