//! Times of attempts: Jobs that never start, and what the ledger says of when a run began and ended.

use super::*;

/// A run whose Job was unsuspended two hours after it was decided on, and which the Job controller ignores.
fn unstarted() -> Stage {
    let mut stage = Stage::default();
    for _ in 0..4 {
        stage.step(&spec("a"));
    }
    stage.now = 7200;
    stage.play(&spec("a"));
    stage.jobs[0].life = Life::Running { since: None };
    stage.unstarted_since = Some(stage.now);
    stage
}

#[test]
fn a_job_that_is_never_started_fails_at_its_time_limit_from_when_it_was_seen() {
    let mut stage = unstarted();
    let waiting = step(&spec("a"), &stage.ledger, &stage.observed(), at(stage.now));
    assert_eq!(waiting, Step::Wait(Waiting::until_finished(Some(at(7200 + 660)))), "it is looked at then");
    stage.now += 659;
    assert_eq!(stage.play(&spec("a")), None);
    stage.now += 1;
    let verdict = stage.play(&spec("a"));
    assert!(matches!(verdict, Some(Verdict::Failed { run: Some(1), .. })), "{verdict:?}");
    assert!(stage.last_run().reason.starts_with("NotStarted: "), "{}", stage.last_run().reason);
    assert!(stage.jobs.is_empty(), "it cannot start later");
}

#[test]
fn another_runs_job_that_is_never_started_is_not_waited_for_indefinitely() {
    let mut stage = unstarted();
    stage.now += 659;
    assert_eq!(stage.play(&spec("b")), None);
    stage.now += 1;
    assert_eq!(stage.play(&spec("b")), None);
    assert!(stage.last_run().reason.starts_with("NotStarted: "), "{}", stage.last_run().reason);
    stage.finish(true);
    assert_eq!(stage.play(&spec("b")), Some(Verdict::Succeeded { run: 2, attempts: 1 }));
}

#[test]
fn an_attempt_is_read_before_it_is_stopped_for_taking_too_long() {
    for mut stage in [unstarted(), {
        let mut started = Stage { now: 7200, ..Stage::default() };
        started.play(&spec("a"));
        started
    }] {
        stage.now += 660;
        assert_eq!(step(&spec("a"), &stage.ledger, &stage.observed(), at(stage.now)), Step::Confirm);
        // The watch lags: it has finished long ago.
        stage.carry_out(&spec("a"), &Step::Confirm);
        stage.finish(true);
        assert_eq!(stage.play(&spec("a")), Some(Verdict::Succeeded { run: 1, attempts: 1 }));
    }
}

#[test]
fn another_run_that_was_started_keeps_its_own_deadline() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.now += 100_000;
    assert_eq!(stage.play(&spec("b")), None);
    assert_eq!(stage.started.len(), 1);
}

/// The end of a run that was decided on at 1000 by the process's clock, and of whose Job this is seen.
fn ended(uid: Option<&str>, observed: Observed, now: i64) -> Run {
    let spec = spec("a");
    let ledger = intend(&spec, &Ledger::default(), at(1000)).amend(|active| active.uid = uid.map(str::to_owned));
    let Step::Record(next) = step(&spec, &ledger, &Observed { log: Some(Ok(String::new())), ..observed }, at(now))
    else {
        panic!("its end is recorded");
    };
    next.runs().next().unwrap().clone()
}

#[test]
fn a_run_had_not_started_only_if_no_uid_of_its_job_was_recorded() {
    let cancelled = || Observed { is_cancelled: true, ..Observed::default() };
    let run = ended(None, cancelled(), 1010);
    assert!(run.never_started && run.reason == "it had not started", "{run:?}");
    let run = ended(Some("7"), Observed::default(), 1010);
    assert!(!run.never_started && run.outcome == Outcome::Unknown, "its Job was deleted: {run:?}");
    let finish = Finish { succeeded: false, reason: "no".to_owned(), exit_code: Some(1), started_at: None, at: at(70) };
    let seen = Seen::Present { uid: "7".to_owned(), life: Life::Finished(finish) };
    let run = ended(None, Observed { attempt: seen, ..Observed::default() }, 1010);
    assert!(!run.never_started, "its uid was not recorded, but it has run: {run:?}");
}

#[test]
fn both_times_of_a_run_come_from_one_clock() {
    // The cluster's clock is 930 seconds behind that of the process.
    let finish =
        |started_at| Finish { succeeded: true, reason: String::new(), exit_code: Some(0), started_at, at: at(90) };
    let times = |started_at| {
        let seen = Seen::Present { uid: "7".to_owned(), life: Life::Finished(finish(started_at)) };
        let run = ended(Some("7"), Observed { attempt: seen, ..Observed::default() }, 1020);
        (run.started_at.as_second(), run.finished_at.as_second())
    };
    assert_eq!(times(Some(at(70))), (70, 90), "the cluster has said both");
    assert_eq!(times(None), (90, 90), "it has said only when it ended");
    let deleted = ended(Some("7"), Observed::default(), 1020);
    assert_eq!((deleted.started_at.as_second(), deleted.finished_at.as_second()), (1000, 1020), "it has said neither");
    let by_pod = Observed { pod_finish: Some(finish(Some(at(75)))), ..Observed::default() };
    let run = ended(Some("7"), by_pod, 1020);
    assert_eq!((run.started_at.as_second(), run.finished_at.as_second()), (75, 90), "its pod has said both");
}
