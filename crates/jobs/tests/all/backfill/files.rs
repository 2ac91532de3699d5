//! Files of lines: whole or not at all, and gone on with where a process has died.

use super::http_sink::{run, to};
use super::stage::{PATHS, Stage, compare, read_lines};
use jobwright_jobs::backfill::{Backfill, CheckpointPlace, Ending, Task};
use std::path::Path;
use std::time::Duration;

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn a_file_has_everything_compressed_as_its_name_says() {
    let stage = Stage::new(30).await;
    let directory = tempfile::tempdir().unwrap();
    for (name, is_packed) in [("out.ndjson", false), ("out.ndjson.zst", true)] {
        let path = directory.path().join(name);
        let summary = run(&stage, &to(&format!("file:{}", path.display()))).await.unwrap();
        assert!(summary.complete, "{summary:?}");
        let mut text = std::fs::read(&path).unwrap();
        if is_packed {
            text = zstd::decode_all(&text[..]).unwrap();
        }
        compare(&read_lines(&String::from_utf8(text).unwrap()), &stage.expected(&PATHS).await, name);
    }
    assert_eq!(names(directory.path()), ["out.ndjson", "out.ndjson.zst"]);
}

#[tokio::test(start_paused = true)]
async fn a_file_of_a_process_that_died_is_gone_on_with_and_has_nothing_twice() {
    for checkpoint in ["file", "configmap"] {
        let mut deaths = 0;
        for after in 1.. {
            let stage = Stage::new(20).await;
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("out.zst");
            let place = match checkpoint {
                "file" => CheckpointPlace::File(directory.path().join("checkpoint")),
                _ => CheckpointPlace::ConfigMap("progress".to_owned()),
            };
            let backfill = Backfill {
                kinds: ["secrets", "pods", "widgets"].map(Into::into).to_vec(),
                page_size: 4,
                ..to("stdout").backfill
            };
            let task = Task { backfill, checkpoint: Some(place), ..to(&format!("file:{}", path.display())) };
            // Stopped at a call of its own to the cluster, since it makes some between any two batches.
            stage.faults.stop_at(after, jobwright_drydock::When::After);
            let died = tokio::select! {
                _ = run(&stage, &task) => false,
                () = stage.faults.stopped() => true,
            };
            if !died {
                break;
            }
            deaths += 1;
            let context = format!("{checkpoint}, call {after}");
            let read = || String::from_utf8(zstd::decode_all(&std::fs::read(&path).unwrap()[..]).unwrap()).unwrap();
            if path.exists() {
                compare(&read_lines(&read()), &stage.expected(&PATHS[1..]).await, "half a file is none");
            }
            // Whoever has died lets go of its lock after a while.
            let stage = stage.restarted();
            tokio::time::sleep(Duration::from_mins(1)).await;
            let summary = run(&stage, &task).await.unwrap();
            assert!(summary.complete, "{context}: {summary:?}");
            let text = read();
            let arrived = read_lines(&text);
            compare(&arrived, &stage.expected(&PATHS[1..]).await, &context);
            assert_eq!(text.lines().count(), arrived.len(), "{context}: nothing is there twice");
        }
        assert!(deaths >= 6, "{checkpoint}: it made only {deaths} calls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_written_or_is_left_is_not_there() {
    let stage = Stage::new(3).await;
    let error = run(&stage, &to("file:/nowhere/out")).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot write `/nowhere/out`: "), "{error}");
    let directory = tempfile::tempdir().unwrap();
    let task = to(&format!("file:{}", directory.path().join("out").display()));
    stage.faults.on(|call| call.resource == "pods").fail(jobwright_drydock::Fault::Internal);
    let summary = run(&stage, &task).await.unwrap();
    assert_eq!(summary.ending(), Ending::Partial);
    assert_eq!(names(directory.path()), ["out"], "what could be had is there, and the summary says that it is not all");
}
