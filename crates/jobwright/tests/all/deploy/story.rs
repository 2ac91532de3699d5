//! What a deploy does, in which order, and what it says of it.

use crate::deploy::stage::{Stage, component, job};
use serde_json::{Value, json};

fn names(list: &Value, key: &str) -> Vec<String> {
    let line = |one: &Value| format!("{} {}", one[key].as_str().unwrap(), one_word(one));
    list.as_array().unwrap().iter().map(line).collect()
}

fn one_word(one: &Value) -> &str {
    one["action"].as_str().or(one["outcome"].as_str()).or(one["would"].as_str()).unwrap()
}

/// A database, an API on it, a web front of its own; jobs around all of it.
fn shop() -> Stage {
    let jobs = [
        job("check", "echo check", "phase: pre"),
        job("migrate", "echo migrate", "component: api, phase: pre"),
        job("warm", "echo warm", "component: api, phase: post, run: Always"),
        job("report", "echo report", "phase: post"),
    ];
    let components = "components:\n- {name: db, manifests: {path: db}}\n\
                      - {name: api, dependsOn: [db], manifests: {path: api}}\n- {name: web, manifests: {path: web}}\n";
    let stage = Stage::new(&format!("{components}jobs:\n{}", jobs.concat()));
    for name in ["db", "api", "web"] {
        component(&stage, name, "1");
    }
    stage
}

#[test]
fn a_first_deploy_installs_everything_and_the_next_finds_nothing_to_do() {
    let stage = shop();
    let first = stage.jobwright("deploy -o json").expect(0).json();
    assert_eq!(first["outcome"], "succeeded");
    assert_eq!(names(&first["components"], "name"), ["db installed", "api installed", "web installed"]);
    let ran = ["check succeeded", "migrate succeeded", "warm succeeded", "report succeeded"];
    assert_eq!(names(&first["jobs"], "id"), ran);
    assert_eq!(first["jobs"][1]["component"], "api");
    assert_eq!(first["jobs"][1]["phase"], "pre");
    assert_eq!(first["jobs"][1]["attempts"], 1);
    assert!(first["jobs"][1]["seconds"].is_number() && first["components"][0]["seconds"].is_number(), "{first}");
    assert!(!first["criticalPath"].as_array().unwrap().is_empty(), "{first}");

    let second = stage.jobwright("deploy -o json").expect(0).json();
    assert_eq!(names(&second["components"], "name"), ["db unchanged", "api unchanged", "web unchanged"]);
    // Jobs of a component run when it is deployed; global jobs run at every deploy.
    let ran = ["check succeeded", "migrate skipped", "warm skipped", "report succeeded"];
    assert_eq!(names(&second["jobs"], "id"), ran);
    assert!(second["jobs"][1]["reason"].as_str().unwrap().contains("unchanged"), "{second}");
    assert_eq!((stage.starts("echo check"), stage.starts("echo migrate"), stage.starts("echo warm")), (2, 1, 1));
}

#[test]
fn only_what_has_changed_is_upgraded_and_only_its_jobs_run() {
    let stage = shop();
    stage.jobwright("deploy -q").expect(0);
    component(&stage, "api", "2");
    let wanted = stage.jobwright("plan -o json").expect(0).json();
    assert_eq!(wanted["components"][1]["would"], "upgraded", "{wanted}");
    assert!(wanted["components"][1]["reason"].as_str().unwrap().contains("manifests"), "{wanted}");
    let dry = stage.jobwright("deploy --dry-run -o json").expect(0).json();
    assert_eq!(dry, wanted);
    assert_eq!(stage.starts("echo warm"), 1, "a plan runs nothing");
    let report = stage.jobwright("deploy -o json").expect(0).json();
    assert_eq!(names(&report["components"], "name"), ["db unchanged", "api upgraded", "web unchanged"]);
    // The same migration has succeeded before.
    assert_eq!(names(&report["jobs"], "id")[1..3], ["migrate skipped", "warm succeeded"]);
    assert_eq!((stage.starts("echo migrate"), stage.starts("echo warm")), (1, 2));
}

