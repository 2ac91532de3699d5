//! How commands end when something is wrong: the exit code, the words, the remedy.

use crate::deploy::stage::{Stage, component, job};
use jobwright_drydock::{Drydock, User};
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{DeleteParams, ListParams};

#[test]
fn a_failed_job_exits_with_1_and_shows_its_log() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", "echo no such table; exit 3", "phase: pre")));
    let said = stage.jobwright("deploy").expect(1);
    assert!(said.error.contains("no such table"), "{}", said.error);
    assert!(said.out.contains("exit code 3") || said.out.contains("exited with 3"), "{}", said.out);
    let report = stage.jobwright("deploy -o json").expect(1).json();
    assert_eq!(report["jobs"][0]["outcome"], "failed");
}

#[test]
fn everything_that_is_wrong_in_a_plan_is_told_at_once_with_its_place() {
    let stage = Stage::new(
        "paralel: 4\ncomponents:\n- {name: api, dependsOn: [dbb], manifests: {path: api}}\n- {name: db, manifests: {path: db}}\n",
    );
    let said = stage.jobwright("deploy").expect(2);
    for part in ["jobwright.yaml:4:1", "did you mean `parallel`", "jobwright.yaml:6:", "did you mean `db`"] {
        assert!(said.error.contains(part), "{part} is not in\n{}", said.error);
    }
    assert!(said.out.is_empty());
}

#[test]
fn a_plan_that_is_not_there_exits_with_2() {
    let stage = Stage::new("");
    let said = stage.jobwright("deploy elsewhere.yaml").expect(2);
    assert!(said.error.contains("elsewhere.yaml"), "{}", said.error);
    let said = stage.jobwright("run nothing").expect(2);
    assert!(said.error.contains("no job `nothing`"), "{}", said.error);
}

#[test]
fn a_cluster_that_does_not_answer_exits_with_4() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", "true", "phase: pre")));
    let text = std::fs::read_to_string(stage.path("kubeconfig")).unwrap();
    let (before, after) = text.split_once("https://127.0.0.1:").unwrap();
    let after = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
    stage.file("kubeconfig", &format!("{before}https://127.0.0.1:1{after}"));
    let said = stage.jobwright("deploy").expect(4);
    assert!(said.error.contains("cannot be reached"), "{}", said.error);
}

#[test]
fn what_is_not_allowed_exits_with_4_and_is_told_as_a_role_before_anything_changes() {
    let plan = format!("jobs:\n{}", job("migrate", "echo migrate", "phase: pre"));
    let token = "of-a-visitor";
    let stage = Stage::on(Drydock::builder().rbac(true).token(token, User::new("visitor", &[])), &plan);
    let text = std::fs::read_to_string(stage.path("kubeconfig")).unwrap();
    let mut kubeconfig: serde_json::Value = serde_json::from_str(&text).unwrap();
    kubeconfig["users"][0]["user"]["token"] = token.into();
    stage.file("kubeconfig", &kubeconfig.to_string());
    let said = stage.jobwright("deploy").expect(4);
    for part in ["kind: Role", "create", "jobs"] {
        assert!(said.error.contains(part), "{part} is not in\n{}", said.error);
    }
    assert_eq!(stage.starts("echo migrate"), 0);
}

#[test]
fn a_run_whose_end_nobody_saw_exits_with_5_and_status_says_what_to_do() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", "echo lost; sleep 300", "phase: pre")));
    let deploy = stage.start("deploy -o json");
    stage.wait_for_starts("echo lost; sleep 300", 1);
    let jobs = Api::<Job>::namespaced(stage.client(), "shop");
    let name = stage.block_on(jobs.list(&ListParams::default())).unwrap().items[0].metadata.name.clone().unwrap();
    stage.block_on(jobs.delete(&name, &DeleteParams::background())).unwrap();
    let report = deploy.wait().expect(5).json();
    assert_eq!(report["jobs"][0]["outcome"], "unknown");
    let status = stage.jobwright("status").expect(0);
    assert!(status.out.contains("--again"), "{}", status.out);
}

#[test]
fn a_chart_without_a_helm_is_refused_before_anything_starts() {
    let stage = Stage::new(&format!(
        "components:\n- {{name: api, chart: {{path: api}}}}\njobs:\n{}",
        job("check", "echo check", "phase: pre")
    ));
    let said = std::process::Command::new(env!("CARGO_BIN_EXE_jobwright"))
        .arg("deploy")
        .current_dir(stage.path(""))
        .env("KUBECONFIG", stage.path("kubeconfig"))
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    assert_eq!(said.status.code(), Some(2));
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(error.contains("helm") && error.contains("`api`"), "{error}");
    assert_eq!(stage.starts("echo check"), 0);
}

#[test]
fn versions_cannot_be_left_out_or_go_back_unless_it_is_said() {
    let stage = Stage::new("components:\n- {name: api, manifests: {path: api}}\n");
    component(&stage, "api", "1");
    stage.jobwright("deploy -q").expect(0);
    let plan = "components:\n- {name: api, manifests: {path: api}}\n";
    stage.plan("1.6.0", plan);
    for command in ["deploy", "plan", "plan --check", "deploy --dry-run"] {
        let said = stage.jobwright(command).expect(1);
        let all = said.out + &said.error;
        assert!(all.contains("1.6.0") && all.contains("1.4.0"), "{command}: {all}");
    }
    stage.jobwright("deploy -q --allow-skip-version").expect(0);
    stage.plan("1.5.0", plan);
    assert!(stage.jobwright("deploy").expect(1).error.contains("--allow-older"));
    stage.jobwright("deploy -q --allow-older").expect(0);
}
