//! How it ends: exit codes, words and documents.

use crate::backfill::collector::{Collector, Deed};
use crate::backfill::play::{MAPS, PLANTED, SECRETS, expect_all, expect_quiet, line, stage, stage_on};
use jobwright_drydock::{Drydock, User};
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn everything_arrives_and_one_document_says_so() {
    let stage = stage();
    let collector = Collector::start(|_| Deed::Take);
    let said = stage.jobwright(&line(&collector, "")).expect(0);
    expect_quiet(&said);
    assert_eq!(expect_all(&collector, "once"), 0);
    let summary = said.json();
    assert_eq!(summary["complete"], true);
    let kind = |name: &str| -> &Value {
        summary["kinds"].as_array().unwrap().iter().find(|kind| kind["kind"] == name).unwrap()
    };
    assert_eq!(kind("ConfigMap")["sent"], MAPS);
    assert_eq!((&kind("Secret")["listed"], &kind("Secret")["sent"]), (&SECRETS.into(), &SECRETS.into()));
    assert_eq!((&kind("Secret")["skipped"], &kind("Secret")["errors"]), (&0.into(), &Value::Array(Vec::new())));
    assert_eq!(summary["batches"]["sent"], 8);
    let said = stage.jobwright(&line(&collector, "").replace("-o json", "")).expect(0);
    assert!(said.out.contains("complete: 52 of 52 objects in 8 batches"), "{}", said.out);
    assert!(said.error.contains("v1 ConfigMap: 40 listed, 40 sent"), "{}", said.error);
}

#[test]
fn lines_are_printed_and_what_became_of_them_is_told_beside() {
    let stage = stage();
    let said = stage.jobwright("backfill --sink stdout --kinds cm -q").expect(0);
    expect_quiet(&said);
    assert_eq!((said.out.lines().count(), said.error.as_str()), (MAPS, ""));
    let said = stage.jobwright("backfill --sink stdout --kinds cm -q -o json").expect(0);
    let summary: Value = serde_json::from_str(&said.error).unwrap();
    assert_eq!((said.out.lines().count(), &summary["complete"]), (MAPS, &true.into()));
}

#[test]
fn a_file_is_written_on_a_cluster_in_memory_too() {
    let stage = stage();
    let file = stage.path("out.ndjson.zst");
    let said = stage.jobwright_alone(&format!("backfill --drydock --sink file:{} -o json", file.display())).expect(0);
    assert_eq!(said.json()["complete"], true);
    assert!(std::fs::read(&file).unwrap().starts_with(&[0x28, 0xb5, 0x2f, 0xfd]), "it is a frame of zstd");
}

#[test]
fn what_is_refused_exits_with_5_or_1_and_is_told() {
    let stage = stage();
    let some = Collector::start(|number| if number == 3 { Deed::Refuse(413) } else { Deed::Take });
    let said = stage.jobwright(&line(&some, "")).expect(5);
    assert_eq!((&said.json()["complete"], &said.json()["batches"]["failed"]), (&false.into(), &1.into()));
    let none = Collector::start(|_| Deed::Refuse(403));
    let said = stage.jobwright(&line(&none, "").replace("-o json", "")).expect(1);
    assert!(said.out.contains("failed: 0 of ") && said.out.contains("the sink takes nothing: 403"), "{}", said.out);
}

#[test]
fn what_is_not_allowed_exits_with_5_where_something_is_and_with_4_where_nothing_is() {
    let token = "of-a-visitor";
    let stage =
        stage_on(Drydock::builder().bare().rbac(true).token(token, User::new("visitor", &["system:authenticated"])));
    let text = std::fs::read_to_string(stage.path("kubeconfig")).unwrap();
    let mut kubeconfig: Value = serde_json::from_str(&text).unwrap();
    kubeconfig["users"][0]["user"]["token"] = token.into();
    stage.file("visitor", &kubeconfig.to_string());
    let line = "backfill --sink stdout -q --kinds cm,secrets --kubeconfig visitor";
    let said = stage.jobwright(line).expect(4);
    assert!(said.error.contains("--print-rbac") && said.error.contains("cannot list resource"), "{}", said.error);
    let roles = stage.jobwright("backfill --sink stdout --kinds cm --print-rbac").expect(0).out;
    assert!(roles.contains("resources: [configmaps]\n  verbs: [list]"), "{roles}");
    stage.allow("visitor", &roles);
    let said = stage.jobwright(line).expect(5);
    assert_eq!(said.out.lines().count(), MAPS);
    assert!(said.error.contains("403") && said.error.contains("incomplete: 40 of 40 objects"), "{}", said.error);
}

