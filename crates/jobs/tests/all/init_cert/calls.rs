//! How often the cluster is asked: once for each target, however many steps there are.

use super::targets::{names, wanted};
use super::world::{World, deployment, webhooks};
use jobwright_drydock::Faults;
use jobwright_jobs::init_cert::{Options, Targets, check};

const VALIDATING: &str = "ValidatingWebhookConfiguration";
const TARGETS: usize = 200;
/// Secrets, the Lease, the Deployment, its pods, and waiting for them.
const BESIDES: usize = 60;

/// The calls to the configurations that were made with this verb, and all others that only read.
fn count(faults: &Faults) -> (usize, usize, usize) {
    let calls = faults.calls();
    let of = |verb: &str| {
        calls.iter().filter(|call| call.resource == "validatingwebhookconfigurations" && call.verb == verb).count()
    };
    let reads = calls.iter().filter(|call| !call.writes()).count();
    (of("get"), of("patch"), reads - of("get"))
}

#[tokio::test(start_paused = true)]
async fn two_hundred_targets_are_read_and_patched_once() {
    let mut world = World::empty().await;
    world.apply(deployment()).await;
    let all: Vec<String> = (0..TARGETS).map(|number| format!("shop-{number}")).collect();
    for name in &all {
        world.apply(webhooks(VALIDATING, name, &[("one.shop.example", "hook")])).await;
    }
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let wanted = wanted(Targets { validating_webhooks: names(&all), ..Targets::default() });
    // What a run does, how often each target is read, and how often it is patched.
    for (what, force, reads, patches) in [("made", false, 1, 1), ("kept", false, 1, 0), ("rotated", true, 2, 2)] {
        world.faults = Faults::new(0);
        world.run(&Options { force, ..wanted.clone() }).await.unwrap();
        let (gets, patched, others) = count(&world.faults);
        assert_eq!(patched, patches * TARGETS, "{what}");
        assert!(gets <= reads * TARGETS && others <= BESIDES, "{what}: {gets} of targets, {others} others");
    }
    world.faults = Faults::new(0);
    check(&world.surroundings(None), &wanted).await.unwrap();
    let (gets, patched, others) = count(&world.faults);
    assert!((gets, patched) == (TARGETS, 0) && others <= BESIDES, "{gets} {patched} {others}");
}
