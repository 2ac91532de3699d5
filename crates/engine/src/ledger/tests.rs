use super::*;
use crate::fingerprint::{Fingerprint, Inputs};
use serde_json::json;

fn fingerprints(inputs: &str) -> Fingerprints {
    Fingerprints::of(&Inputs { template: json!(inputs), ..Inputs::default() })
}

fn active(run: u64, inputs: &str) -> Active {
    Active {
        run,
        job: format!("job-{run}"),
        uid: Some("u".to_owned()),
        attempt: 1,
        fingerprint: fingerprints(inputs).newest().clone(),
        started_at: Timestamp::UNIX_EPOCH,
        version: Some("1.4.0".parse().unwrap()),
        revision: "r".to_owned(),
        nonce: String::new(),
        not_before: None,
        stopping: None,
        left_at: None,
    }
}

fn ending(outcome: Outcome, log: &str) -> Ending {
    Ending {
        outcome,
        reason: String::new(),
        exit_code: Some(0),
        started_at: Timestamp::UNIX_EPOCH,
        finished_at: Timestamp::from_second(60).unwrap(),
        never_started: false,
        log: Ok(log.to_owned()),
        next: None,
    }
}

fn run(ledger: &Ledger, inputs: &str, outcome: Outcome, log: &str, keep: &Keep) -> Ledger {
    let number = ledger.head.next;
    ledger.begin(active(number, inputs)).conclude(ending(outcome, log), keep)
}

