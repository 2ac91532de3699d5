//! Carries it out: looks, asks what comes next, does it, and looks again, until nothing is left. It takes no decisions
//! about trust; it knows nothing that is not in the cluster, but what it has itself made.

mod assess;
mod evidence;
mod serve;

pub(super) use assess::Step;
pub(super) use serve::target_reports;

use super::Surroundings;
use super::certificate::{Certificate, fingerprint};
use super::decide::{self, Made, Next, Trust};
use super::error::Error;
use super::inspect::AuthorityState;
use super::issue::{later, make_authority, make_pair};
use super::objects::{Objects, targets_of};
use super::observe::{self, Mishap};
use super::options::{Options, Stage};
use super::report::{Action, Report};
use super::secrets::{self, FIELD_MANAGER};
use super::target::Target;
use crate::answer::plain;
use jiff::Timestamp;
use jobwright_engine::{Answer, Outage, classify};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often is looked whether something has come about.
const POLL: Duration = Duration::from_secs(2);
/// The pause after something was done.
const BREATH: Duration = Duration::from_millis(10);
/// How long a cluster that answers with errors is asked again.
const OUTAGE: Duration = Duration::from_mins(2);

/// What a turn came to.
enum Turn {
    /// Something was done: look again.
    Again,
    /// This has to come about first.
    Wait(String),
    Done(Box<Report>),
}

pub(super) struct Rotation<'a> {
    around: &'a Surroundings,
    options: &'a Options,
    objects: Objects,
    /// Whether targets were read again at the end of a long run.
    is_read_again: bool,
    made: Made,
    /// What was decided about the pair first.
    verdict: Option<decide::Verdict>,
    restarted: BTreeSet<String>,
    changed: BTreeSet<String>,
    /// Since when servers show something else, and what was restarted for that.
    wrong_since: Option<Timestamp>,
    restarted_again: BTreeSet<String>,
    told: BTreeSet<String>,
    waiting_for: &'a Mutex<String>,
    /// An annotation that a new Secret of the CA gets.
    memory: Option<(String, String)>,
}

impl<'a> Rotation<'a> {
    pub(super) fn new(around: &'a Surroundings, options: &'a Options, waiting_for: &'a Mutex<String>) -> Self {
        Self {
            around,
            options,
            objects: Objects::default(),
            is_read_again: false,
            made: Made::default(),
            verdict: None,
            restarted: BTreeSet::new(),
            changed: BTreeSet::new(),
            wrong_since: None,
            restarted_again: BTreeSet::new(),
            told: BTreeSet::new(),
            waiting_for,
            memory: None,
        }
    }

    /// Gives the Secret of the CA this annotation, if the run creates it.
    pub(super) fn remembering(self, memory: Option<(String, String)>) -> Self {
        Self { memory, ..self }
    }

