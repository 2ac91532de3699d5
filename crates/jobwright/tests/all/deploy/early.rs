//! Before a deploy begins: `--timeout` and Ctrl-C count from the start of the command, and what they leave is reported.

use crate::deploy::front::{Deed, Front};
use crate::deploy::stage::{Stage, component, job};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use rustix::process::Signal;

fn stage() -> Stage {
    let jobs = job("migrate", "echo migrate", "phase: pre");
    let stage = Stage::new(&format!("components:\n- {{name: api, manifests: {{path: api}}}}\njobs:\n{jobs}"));
    component(&stage, "api", "1");
    stage
}

fn has_namespace(stage: &Stage) -> bool {
    stage.block_on(Api::<Namespace>::all(stage.client()).get_opt("shop")).unwrap().is_some()
}

#[test]
fn timeout_ends_a_command_whose_discovery_fails_or_is_not_answered() {
    for deed in [Deed::Refuse(503), Deed::Ignore] {
        let stage = stage();
        let _front = Front::start(&stage, move |_, path| if path == "/api/v1" { deed } else { Deed::Pass });
        for command in ["deploy", "run migrate"] {
            let said = stage.start(&format!("{command} --timeout 1s -o json")).wait_within_a_minute().expect(1);
            let expected = "timed out after 1s before the deploy began; nothing was changed";
            assert_eq!(said.json()["error"], expected, "{deed:?} {command}: {}", said.error);
        }
        assert!(!has_namespace(&stage), "{deed:?}");
    }
}

#[test]
fn ctrl_c_ends_a_command_whose_discovery_fails_or_is_not_answered() {
    for deed in [Deed::Refuse(503), Deed::Ignore] {
        let stage = stage();
        let front = Front::start(&stage, move |_, path| if path == "/api/v1" { deed } else { Deed::Pass });
        let deploy = stage.start("deploy -o json");
        front.wait_for_disturbance();
        deploy.signal(Signal::INT);
        let document = deploy.wait_within_a_minute().expect(130).json();
        let expected = "cancelled before the deploy began; nothing was changed";
        assert_eq!((&document["outcome"], &document["error"]), (&"cancelled".into(), &expected.into()), "{deed:?}");
    }
}

#[test]
fn timeout_ends_a_command_whose_cluster_never_answers() {
    let stage = stage();
    let _front = Front::start(&stage, |_, _| Deed::Ignore);
    let said = stage.start("deploy --timeout 1s -o json").wait_within_a_minute().expect(1);
    assert_eq!(said.json()["error"], "timed out after 1s before the deploy began; nothing was changed");
}

#[test]
fn what_was_done_to_the_namespace_is_reported_if_the_deploy_did_not_begin() {
    let asked = "namespace `shop` may have been created, nothing else was changed";
    let created = "namespace `shop` was created, nothing else was changed";
    for (deed, done) in [(Deed::Ignore, asked), (Deed::Swallow, asked), (Deed::Pass, created)] {
        let stage = stage();
        let rule = move |method: &str, path: &str| match (method, path) {
            ("POST", "/api/v1/namespaces") => deed,
            ("GET", path) if path.contains("/leases/") => Deed::Ignore,
            _ => Deed::Pass,
        };
        let interrupt = || {
            let front = Front::start(&stage, rule);
            let deploy = stage.start("deploy -o json");
            front.wait_for_disturbance();
            deploy.signal(Signal::INT);
            deploy.wait_within_a_minute().expect(130).json()["error"].clone()
        };
        assert_eq!(interrupt(), format!("cancelled before the deploy began; {done}"), "{deed:?}");
        if deed == Deed::Ignore {
            assert!(!has_namespace(&stage));
        }
        if deed == Deed::Pass {
            assert!(has_namespace(&stage));
            assert_eq!(interrupt(), "cancelled before the deploy began; nothing was changed", "it exists");
        }
    }
}
