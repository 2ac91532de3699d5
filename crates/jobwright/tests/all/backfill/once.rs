//! `--unless-complete`: what was complete is not done again, unless it is another thing or somebody insists.

use crate::backfill::collector::{Collector, Deed};
use crate::backfill::play::{expect_quiet, line, stage};

#[test]
fn what_was_complete_with_a_key_is_done_again_only_with_another_or_by_force() {
    let stage = stage();
    let collector = Collector::start(|_| Deed::Take);
    for place in [format!("file:{}", stage.path("checkpoint").display()), "configmap:progress".to_owned()] {
        let run = |more: &str| {
            let before = collector.ids().len();
            let said = stage.jobwright(&line(&collector, &format!("--checkpoint {place} {more}"))).expect(0);
            expect_quiet(&said);
            (said.json(), collector.ids().len() - before)
        };
        let (first, sent) = run("--unless-complete k1");
        assert!(first["kept"].is_null() && sent > 7, "{first}");
        // What it would wait for is never there, but nobody asks for it.
        let (again, sent) = run("--unless-complete k1 --wait-for tcp:127.0.0.1:9 --wait-timeout 1s");
        assert_eq!((&again["complete"], &again["kept"]["key"], sent), (&true.into(), &"k1".into(), 0), "{again}");
        assert_eq!(again["kept"]["run"], first["run"]);
        // Whoever has no key, such as a CronJob, does not change what is known.
        let (other, sent) = run("");
        assert!(other["kept"].is_null() && sent > 7, "{other}");
        assert_eq!(run("--unless-complete k1").1, 0, "{place}");
        assert!(run("--unless-complete k1 --force").1 > 7, "{place}");
        assert!(run("--unless-complete k2").1 > 7, "{place}");
        assert_eq!(run("--unless-complete k2").1, 0, "{place}");
    }
    let told = stage.jobwright("backfill --sink stdout --checkpoint configmap:progress --unless-complete k2").expect(0);
    assert!(told.error.contains("kept: complete with k2 since 2"), "{}", told.error);
    assert_eq!(told.out, "");
}

#[test]
fn what_was_not_complete_is_done_again() {
    let stage = stage();
    let some = Collector::start(|number| if number == 3 { Deed::Refuse(413) } else { Deed::Take });
    let more = format!("--checkpoint file:{} --unless-complete k1", stage.path("checkpoint").display());
    stage.jobwright(&line(&some, &more)).expect(5);
    let (before, summary) = (some.ids().len(), stage.jobwright(&line(&some, &more)).expect(0).json());
    assert!(summary["kept"].is_null() && some.ids().len() > before + 7, "{summary}");
}

#[test]
fn a_key_wants_a_checkpoint() {
    let stage = stage();
    for (typed, told) in [
        ("backfill --sink stdout --unless-complete k1", "--checkpoint"),
        ("backfill --sink stdout --checkpoint file:a --force", "--unless-complete"),
        ("backfill --sink stdout --checkpoint file:a --unless-complete=", "a key is a line"),
    ] {
        let said = stage.jobwright(typed).expect(2);
        assert!(said.error.contains(told), "{typed}: {}", said.error);
    }
}
