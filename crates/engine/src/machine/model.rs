//! What the machine is told, and what it says.

use crate::fingerprint::{Fingerprint, Fingerprints};
use crate::job::Needed;
use crate::ledger::{Active, Ledger, Outcome};
use crate::mask::Mask;
use crate::names;
use crate::policy::{Keep, OnCancel, OnSupersede, OnUnknown, Patience, Retries, RunPolicy};
use crate::version::Version;
use jiff::Timestamp;
use std::fmt;
use std::time::Duration;

/// What is wanted of a job.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Whose job it is.
    pub identity: Identity,
    /// What it runs with.
    pub fingerprints: Fingerprints,
    /// The version that is declared.
    pub version: Option<Version>,
    /// Which application of the release this is: the same text is the same application.
    pub revision: String,
    /// A request for one more run; empty for none.
    pub nonce: String,
    /// When it runs again.
    pub run: RunPolicy,
    /// What happens to a run that is in the way.
    pub on_supersede: OnSupersede,
    /// What happens when nobody can say how a run ended.
    pub on_unknown: OnUnknown,
    /// What happens to it when the deploy is cancelled.
    pub on_cancel: OnCancel,
    /// How often a failed attempt is made again.
    pub retries: Retries,
    /// How long an attempt may take.
    pub deadline: Option<Duration>,
    /// What is kept of it.
    pub keep: Keep,
    /// How long trouble may last.
    pub patience: Patience,
    /// What its attempts are.
    pub durability: Durability,
    /// How far to go.
    pub effort: Effort,
}

impl Spec {
    /// Whether a run that is going is the one that is wanted.
    pub(crate) fn takes(&self, active: &Active) -> bool {
        self.effort == Effort::Settle
            || self.fingerprints.include(&active.fingerprint) && (self.nonce.is_empty() || self.nonce == active.nonce)
    }

    /// What the name of a first run is made of. A lost ledger finds the Job that did the same work by its name, which is
    /// wrong where the same work is due with every deploy.
    pub(super) fn first_nonce(&self) -> String {
        match self.run {
            RunPolicy::Always | RunPolicy::OnChangeOrExpired => format!("{}@{}", self.nonce, self.revision),
            RunPolicy::OncePerFingerprint | RunPolicy::OnChange | RunPolicy::Once => self.nonce.clone(),
        }
    }

    /// What the Job of an attempt is called; nothing for a task of this process.
    pub(super) fn job_name(&self, fingerprint: &Fingerprint, nonce: &str, attempt: u32) -> String {
        match self.durability {
            Durability::Cluster => self.identity.job_name(fingerprint, nonce, attempt),
            Durability::Process => String::new(),
        }
    }
}

/// Whose job it is: what its Jobs are named after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The namespace.
    pub namespace: String,
    /// The release, or the uid of what owns it.
    pub owner: String,
    /// The job.
    pub job: String,
    /// What names begin with.
    pub base: String,
}

impl Identity {
    fn job_name(&self, fingerprint: &Fingerprint, nonce: &str, attempt: u32) -> String {
        let parts =
            [self.namespace.as_str(), &self.owner, &self.job, &fingerprint.to_string(), nonce, &attempt.to_string()];
        names::with_hash(&self.base, 52, &names::hash(&parts, 10))
    }

    /// What to do about a ledger that can remember no further inputs.
    pub(super) fn advise_when_full(&self) -> String {
        let ledger = names::record(&self.base, &[&self.namespace, &self.owner, &self.job]);
        let Self { namespace, owner, job, .. } = self;
        // Other releases of the namespace may have a job of this name.
        let jobs = format!("{}={owner},{}={job}", names::RELEASE, names::JOB);
        format!(
            "its ledger is full: to forget all its runs, `kubectl delete configmap/{ledger} -n {namespace}` and \
             `kubectl delete job -l {jobs} -n {namespace}`; the next deploy runs the job again"
        )
    }
}

/// What the attempts of a job are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Jobs of the cluster, which outlive us.
    Cluster,
    /// Tasks of this process, which do not.
    Process,
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Until the job has its verdict.
    Run,
    /// Only write down what has ended meanwhile, and start nothing.
    Settle,
}

