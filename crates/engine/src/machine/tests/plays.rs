//! Policies, retries, stops and verdicts, each played as a user would meet it.

use super::*;

fn forced(inputs: &str, nonce: &str) -> Spec {
    Spec { nonce: nonce.to_owned(), revision: nonce.to_owned(), ..spec(inputs) }
}

fn again(inputs: &str, revision: &str, run: RunPolicy) -> Spec {
    Spec { revision: revision.to_owned(), run, ..spec(inputs) }
}

fn versioned(version: &str) -> Spec {
    Spec { version: Some(version.parse().unwrap()), revision: version.to_owned(), ..spec(version) }
}

fn skip(verdict: Verdict) -> Skip {
    match verdict {
        Verdict::Skipped(skip) => skip,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_writes_its_intent_first_and_starts_only_when_its_uid_is_recorded() {
    let mut stage = Stage::default();
    assert_eq!(stage.deploy(&spec("a")), Verdict::Succeeded { run: 1, attempts: 1 });
    assert_eq!(
        stage.done(),
        "ask, record the intent of 1.1, create, record the uid, release, wait for its Job, readlog, record the end, \
         expire after 3600, done"
    );
    let run = stage.last_run();
    assert_eq!((run.outcome, run.exit_code, run.is_final), (Outcome::Succeeded, Some(0), true));
    assert_eq!(stage.ledger.log(1, 1), Some("done\n"));
}

#[test]
fn a_log_that_is_not_kept_is_not_read() {
    let mut stage = Stage::default();
    stage.deploy(&Spec { keep: Keep { log_bytes: 0, ..Keep::default() }, ..spec("a") });
    assert!(stage.done().ends_with("wait for its Job, record the end, expire after 3600, done"));
    assert_eq!((stage.ledger.log(1, 1), &stage.last_run().log_unavailable), (None, &None));
}

#[test]
fn once_per_fingerprint_runs_nothing_twice() {
    let mut stage = Stage::default();
    let at_revision = |inputs, revision| again(inputs, revision, RunPolicy::OncePerFingerprint);
    stage.deploy(&at_revision("a", "1"));
    assert_eq!(skip(stage.deploy(&at_revision("a", "2"))), Skip::AlreadySucceeded { run: 1 });
    stage.deploy(&at_revision("b", "3"));
    assert_eq!(skip(stage.deploy(&at_revision("a", "4"))), Skip::AlreadySucceeded { run: 1 });
    stage.jobs.clear();
    assert_eq!(skip(stage.deploy(&at_revision("b", "5"))), Skip::AlreadySucceeded { run: 2 });
    assert_eq!(stage.started.len(), 2);
}

#[test]
fn on_change_compares_with_the_last_success() {
    let mut stage = Stage::default();
    for (index, inputs) in ["a", "a", "b", "a"].into_iter().enumerate() {
        stage.deploy(&again(inputs, &index.to_string(), RunPolicy::OnChange));
    }
    assert_eq!(stage.started.len(), 3);
    let names: std::collections::BTreeSet<&str> = stage.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names.len(), 3, "the second run with the same inputs has a name of its own");
}

#[test]
fn on_change_or_expired_runs_again_after_the_time_of_a_finished_job() {
    let mut stage = Stage::default();
    let at_revision = |revision: &str| again("a", revision, RunPolicy::OnChangeOrExpired);
    stage.deploy(&at_revision("1"));
    assert!(matches!(skip(stage.deploy(&at_revision("2"))), Skip::NotExpired { run: 1, .. }));
    stage.now += 3600;
    assert_eq!(stage.deploy(&at_revision("1")), Verdict::Succeeded { run: 1, attempts: 1 }, "the same application");
    assert_eq!(stage.deploy(&at_revision("3")), Verdict::Succeeded { run: 2, attempts: 1 });
}

#[test]
fn always_runs_at_each_application_and_once_only_once() {
    let mut stage = Stage::default();
    for revision in ["1", "1", "2"] {
        stage.deploy(&again("a", revision, RunPolicy::Always));
    }
    assert_eq!(stage.started.len(), 2);
    let mut stage = Stage::default();
    for inputs in ["a", "b"] {
        stage.deploy(&again(inputs, inputs, RunPolicy::Once));
    }
    assert_eq!(stage.started.len(), 1);
}

#[test]
fn a_new_nonce_is_one_more_run() {
    let mut stage = Stage::default();
    stage.deploy(&spec("a"));
    assert_eq!(stage.deploy(&forced("a", "x")), Verdict::Succeeded { run: 2, attempts: 1 });
    assert_eq!(stage.deploy(&forced("a", "x")), Verdict::Succeeded { run: 2, attempts: 1 });
    let later = Spec { revision: "later".to_owned(), ..forced("a", "x") };
    assert_eq!(skip(stage.deploy(&later)), Skip::AlreadySucceeded { run: 2 });
    assert_eq!(stage.started.len(), 2);
}

#[test]
fn a_request_for_one_more_run_needs_no_new_application() {
    let mut stage = Stage::default();
    stage.deploy(&spec("a"));
    let asked = Spec { nonce: "x".to_owned(), ..spec("a") };
    for _ in 0..2 {
        assert_eq!(stage.deploy(&asked), Verdict::Succeeded { run: 2, attempts: 1 });
    }
    assert_eq!(stage.deploy(&spec("a")), Verdict::Succeeded { run: 2, attempts: 1 }, "it does not ask");
    assert_eq!(stage.started.len(), 2);
}

#[test]
fn an_older_version_after_a_newer_success_is_satisfied() {
    let mut stage = Stage::default();
    stage.deploy(&versioned("1.3.0"));
    stage.deploy(&versioned("1.4.0"));
    let newest = "1.4.0".parse().unwrap();
    assert_eq!(skip(stage.deploy(&versioned("1.3.1"))), Skip::NewerAlreadyApplied { newest });
    assert_eq!(
        skip(stage.deploy(&Spec { revision: "back".to_owned(), ..versioned("1.3.0") })),
        Skip::AlreadySucceeded { run: 1 }
    );
    let always = Spec { run: RunPolicy::Always, ..versioned("1.2.0") };
    assert_eq!(stage.deploy(&always), Verdict::Succeeded { run: 3, attempts: 1 }, "always means always");
    let mended =
        Spec { revision: "mended".to_owned(), fingerprints: spec("mended").fingerprints, ..versioned("1.4.0") };
    assert_eq!(stage.deploy(&mended), Verdict::Succeeded { run: 4, attempts: 1 }, "the same version is not older");
}

#[test]
fn a_skipped_job_says_why() {
    let newest = "1.4.0".parse().unwrap();
    for (skip, text) in [
        (Skip::AlreadySucceeded { run: 3 }, "already succeeded in run 3"),
        (Skip::Unchanged { run: 3 }, "unchanged since run 3"),
        (Skip::NotExpired { run: 3, until: at(60) }, "succeeded in run 3, which counts until 1970-01-01T00:01:00Z"),
        (Skip::NewerAlreadyApplied { newest }, "NewerAlreadyApplied: 1.4.0 has succeeded"),
        (Skip::NotNeeded("schema is 14".to_owned()), "not needed: schema is 14"),
        (Skip::NothingActive, "nothing was going on"),
    ] {
        assert_eq!(skip.to_string(), text);
    }
}

#[test]
fn a_job_that_is_not_needed_leaves_no_trace() {
    let mut stage = Stage { needed: Some(Needed::No("schema is 14".to_owned())), ..Stage::default() };
    assert_eq!(stage.play(&spec("a")), Some(Verdict::Skipped(Skip::NotNeeded("schema is 14".to_owned()))));
    assert_eq!(stage.ledger, Ledger::default());
}

#[test]
fn failed_attempts_are_made_again_after_a_while_as_new_jobs() {
    let mut stage = Stage::default();
    let spec = Spec { retries: Retries { limit: 2, backoff: Duration::from_secs(10) }, ..spec("a") };
    assert_eq!(stage.play(&spec), None);
    stage.finish(false);
    stage.done();
    assert_eq!(stage.play(&spec), None);
    assert_eq!(stage.done(), "readlog, record the intent of 1.2, wait for the next attempt");
    let second = stage.ledger.active().unwrap();
    assert_eq!(second.job, spec.job_name(&second.fingerprint, "#1", 2));
    stage.now += 10;
    assert_eq!(stage.play(&spec), None);
    stage.finish(true);
    assert_eq!(stage.play(&spec), Some(Verdict::Succeeded { run: 1, attempts: 2 }));
    assert_eq!(stage.started.len(), 2);
    let attempts: Vec<_> = stage.ledger.runs().map(|run| (run.run, run.attempt, run.outcome, run.is_final)).collect();
    assert_eq!(attempts, [(1, 2, Outcome::Succeeded, true), (1, 1, Outcome::Failed, false)]);
    assert!(stage.jobs.iter().all(|job| job.expires), "both Jobs expire");
}

#[test]
fn after_the_last_attempt_a_run_has_failed_until_it_is_applied_again() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.finish(false);
    let failed = Verdict::Failed { run: Some(1), attempts: 1, reason: "exit code 3".to_owned() };
    assert_eq!(stage.play(&spec("a")), Some(failed.clone()));
    assert_eq!(stage.play(&spec("a")), Some(failed), "the same application does not try again");
    assert_eq!(
        stage.deploy(&again("a", "2", RunPolicy::OncePerFingerprint)),
        Verdict::Succeeded { run: 2, attempts: 1 }
    );
}

