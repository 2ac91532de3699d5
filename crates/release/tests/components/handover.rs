//! A Lease that someone deletes while its holder works. The holder does not know that at once, so the next one waits until
//! it has certainly stopped, and reads what it has written until then.

use crate::stage::{Stage, Wish, component, map};
use jobwright_engine::{Error, Events};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long another holder may still be working.
const OUTLASTED: Duration = Duration::from_secs(15);

/// A job that takes five seconds, and a component.
fn plan() -> String {
    let container = json!({"name": "main", "image": "busybox", "command": ["sh", "-c", "sleep 5"]});
    let pod = json!({"template": {"spec": {"containers": [container]}}});
    let jobs = json!([{"id": "migrate", "phase": "pre", "retires": {"never": "test"}, "pod": pod}]);
    format!("components:\n{}jobs: {jobs}", component("api", "api.yaml"))
}

async fn delete_lease(stage: &Stage) {
    let leases = Api::<Lease>::namespaced(stage.client(), "shop");
    let found = leases.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(found.len(), 1);
    leases.delete(&found[0].name_any(), &DeleteParams::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_next_holder_waits_and_goes_on_with_what_was_written_meanwhile() {
    // The first deploy loses its lease before, while and after it records its job.
    for half_seconds in 0..16 {
        let stage = Stage::new().await;
        stage.manifests("api.yaml", &[map("api", "1")]);
        let plan = plan();
        let next = async {
            tokio::time::sleep(Duration::from_millis(500) * half_seconds + Duration::from_millis(100)).await;
            let was_working = stage.maps().await.is_empty();
            if was_working {
                delete_lease(&stage).await;
            }
            let began = Instant::now();
            stage.succeed(&Wish::default(), &plan).await;
            assert!(!was_working || began.elapsed() >= OUTLASTED, "it did not wait: {:?}", began.elapsed());
        };
        let wish = Wish::default();
        let (_, ()) = tokio::join!(stage.try_deploy(&wish, &plan), next);
        assert_eq!(stage.maps().await, ["api"], "{half_seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_is_cancelled_while_it_waits_leaves_the_wait_to_the_next() {
    let stage = Stage::new().await;
    stage.manifests("api.yaml", &[map("api", "1")]);
    let (wish, plan) = (Wish::default(), plan());
    let first = tokio::time::timeout(Duration::from_secs(3), stage.try_deploy(&wish, &plan)).await;
    assert!(first.is_err(), "it should have been at work: {first:?}");
    delete_lease(&stage).await;
    let (file, cancellation) = (stage.parse(&wish, &plan), CancellationToken::new());
    let second = stage.deployment(&file, &wish);
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancellation.cancel();
    };
    let (cancelled, ()) = tokio::join!(second.deploy(cancellation.clone(), Events::nowhere()), cancel);
    assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
    let began = Instant::now();
    stage.succeed(&wish, &plan).await;
    assert!(began.elapsed() >= OUTLASTED, "it did not wait: {:?}", began.elapsed());
}
