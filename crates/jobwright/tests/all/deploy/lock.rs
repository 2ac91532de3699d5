//! `jobwright lock show` and `jobwright lock break`.

use crate::deploy::stage::{Stage, job};
use serde_json::Value;

const LONG: &str = "echo long; sleep 200";

#[test]
fn lock_show_names_holder_times_and_lease() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", LONG, "phase: pre, onCancel: Leave")));
    let said = stage.jobwright("lock show").expect(0);
    assert!(said.out.starts_with("not locked\nLease: jobwright-shop-"), "{}", said.out);
    let deploy = stage.start("deploy");
    stage.wait_for_starts(LONG, 1);
    let shown = stage.jobwright("lock show -o json --release shop -n shop").expect(0).json();
    let name = shown["holder"]["name"].as_str().unwrap();
    let (_, own) = name.split_once(&format!(" (process {}, ", deploy.pid().as_raw_nonzero())).unwrap();
    let random = own.strip_suffix(')').unwrap();
    assert!(random.len() == 6 && random.chars().all(|digit| digit.is_ascii_hexdigit()), "{name}");
    assert!(shown["holder"]["since"].is_string() && shown["holder"]["renewed"].is_string(), "{shown}");
    assert_eq!(shown["namespace"], "shop");
    let said = stage.jobwright("lock show").expect(0);
    assert!(said.out.contains(&format!("locked by `{name}`")), "{}", said.out);
    assert!(said.out.contains(shown["lease"].as_str().unwrap()), "{}", said.out);
    deploy.signal(rustix::process::Signal::INT);
    deploy.wait().expect(130);
    assert_eq!(stage.jobwright("lock show -o json").expect(0).json()["holder"], Value::Null);
}

#[test]
fn lock_break_needs_yes_and_stops_the_holder() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", LONG, "phase: pre, run: OnChange, onCancel: Leave")));
    let deploy = stage.start("deploy -o json");
    stage.wait_for_starts(LONG, 1);
    let said = stage.jobwright("lock break").expect(2);
    assert!(said.error.contains("would take the lock from `"), "{}", said.error);
    assert!(said.error.contains("hint: pass `--yes`"), "{}", said.error);
    let said = stage.jobwright("lock break --yes").expect(0);
    assert!(said.out.contains("took the lock from `"), "{}", said.out);
    assert!(said.out.contains("stops within 10s, and the next deploy may start 15s from now"), "{}", said.out);
    let said = deploy.wait().expect(1);
    let report = said.json();
    assert_eq!(report["outcome"], "failed", "{report}");
    assert!(report["error"].as_str().unwrap().contains("lost the lease"), "{report}");
    assert_eq!(report["jobs"][0]["id"], "migrate", "the report survives: {report}");
    assert!(said.error.contains("error: lost the lease"), "{}", said.error);
}

#[test]
fn lock_needs_a_release() {
    let stage = Stage::new("");
    std::fs::remove_file(stage.path("jobwright.yaml")).unwrap();
    let said = stage.jobwright("lock show").expect(2);
    assert!(said.error.contains("hint: pass `--plan` or `--release`"), "{}", said.error);
}