#[test]
fn a_run_that_was_interrupted_goes_on_from_every_point() {
    let all = 9;
    for crash_after in 0..all {
        let mut stage = Stage::default();
        for _ in 0..crash_after {
            stage.step(&spec("a"));
            if stage.history.last().is_some_and(|step| step.starts_with("wait")) {
                stage.finish(true);
            }
        }
        let verdict = stage.deploy(&Spec { revision: "2".to_owned(), ..spec("a") });
        let fine =
            matches!(verdict, Verdict::Succeeded { run: 1, .. } | Verdict::Skipped(Skip::AlreadySucceeded { run: 1 }));
        assert!(fine, "after {crash_after}: {verdict:?}");
        assert_eq!(stage.started.len(), 1, "after {crash_after}: {:?}", stage.history);
        assert!(stage.jobs.iter().all(|job| job.expires), "after {crash_after}");
    }
}

#[test]
fn a_job_that_somebody_deleted_is_unknown_until_somebody_looks() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.jobs.clear();
    assert_eq!(stage.play(&spec("a")), Some(Verdict::Unknown { run: 1 }));
    assert_eq!(stage.last_run().log_unavailable.as_deref(), Some("there is no pod to read it from"));
    assert_eq!(stage.deploy(&again("a", "2", RunPolicy::OnChange)), Verdict::Unknown { run: 1 });
    assert_eq!(stage.deploy(&forced("a", "looked")), Verdict::Succeeded { run: 2, attempts: 1 });
    assert_eq!(skip(stage.deploy(&again("a", "3", RunPolicy::OncePerFingerprint))), Skip::AlreadySucceeded { run: 2 });
}

