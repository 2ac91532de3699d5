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

#[tokio::test(start_paused = true)]
async fn links_stay_links_and_directories_are_refused() {
    let stage = Stage::new(6).await;
    let directory = tempfile::tempdir().unwrap();
    let expected = stage.expected(&PATHS).await;
    let read = |path: &Path| read_lines(&std::fs::read_to_string(path).unwrap());

    // A link to a file, a link to nothing yet, and a link to a link.
    let target = directory.path().join("target");
    std::fs::write(&target, "old").unwrap();
    let missing = directory.path().join("missing");
    let links = [("link", &target), ("dangling", &missing), ("chain", &directory.path().join("link"))];
    for (name, target) in links {
        let link = directory.path().join(name);
        std::os::unix::fs::symlink(target, &link).unwrap();
        assert!(run(&stage, &to(&format!("file:{}", link.display()))).await.unwrap().complete);
        assert!(link.symlink_metadata().unwrap().is_symlink(), "{name} was replaced");
        compare(&read(&link), &expected, name);
    }
    compare(&read(&missing), &expected, "what did not exist");

    let error = run(&stage, &to(&format!("file:{}", directory.path().display()))).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot write `{}`: it is a directory", directory.path().display()));
    assert_eq!(names(directory.path()), ["chain", "dangling", "link", "missing", "target"]);
}

#[tokio::test(start_paused = true)]
async fn partial_files_of_dead_runs_are_removed_and_those_of_living_ones_stay() {
    let stage = Stage::new(6).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    for name in [".out.20260101T000000Z-abcdef.partial", ".outer.20260101T000000Z-abcdef.partial", ".out.other"] {
        std::fs::write(directory.path().join(name), "half").unwrap();
    }
    let living = directory.path().join(".out.20260101T000000Z-living.partial");
    let lock = std::fs::File::create(&living).unwrap();
    lock.lock().unwrap();
    assert!(run(&stage, &to(&format!("file:{}", path.display()))).await.unwrap().complete);
    assert_eq!(
        names(directory.path()),
        [".out.20260101T000000Z-living.partial", ".out.other", ".outer.20260101T000000Z-abcdef.partial", "out"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_is_a_link_stays_one() {
    let stage = Stage::new(6).await;
    let directory = tempfile::tempdir().unwrap();
    let [target, link] = ["target", "link"].map(|name| directory.path().join(name));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let task = Task { checkpoint: Some(CheckpointPlace::File(link.clone())), ..to("stdout") };
    assert!(run(&stage, &task).await.unwrap().complete);
    assert!(link.symlink_metadata().unwrap().is_symlink() && target.is_file());
}

#[tokio::test]
async fn pipes_and_devices_are_written_in_place_and_stay_what_they_are() {
    use std::os::unix::fs::FileTypeExt as _;
    let stage = Stage::new(6).await;
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let checkpoint = Some(CheckpointPlace::File(directory.path().join("checkpoint")));
    let task = Task { checkpoint, ..to(&format!("file:{}", pipe.display())) };
    assert!(run(&stage, &task).await.unwrap().complete);
    compare(&read_lines(&reader.join().unwrap()), &stage.expected(&PATHS).await, "pipe");
    assert!(pipe.symlink_metadata().unwrap().file_type().is_fifo());
    // Where the user may not create a device, the machine's own shows it: it must not be written beside either.
    assert!(run(&stage, &to("file:/dev/null")).await.unwrap().complete);
    assert!(Path::new("/dev/null").symlink_metadata().unwrap().file_type().is_char_device());
    assert_eq!(names(directory.path()), ["checkpoint", "pipe"]);
}

#[tokio::test(start_paused = true)]
async fn a_pipe_that_no_process_reads_is_an_error_after_a_while() {
    let stage = Stage::new(1).await;
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = run(&stage, &to(&format!("file:{}", pipe.display()))).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot write `{}`: no process reads it", pipe.display()));
}
