//! The second half: carries out what was assessed, until servers have the pair and nobody else is trusted any more.

use super::super::certificate::Certificate;
use super::super::decide::{self, Trust};
use super::super::dial::Peer;
use super::super::error::Error;
use super::super::inspect::Pair;
use super::super::issue::later;
use super::super::observe::Mishap;
use super::super::options::Stage;
use super::super::report::{Action, Report, TargetReport};
use super::super::rollout::{self, Stamp};
use super::super::secrets;
use super::super::servers::Shown;
use super::super::target::Missing;
use super::evidence::{Workloads, stamp};
use super::{Rotation, Step, Turn, unready};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch};
use std::slice::from_ref;
use std::time::Duration;

/// How long servers that show something else may take to reload before they are restarted for it.
const RELOAD: Duration = Duration::from_secs(15);

impl Rotation<'_> {
    /// The pair is there and trusted: sees to it that servers have it, and that nobody else is trusted any longer.
    pub(super) async fn serve(&mut self, trust: &Trust) -> Result<Turn, Mishap> {
        let Some((pair, secret)) = trust.whole_pair().zip(trust.pair_secret.as_ref()) else { return Ok(Turn::Again) };
        let step = self.assess(trust, pair, secret).await?;
        if !matches!(step, Step::Mend { .. }) {
            self.wrong_since = None;
        }
        let waiting = step.to_string();
        let stamp = stamp(pair, secret);
        match step {
            Step::Done(notes) => {
                // After a long wait, what was read then may have been changed by others.
                if self.objects.is_old() && !self.is_read_again && self.options.stage != Stage::Secret {
                    // Once: a look that itself takes long would never end.
                    self.is_read_again = true;
                    self.objects.forget_all();
                    return Ok(Turn::Again);
                }
                return Ok(self.done(trust, pair, notes));
            }
            Step::Wait(_) => return Ok(Turn::Wait(waiting)),
            Step::Restart(all) => {
                for (name, deployment) in all {
                    self.restart(&name, &deployment, &stamp, "it may have loaded the certificate of before").await?;
                }
                return Ok(Turn::Wait(waiting));
            }
            Step::Stuck { deployment, reason } => return Err(Error::Rollout { deployment, reason }.into()),
            Step::Mend { shown, workloads, .. } => {
                self.mend(&shown, &stamp, &workloads).await?;
                return Ok(Turn::Wait(waiting));
            }
            Step::Forget => self.forget_previous(trust).await?,
            Step::Narrow(targets, authority) => {
                for target in targets.into_iter().filter_map(|target| trust.targets.get(target)) {
                    self.apply(target, from_ref(&authority), false).await?;
                }
            }
            Step::Finish => self.put(&self.options.secret, Some(secret), &secrets::finished(secret)).await?,
        }
        Ok(Turn::Again)
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

    fn done(&mut self, trust: &Trust, pair: &Pair, mut notes: Vec<String>) -> Turn {
        notes.extend(trust.unready.iter().map(|target| format!("{} (left to the inject stage)", unready(target))));
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
    let found = trust.all_targets().map(|target| TargetReport {
        kind: target.kind.to_string(),
        name: target.name.clone(),
        injected: !target.entries.is_empty() && authority.is_some_and(|authority| target.has(from_ref(authority))),
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