#[test]
fn an_unknown_run_is_made_again_where_that_is_the_policy() {
    let mut stage = Stage::default();
    let spec = Spec { on_unknown: OnUnknown::RunAgain, ..spec("a") };
    stage.play(&spec);
    stage.jobs.clear();
    assert_eq!(stage.deploy(&spec), Verdict::Succeeded { run: 2, attempts: 1 });
}

#[test]
fn a_job_that_was_never_recorded_is_made_again_without_running_twice() {
    let mut stage = Stage::default();
    for _ in 0..3 {
        stage.step(&spec("a"));
    }
    assert_eq!(stage.done(), "ask, record the intent of 1.1, create");
    stage.jobs.clear();
    assert_eq!(stage.deploy(&spec("a")), Verdict::Succeeded { run: 1, attempts: 1 });
    assert_eq!(stage.started.len(), 1);
}

#[test]
fn a_job_that_took_the_name_of_another_is_not_taken_for_it() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.jobs[0].uid = "foreign".to_owned();
    stage.jobs[0].life =
        Life::Finished(Finish { succeeded: true, reason: String::new(), exit_code: None, started_at: None, at: at(5) });
    assert_eq!(stage.play(&spec("a")), Some(Verdict::Unknown { run: 1 }));
}

#[test]
fn a_pod_tells_how_it_ended_even_if_its_job_is_gone() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.jobs.clear();
    let finish = Finish { succeeded: true, reason: String::new(), exit_code: Some(0), started_at: None, at: at(7) };
    let observed = Observed { pod_finish: Some(finish), log: Some(Err("gone".to_owned())), ..stage.observed() };
    let next = step(&spec("a"), &stage.ledger, &observed, at(8));
    stage.carry_out(&spec("a"), &next);
    let run = stage.last_run();
    assert_eq!(
        (run.outcome, run.finished_at, run.log_unavailable.as_deref()),
        (Outcome::Succeeded, at(7), Some("gone"))
    );
}

