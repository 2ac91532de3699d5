//! What every job has, whatever it does: what it is called, where it belongs, and what its failure means.

use jobwright_engine::{OnFailure, Retires, Retries, RunPolicy, When};
use std::time::Duration;

/// What every job has.
#[derive(Clone, Debug)]
pub struct Place {
    /// What it is called.
    pub id: String,
    /// Where in a deploy it belongs.
    pub when: When,
    /// At which version it is to be gone.
    pub retires: Retires,
    /// Jobs of the same scope and phase that come before it.
    pub after: Vec<String>,
    /// When it runs again, besides being needed.
    pub run: RunPolicy,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How often a failed attempt is made again.
    pub retries: Retries,
    /// What its failure means for the deploy.
    pub on_failure: OnFailure,
}

impl Place {
    /// A job that runs whenever it is needed.
    pub fn new(id: &str, when: When, retires: Retires) -> Self {
        Self {
            id: id.to_owned(),
            when,
            retires,
            after: Vec::new(),
            run: RunPolicy::Always,
            timeout: Duration::from_mins(10),
            retries: Retries::default(),
            on_failure: OnFailure::Stop,
        }
    }
}

/// The methods of a job that its place answers.
macro_rules! placed {
    () => {
        fn id(&self) -> &str {
            &self.place.id
        }

        fn when(&self) -> jobwright_engine::When {
            self.place.when.clone()
        }

        fn retires(&self) -> jobwright_engine::Retires {
            self.place.retires.clone()
        }

        fn after(&self) -> Vec<String> {
            self.place.after.clone()
        }

        fn run_policy(&self) -> jobwright_engine::RunPolicy {
            self.place.run
        }

        fn timeout(&self) -> std::time::Duration {
            self.place.timeout
        }

        fn retries(&self) -> jobwright_engine::Retries {
            self.place.retries
        }

        fn on_failure(&self) -> jobwright_engine::OnFailure {
            self.place.on_failure
        }
    };
}

pub(crate) use placed;