#[test]
fn a_ledger_is_written_as_the_contract_says() {
    let ledger = run(&Ledger::default(), "a", Outcome::Succeeded, "log\n", &Keep::default());
    let data = ledger.encode();
    assert_eq!(data["head"], r#"{"format":2,"fence":null,"next":2,"handled":[],"active":null}"#);
    let fingerprint = fingerprints("a").newest().to_string();
    assert_eq!(data["done"], format!(r#"[["{fingerprint}","1.4.0","Succeeded",1]]"#));
    assert_eq!(data["logs"], r#"{"1":"log\n"}"#);
    let details: serde_json::Value = serde_json::from_str(&data["runs"]).unwrap();
    assert_eq!(details[0]["finishedAt"], "1970-01-01T00:01:00Z");
    assert_eq!(Ledger::decode(&data).unwrap(), ledger);
    let going = Ledger::default().begin(active(1, "a")).encode();
    let head: serde_json::Value = serde_json::from_str(&going["head"]).unwrap();
    for key in ["run", "job", "uid", "attempt", "fingerprint", "startedAt"] {
        assert!(!head["active"][key].is_null(), "{key}");
    }
}

#[test]
fn what_is_missing_or_old_is_read_and_what_is_newer_is_refused() {
    let of = |pairs: &[(&str, &str)]| {
        let data = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Ledger::decode(&data).map_err(|error| error.to_string())
    };
    assert_eq!(of(&[]).unwrap(), Ledger::default());
    let bare = of(&[("head", r#"{"format":1,"next":3}"#), ("done", r#"[["ab",null,"Succeeded",2]]"#)]).unwrap();
    assert_eq!((bare.head.next, bare.done[0].run, bare.active()), (3, 2, None));
    let first = of(&[("head", r#"{"format":1,"epoch":4,"next":3,"nonce":"asked","active":null}"#)]).unwrap();
    assert_eq!((first.head.fence.clone(), first.head.handled.clone()), (None, vec!["asked".to_owned()]));
    let newer = of(&[("head", r#"{"format":3,"somethingElse":true}"#)]).unwrap_err();
    assert_eq!(newer, "it has format 3, and this version of jobwright reads up to 2: use a newer one");
    assert_eq!(of(&[("head", "{")]).unwrap_err(), "its `head` cannot be parsed");
    assert_eq!(of(&[("runs", "7")]).unwrap_err(), "its `runs` cannot be parsed");
}

#[test]
fn details_and_logs_are_bounded_and_proofs_are_not() {
    let keep = Keep { runs: 3, ..Keep::default() };
    let mut ledger = Ledger::default();
    for number in 0..10 {
        ledger = run(&ledger, &number.to_string(), Outcome::Succeeded, "log", &keep);
    }
    assert_eq!((ledger.runs.len(), ledger.logs.len(), ledger.done.len()), (3, 3, 10));
    assert!(ledger.success_of(&fingerprints("0")).is_some());
    let big = "x".repeat(300 * 1024);
    for _ in 0..2 {
        ledger = run(&ledger, "big", Outcome::Failed, &big, &keep);
    }
    assert_eq!(ledger.logs.len(), 1, "the newest log stays");
    assert!(ledger.log(12, 1).is_some());
}

#[test]
fn proofs_do_not_pile_up_and_are_not_overwritten_by_failures() {
    let keep = Keep::default();
    let mut ledger = Ledger::default();
    for outcome in [Outcome::Succeeded, Outcome::Succeeded, Outcome::Failed, Outcome::Cancelled] {
        ledger = run(&ledger, "a", outcome, "", &keep);
    }
    let rows: Vec<(Outcome, u64)> = ledger.done.iter().map(|done| (done.outcome, done.run)).collect();
    assert_eq!(rows, [(Outcome::Succeeded, 2), (Outcome::Failed, 3)]);
    assert_eq!(ledger.success_of(&fingerprints("a")).unwrap().run, 2);
}

#[test]
fn an_unknown_end_holds_until_a_later_one_is_known() {
    let keep = Keep::default();
    let unknown = run(&Ledger::default(), "a", Outcome::Unknown, "", &keep);
    assert_eq!(unknown.unknown_of(&fingerprints("a")), Some(1));
    assert_eq!(unknown.unknown_of(&fingerprints("b")), None);
    for outcome in [Outcome::Succeeded, Outcome::Failed] {
        assert_eq!(run(&unknown, "a", outcome, "", &keep).unknown_of(&fingerprints("a")), None);
    }
    assert_eq!(run(&unknown, "b", Outcome::Succeeded, "", &keep).unknown_of(&fingerprints("a")), Some(1));
}

#[test]
fn the_logs_of_all_attempts_are_told_apart() {
    let ledger = Ledger::default().begin(active(7, "a"));
    let retry =
        Ending { next: Some((Timestamp::UNIX_EPOCH, "job-7-2".to_owned())), ..ending(Outcome::Failed, "first") };
    let ledger = ledger.conclude(retry, &Keep::default());
    assert_eq!(ledger.active().map(|active| (active.attempt, active.job.as_str())), Some((2, "job-7-2")));
    assert_eq!(ledger.done, []);
    let ledger = ledger.conclude(ending(Outcome::Succeeded, "second"), &Keep::default());
    assert_eq!((ledger.log(7, 1), ledger.log(7, 2)), (Some("first"), Some("second")));
    let _ = Fingerprint::from(String::new());
}

#[test]
fn what_was_tried_is_known_from_details_or_from_proofs() {
    let keep = Keep { runs: 1, ..Keep::default() };
    assert!(!Ledger::default().has_tried(&fingerprints("a")));
    let cancelled = run(&Ledger::default(), "a", Outcome::Cancelled, "", &keep);
    assert_eq!(cancelled.done, []);
    assert!(cancelled.has_tried(&fingerprints("a")) && !cancelled.has_tried(&fingerprints("b")));
    let proven = run(&run(&Ledger::default(), "a", Outcome::Succeeded, "", &keep), "b", Outcome::Cancelled, "", &keep);
    assert_eq!(proven.runs.len(), 1);
    assert!(proven.has_tried(&fingerprints("a")));
}

#[test]
fn jobs_in_a_process_had_no_pods() {
    let in_process = Ledger::default().begin(Active { job: String::new(), ..active(1, "a") });
    let in_cluster = Ledger::default().begin(active(1, "a"));
    let end = |ledger: &Ledger| ledger.conclude(ending(Outcome::Succeeded, ""), &Keep::default());
    assert!(!Ledger::default().had_pods() && !in_process.had_pods() && !end(&in_process).had_pods());
    assert!(in_cluster.had_pods() && end(&in_cluster).had_pods());
}

#[test]
fn a_ledger_is_full_when_the_end_of_another_run_may_not_fit() {
    let with = |length: usize| {
        let fingerprint = Fingerprint::from("f".repeat(length));
        let done = vec![Done { fingerprint, version: None, outcome: Outcome::Succeeded, run: 1 }];
        Ledger { done, ..Ledger::default() }
    };
    let room = DONE_LIMIT - 256 - format::size_of_done(&with(0).done);
    assert!(!with(room).is_full());
    assert!(with(room + 1).is_full());
    assert!(!with(100 * 1024).is_full(), "thousands of runs fit");
}

#[test]
fn logs_are_kept_up_to_their_limit() {
    let keep = Keep::default();
    let half = "x".repeat(256 * 1024);
    let ledger = run(&Ledger::default(), "a", Outcome::Failed, &half, &keep);
    let ledger = run(&ledger, "b", Outcome::Failed, &half, &keep);
    assert_eq!(ledger.logs.len(), 2);
    assert_eq!(run(&ledger, "c", Outcome::Failed, "x", &keep).logs.len(), 2, "the oldest goes");
}

#[test]
fn a_further_attempt_starts_over() {
    let stopping = Stopping { outcome: Outcome::Failed, reason: "it is late".to_owned() };
    let stopped = Active { stopping: Some(stopping), ..active(1, "a") };
    let at = Timestamp::from_second(90).unwrap();
    let ending = Ending { next: Some((at, "job-1-2".to_owned())), ..ending(Outcome::Failed, "") };
    let ledger = Ledger::default().begin(stopped).conclude(ending, &Keep::default());
    let active = ledger.active().unwrap();
    assert_eq!((&active.stopping, active.started_at, active.not_before, &active.uid), (&None, at, Some(at), &None));
}

#[test]
fn a_log_of_control_characters_counts_as_it_is_written() {
    let noise = "\u{1}".repeat(90 * 1024);
    let mut ledger = Ledger::default();
    for number in 0..5 {
        ledger = run(&ledger, &number.to_string(), Outcome::Succeeded, &noise, &Keep::default());
    }
    let size: usize = ledger.encode().values().map(String::len).sum();
    assert!(size < 1024 * 1024, "{size}");
}

#[test]
fn versions_with_the_same_inputs_take_one_row_with_the_newest_version() {
    let mut ledger = Ledger::default();
    for version in ["1.0.0", "1.9.0", "1.10.0", "1.2.0"] {
        let active = Active { version: Some(version.parse().unwrap()), ..active(ledger.head.next, "a") };
        ledger = ledger.begin(active).conclude(ending(Outcome::Succeeded, ""), &Keep::default());
    }
    assert_eq!((ledger.done.len(), ledger.done[0].run), (1, 4));
    assert_eq!(ledger.newest_version().unwrap().as_str(), "1.10.0");
}

#[test]
fn a_full_ledger_forgets_the_oldest_inputs_and_neither_the_newest_version_nor_the_last_success() {
    let mut ledger = Ledger::default();
    let newest: Version = "9.0.0".parse().unwrap();
    let first = Active { version: Some(newest.clone()), ..active(1, "newest") };
    ledger = ledger.begin(first).conclude(ending(Outcome::Succeeded, ""), &Keep::default());
    for run in 2..300 {
        let fingerprint = Fingerprint::from(format!("{run}-{}", "f".repeat(1000)));
        ledger.prove(Done { fingerprint, version: None, outcome: Outcome::Succeeded, run });
    }
    assert!(format::size_of_done(&ledger.done) <= DONE_LIMIT);
    assert_eq!((ledger.newest_version(), ledger.last_success().unwrap().run), (Some(&newest), 299));
    assert!(ledger.success_of(&fingerprints("newest")).is_some());
}

#[test]
fn the_last_success_is_found_behind_failures() {
    let keep = Keep::default();
    let failed = run(&Ledger::default(), "a", Outcome::Failed, "", &keep);
    assert_eq!(failed.last_success_at(), None);
    let succeeded = run(&failed, "a", Outcome::Succeeded, "", &keep);
    let failed = run(&succeeded, "b", Outcome::Failed, "", &keep);
    assert_eq!(failed.last_success_at(), Some(Timestamp::from_second(60).unwrap()));
}

#[test]
fn an_outcome_is_said_as_it_is_written() {
    for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::Unknown, Outcome::Superseded, Outcome::Cancelled] {
        let written = serde_json::to_value(outcome).unwrap();
        assert_eq!(written.as_str().unwrap().to_lowercase(), outcome.to_string());
    }
}