#[test]
fn a_run_in_the_way_is_waited_for() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.done();
    assert_eq!(stage.play(&spec("b")), None);
    assert_eq!(stage.done(), "wait for its Job");
    stage.finish(true);
    assert_eq!(stage.deploy(&spec("b")), Verdict::Succeeded { run: 2, attempts: 1 });
    assert_eq!(stage.started.len(), 2);
    assert_eq!(stage.ledger.done.len(), 2, "both are proven");
}

#[test]
fn a_run_in_the_way_that_fails_is_not_made_again() {
    let mut stage = Stage::default();
    let with_retries = |inputs| Spec { retries: Retries { limit: 5, backoff: Duration::ZERO }, ..spec(inputs) };
    stage.play(&with_retries("a"));
    stage.finish(false);
    assert_eq!(stage.deploy(&with_retries("b")), Verdict::Succeeded { run: 2, attempts: 1 });
}

#[test]
fn a_run_in_the_way_is_replaced() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.done();
    let replace = Spec { on_supersede: OnSupersede::Replace, ..spec("b") };
    stage.play(&replace);
    assert_eq!(
        stage.done(),
        "record the stop, delete, record the end, record the intent of 2.1, create, record the uid, release, \
         wait for its Job"
    );
    assert_eq!(stage.last_run().outcome, Outcome::Superseded);
    assert_eq!(stage.deploy(&replace), Verdict::Succeeded { run: 2, attempts: 1 });
}

#[test]
fn a_run_in_the_way_fails_the_new_one() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    let verdict = stage.play(&Spec { on_supersede: OnSupersede::Fail, ..spec("b") });
    let Some(Verdict::Failed { run: None, reason, .. }) = verdict else { panic!("{verdict:?}") };
    assert!(reason.contains("run 1 with other inputs is still running") && reason.contains("Replace"), "{reason}");
    assert!(stage.jobs[0].is_running(), "it continues");
}

#[test]
fn what_never_started_gives_way_at_once() {
    for steps in 2..=4 {
        let mut stage = Stage::default();
        for _ in 0..steps {
            stage.step(&spec("a"));
        }
        let verdict = stage.deploy(&Spec { on_supersede: OnSupersede::Fail, ..spec("b") });
        assert_eq!(verdict, Verdict::Succeeded { run: 2, attempts: 1 }, "after {steps}");
        assert_eq!(stage.started.len(), 1, "after {steps}");
    }
}

#[test]
fn what_gave_way_runs_when_it_is_applied_again() {
    let mut stage = Stage::default();
    stage.step(&spec("a"));
    stage.step(&spec("a"));
    stage.needed = Some(Needed::No("schema is 14".to_owned()));
    stage.play(&spec("b"));
    assert_eq!(stage.last_run().outcome, Outcome::Superseded);
    assert_eq!(stage.deploy(&spec("a")), Verdict::Succeeded { run: 2, attempts: 1 });
}

fn trouble(since: i64, is_scheduling: bool) -> Trouble {
    let reason = if is_scheduling { "Unschedulable" } else { "ImagePullBackOff" };
    Trouble {
        reason: reason.to_owned(),
        message: "words".to_owned(),
        since: at(since),
        is_scheduling,
        seen: at(100_000),
        is_lasting: true,
    }
}

#[test]
fn trouble_is_given_up_after_a_while_and_not_at_the_deadline() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.trouble = Some(trouble(0, false));
    stage.now = 59;
    assert_eq!(stage.play(&spec("a")), None);
    stage.now = 60;
    stage.trouble = Some(trouble(0, false));
    stage.done();
    let verdict = stage.play(&spec("a"));
    let reason = "ImagePullBackOff: words".to_owned();
    assert_eq!(verdict, Some(Verdict::Failed { run: Some(1), attempts: 1, reason }));
    assert_eq!(stage.done(), "record the stop, delete, record the end, done");
}

