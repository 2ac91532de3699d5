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
    assert!(said.error.contains("cannot reach the cluster at https://127.0.0.1:1/"), "{}", said.error);
}

#[test]
fn missing_kubeconfig_is_reported_once() {
    let stage = Stage::new("");
    stage.file("home/empty", "");
    let said = std::process::Command::new(env!("CARGO_BIN_EXE_jobwright"))
        .args(["status", "-o", "json"])
        .current_dir(stage.path(""))
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("HOME", stage.path("home"))
        .output()
        .unwrap();
    assert_eq!(said.status.code(), Some(4));
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    let mut lines = error.lines();
    assert_eq!(lines.next(), Some("error: no cluster configured: found no kubeconfig, and this is not a pod"));
    assert_eq!(lines.next(), Some("hint: pass `--kubeconfig`, set $KUBECONFIG, or try `--drydock`"));
    assert_eq!(error.matches("kube/config").count(), 1, "{error}");
    let document: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(document["outcome"], "failed");
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shop");
    for format in ["text", "json"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_jobwright"));
        let ended = command.args(["deploy", "--drydock", plan, "-q", "-o", format]).stdout(full).output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        // With -q a success prints no text.
        let expected = if format == "text" { Some(0) } else { Some(1) };
        assert_eq!(ended.status.code(), expected, "{errors}");
        assert_eq!(errors.contains("cannot write to standard output: "), format == "json", "{errors}");
    }
}

#[test]
fn errors_are_one_document_with_json() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", "true", "phase: pre")));
    for (command, code, part) in [
        ("deploy elsewhere.yaml", 2, "elsewhere.yaml"),
        ("plan elsewhere.yaml", 2, "elsewhere.yaml"),
        ("run nothing", 2, "no job `nothing`"),
        ("deploy --component nothing", 2, "no component `nothing`"),
        ("status --kubeconfig nowhere", 2, "nowhere"),
        ("logs migrate", 1, "has not run"),
        ("history --nonsense", 2, "--nonsense"),
        ("lock show --release", 2, "--release"),
    ] {
        let said = stage.jobwright(&format!("{command} -o json")).expect(code);
        let document = said.json();
        assert_eq!(document["outcome"], "failed", "{command}: {document}");
        let error = document["error"].as_str().unwrap();
        assert!(error.contains(part), "{command}: {document}");
        assert!(document["hints"].is_array(), "{command}: {document}");
        assert!(said.error.contains(&format!("error: {error}")), "{command}: {}", said.error);
    }
    stage.plan("1.4.0", "paralel: 4\n");
    let document = stage.jobwright("deploy -o json").expect(2).json();
    assert!(document["error"].as_str().unwrap().contains("jobwright.yaml"), "{document}");
}

#[test]
fn plan_exits_with_1_if_the_deploy_would_fail() {
    let stage = Stage::new("components:\n- {name: api, manifests: {path: nowhere}}\n");
    let said = stage.jobwright("plan").expect(1);
    assert!(said.error.contains("error: the deploy would fail: component `api`"), "{}", said.error);
    let document = stage.jobwright("plan -o json").expect(1).json();
    assert_eq!(document["components"][0]["would"], "failed", "{document}");
    stage.jobwright("deploy --dry-run").expect(1);
}