    /// Turns until it is done. Whoever calls it says how long that may take.
    pub(super) async fn run(mut self) -> Result<Report, Error> {
        let retry = self.around.retry().within(OUTAGE);
        let mut outage = Outage::default();
        loop {
            let mishap = match self.turn().await {
                Ok(Turn::Done(report)) => return Ok(*report),
                Ok(Turn::Again) => {
                    outage = Outage::default();
                    // However it turns, time passes.
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
                Ok(Turn::Wait(what)) => {
                    outage = Outage::default();
                    self.wait_for(&what);
                    tokio::time::sleep(POLL).await;
                    continue;
                }
                Err(mishap) => mishap,
            };
            let (doing, error) = match mishap {
                Mishap::Fatal(error) => return Err(error),
                Mishap::Cluster { doing, error } => (doing, error),
            };
            if matches!(classify(&error), Answer::Refused | Answer::LostLease) {
                return Err(Error::cluster(doing, error));
            }
            *self.waiting_for.lock().unwrap_or_else(PoisonError::into_inner) =
                format!("cannot {doing}: {}", plain(&error));
            // Another client was quicker, or an object was deleted: what is there by then decides.
            retry.pause(&mut outage, &doing, error).await?;
        }
    }

    fn now(&self) -> Timestamp {
        self.around.clock.now()
    }

    fn tell(&mut self, line: String) {
        if self.told.insert(line.clone()) {
            (self.around.tell)(&line);
        }
    }

    fn wait_for(&mut self, what: &str) {
        what.clone_into(&mut self.waiting_for.lock().unwrap_or_else(PoisonError::into_inner));
        self.tell(format!("waiting: {what}"));
    }

    async fn turn(&mut self) -> Result<Turn, Mishap> {
        let now = self.now();
        let trust = observe::trust(&self.around.client, self.options, &mut self.objects, now).await?;
        self.made.see(&trust.targets, now);
        let verdict = decide::judge(&trust, self.options, &self.made, now);
        if verdict.action != Action::Kept && decide::stage(&trust, self.options, &self.made) != Stage::Inject {
            if let Some(refusal) = trust.pair_secret.as_ref().and_then(secrets::refusal) {
                return Err(Error::Refused(refusal).into());
            }
            self.verdict.get_or_insert(verdict);
        }
        for target in &trust.unready {
            self.tell(format!("{} is left to the inject stage", unready(target)));
        }
        for target in &trust.targets {
            for name in &target.elsewhere {
                self.tell(format!("{target}: webhook `{name}` leads elsewhere and is left alone"));
            }
        }
        match decide::next(&trust, self.options, &self.made, now) {
            Next::Conclude => self.conclude(&trust).await?,
            Next::WriteAuthority { new, previous } => {
                self.write_authority(&trust, new.as_deref(), &previous).await?;
            }
            Next::Refuse(refusal) => return Err(Error::Refused(refusal).into()),
            Next::Extend { targets, certificates } => {
                for target in targets.into_iter().filter_map(|target| trust.targets.get(target)) {
                    self.apply(target, &certificates, true).await?;
                }
            }
            Next::Release => {
                for target in trust.all_targets() {
                    self.release(target).await?;
                }
            }
            Next::Settle(left) => {
                self.tell(format!("waiting until every API server trusts the new CA ({:?})", self.options.settle));
                tokio::time::sleep(left).await;
                // The pair comes next: everybody has to trust it still.
                self.objects.forget_all();
            }
            Next::WritePair => self.write_pair(&trust).await?,
            Next::Wait(what) => return Ok(Turn::Wait(what)),
            Next::Trusted => return self.serve(&trust).await,
        }
        Ok(Turn::Again)
    }

    async fn write_authority(
        &mut self,
        trust: &Trust,
        new: Option<&str>,
        previous: &[Certificate],
    ) -> Result<(), Mishap> {
        let name = self.options.authority_secret();
        let found = trust.authority_secret.as_ref();
        if let Some(refusal) = found.and_then(secrets::refusal) {
            return Err(Error::Refused(refusal).into());
        }
        let now = self.now();
        let Options { services, authority_validity, .. } = self.options;
        let service = services.first().map(String::as_str).unwrap_or_default();
        let made = new.map(|_| make_authority(service, *authority_validity, now)).transpose()?;
        let mut secret = secrets::with_authority(found, (&self.options.namespace, &name), made.as_ref(), previous);
        if let Some((key, text)) = self.memory.clone().filter(|_| found.is_none()) {
            secret.annotations_mut().insert(key, text);
        }
        self.put(&name, found, &secret).await?;
        if let Some(made) = made {
            self.made.authority = Some(fingerprint(&made.certificate));
            self.tell(format!("Secret `{name}` has a new CA: {}", new.unwrap_or_default()));
        }
        Ok(())
    }

    async fn write_pair(&mut self, trust: &Trust) -> Result<(), Mishap> {
        let AuthorityState::Whole(authority) = &trust.authority else { return Ok(()) };
        let Options { secret: name, namespace, validity, again, .. } = self.options;
        let signer = (&authority.certificate, &authority.key);
        let pair = make_pair(&trust.names(self.options), *validity, signer, self.now())?;
        let found = trust.pair_secret.as_ref();
        // Any new pair answers all forced deploys so far.
        let asked = (again.as_deref(), trust.forced(self.options));
        let secret = secrets::with_pair(found, (namespace, name), &pair, &authority.certificate, asked);
        let keeps_authority = decide::keeps_authority(trust, self.options, &self.made, self.now());
        self.put(name, found, &secret).await?;
        self.made.pair = true;
        if keeps_authority {
            self.tell("the CA is kept: servers may still present certificates of an earlier one".to_owned());
        }
        let reason = self.verdict.as_ref().map(|verdict| verdict.reason.clone()).unwrap_or_default();
        self.tell(format!("Secret `{name}` has a new certificate: {reason}"));
        for other in trust.other_services(self.options) {
            if pair.names.iter().any(|name| *name == self.options.called(&other)) {
                self.tell(format!("the certificate stays valid for Service `{other}`, which is not named"));
            }
        }
        Ok(())
    }

    /// Writes a Secret: only over what was read, and only where none was read if none was.
    async fn put(&self, name: &str, found: Option<&Secret>, secret: &Secret) -> Result<(), Mishap> {
        let secrets = Api::<Secret>::namespaced(self.around.client.clone(), &self.options.namespace);
        let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let written = match found {
            Some(_) => secrets.replace(name, &parameters, secret).await,
            None => secrets.create(&parameters, secret).await,
        };
        let doing = || format!("write Secret `{name}`");
        match written {
            Ok(_) => Ok(()),
            // There is no namespace to put it into.
            Err(error) if found.is_none() && classify(&error) == Answer::NotFound => {
                Err(Error::cluster(doing(), error).into())
            }
            Err(error) => Err(Mishap::new(doing(), error)),
        }
    }

    /// Gives a target its bundles.
    async fn apply(&mut self, target: &Target, certificates: &[Certificate], keep: bool) -> Result<(), Mishap> {
        if let Some(refusal) = target.refusal() {
            return Err(Error::Refused(refusal).into());
        }
        let operations = target.bundle_operations(certificates, keep.then(|| self.now()));
        if !self.patch(target, operations, &format!("change the bundle of {target}")).await? {
            return Ok(());
        }
        self.changed.insert(target.to_string());
        if keep {
            self.made.settled_at = Some(later(self.now(), self.options.settle));
            self.tell(format!("{target} trusts the CA"));
        } else {
            self.tell(format!("{target} trusts nobody else any more"));
        }
        Ok(())
    }

    /// Gives up what we own of a target and need not own.
    async fn release(&mut self, target: &Target) -> Result<(), Mishap> {
        let Some(operations) = target.release_operations() else { return Ok(()) };
        let doing = format!("give up fields of {target} that a deployer has to be able to remove");
        self.patch(target, operations, &doing).await.map(|_| ())
    }

    /// Patches a target as it was read; says whether it was still like that.
    async fn patch(&mut self, target: &Target, operations: Vec<Value>, doing: &str) -> Result<bool, Mishap> {
        let targets = targets_of(&self.around.client, target.kind);
        let patch = serde_json::from_value(Value::Array(operations))
            .map_err(|error| Error::Refused(format!("cannot {doing}: {error}")))?;
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let failure = match targets.patch(&target.name, &parameters, &Patch::<()>::Json(patch)).await {
            Ok(object) => {
                self.objects.put(target.kind, &object);
                return Ok(true);
            }
            Err(error) => error,
        };
        self.objects.forget(target);
        // A test that fails is answered as a patch that makes no sense: what is there by now tells them apart.
        if matches!(&failure, kube::Error::Api(status) if status.code == 422) {
            let found = targets.get_opt(&target.name).await;
            let found = found.map_err(|error| Mishap::new(format!("read {target}"), error))?;
            if found.is_none_or(|found| found.resource_version().as_deref() != Some(&target.version)) {
                *self.waiting_for.lock().unwrap_or_else(PoisonError::into_inner) =
                    format!("{target} is changed by others again and again");
                return Ok(false);
            }
        }
        Err(Mishap::new(doing, failure))
    }
}

/// Why a target is left to a later stage.
pub(super) fn unready(target: &Target) -> String {
    target.obstacle.clone().unwrap_or_else(|| format!("{target} is not ready"))
}