#[test]
fn a_pod_without_a_node_is_given_more_time() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.trouble = Some(trouble(0, true));
    stage.now = 299;
    assert_eq!(stage.play(&spec("a")), None);
    stage.now = 300;
    assert!(matches!(stage.play(&spec("a")), Some(Verdict::Failed { .. })));
}

#[test]
fn trouble_that_goes_away_is_forgotten_and_success_wins_over_a_stop() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.trouble = Some(trouble(0, false));
    stage.now = 60;
    stage.step(&spec("a"));
    assert_eq!(stage.done().split(", ").last(), Some("record the stop"));
    stage.finish(true);
    assert_eq!(stage.play(&spec("a")), Some(Verdict::Succeeded { run: 1, attempts: 1 }));
}

#[test]
fn a_silent_pod_is_inspected() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.done();
    stage.silent_since = Some(stage.now);
    assert_eq!(stage.play(&spec("a")), None);
    stage.now += 10;
    stage.play(&spec("a"));
    assert_eq!(stage.done(), "wait for its Job, inspect, wait for its Job");
}

#[test]
fn an_attempt_that_outlives_its_deadline_is_stopped_from_here() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.now += 11 * 60 - 1;
    assert_eq!(stage.play(&spec("a")), None, "the cluster ends it at its deadline, and is given a minute for it");
    stage.now += 1;
    let verdict = stage.play(&spec("a"));
    assert!(
        matches!(&verdict, Some(Verdict::Failed { reason, .. }) if reason.starts_with("DeadlineExceeded")),
        "{verdict:?}"
    );
    assert!(stage.jobs.is_empty());
}

#[test]
fn a_refused_job_has_failed_with_what_the_cluster_said() {
    let mut stage = Stage::default();
    stage.step(&spec("a"));
    stage.step(&spec("a"));
    stage.refusal = Some("forbidden".to_owned());
    assert_eq!(
        stage.play(&spec("a")),
        Some(Verdict::Failed { run: Some(1), attempts: 1, reason: "forbidden".to_owned() })
    );
}

#[test]
fn a_cancelled_run_is_left_running_and_taken_up_again() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.is_cancelled = true;
    stage.done();
    assert_eq!(stage.play(&spec("a")), Some(Verdict::Left { run: 1 }));
    assert_eq!(stage.done(), "record that it is left, done");
    stage.is_cancelled = false;
    let next = Spec { revision: "2".to_owned(), ..spec("a") };
    assert_eq!(skip(stage.deploy(&next)), Skip::AlreadySucceeded { run: 1 }, "the deploy before started it");
    assert_eq!(stage.started.len(), 1);
}

#[test]
fn a_run_belongs_to_the_deploy_that_started_it() {
    let mut stage = Stage::default();
    let always = |revision: &str| again("a", revision, RunPolicy::Always);
    stage.play(&always("1"));
    assert_eq!(stage.deploy(&always("2")), Verdict::Succeeded { run: 2, attempts: 1 });
    assert_eq!(stage.started.len(), 2);
    assert_eq!(stage.deploy(&always("2")), Verdict::Succeeded { run: 2, attempts: 1 });
    assert_eq!(stage.started.len(), 2);
}

#[test]
fn a_cancellation_ends_every_wait() {
    let other = spec("b");
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.is_cancelled = true;
    assert_eq!(stage.play(&other), Some(Verdict::Cancelled { run: None }), "waiting for another run");
    stage.jobs[0].life = Life::Going { since: at(0) };
    assert_eq!(stage.play(&other), Some(Verdict::Cancelled { run: None }), "waiting for another run's Job to go");
    assert_eq!(stage.play(&spec("a")), Some(Verdict::Left { run: 1 }), "waiting for its own Job to go");
}

#[test]
fn a_job_that_is_not_removed_fails_the_run_after_ten_minutes() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.jobs[0].life = Life::Going { since: at(0) };
    for wanted in [spec("a"), spec("b")] {
        stage.now = 599;
        assert_eq!(stage.play(&wanted), None);
        stage.now = 600;
        let verdict = stage.play(&wanted);
        let Some(Verdict::Failed { reason, .. }) = verdict else { panic!("{verdict:?}") };
        assert!(reason.contains("has been terminating for more than 10 minutes"), "{reason}");
    }
}