#[test]
fn jobs_run_before_and_after_what_they_belong_to() {
    let stage = shop();
    let said = stage.jobwright("deploy -v").expect(0);
    let place = |text: &str| said.error.find(text).unwrap_or_else(|| panic!("{text} is not in\n{}", said.error));
    let order = ["✓ check", "✓ migrate", "✓ warm", "✓ report"].map(place);
    assert!(order.is_sorted(), "{order:?}\n{}", said.error);
    assert!(
        place("✓ db installed") < place("migrate:"),
        "a component waits for those that it depends on\n{}",
        said.error
    );
    assert!(said.out.contains("Deployed shop 1.4.0 to namespace shop in "), "{}", said.out);
}

#[test]
fn a_failed_component_skips_its_post_jobs_its_dependants_and_the_global_post_jobs_each_with_the_reason() {
    let stage = shop();
    // The server refuses it.
    stage.file("db/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name}\n");
    let report = stage.jobwright("deploy -o json").expect(1).json();
    assert_eq!(report["outcome"], "failed");
    assert_eq!(names(&report["components"], "name"), ["db failed", "api skipped", "web installed"]);
    assert_eq!(names(&report["jobs"], "id"), ["check succeeded", "migrate skipped", "warm skipped", "report skipped"]);
    for (list, index, part) in
        [("components", 0, "Bad_Name"), ("components", 1, "`db`"), ("jobs", 1, "`db`"), ("jobs", 3, "`db`")]
    {
        let reason = report[list][index]["reason"].as_str().unwrap();
        assert!(reason.contains(part), "{part} is not in {reason}");
    }
}

#[test]
fn what_a_component_no_longer_has_is_taken_away() {
    let stage = shop();
    stage.file("api/more.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: gone-soon}\n");
    stage.jobwright("deploy -q").expect(0);
    std::fs::remove_file(stage.path("api/more.yaml")).unwrap();
    stage.jobwright("deploy -q").expect(0);
    let secrets = kube::Api::<k8s_openapi::api::core::v1::Secret>::namespaced(stage.client(), "shop");
    assert!(stage.block_on(secrets.get_opt("gone-soon")).unwrap().is_none());
}

#[test]
fn only_and_skip_choose_jobs_and_run_is_for_one() {
    let stage = shop();
    let report = stage.jobwright("deploy --only migrate -o json").expect(0).json();
    let ran = ["check skipped", "migrate succeeded", "warm skipped", "report skipped"];
    assert_eq!(names(&report["jobs"], "id"), ran);
    let report = stage.jobwright("deploy --redeploy --skip check,warm -o json").expect(0).json();
    let ran = ["check skipped", "migrate skipped", "warm skipped", "report succeeded"];
    assert_eq!(names(&report["jobs"], "id"), ran);
    let once = stage.jobwright("run migrate -o json").expect(0).json();
    assert_eq!(once["jobs"][0]["outcome"], "skipped", "{once}");
    let again = stage.jobwright("run migrate --again -o json").expect(0).json();
    assert_eq!(again["jobs"][0]["outcome"], "succeeded", "{again}");
    assert_eq!(again["components"], json!([]));
    assert_eq!(stage.starts("echo migrate"), 2);
}

#[test]
fn component_selects_components_with_their_jobs() {
    let stage = shop();
    let report = stage.jobwright("deploy --component db,web -o json").expect(0).json();
    assert_eq!(names(&report["components"], "name"), ["db installed", "api skipped", "web installed"]);
    assert_eq!(names(&report["jobs"], "id")[1..3], ["migrate skipped", "warm skipped"]);
    let plan = stage.jobwright("plan --only-components api -o json").expect(0).json();
    assert_eq!(names(&plan["components"], "name"), ["db unchanged", "api installed", "web unchanged"]);
    let said = stage.jobwright("deploy --component dbb").expect(2);
    assert!(said.error.contains("the plan has no component `dbb`"), "{}", said.error);
    assert!(said.error.contains("hint: it has db, api, web"), "{}", said.error);
}

#[test]
fn the_shop_deploys_without_a_cluster_the_same_every_time() {
    let shop = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shop");
    let deploy = || {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_jobwright"))
            .args(["deploy", "--drydock", "--speed", "1000", "-o", "json", shop])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let report = deploy();
    let migrate = report["jobs"].as_array().unwrap().iter().find(|job| job["id"] == "migrate").unwrap();
    assert_eq!((migrate["outcome"].as_str(), migrate["attempts"].as_u64()), (Some("succeeded"), Some(2)));
    let outcomes = |report: &Value| (names(&report["components"], "name"), names(&report["jobs"], "id"));
    assert_eq!(outcomes(&report), outcomes(&deploy()));
}
