//! `kill -9` at every batch, and a second run: together they have sent everything.

use crate::backfill::collector::{Collector, Deed};
use crate::backfill::play::{MAPS, expect_all, expect_quiet, line, stage};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

#[test]
fn killed_at_every_batch_the_next_run_completes_it() {
    let stage = stage();
    for last in [Deed::TakeOnly, Deed::Nothing] {
        let mut at = 1;
        loop {
            let victim: Arc<Mutex<Option<Pid>>> = Arc::default();
            let struck = Arc::clone(&victim);
            let collector = Collector::start(move |number| {
                if number != at {
                    return Deed::Take;
                }
                // Whoever sends has been started, but we may not have been told yet.
                let pid = loop {
                    let pid = *struck.lock().unwrap();
                    if let Some(pid) = pid {
                        break pid;
                    }
                    std::thread::yield_now();
                };
                kill_process(pid, Signal::KILL).unwrap();
                last
            });
            let checkpoint = stage.path(&format!("checkpoint-{last:?}-{at}"));
            let typed = line(&collector, &format!("--checkpoint file:{}", checkpoint.display()));
            let first = stage.start(&typed);
            *victim.lock().unwrap() = Some(first.pid());
            let first = first.wait();
            expect_quiet(&first);
            if first.code == 0 {
                break;
            }
            assert_eq!(first.code, -1, "it was not killed: {}\n{}", first.out, first.error);
            let before: BTreeSet<String> = collector.ids().into_iter().collect();
            let second = stage.jobwright(&typed).expect(0);
            expect_quiet(&second);
            let summary = second.json();
            let context = format!("{last:?} at batch {at}");
            assert_eq!(
                (&summary["complete"], &summary["resumed"]),
                (&true.into(), &true.into()),
                "{context}: {summary}"
            );
            let again = expect_all(&collector, &context);
            let ids = collector.ids();
            let twice = ids.len() - ids.iter().collect::<BTreeSet<_>>().len();
            assert!(again <= twice * 7, "{context}: {again} objects came twice in {twice} batches of {}", before.len());
            at += 1;
            assert!(at < 50, "it does not come to its end");
        }
        assert!(at > 7, "there were only {at} batches");
    }
}

#[test]
fn killed_while_objects_go_a_collector_that_honours_keys_has_what_is_left() {
    for at in 1..5 {
        let stage = stage();
        let victim: Arc<Mutex<Option<Pid>>> = Arc::default();
        let struck = Arc::clone(&victim);
        let collector = Collector::start(move |number| {
            if number != at {
                return Deed::Take;
            }
            let pid = loop {
                let pid = *struck.lock().unwrap();
                if let Some(pid) = pid {
                    break pid;
                }
                std::thread::yield_now();
            };
            kill_process(pid, Signal::KILL).unwrap();
            Deed::TakeOnly
        });
        let typed = line(&collector, &format!("--checkpoint file:{}", stage.path("checkpoint").display()));
        let first = stage.start(&typed);
        *victim.lock().unwrap() = Some(first.pid());
        assert_eq!(first.wait().code, -1, "it was not killed");
        // The objects behind them move up: the same batches may have other objects.
        let gone = ["map-000", "map-001", "map-020"];
        let maps = Api::<ConfigMap>::namespaced(stage.client(), "default");
        stage.block_on(async {
            for name in gone {
                maps.delete(name, &DeleteParams::default()).await.unwrap();
            }
        });
        let summary = stage.jobwright(&typed).expect(0).json();
        assert_eq!(
            (&summary["complete"], &summary["resumed"]),
            (&true.into(), &true.into()),
            "at batch {at}: {summary}"
        );
        let kept = collector.honoured();
        let missing: Vec<String> = (0..MAPS)
            .map(|index| format!("map-{index:03}"))
            .filter(|name| !gone.contains(&name.as_str()) && !kept.contains(&format!("ConfigMap/default/{name}")))
            .collect();
        assert!(missing.is_empty(), "at batch {at}: {missing:?}");
    }
}