#[test]
fn the_deadline_counts_from_the_start_of_the_job() {
    let mut stage = Stage::default();
    for _ in 0..4 {
        stage.step(&spec("a"));
    }
    assert_eq!(stage.jobs[0].life, Life::Held, "created, and its process died");
    stage.now = 7200;
    stage.done();
    assert_eq!(stage.play(&spec("a")), None);
    assert_eq!(stage.done(), "release, wait for its Job", "two hours later it gets its whole time");
    stage.now += 659;
    assert_eq!(stage.play(&spec("a")), None);
    stage.now += 1;
    stage.play(&spec("a"));
    assert!(stage.last_run().reason.starts_with("DeadlineExceeded"), "{}", stage.last_run().reason);
    assert_eq!(stage.last_run().attempt, 1);
}

#[test]
fn a_startup_failure_counts_only_if_it_is_seen_after_its_time_limit() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    // Reported until 32 s, and not repeated since: it may have been mended.
    stage.trouble = Some(Trouble { seen: at(32), ..trouble(0, false) });
    stage.now = 90;
    assert_eq!(stage.play(&spec("a")), None);
    stage.trouble = Some(Trouble { seen: at(64), ..trouble(0, false) });
    assert!(matches!(stage.play(&spec("a")), Some(Verdict::Failed { .. })));
}

#[test]
fn one_warning_fails_no_pod() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.trouble = Some(Trouble { is_lasting: false, ..trouble(0, false) });
    stage.now = 3 * 60;
    assert_eq!(stage.play(&spec("a")), None);
    assert!(stage.jobs[0].is_running());
}

#[test]
fn a_cancelled_run_is_stopped_where_that_is_the_policy() {
    let mut stage = Stage::default();
    let spec = Spec { on_cancel: OnCancel::Stop, ..spec("a") };
    stage.play(&spec);
    stage.is_cancelled = true;
    assert_eq!(stage.play(&spec), Some(Verdict::Cancelled { run: Some(1) }));
    assert!(stage.jobs.is_empty());
    stage.is_cancelled = false;
    assert_eq!(stage.deploy(&Spec { revision: "2".to_owned(), ..spec }), Verdict::Succeeded { run: 2, attempts: 1 });
}

#[test]
fn a_cancelled_deploy_waits_a_minute_for_the_run_that_it_stops() {
    let spec = Spec { on_cancel: OnCancel::Stop, ..spec("a") };
    let mut stage = Stage::default();
    stage.play(&spec);
    stage.is_cancelled = true;
    stage.step(&spec);
    stage.jobs[0].life = Life::Going { since: at(0) };
    stage.now = 59;
    assert_eq!(stage.play(&spec), None, "its pod has a grace period");
    let mut slow = stage.clone();
    slow.now = 60;
    assert_eq!(slow.play(&spec), Some(Verdict::Left { run: 1 }), "the next deploy records the end");
    stage.jobs.clear();
    assert_eq!(stage.play(&spec), Some(Verdict::Cancelled { run: Some(1) }));
    assert_eq!(stage.last_run().outcome, Outcome::Cancelled);
}

#[test]
fn nothing_starts_after_a_cancellation() {
    for steps in 0..5 {
        let mut stage = Stage::default();
        for _ in 0..steps {
            stage.step(&spec("a"));
        }
        let started = stage.started.len();
        stage.is_cancelled = true;
        let verdict = stage.play(&spec("a"));
        assert!(matches!(verdict, Some(Verdict::Cancelled { .. } | Verdict::Left { .. })), "{steps}: {verdict:?}");
        assert_eq!(stage.started.len(), started, "{steps}");
    }
}