/// What is seen.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Job of the attempt that is going, by its name.
    pub attempt: Seen,
    /// Whether that was just read. What a watch shows may be old.
    pub is_confirmed: bool,
    /// How its pod ended, if that was seen.
    pub pod_finish: Option<Finish>,
    /// What keeps its pod from running.
    pub trouble: Option<Trouble>,
    /// Since when its pod has neither started nor said why.
    pub is_silent_since: Option<Timestamp>,
    /// Since when this process has seen it run without a start time.
    pub is_unstarted_since: Option<Timestamp>,
    /// The end of its log, or why there is none; none before anybody asked.
    pub log: Option<Result<String, String>>,
    /// Why the cluster refused to make its Job.
    pub refusal: Option<String>,
    /// Whether the refusal is worth another attempt, or the failure was declared to be one.
    pub is_final: bool,
    /// Whether there is anything to do; none before anybody asked.
    pub needed: Option<Needed>,
    /// Other Jobs of the same job.
    pub strays: Vec<Stray>,
    /// A pod that still runs although its Job is gone.
    pub remains: Option<Remains>,
    /// Whether the deploy is cancelled.
    pub is_cancelled: bool,
}

impl Default for Observed {
    fn default() -> Self {
        Self {
            attempt: Seen::Absent,
            is_confirmed: false,
            pod_finish: None,
            trouble: None,
            is_silent_since: None,
            is_unstarted_since: None,
            log: None,
            refusal: None,
            is_final: false,
            needed: None,
            strays: Vec::new(),
            remains: None,
            is_cancelled: false,
        }
    }
}

impl Observed {
    /// Hides values of Secrets in whatever was said.
    pub(crate) fn hide(&mut self, mask: &Mask) {
        let life = match &mut self.attempt {
            Seen::Present { life: Life::Finished(finish), .. } => Some(finish),
            _ => None,
        };
        let reasons = life.into_iter().chain(&mut self.pod_finish).map(|finish| &mut finish.reason);
        let messages = self.trouble.iter_mut().map(|trouble| &mut trouble.message);
        let logs = self.log.iter_mut().map(|log| match log {
            Ok(text) | Err(text) => text,
        });
        for text in reasons.chain(messages).chain(logs).chain(&mut self.refusal) {
            *text = mask.apply(text);
        }
    }
}

/// A pod that still runs although its Job is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remains {
    /// Its name.
    pub pod: String,
    /// Since when it is being deleted; none if it is not.
    pub since: Option<Timestamp>,
}

/// Whether the Job of an attempt is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It certainly is not.
    Absent,
    /// It is.
    Present {
        /// Its uid.
        uid: String,
        /// How it is.
        life: Life,
    },
}

/// How a Job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Life {
    /// It is held, and has not started.
    Held,
    /// It runs, or tries to.
    Running {
        /// When its Job started, by the cluster's clock; none before the Job controller has recorded it.
        since: Option<Timestamp>,
    },
    /// It is being deleted.
    Going {
        /// Since when, by the cluster's clock.
        since: Timestamp,
    },
    /// It has finished.
    Finished(Finish),
}

/// How a Job or its pod finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// Whether well.
    pub succeeded: bool,
    /// Why, where there is something to say.
    pub reason: String,
    /// What its container ended with.
    pub exit_code: Option<i32>,
    /// When it had started, if that is known.
    pub started_at: Option<Timestamp>,
    /// When it finished.
    pub at: Timestamp,
}

impl Finish {
    pub(super) fn outcome(&self) -> Outcome {
        if self.succeeded { Outcome::Succeeded } else { Outcome::Failed }
    }
}

/// What keeps a pod from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// In one word, as Kubernetes calls it.
    pub reason: String,
    /// In more words.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
    /// When it was last seen. The kubelet reports a volume that cannot be mounted less and less often.
    pub seen: Timestamp,
    /// Whether no node has room for it.
    pub is_scheduling: bool,
    /// Whether it lasts: the pod says so itself, or an event was repeated. One Warning may have passed long ago.
    pub is_lasting: bool,
}

