//! The engine by itself: components whose jobs are code that does nothing, and no cluster that is asked.

use crate::usage::Usage;
use anyhow::{Result, ensure};
use jobwright_drydock::Drydock;
use jobwright_engine::{
    Clock, Component, Context, Decision, DeployContext, DeployOutcome, Events, Failure, Job, Manager, Occasion,
    Registry, Release, Retires, Settings, When, async_trait,
};
use kube::Client;
use tokio_util::sync::CancellationToken;

struct Part(String);

#[async_trait]
impl Component for Part {
    fn name(&self) -> &str {
        &self.0
    }

    async fn decide(&self, _: &DeployContext) -> Result<Decision, Failure> {
        Ok(Decision::Install("it is measured".to_owned()))
    }

    async fn deploy(&self, _: &DeployContext, _: Occasion) -> Result<(), Failure> {
        Ok(())
    }
}

struct Nothing {
    id: String,
    when: When,
}

#[async_trait]
impl Job for Nothing {
    fn id(&self) -> &str {
        &self.id
    }

    fn when(&self) -> When {
        self.when.clone()
    }

    fn retires(&self) -> Retires {
        Retires::never("it is measured")
    }

    async fn run(&self, _: &Context) -> Result<(), Failure> {
        Ok(())
    }
}

/// What a deploy of so many components with so many jobs each takes, half of them before and half after.
pub(crate) async fn measure(components: usize, jobs: usize) -> Result<Usage> {
    let drydock = Drydock::new();
    let client = Client::new(drydock.clone(), "default");
    let mut registry = Registry::new();
    for component in 0..components {
        let name = format!("part-{component}");
        for number in 0..jobs {
            let when = if number % 2 == 0 { When::before(&name) } else { When::after(&name) };
            registry.job(Nothing { id: format!("{name}-{number}"), when });
        }
        registry.component(Part(name));
    }
    let release = Release { name: "shop".to_owned(), namespace: "default".to_owned(), ..Release::default() };
    let settings = Settings { without_records: true, ..Settings::default() };
    let manager = Manager::new(client, release, Clock::new(move || drydock.now()), settings);
    Usage::of(async {
        let report = manager.deploy(&registry, CancellationToken::new(), Events::nowhere()).await?;
        ensure!(report.outcome == DeployOutcome::Succeeded && report.jobs.len() == components * jobs, "{report:?}");
        Ok(())
    })
    .await
}