#[test]
fn a_held_job_that_is_not_recorded_is_put_away_before_the_ledger_says_so() {
    let interrupted = || {
        let mut stage = Stage::default();
        for _ in 0..3 {
            stage.step(&spec("a"));
        }
        assert_eq!(stage.done(), "ask, record the intent of 1.1, create");
        stage
    };
    let mut stage = interrupted();
    stage.play(&spec("b"));
    let done = stage.done();
    assert!(done.starts_with("delete, record the end, "), "{done}");
    let cancelled = |on_cancel| {
        let mut stage = Stage { is_cancelled: true, ..interrupted() };
        stage.play(&Spec { on_cancel, ..spec("a") });
        stage.done()
    };
    assert_eq!(cancelled(OnCancel::Stop), "delete, record the end, done");
    assert_eq!(cancelled(OnCancel::Leave), "record the uid, record that it is left, done");
}

#[test]
fn what_was_cancelled_before_it_began_leaves_no_trace() {
    let mut stage = Stage { is_cancelled: true, ..Stage::default() };
    assert_eq!(stage.step(&spec("a")), Some(Verdict::Cancelled { run: None }));
    assert_eq!(stage.ledger, Ledger::default());
}

#[test]
fn settling_writes_down_what_has_ended_and_starts_nothing() {
    let settle = Spec { effort: Effort::Settle, ..spec("b") };
    let mut stage = Stage::default();
    assert_eq!(stage.play(&settle), Some(Verdict::Skipped(Skip::NothingActive)));
    stage.play(&spec("a"));
    assert_eq!(stage.play(&settle), Some(Verdict::Left { run: 1 }));
    stage.finish(true);
    assert_eq!(stage.play(&settle), Some(Verdict::Skipped(Skip::NothingActive)));
    assert_eq!(stage.last_run().outcome, Outcome::Succeeded);
    assert_eq!(skip(stage.deploy(&Spec { revision: "3".to_owned(), ..spec("a") })), Skip::AlreadySucceeded { run: 1 });
}

#[test]
fn settling_lets_no_held_job_go() {
    let mut stage = Stage::default();
    for _ in 0..4 {
        stage.step(&spec("a"));
    }
    assert_eq!(stage.play(&Spec { effort: Effort::Settle, ..spec("a") }), Some(Verdict::Left { run: 1 }));
    assert!(stage.started.is_empty());
}

#[test]
fn a_held_job_that_no_ledger_knows_is_put_away() {
    let stray = FakeJob {
        name: "shop-migrate-other".to_owned(),
        uid: "u".to_owned(),
        life: Life::Held,
        fingerprint: String::new(),
        expires: false,
    };
    let mut stage = Stage { jobs: vec![stray], ..Stage::default() };
    stage.deploy(&spec("a"));
    assert!(stage.done().starts_with("delete, ask"), "a runner that had lost its lease made it");
}

#[test]
fn a_running_job_that_no_ledger_knows_is_in_the_way() {
    let stray = |name: &str| FakeJob {
        name: name.to_owned(),
        uid: "u".to_owned(),
        life: Life::Running { since: None },
        fingerprint: String::new(),
        expires: false,
    };
    let lost = || Stage { jobs: vec![stray("shop-migrate-other")], ..Stage::default() };
    let mut stage = lost();
    assert_eq!(stage.play(&spec("a")), None);
    assert_eq!(stage.done(), "ask, wait for what is left of an earlier run");
    let mut stage = lost();
    stage.play(&Spec { on_supersede: OnSupersede::Replace, ..spec("a") });
    assert!(stage.done().starts_with("ask, delete, record the intent"));
    let mut stage = lost();
    let verdict = stage.play(&Spec { on_supersede: OnSupersede::Fail, ..spec("a") });
    assert!(matches!(verdict, Some(Verdict::Failed { run: None, .. })), "{verdict:?}");
}

#[test]
fn a_lost_ledger_finds_the_job_that_did_the_same_work() {
    let mut stage = Stage::default();
    stage.play(&spec("a"));
    stage.ledger = Ledger::default();
    stage.needed = None;
    assert_eq!(stage.play(&spec("a")), None);
    stage.finish(true);
    assert_eq!(stage.play(&spec("a")), Some(Verdict::Succeeded { run: 1, attempts: 1 }));
    assert_eq!(stage.started.len(), 1);
}

