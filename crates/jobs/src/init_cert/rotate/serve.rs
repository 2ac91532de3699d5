//! The second half: servers get the pair, are seen to show it, and then nobody else is trusted any more.

use super::super::certificate::Certificate;
use super::super::decide::{self, Trust};
use super::super::dial::Peer;
use super::super::error::Error;
use super::super::inspect::Pair;
use super::super::issue::later;
use super::super::observe::{self, Mishap};
use super::super::options::Stage;
use super::super::report::{Action, Report, TargetReport};
use super::super::rollout::{self, Rollout, Stamp};
use super::super::secrets;
use super::super::servers::Shown;
use super::super::target::Missing;
use super::evidence::{Asked, Proof, Seen, Workloads, stamp};
use super::{Rotation, Turn};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch};
use std::slice::from_ref;
use std::time::Duration;

/// How long servers that show something else may take to reload before they are restarted for it.
const RELOAD: Duration = Duration::from_secs(15);

impl Rotation<'_> {
    /// The pair is there and trusted: see to it that servers have it, and that nobody else is trusted any longer.
    pub(super) async fn serve(&mut self, trust: &Trust) -> Result<Turn, Mishap> {
        let Some((pair, secret)) = trust.whole_pair().zip(trust.pair_secret.as_ref()) else { return Ok(Turn::Again) };
        if self.options.stage == Stage::Secret {
            return Ok(self.done(trust, pair, Vec::new()));
        }
        if let Some(missing) = trust.missing.first() {
            return Ok(Turn::Wait(format!("there is no {missing}")));
        }
        let stamp = stamp(pair, secret);
        let workloads = match self.roll_out(&stamp).await? {
            Ok(workloads) => workloads,
            Err(waiting) => return Ok(Turn::Wait(waiting)),
        };
        let seen = match self.see(trust, pair, &stamp, &workloads).await? {
            Ok(seen) => seen,
            Err(waiting) => return Ok(Turn::Wait(waiting)),
        };
        // Somebody else has begun to rotate meanwhile, and finishes it.
        if trust.is_under_way() {
            return Ok(self.done(trust, pair, vec!["another rotation has begun".to_owned()]));
        }
        let proof = self.prove(seen, &stamp, &workloads).await?;
        self.finish(trust, pair, secret, proof).await
    }

    /// Restarts Deployments that have to be, and says what has to be waited for.
    async fn roll_out(&mut self, stamp: &Stamp) -> Result<Result<Workloads, String>, Mishap> {
        let mut workloads = Workloads::default();
        let mut waiting = None;
        for name in &self.options.deployments {
            let found = observe::workload(&self.around.client, &self.options.namespace, name).await?;
            let Some((deployment, pods)) = found else {
                waiting.get_or_insert(format!("there is no Deployment `{name}`"));
                continue;
            };
            match rollout::judge(&deployment, &pods, stamp) {
                Rollout::Restart => {
                    self.restart(name, &deployment, stamp, "it may have loaded the certificate of before").await?;
                    waiting.get_or_insert(format!("Deployment `{name}` was restarted"));
                }
                Rollout::Waiting(what) => {
                    waiting.get_or_insert(format!("Deployment `{name}`: {what}"));
                }
                Rollout::Failed(reason) => return Err(Error::Rollout { deployment: name.clone(), reason }.into()),
                Rollout::Done { proven } => workloads.add(name, deployment, &pods, proven),
            }
        }
        Ok(waiting.map_or(Ok(workloads), Err))
    }

    async fn restart(&mut self, name: &str, deployment: &Deployment, stamp: &Stamp, why: &str) -> Result<(), Mishap> {
        let deployments = Api::<Deployment>::namespaced(self.around.client.clone(), &self.options.namespace);
        let patch = Patch::Merge(rollout::restart(deployment, &stamp.fingerprint, self.now()));
        let patched = deployments.patch(name, &rollout::parameters(), &patch).await;
        patched.map_err(|error| Mishap::new(format!("restart Deployment `{name}`"), error))?;
        self.restarted.insert(name.to_owned());
        self.tell(format!("Deployment `{name}` is restarted: {why}"));
        Ok(())
    }

    /// Asks every server what it shows; the error is what has to be waited for.
    async fn see(
        &mut self,
        trust: &Trust,
        pair: &Pair,
        stamp: &Stamp,
        workloads: &Workloads,
    ) -> Result<Result<Seen, String>, Mishap> {
        match self.ask(trust, pair, workloads).await? {
            Asked::Seen(seen) => {
                self.wrong_since = None;
                Ok(Ok(seen))
            }
            Asked::Nobody(waiting) => Ok(Err(waiting)),
            Asked::Trouble(trouble, shown) => {
                self.mend(&shown, stamp, workloads).await?;
                Ok(Err(trouble))
            }
        }
    }

    /// Restarts what has shown something else for a while, once: it may have started with what its node had then.
    async fn mend(&mut self, shown: &Shown, stamp: &Stamp, workloads: &Workloads) -> Result<(), Mishap> {
        if shown.wrong.is_empty() {
            self.wrong_since = None;
            return Ok(());
        }
        let now = self.now();
        if now < later(*self.wrong_since.get_or_insert(now), RELOAD) {
            return Ok(());
        }
        for (peer, what) in &shown.wrong {
            let Peer::Server { pod: Some(pod), .. } = peer else { continue };
            let Some((name, deployment)) =
                workloads.pods.get(pod).and_then(|name| workloads.deployments.get_key_value(name))
            else {
                continue;
            };
            if self.restarted_again.insert(name.clone()) {
                self.restart(name, deployment, stamp, &format!("{peer}: {what}")).await?;
            }
        }
        Ok(())
    }

    /// Finishes an earlier rotation, if every server presents the current pair; otherwise the next one keeps the CA.
    pub(super) async fn conclude(&mut self, trust: &Trust) -> Result<(), Mishap> {
        let current = trust.whole_pair().zip(trust.pair_secret.as_ref());
        let authority = trust.vouches().filter(|_| trust.missing.is_empty());
        let (Some((pair, secret)), Some(authority)) = (current, authority) else {
            self.made.unproven = true;
            return Ok(());
        };
        if !self.is_everywhere(trust, pair, secret).await? {
            self.made.unproven = true;
            return Ok(());
        }
        self.forget_previous(trust).await?;
        for target in trust.targets.iter().filter(|target| !target.is(from_ref(authority))) {
            self.apply(target, from_ref(authority), false).await?;
        }
        Ok(())
    }

    /// Removes earlier CAs from the CA's Secret: before bundles, which would otherwise be given back what they lose.
    async fn forget_previous(&self, trust: &Trust) -> Result<(), Mishap> {
        let Some(found) = &trust.authority_secret else { return Ok(()) };
        let name = self.options.authority_secret();
        let place = (self.options.namespace.as_str(), name.as_str());
        self.put(&name, Some(found), &secrets::with_authority(Some(found), place, None, &[])).await
    }

    /// Removes every other CA from bundles, if that is known to be safe, and marks the rotation as finished.
    async fn finish(&mut self, trust: &Trust, pair: &Pair, secret: &Secret, proof: Proof) -> Result<Turn, Mishap> {
        let Some(authority) = &pair.authority else { return Ok(Turn::Again) };
        let Proof { is_safe, mut notes } = proof;
        if is_safe && trust.authority_secret.is_some() && !trust.previous.is_empty() {
            self.forget_previous(trust).await?;
            return Ok(Turn::Again);
        }
        if is_safe {
            if let Some(target) = trust.targets.iter().find(|target| !target.is(from_ref(authority))) {
                self.apply(target, from_ref(authority), false).await?;
                return Ok(Turn::Again);
            }
        } else if trust.targets.iter().any(|target| target.has_besides(authority)) {
            notes.push("bundles still trust what they have trusted before, too".to_owned());
        }
        if secrets::is_unfinished(secret) {
            self.put(&self.options.secret, Some(secret), &secrets::finished(secret)).await?;
            return Ok(Turn::Again);
        }
        Ok(self.done(trust, pair, notes))
    }

    fn done(&mut self, trust: &Trust, pair: &Pair, notes: Vec<String>) -> Turn {
        let verdict = self.verdict.take();
        let kept = || decide::Verdict { action: Action::Kept, reason: format!("valid until {}", pair.ends) };
        let decide::Verdict { action, reason } = verdict.unwrap_or_else(kept);
        Turn::Done(Box::new(Report {
            action,
            reason,
            not_after: Some(pair.ends),
            at: self.now(),
            targets: target_reports(trust, pair.authority.as_ref(), |name| self.changed.contains(name)),
            restarted: self.restarted.iter().cloned().collect(),
            notes,
            open: Vec::new(),
        }))
    }
}

/// What there is to say of each target.
pub(in crate::init_cert) fn target_reports(
    trust: &Trust,
    authority: Option<&Certificate>,
    is_changed: impl Fn(&str) -> bool,
) -> Vec<TargetReport> {
    let found = trust.targets.iter().map(|target| TargetReport {
        kind: target.kind.to_string(),
        name: target.name.clone(),
        injected: authority.is_some_and(|authority| target.has(from_ref(authority))),
        changed: is_changed(&target.to_string()),
    });
    let missing = trust.missing.iter().filter_map(|missing| match missing {
        Missing::Named(kind, name) => {
            Some(TargetReport { kind: kind.to_string(), name: name.clone(), injected: false, changed: false })
        }
        Missing::Selected(_) => None,
    });
    found.chain(missing).collect()
}