/// A Job of the same job that is not the one that is going.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// Its name.
    pub job: String,
    /// Its uid.
    pub uid: String,
    /// How it is.
    pub life: Life,
    /// Whether it expires by itself.
    pub expires: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask whether there is anything to do.
    Ask,
    /// Write this ledger, if it is still the one that was read.
    Record(Box<Ledger>),
    /// Make the Job of the attempt that is going, held.
    Create,
    /// Let a Job start.
    Release {
        /// Its name.
        job: String,
        /// Its uid.
        uid: String,
    },
    /// Look at the events of a pod that does not start.
    Inspect,
    /// Read the Job of the attempt, instead of watching it.
    Confirm,
    /// Read the end of its log.
    ReadLog,
    /// Delete a Job and its pods.
    Delete {
        /// Its name.
        job: String,
        /// Its uid.
        uid: String,
    },
    /// Let a finished Job expire.
    Expire {
        /// Its name.
        job: String,
        /// Its uid.
        uid: String,
        /// This many seconds after it finished.
        seconds: i32,
    },
    /// Wait until something changes.
    Wait(Waiting),
    /// There is nothing more to do.
    Done(Verdict),
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Not longer than until then.
    pub until: Option<Timestamp>,
    /// In words.
    pub what: &'static str,
}

impl Waiting {
    pub(super) fn until_finished(until: Option<Timestamp>) -> Self {
        Self { until, what: "its Job" }
    }

    pub(super) fn until_gone(until: Option<Timestamp>) -> Self {
        Self { until, what: "a Job that is being deleted" }
    }

    pub(super) fn to_retry(time: Timestamp) -> Self {
        Self { until: Some(time), what: "the next attempt" }
    }

    pub(super) fn for_room(until: Option<Timestamp>) -> Self {
        Self { until, what: "what is left of an earlier run" }
    }
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It ran, and succeeded.
    Succeeded {
        /// The number of the run.
        run: u64,
        /// How many attempts it took.
        attempts: u32,
    },
    /// It did not have to run.
    Skipped(Skip),
    /// It failed.
    Failed {
        /// The number of the run, if it came to one.
        run: Option<u64>,
        /// How many attempts were made.
        attempts: u32,
        /// Why.
        reason: String,
    },
    /// Nobody can say how a run ended.
    Unknown {
        /// The number of the run.
        run: u64,
    },
    /// It was cancelled.
    Cancelled {
        /// The number of the run, if it came to one.
        run: Option<u64>,
    },
    /// It was left running.
    Left {
        /// The number of the run.
        run: u64,
    },
}

/// Why a job did not have to run.
#[derive(Clone, Debug, PartialEq)]
pub enum Skip {
    /// It has succeeded with the same inputs.
    AlreadySucceeded {
        /// In this run.
        run: u64,
    },
    /// It succeeded last with the same inputs.
    Unchanged {
        /// In this run.
        run: u64,
    },
    /// It succeeded a short while ago.
    NotExpired {
        /// In this run.
        run: u64,
        /// And is not to run again before then.
        until: Timestamp,
    },
    /// A newer version has succeeded.
    NewerAlreadyApplied {
        /// The newer version.
        newest: Version,
    },
    /// The cluster already has what it would make.
    NotNeeded(String),
    /// Nothing was going on.
    NothingActive,
}

impl fmt::Display for Skip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadySucceeded { run } => write!(formatter, "already succeeded in run {run}"),
            Self::Unchanged { run } => write!(formatter, "unchanged since run {run}"),
            Self::NotExpired { run, until } => {
                write!(formatter, "succeeded in run {run}, which counts until {until:.0}")
            }
            Self::NewerAlreadyApplied { newest } => write!(formatter, "NewerAlreadyApplied: {newest} has succeeded"),
            Self::NotNeeded(reason) => write!(formatter, "not needed: {reason}"),
            Self::NothingActive => write!(formatter, "nothing was going on"),
        }
    }
}
