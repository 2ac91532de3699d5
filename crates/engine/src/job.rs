//! Jobs in code: what a job says of itself, and what it does.

use crate::context::Context;
use crate::error::{Answer, classify};
use crate::policy::{OnFailure, Retries, RunPolicy};
use crate::version::Version;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// Work around a release, in code.
///
/// The engine asks whether it is [`needed`](Job::needed), runs it when its turn comes, makes failed attempts again,
/// ends it at its time limit, and writes down what became of it. A job that panics has failed.
///
/// # Guarantees and assumptions
///
/// A job in code runs *at least* once: if the process dies while it runs, the next deploy runs it again. So it has to
/// be able to go on from where it was, and [`needed`](Job::needed) is the place to see that nothing is left to do.
/// Cancellation comes through the [`Context`]; whoever ignores it is abandoned after a grace period.
///
/// ```
/// use jobwright_engine::{Context, Failure, Job, Needed, Retires, When, async_trait};
///
/// struct AnnotateGateway;
///
/// #[async_trait]
/// impl Job for AnnotateGateway {
///     fn id(&self) -> &str {
///         "annotate-gateway"
///     }
///     fn when(&self) -> When {
///         When::before("certificates")
///     }
///     fn retires(&self) -> Retires {
///         Retires::At("2.0.0".parse().unwrap())
///     }
///     async fn needed(&self, _: &Context) -> Result<Needed, Failure> {
///         Ok(Needed::No("there is no gateway yet".into()))
///     }
///     async fn run(&self, context: &Context) -> Result<(), Failure> {
///         context.log("annotating");
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Job: Send + Sync {
    /// What it is called: lower-case letters, digits and dashes, and no other job of the release has it.
    fn id(&self) -> &str;

    /// Where in a deploy it belongs.
    fn when(&self) -> When;

    /// At which version it is to be gone from the code. There is no default: somebody has to decide.
    fn retires(&self) -> Retires;

    /// Whether there is anything to do. The state of the cluster decides, not what was done before.
    async fn needed(&self, _context: &Context) -> Result<Needed, Failure> {
        Ok(Needed::Yes)
    }

    /// Fails where it would fail before it changes anything. Only a preview asks, and nothing may be changed for the answer.
    async fn foresee(&self, _context: &Context) -> Result<(), Failure> {
        Ok(())
    }

    /// Does it.
    async fn run(&self, context: &Context) -> Result<(), Failure>;

    /// Jobs of the same scope and phase that come before it.
    fn after(&self) -> Vec<String> {
        Vec::new()
    }

    /// When it runs again, besides being needed.
    fn run_policy(&self) -> RunPolicy {
        RunPolicy::Always
    }

    /// What it depends on, for the policies that ask whether that has changed.
    fn inputs(&self) -> Value {
        Value::Null
    }

    /// How long an attempt may take.
    fn timeout(&self) -> Duration {
        Duration::from_mins(10)
    }

    /// How often a failed attempt is made again.
    fn retries(&self) -> Retries {
        Retries::default()
    }

    /// What its failure means for the deploy.
    fn on_failure(&self) -> OnFailure {
        OnFailure::Stop
    }
}

/// What a job belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The release as a whole.
    Global,
    /// One component.
    Component(String),
}

impl Scope {
    /// The component, if it is one.
    pub fn component(&self) -> Option<&str> {
        match self {
            Self::Global => None,
            Self::Component(name) => Some(name),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.component().unwrap_or("global"))
    }
}

/// Before or after what it belongs to is deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Before.
    Pre,
    /// After, if that went well.
    Post,
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Pre => "pre",
            Self::Post => "post",
        })
    }
}

/// Whether what a job belongs to is new to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Occasion {
    /// It has not been deployed completely before.
    Install,
    /// It has been deployed before.
    Upgrade,
}

impl fmt::Display for Occasion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade",
        })
    }
}

/// Where in a deploy a job belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct When {
    /// What it belongs to.
    pub scope: Scope,
    /// Before or after that.
    pub phase: Phase,
    /// Only then; on both if none.
    pub only: Option<Occasion>,
}

impl When {
    /// Before a component is deployed.
    pub fn before(component: &str) -> Self {
        Self { scope: Scope::Component(component.to_owned()), phase: Phase::Pre, only: None }
    }

    /// After a component has been deployed.
    pub fn after(component: &str) -> Self {
        Self { phase: Phase::Post, ..Self::before(component) }
    }

    /// Before all components.
    pub fn before_all() -> Self {
        Self { scope: Scope::Global, phase: Phase::Pre, only: None }
    }

    /// After all components.
    pub fn after_all() -> Self {
        Self { phase: Phase::Post, ..Self::before_all() }
    }

    /// Only on this occasion.
    #[must_use]
    pub fn only(mut self, occasion: Occasion) -> Self {
        self.only = Some(occasion);
        self
    }
}

/// Whether there is anything to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needed {
    /// There is.
    Yes,
    /// There is not, and why.
    No(String),
}

/// At which version a job is to be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retires {
    /// From this version on it is an error to have it.
    At(Version),
    /// It stays, and why.
    Never(String),
}

impl Retires {
    /// It stays, and why.
    pub fn never(why: &str) -> Self {
        Self::Never(why.to_owned())
    }
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    message: String,
    is_final: bool,
    ends_deploy: bool,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Failure {
    /// It failed, and a further attempt may do better.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_final: false, ends_deploy: false, source: None }
    }

    /// What it failed of.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// No further attempt will do better.
    #[must_use]
    pub fn for_good(mut self) -> Self {
        self.is_final = true;
        self
    }

    /// The whole deploy must end.
    #[must_use]
    pub fn ends_deploy(mut self) -> Self {
        self.is_final = true;
        self.ends_deploy = true;
        self
    }

    pub(crate) fn is_final(&self) -> bool {
        self.is_final
    }

    pub(crate) fn does_end_deploy(&self) -> bool {
        self.ends_deploy
    }

    /// The message with everything behind it.
    pub(crate) fn whole_message(&self) -> String {
        crate::error::chain(self)
    }

    /// The error of an API call that caused it, if a repetition of that call may succeed and none was tried.
    pub(crate) fn passing_error(&self) -> Option<&kube::Error> {
        let error = crate::error::unretried(self)?;
        let passes = matches!(classify(error), Answer::TryAgain(_) | Answer::Conflict);
        (passes && !self.is_final).then_some(error)
    }
}

impl From<crate::Error> for Failure {
    fn from(error: crate::Error) -> Self {
        Self::new(error.to_string()).because(error)
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self::new("the API server refused").because(error)
    }
}
