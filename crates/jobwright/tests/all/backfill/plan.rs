//! A backfill in a plan: the upgrade table of the first seed, and a failure that is told.

use crate::backfill::collector::{Collector, Deed};
use crate::backfill::play::{PLANTED, stage};

#[test]
fn a_backfill_runs_on_change_and_not_when_nothing_has_changed() {
    let stage = stage();
    let collector = Collector::start(|_| Deed::Take);
    let plan = |kinds: &str| {
        let sink = format!("http://127.0.0.1:{}/", collector.port);
        stage.plan(
            "1.4.0",
            &format!("jobs:\n- {{id: snapshot, phase: post, run: OnChange, retires: {{never: base}}, backfill: {{sink: '{sink}', kinds: [{kinds}]}}}}\n"),
        );
    };
    let outcome = |line: &str| {
        let said = stage.jobwright(line).expect(0);
        assert!(!said.out.contains(PLANTED) && !said.error.contains(PLANTED));
        said.json()["jobs"][0]["outcome"].as_str().unwrap().to_owned()
    };
    plan("Secret");
    assert_eq!(outcome("deploy -o json"), "succeeded");
    assert_eq!(collector.ids().len(), 1);
    assert_eq!(outcome("deploy -o json"), "skipped", "applied again, nothing changed");
    assert_eq!(outcome("deploy -o json --force"), "succeeded");
    plan("Secret, ConfigMap");
    assert_eq!(outcome("deploy -o json"), "succeeded", "it has changed");
    assert_eq!(collector.ids().len(), 4);
    let log = stage.jobwright("logs snapshot").expect(0);
    assert!(log.out.contains("objects sent to http://127.0.0.1:"), "{}", log.out);
}

#[test]
fn a_backfill_that_cannot_be_sent_fails_its_job() {
    let stage = stage();
    let collector = Collector::start(|_| Deed::Refuse(400));
    let backfill = format!("{{sink: 'http://127.0.0.1:{}/', kinds: [Secret]}}", collector.port);
    stage.plan(
        "1.4.0",
        &format!("jobs:\n- {{id: snapshot, phase: post, retires: {{never: base}}, backfill: {backfill}}}\n"),
    );
    let report = stage.jobwright("deploy -o json").expect(1).json();
    let reason = report["jobs"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("0 of 12 objects sent") && reason.contains("400"), "{reason}");
}
