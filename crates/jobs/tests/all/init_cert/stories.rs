//! What becomes of a pair, and of those who trust it.

use super::world::{World, options};
use jobwright_jobs::init_cert::{Action, Options};

#[tokio::test(start_paused = true)]
async fn a_new_webhook_gets_a_pair_that_everybody_trusts() {
    let world = World::running().await;
    assert_eq!(world.trusted().await.len(), 1);
    let starts = world.starts();
    let report = world.run(&options()).await.unwrap();
    assert_eq!(report.action, Action::Kept, "{report:?}");
    assert_eq!(world.starts(), starts, "what is kept restarts nobody");
    world.expect_no_gap().await;
}

#[tokio::test(start_paused = true)]
async fn a_forced_rotation_leaves_no_gap() {
    let world = World::running().await;
    let before = world.trusted().await;
    let report = world.run(&Options { force: true, ..options() }).await.unwrap();
    assert_eq!((report.action, report.restarted), (Action::Renewed, vec!["hook".to_owned()]));
    let after = world.trusted().await;
    assert_eq!(after.len(), 1);
    assert_ne!(before, after);
    world.expect_no_gap().await;
}
