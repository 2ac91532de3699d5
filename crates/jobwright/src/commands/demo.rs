//! `jobwright demo`: a release with a Job, told while it happens, in a cluster that lives in memory.

mod story;

use crate::arguments::{self, Format};
use crate::failure::{ErrorExt as _, Failure, Kind};
use crate::output;
use anyhow::Result;
use jobwright_drydock::Drydock;
use story::{Story, Tone};

pub(super) fn run(arguments: &arguments::Demo) -> Result<(), Failure> {
    // The clock of this runtime stands still while there is work and jumps ahead when there is none.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.or_fail(Kind::Internal)?;
    let mut story = Story::new(Drydock::new(), arguments.output == Format::Text);
    runtime.block_on(tell(&mut story)).or_fail(Kind::Internal)?;
    if arguments.output == Format::Json {
        output::line(&story.to_json());
    }
    Ok(())
}

/// A release of a shop: its migration as a Job, and what happens to it from version to version.
async fn tell(story: &mut Story) -> Result<()> {
    story.chapter("A cluster in memory, with a clock of its own.");
    story.apply_namespace().await?;

    story.chapter("Release 1.0 has a migration.");
    story.apply_job("1.0", "echo applying 001-orders; sleep 20; echo done", None).await?;
    story.wait_for_job().await?;
    story.show_log().await?;

    story.chapter("Release 1.0 is applied again.");
    story.apply_job("1.0", "echo applying 001-orders; sleep 20; echo done", None).await?;
    story.sleep_minutes(1).await;
    story.count_runs(1, "nothing changed, so nothing was written and nothing ran");

    story.chapter("Release 1.1 has a new image.");
    story.apply_job("1.1", "echo applying 002-prices; sleep 20; echo done", None).await?;
    story.say(Tone::Plain, "a Job's template never changes: this is what every deployer runs into first");
    story.delete_job().await?;
    story.apply_job("1.1", "echo applying 002-prices; sleep 20; echo done", Some(60)).await?;
    story.wait_for_job().await?;

    story.chapter("An hour later the Job has expired. Release 1.1 is applied again, unchanged.");
    story.sleep_minutes(60).await;
    story.look_for_job().await?;
    story.apply_job("1.1", "echo applying 002-prices; sleep 20; echo done", Some(60)).await?;
    story.wait_for_job().await?;
    story.count_runs(3, "two releases, three runs: the Job was the only record, and it was gone");

    story.chapter("That is what Jobwright is for.");
    story.say(Tone::Good, "a ledger apart from the Job objects: each migration once, with proof, whatever deploys it");
    Ok(())
}