#[test]
fn a_lost_ledger_takes_no_job_of_an_earlier_deploy_for_one_that_runs_with_every_deploy() {
    let always = |revision: &str| Spec { run: RunPolicy::Always, revision: revision.to_owned(), ..spec("a") };
    let mut stage = Stage::default();
    stage.play(&always("1"));
    stage.finish(true);
    assert_eq!(stage.play(&always("1")), Some(Verdict::Succeeded { run: 1, attempts: 1 }));
    stage.ledger = Ledger::default();
    stage.needed = None;
    assert_eq!(stage.play(&always("2")), None, "it runs");
    stage.finish(true);
    assert_eq!(stage.play(&always("2")), Some(Verdict::Succeeded { run: 1, attempts: 1 }));
    assert_eq!(stage.started.len(), 2);
}

#[test]
fn a_deploy_that_resumes_runs_what_was_cancelled() {
    let mut stage = Stage::default();
    let stopping = Spec { on_cancel: OnCancel::Stop, ..spec("a") };
    stage.play(&stopping);
    stage.is_cancelled = true;
    let cancelled = stage.play(&stopping);
    assert!(matches!(cancelled, Some(Verdict::Cancelled { run: Some(1) })), "{cancelled:?}");
    stage.is_cancelled = false;
    assert_eq!(stage.play(&stopping), None, "it runs again, with the same revision");
}

#[test]
fn remains_of_a_deleted_job_are_waited_for() {
    let stage = Stage { needed: Some(Needed::Yes), ..Stage::default() };
    let observed = Observed { remains: Some(Remains { pod: "p".to_owned(), since: None }), ..stage.observed() };
    assert!(matches!(step(&spec("a"), &stage.ledger, &observed, at(0)), Step::Wait(_)));
}

#[test]
fn a_full_ledger_refuses_and_says_what_to_do() {
    let mut stage = Stage { needed: Some(Needed::Yes), ..Stage::default() };
    let done = |number: u64| crate::ledger::Done {
        fingerprint: crate::fingerprint::Fingerprint::from(format!("{number:032x}")),
        version: None,
        outcome: Outcome::Succeeded,
        run: number,
    };
    stage.ledger.done = (0..2300).map(done).collect();
    let verdict = stage.play(&spec("a"));
    assert!(
        matches!(&verdict, Some(Verdict::Failed { reason, .. }) if reason.contains("ledger is full")),
        "{verdict:?}"
    );
}

#[test]
fn a_job_in_this_process_is_run_again_if_the_process_ended() {
    let task = |revision: &str| Spec { durability: Durability::Process, revision: revision.to_owned(), ..spec("a") };
    let mut stage = Stage::default();
    stage.step(&task("1"));
    stage.step(&task("1"));
    assert_eq!(stage.ledger.active().unwrap().job, "");
    let next = step(&task("2"), &stage.ledger, &stage.observed(), at(0));
    assert_eq!(next, Step::Create);
    let running = Observed {
        attempt: Seen::Present { uid: String::new(), life: Life::Running { since: None } },
        ..Observed::default()
    };
    assert!(matches!(step(&task("2"), &stage.ledger, &running, at(0)), Step::Wait(_)));
    let settle = Spec { effort: Effort::Settle, ..task("3") };
    stage.play(&settle);
    assert_eq!(stage.last_run().reason, "the process that ran it ended");
}

#[test]
fn a_job_in_this_process_that_fails_after_a_cancellation_is_cancelled() {
    let failure = Finish { succeeded: false, reason: "no".to_owned(), exit_code: None, started_at: None, at: at(5) };
    let outcome_of = |durability, is_cancelled| {
        let spec = Spec { durability, ..spec("a") };
        let mut stage = Stage::default();
        stage.step(&spec);
        stage.step(&spec);
        let observed = Observed {
            attempt: Seen::Present { uid: String::new(), life: Life::Finished(failure.clone()) },
            log: Some(Ok(String::new())),
            is_cancelled,
            ..Observed::default()
        };
        let next = step(&spec, &stage.ledger, &observed, at(5));
        stage.carry_out(&spec, &next);
        stage.last_run().outcome
    };
    assert_eq!(outcome_of(Durability::Process, true), Outcome::Cancelled);
    assert_eq!(outcome_of(Durability::Process, false), Outcome::Failed);
    assert_eq!(outcome_of(Durability::Cluster, true), Outcome::Failed, "a pod knows nothing of cancellations");
}
