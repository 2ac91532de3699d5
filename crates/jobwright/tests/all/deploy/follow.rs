//! `jobwright logs --follow`.

use crate::deploy::stage::{Stage, job};
use rustix::process::Signal;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const LINES: &str = "echo one; sleep 30; echo two; sleep 30; echo three";

#[test]
fn follow_prints_lines_until_the_run_ends() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", LINES, "phase: pre")));
    let deploy = stage.start("deploy");
    stage.wait_for_starts(LINES, 1);
    let said = stage.jobwright("logs migrate --follow").expect(0);
    assert_eq!(said.out, "one\ntwo\nthree\n", "{}", said.error);
    assert!(said.error.contains("run 1, attempt 1, succeeded at "), "{}", said.error);
    deploy.wait().expect(0);
    let said = stage.jobwright("logs migrate -f").expect(0);
    assert_eq!(said.out, "one\ntwo\nthree\n", "the recorded end");
    let document = stage.jobwright("logs migrate -f -o json").expect(0).json();
    assert_eq!(document["log"], "one\ntwo\nthree\n");
}

#[test]
fn follow_waits_for_a_run_of_the_deploy_and_follows_its_attempts() {
    let line = "echo try $JOBWRIGHT_ATTEMPT; sleep 20; test $JOBWRIGHT_ATTEMPT = 2";
    let jobs = job("check", "echo check; sleep 80", "phase: pre")
        + &job("migrate", line, "phase: pre, after: [check], retries: {limit: 1, backoff: 10s}");
    let stage = Stage::new(&format!("jobs:\n{jobs}"));
    let said = stage.jobwright("logs migrate -f").expect(1);
    assert!(said.error.contains("`migrate` has not run"), "nothing is about to start: {}", said.error);
    let deploy = stage.start("deploy");
    stage.wait_for_starts("echo check; sleep 80", 1);
    let said = stage.jobwright("logs migrate -f").expect(0);
    assert!(said.error.contains("waiting for a run of `migrate`: `"), "{}", said.error);
    assert_eq!(said.out, "try 1\ntry 2\n", "{}", said.error);
    deploy.wait().expect(0);
}

#[test]
fn ctrl_c_ends_a_followed_log_with_130() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", "echo one; sleep 3000", "phase: pre")));
    let deploy = stage.start("deploy");
    stage.wait_for_starts("echo one; sleep 3000", 1);
    let logs = stage.start("logs migrate -f");
    logs.wait_for_out("one\n");
    logs.signal(Signal::INT);
    assert_eq!(logs.wait().expect(130).out, "one\n");
    deploy.signal(Signal::INT);
    deploy.wait().expect(130);
}

#[test]
fn followed_lines_hide_secrets() {
    let template = json!({"spec": {"containers": [{
        "name": "m", "image": "busybox:1", "command": ["sh", "-c", "echo password correct-horse; sleep 30; echo end"],
        "env": [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
    }]}});
    let stage = Stage::new(&format!(
        "jobs:\n- {{id: migrate, phase: pre, retires: {{never: test}}, pod: {{template: {template}}}}}\n"
    ));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"},
        "stringData": {"password": "correct-horse"}});
    stage.create(&[secret]);
    let deploy = stage.start("deploy");
    stage.wait_for_starts("echo password correct-horse; sleep 30; echo end", 1);
    assert_eq!(stage.jobwright("logs migrate -f").expect(0).out, "password ***\nend\n");
    deploy.wait().expect(0);
}

#[test]
fn follow_survives_dropped_connections() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", LINES, "phase: pre")));
    let deploy = stage.start("deploy");
    stage.wait_for_starts(LINES, 1);
    let proxy = Proxy::start(&stage);
    let text = std::fs::read_to_string(stage.path("kubeconfig")).unwrap();
    let mut kubeconfig: serde_json::Value = serde_json::from_str(&text).unwrap();
    kubeconfig["clusters"][0]["cluster"]["server"] = json!(format!("https://{}", proxy.address));
    stage.file("through-proxy", &kubeconfig.to_string());
    let logs = stage.start("logs migrate -f --kubeconfig through-proxy");
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(1500));
        proxy.cut.send_modify(|cuts| *cuts += 1);
    }
    let said = logs.wait().expect(0);
    assert_eq!(said.out, "one\ntwo\nthree\n", "{}", said.error);
    deploy.wait().expect(0);
}

/// Passes connections on, and can cut all of them.
struct Proxy {
    address: SocketAddr,
    cut: watch::Sender<u32>,
}

impl Proxy {
    fn start(stage: &Stage) -> Self {
        let server = stage.address();
        let (cut, cuts) = watch::channel(0);
        let listener = stage.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        stage.spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut cuts = cuts.clone();
                cuts.mark_unchanged();
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(server).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        Self { address, cut }
    }
}
