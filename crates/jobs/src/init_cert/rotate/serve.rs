//! The second half: servers get the pair, are seen to show it, and then nobody else is trusted any more.

use super::super::certificate::{Certificate, fingerprint};
use super::super::decide::{self, Trust};
use super::super::dial::{Dialling, Peer};
use super::super::error::Error;
use super::super::inspect::Pair;
use super::super::issue::later;
use super::super::observe::{self, Mishap};
use super::super::options::Stage;
use super::super::report::{Action, Report, TargetReport};
use super::super::rollout::{self, Rollout, Stamp};
use super::super::secrets;
use super::super::servers::{self, Shown};
use super::super::target::Missing;
use super::{Rotation, Turn};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{Api, Patch};
use std::collections::BTreeMap;
use std::slice::from_ref;
use std::time::Duration;

/// How long servers that show something else may take to reload before they are restarted for it.
const RELOAD: Duration = Duration::from_secs(15);

/// What servers show, as far as it can be known.
enum Seen {
    /// All of them show the pair.
    Verified,
    /// They could not be asked, and why.
    Unasked(String),
}

/// Deployments that are rolled out.
#[derive(Default)]
struct Workloads {
    deployments: BTreeMap<String, Deployment>,
    /// Whose each pod is.
    pods: BTreeMap<String, String>,
    /// Whether all pods have surely started with the pair.
    proven: bool,
}

impl Workloads {
    /// Whether anybody should serve.
    fn want_servers(&self) -> bool {
        let replicas = |deployment: &Deployment| deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        self.deployments.values().any(|deployment| replicas(deployment) > 0)
    }
}

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
        let stamp = Stamp {
            fingerprint: fingerprint(&pair.leaf),
            written_at: secrets::written_at(secret),
            made_at: secrets::made_at(secret),
            is_unfinished: secrets::is_unfinished(secret),
        };
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
        self.finish(trust, pair, secret, &seen, workloads.proven).await
    }

    /// Restarts Deployments that have to be, and says what has to be waited for.
    async fn roll_out(&mut self, stamp: &Stamp) -> Result<Result<Workloads, String>, Mishap> {
        let mut workloads = Workloads { proven: !self.options.deployments.is_empty(), ..Workloads::default() };
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
                Rollout::Done { proven } => {
                    workloads.proven &= proven;
                    workloads.pods.extend(pods.iter().map(|pod| (pod.name_any(), name.clone())));
                    workloads.deployments.insert(name.clone(), deployment);
                }
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
        let dialler = match &self.around.dialling {
            Dialling::With(dialler) => dialler,
            Dialling::Not(why) => return Ok(Ok(Seen::Unasked(why.clone()))),
        };
        let (service, namespace) = (&self.options.service, &self.options.namespace);
        let Some(servers) = servers::find(&self.around.client, namespace, service, &trust.ports()).await? else {
            return Ok(Err(format!("there is no Service `{service}`")));
        };
        if servers.servers.is_empty() {
            let waiting = format!("there is no server behind Service `{service}`");
            return Ok(if workloads.want_servers() { Err(waiting) } else { Ok(Seen::Verified) });
        }
        let Some(authority) = &pair.authority else { return Ok(Err("nobody vouches for the pair".to_owned())) };
        let (name, wanted, clock) = (self.options.called(), (&pair.leaf, authority), &self.around.clock);
        let shown = servers::ask(&**dialler, &servers.servers, &name, wanted, clock).await;
        if let Some(trouble) = shown.trouble(!workloads.deployments.is_empty()) {
            self.mend(&shown, stamp, workloads).await?;
            return Ok(Err(trouble));
        }
        self.wrong_since = None;
        if dialler.reaches_services() {
            let services: Vec<(Peer, bool)> = servers.services.into_iter().map(|peer| (peer, true)).collect();
            if let Some(trouble) = servers::ask(&**dialler, &services, &name, wanted, clock).await.trouble(true) {
                return Ok(Err(trouble));
            }
        }
        Ok(Ok(Seen::Verified))
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

    /// Lets nobody else be trusted any longer, if that can be known to be safe, and puts everything away.
    async fn finish(
        &mut self,
        trust: &Trust,
        pair: &Pair,
        secret: &Secret,
        seen: &Seen,
        proven: bool,
    ) -> Result<Turn, Mishap> {
        let Some(authority) = &pair.authority else { return Ok(Turn::Again) };
        let mut notes = Vec::new();
        let is_safe = match seen {
            Seen::Verified => true,
            Seen::Unasked(why) => {
                notes.push(format!("not seen by a handshake: {why}"));
                proven
            }
        };
        // First of all, or bundles would be given back what is taken from them.
        if let Some(found) = trust.authority_secret.as_ref().filter(|_| is_safe && !trust.previous.is_empty()) {
            let name = self.options.authority_secret();
            let place = (self.options.namespace.as_str(), name.as_str());
            self.put(&name, Some(found), &secrets::with_authority(Some(found), place, None, &[])).await?;
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
