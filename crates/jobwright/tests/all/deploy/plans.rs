//! `plan --check`: what should not be merged.

use crate::deploy::stage::{Stage, component, job};

#[test]
fn a_plan_with_nothing_wrong_passes_without_a_cluster() {
    let stage = Stage::new(&format!("jobs:\n{}", job("migrate", "true", "phase: pre")));
    std::fs::remove_file(stage.path("kubeconfig")).unwrap();
    stage.jobwright("plan --check").expect(0);
}

#[test]
fn a_job_that_does_not_say_when_it_retires_or_should_have_retired_fails_the_check() {
    let without = job("first", "true", "phase: pre").replace("retires: {never: test}, ", "");
    let retired = job("second", "true", "phase: pre").replace("{never: test}", "{at: 1.4.0}");
    let stage = Stage::new(&format!("jobs:\n{without}{retired}"));
    let said = stage.jobwright("plan --check").expect(1);
    let all = said.out + &said.error;
    assert!(all.contains("retires") && all.contains("`second`") && all.contains("1.4.0"), "{all}");
    let said = stage.jobwright("deploy").expect(1);
    assert!(said.error.contains("`second`"), "what has retired is not deployed either: {}", said.error);
}

#[test]
fn values_that_nobody_uses_fail_the_check() {
    let stage = Stage::new("components:\n- {name: api, chart: {path: api}, values: [values/api.yaml]}\n");
    stage.file("values/api.yaml", "{}");
    stage.file("values/forgotten.yaml", "{}");
    stage.file("api/Chart.yaml", "apiVersion: v2\nname: api\nversion: 1.0.0\n");
    let said = stage.jobwright("plan --check").expect(1);
    let all = said.out + &said.error;
    assert!(all.contains("forgotten.yaml") && !all.contains("values/api.yaml"), "{all}");
}

#[test]
fn a_plan_says_what_would_happen_and_why() {
    let jobs = job("migrate", "true", "component: api, phase: pre")
        + &job("later", "true", "component: api, phase: post, on: [upgrade]");
    let stage = Stage::new(&format!("components:\n- {{name: api, manifests: {{path: api}}}}\njobs:\n{jobs}"));
    component(&stage, "api", "1");
    let said = stage.jobwright("plan").expect(0);
    for part in ["api", "installed", "migrate", "run", "later", "skip"] {
        assert!(said.out.contains(part), "{part} is not in\n{}", said.out);
    }
}