#[test]
fn what_is_typed_wrong_exits_with_2_and_repeats_no_password() {
    let stage = stage();
    for (typed, told) in [
        ("backfill", "--sink"),
        ("backfill --sink nowhere", "that is no place to send to"),
        ("backfill --sink https://u:pl4nted@host/", "must not have a user or a password"),
        ("backfill --sink stdout --kinds confgmaps", "did you mean `configmaps`?"),
        ("backfill --sink stdout --names (", "unclosed group"),
        ("backfill --sink stdout --checkpoint nowhere", "is no place for a checkpoint"),
        ("backfill --sink stdout --wait-for nothing", "is nothing to wait for"),
        ("backfill --sink file:/nowhere/out", "cannot write `/nowhere/out`"),
        ("backfill --sink stdout --checkpoint file:/nowhere/x", "cannot write the checkpoint `/nowhere/x`"),
    ] {
        let said = stage.jobwright(typed).expect(2);
        assert!(said.error.contains(told), "{typed}: {}", said.error);
        // The parser of arguments says again what it was given, so it is not given to it.
        assert!(!said.error.contains(PLANTED), "{typed}: {}", said.error);
    }
}

#[test]
fn what_is_not_there_in_time_exits_with_1() {
    let stage = stage();
    let said = stage.jobwright("backfill --sink stdout --wait-for tcp:127.0.0.1:9 --wait-timeout 1s").expect(1);
    assert!(said.error.contains("tcp:127.0.0.1:9 is not there after 1 s: Connection refused"), "{}", said.error);
    assert!(said.out.is_empty());
}

#[test]
fn told_to_stop_it_sends_what_was_read_and_the_next_one_goes_on() {
    let stage = stage();
    let checkpoint = stage.path("checkpoint");
    let (send, receive) = std::sync::mpsc::channel();
    let collector = Collector::start(move |number| {
        if number == 3 {
            send.send(()).unwrap();
            // Long enough to be told to stop meanwhile.
            std::thread::sleep(std::time::Duration::from_millis(1500));
        }
        Deed::Take
    });
    let typed = line(&collector, &format!("--checkpoint file:{}", checkpoint.display()));
    let first = stage.start(&typed);
    receive.recv().unwrap();
    first.signal(Signal::TERM);
    let said = first.wait().expect(130);
    let summary = said.json();
    assert_eq!((&summary["complete"], &summary["cancelled"]), (&false.into(), &true.into()), "{summary}");
    let sent = collector.objects().0.len();
    let counted: u64 = summary["kinds"].as_array().unwrap().iter().filter_map(|kind| kind["sent"].as_u64()).sum();
    assert_eq!(counted, sent as u64, "what was sent was counted");
    let second = stage.jobwright(&typed).expect(0).json();
    assert_eq!(second["resumed"], true);
    assert_eq!(expect_all(&collector, "in the end"), 0, "nothing came twice");
}

#[test]
fn metrics_are_served_while_it_runs() {
    use std::io::{Read as _, Write as _};
    let stage = stage();
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let receive = std::sync::Mutex::new(receive);
    let collector = Collector::start(move |_| {
        let _ = receive.lock().unwrap().recv();
        Deed::Take
    });
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let running = stage.start(&line(&collector, &format!("--metrics-listen {}", free.port())));
    let ask = || -> Option<String> {
        let mut stream = std::net::TcpStream::connect(free).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.contains("jobwright_backfill_kinds_running 2\n").then_some(text)
    };
    let found = (0..500).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        ask()
    });
    let text = found.expect("metrics show both kinds while they are listed");
    assert!(text.contains("objects_listed_total{kind=\"configmaps\"}"), "{text}");
    drop(send);
    running.wait().expect(0);
}