#[test]
fn permissions_are_checked_before_the_namespace_is_created() {
    let plan = format!("jobs:\n{}", job("migrate", "true", "phase: pre"));
    let token = "of-a-founder";
    let stage = Stage::on(Drydock::builder().rbac(true).token(token, User::new("founder", &[])), &plan);
    let admin = stage.client();
    stage.allow(
        "founder",
        "kind: ClusterRole\nmetadata: {name: founder}\nrules:\n- {apiGroups: [''], resources: [namespaces], verbs: [get, create]}\n",
    );
    let text = std::fs::read_to_string(stage.path("kubeconfig")).unwrap();
    let mut kubeconfig: serde_json::Value = serde_json::from_str(&text).unwrap();
    kubeconfig["users"][0]["user"]["token"] = token.into();
    stage.file("kubeconfig", &kubeconfig.to_string());
    let said = stage.jobwright("deploy").expect(4);
    assert!(said.error.contains("permission denied in namespace `shop`: the deploy needs"), "{}", said.error);
    assert!(said.error.contains("nothing was changed"), "{}", said.error);
    let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(admin);
    assert!(stage.block_on(namespaces.get_opt("shop")).unwrap().is_none(), "and that is true");
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
fn plan_tells_a_reader_which_permissions_the_deploy_would_lack() {
    let plan = format!("jobs:\n{}", job("migrate", "echo migrate", "phase: pre"));
    let token = "of-a-reader";
    let stage = Stage::on(Drydock::builder().rbac(true).token(token, User::new("reader", &[])), &plan);
    stage.create(&[]);
    let rules = "kind: ClusterRole\nmetadata: {name: reader}\nrules:\n- {apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]}\n";
    stage.allow("reader", rules);
    let text = std::fs::read_to_string(stage.path("kubeconfig")).unwrap();
    let mut kubeconfig: serde_json::Value = serde_json::from_str(&text).unwrap();
    kubeconfig["users"][0]["user"]["token"] = token.into();
    stage.file("kubeconfig", &kubeconfig.to_string());
    for command in ["plan", "deploy --dry-run"] {
        let said = stage.jobwright(command).expect(1);
        assert!(said.error.contains("kind: Role") && said.error.contains("  verbs: [create, "), "{}", said.error);
        let end = "the deploy would fail: ";
        assert!(
            said.error.contains(end) && said.error.contains("permission denied in namespace `shop`"),
            "{}",
            said.error
        );
    }
    let document = stage.jobwright("plan -o json").expect(1).json();
    assert!(document["denied"][0].as_str().unwrap().contains("`create jobs`"), "{document}");
}

/// What would fail before anything is changed.
const DOOMED: &str = "\
components:
- {name: api, manifests: {path: api.yaml}}
jobs:
- {id: adopt, phase: pre, retires: {never: test}, adopt: {release: shop, objects: [{apiVersion: v1, kind: ConfigMap, name: theirs}]}}
- {id: grow, phase: pre, retires: {never: test}, growVolume: {claim: data, to: 2Gi}}
- {id: import, phase: pre, retires: {never: test}, command: {program: ./import.sh}}
- {id: migrate, phase: pre, retires: {never: test}, pod: {template: {spec: {containers: [{name: M_M, image: busybox}]}}}}
- {id: check, phase: post, retires: {never: test}, command: {program: ./check.sh}}
";

#[test]
fn plan_foresees_what_the_cluster_and_this_machine_would_refuse() {
    let stage = Stage::new(DOOMED);
    let theirs = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs",
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "shop"}}});
    let claim = serde_json::json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}});
    stage.create(&[theirs, claim]);
    stage.file("api.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: api, labels: {l: 'no!'}}\n");
    let before = stage.objects();
    let said = stage.jobwright("plan -o json").expect(1);
    let document = said.json();
    let reason = |kind: &str, id: usize| document[kind][id]["reason"].as_str().unwrap_or_default().to_owned();
    let would = |kind: &str, id: usize| document[kind][id]["would"].as_str().unwrap_or_default().to_owned();
    assert_eq!(would("components", 0), "failed", "{document}");
    assert!(reason("components", 0).contains("the API server would refuse ConfigMap `api`"), "{document}");
    for (index, part) in ["belongs to release shop/other", "has no storage class", "import.sh`", "would refuse its Job"]
        .into_iter()
        .enumerate()
    {
        assert_eq!(would("jobs", index), "fail", "{document}");
        assert!(reason("jobs", index).contains(part), "{document}");
    }
    assert_eq!(would("jobs", 4), "run", "components and jobs before it may make it: {document}");
    assert!(said.error.contains("the deploy would fail: component `api`, job `adopt`, job `grow`"), "{}", said.error);
    assert_eq!(stage.objects(), before, "and nothing was changed");
}

#[test]
fn a_run_whose_end_nobody_saw_exits_with_5_and_status_says_what_to_do() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", "echo lost; sleep 300", "phase: pre, run: OnChange")));
    let deploy = stage.start("deploy -o json");
    stage.wait_for_starts("echo lost; sleep 300", 1);
    let jobs = Api::<Job>::namespaced(stage.client(), "shop");
    let name = stage.block_on(jobs.list(&ListParams::default())).unwrap().items[0].metadata.name.clone().unwrap();
    stage.block_on(jobs.delete(&name, &DeleteParams::background())).unwrap();
    let report = deploy.wait().expect(5).json();
    assert_eq!(report["jobs"][0]["outcome"], "unknown");
    let status = stage.jobwright("status").expect(0);
    assert!(status.out.contains("--again"), "{}", status.out);
    let plan = stage.jobwright("plan").expect(1);
    assert!(plan.error.contains("the deploy would fail: job `migrate`"), "{}", plan.error);
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
