//! What holds whatever happens: crashes, strangers, retries and policies in any order.

use super::*;
use proptest::prelude::*;

/// Something that happens to a job.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Step,
    Crash,
    Finish(bool),
    StrangerDeletes,
    TimePasses,
    InputsChange,
    AppliedAgain,
    Cancel,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        12 => Just(Happening::Step),
        1 => Just(Happening::Crash),
        2 => any::<bool>().prop_map(Happening::Finish),
        1 => Just(Happening::StrangerDeletes),
        1 => Just(Happening::TimePasses),
        1 => Just(Happening::InputsChange),
        1 => Just(Happening::AppliedAgain),
        1 => Just(Happening::Cancel),
    ];
    proptest::collection::vec(one, 1..120)
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let run = prop_oneof![
        Just(RunPolicy::OncePerFingerprint),
        Just(RunPolicy::OnChange),
        Just(RunPolicy::OnChangeOrExpired),
        Just(RunPolicy::Once),
        Just(RunPolicy::Always)
    ];
    let supersede = prop_oneof![Just(OnSupersede::Wait), Just(OnSupersede::Replace), Just(OnSupersede::Fail)];
    let unknown = prop_oneof![Just(OnUnknown::Fail), Just(OnUnknown::RunAgain)];
    let cancel = prop_oneof![Just(OnCancel::Leave), Just(OnCancel::Stop)];
    (run, supersede, unknown, cancel, 0..3_u32).prop_map(|(run, on_supersede, on_unknown, on_cancel, limit)| Spec {
        run,
        on_supersede,
        on_unknown,
        on_cancel,
        retries: Retries { limit, backoff: Duration::from_secs(10) },
        ..spec("0")
    })
}

proptest! {
    #[test]
    fn runs_are_never_doubled_and_never_lost(mut spec in any_spec(), happenings in happenings()) {
        let mut stage = Stage::default();
        let mut inputs = 0;
        let mut revision = 1;
        let mut succeeded: Vec<String> = Vec::new();
        for happening in happenings {
            match happening {
                Happening::Step => {
                    let running_before = stage.jobs.iter().filter(|job| job.is_running()).count();
                    let next = step(&spec, &stage.ledger, &stage.observed(), at(stage.now));
                    if let Step::Release { uid, .. } = &next {
                        let recorded = stage.ledger.active().and_then(|active| active.uid.clone());
                        prop_assert_eq!(recorded.as_ref(), Some(uid), "nothing starts before its uid is recorded");
                        prop_assert_eq!(running_before, 0, "one at a time");
                        let wanted = spec.fingerprints.newest().to_string();
                        if spec.run == RunPolicy::OncePerFingerprint {
                            prop_assert!(!succeeded.contains(&wanted), "a recorded success is never run again");
                        }
                    }
                    if let Step::Record(ledger) = &next {
                        let attempts = |ledger: &Ledger| ledger.runs.len() + usize::from(ledger.active().is_some());
                        prop_assert!(attempts(ledger) > 0);
                        prop_assert!(ledger.head.next >= stage.ledger.head.next);
                        for done in &stage.ledger.done {
                            let kept = |other: &crate::ledger::Done| {
                                other.fingerprint == done.fingerprint && other.outcome == done.outcome && other.run >= done.run
                            };
                            prop_assert!(ledger.done.iter().any(kept), "what is proven stays proven");
                        }
                    }
                    stage.carry_out(&spec, &next);
                    succeeded = stage.ledger.done.iter().filter(|done| done.outcome == Outcome::Succeeded)
                        .map(|done| done.fingerprint.to_string()).collect();
                }
                Happening::Crash => {
                    stage.needed = None;
                    stage.log = None;
                    stage.trouble = None;
                    stage.is_cancelled = false;
                }
                Happening::Finish(well) => stage.finish(well),
                Happening::StrangerDeletes => stage.jobs.clear(),
                Happening::TimePasses => stage.now += 3600,
                Happening::InputsChange => {
                    inputs += 1;
                    let template = serde_json::json!((inputs % 3).to_string());
                    spec.fingerprints = Fingerprints::of(&Inputs { template, ..Inputs::default() });
                    stage.needed = None;
                }
                Happening::AppliedAgain => {
                    revision += 1;
                    spec.revision = revision.to_string();
                    stage.needed = None;
                }
                Happening::Cancel => stage.is_cancelled = true,
            }
        }
        // Left alone, it always comes to a verdict, and nothing is left over that does not expire.
        stage.is_cancelled = false;
        spec.on_supersede = OnSupersede::Wait;
        let verdict = stage.deploy(&spec);
        prop_assert!(stage.jobs.iter().all(|job| job.expires), "{verdict:?} {:?}", stage.history);
        prop_assert!(stage.ledger.active().is_none());
        let read = Ledger::decode(&stage.ledger.encode()).unwrap();
        prop_assert_eq!(read, stage.ledger);
    }
}
