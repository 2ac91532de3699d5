//! What comes next once the pair is there and trusted: servers get it, are seen to show it, and then nobody else is trusted
//! any more. It only looks, so that a run and a look decide the same.

use super::super::certificate::Certificate;
use super::super::decide::Trust;
use super::super::inspect::Pair;
use super::super::observe::{self, Mishap};
use super::super::options::Stage;
use super::super::rollout::{self, Rollout, Stamp};
use super::super::secrets;
use super::super::servers::Shown;
use super::Rotation;
use super::evidence::{Asked, Proof, Workloads, stamp};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use std::fmt;
use std::slice::from_ref;

/// What comes next.
pub(in crate::init_cert) enum Step {
    /// Nothing: everything is in its place. There may be more to say.
    Done(Vec<String>),
    /// This has to come about first.
    Wait(String),
    /// These have to be restarted.
    Restart(Vec<(String, Deployment)>),
    /// A Deployment does not come up.
    Stuck { deployment: String, reason: String },
    /// Servers present something else, or nothing.
    Mend { trouble: String, shown: Shown, workloads: Workloads },
    /// Earlier CAs are not needed in the Secret of the CA any more.
    Forget,
    /// These targets need not trust anybody else any more.
    Narrow(Vec<usize>, Certificate),
    /// The mark that the pair is unfinished is not needed any more.
    Finish,
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(_) => formatter.write_str("nothing is to be done"),
            Self::Wait(what) | Self::Mend { trouble: what, .. } => formatter.write_str(what),
            Self::Restart(all) => {
                let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
                write!(
                    formatter,
                    "servers may not have it yet: Deployment `{}` has to be restarted",
                    names.join("`, `")
                )
            }
            Self::Stuck { deployment, reason } => write!(formatter, "Deployment `{deployment}`: {reason}"),
            Self::Forget | Self::Narrow(..) => formatter.write_str("bundles trust more than the CA that is in use"),
            Self::Finish => formatter.write_str("servers may not have had it yet"),
        }
    }
}

impl Rotation<'_> {
    /// Says what comes next.
    pub(in crate::init_cert) async fn assess(
        &self,
        trust: &Trust,
        pair: &Pair,
        secret: &Secret,
    ) -> Result<Step, Mishap> {
        if self.options.stage == Stage::Secret {
            return Ok(Step::Done(Vec::new()));
        }
        if let Some(missing) = trust.missing.first() {
            return Ok(Step::Wait(format!("there is no {missing}")));
        }
        let stamp = stamp(pair, secret);
        let workloads = match self.rolled_out(&stamp).await? {
            Ok(workloads) => workloads,
            Err(step) => return Ok(step),
        };
        let seen = match self.ask(trust, pair, &workloads).await? {
            Asked::Seen(seen) => seen,
            Asked::Nobody(waiting) => return Ok(Step::Wait(waiting)),
            Asked::Trouble(trouble, shown) => return Ok(Step::Mend { trouble, shown, workloads }),
        };
        // Somebody else has begun to rotate meanwhile, and finishes it.
        if trust.is_under_way() {
            return Ok(Step::Done(vec!["another rotation has begun".to_owned()]));
        }
        let proof = self.prove(trust, seen, &stamp, &workloads).await?;
        Ok(conclude(trust, pair, secret, proof))
    }

    /// The Deployments, if all are rolled out; what comes first otherwise.
    async fn rolled_out(&self, stamp: &Stamp) -> Result<Result<Workloads, Step>, Mishap> {
        let mut workloads = Workloads::default();
        let (mut restart, mut waiting) = (Vec::new(), None);
        for name in &self.options.deployments {
            let found = observe::workload(&self.around.client, &self.options.namespace, name).await?;
            let Some((deployment, pods)) = found else {
                waiting.get_or_insert(format!("there is no Deployment `{name}`"));
                continue;
            };
            match rollout::judge(&deployment, &pods, stamp) {
                Rollout::Restart => restart.push((name.clone(), deployment)),
                Rollout::Waiting(what) => drop(waiting.get_or_insert(format!("Deployment `{name}`: {what}"))),
                Rollout::Failed(reason) => return Ok(Err(Step::Stuck { deployment: name.clone(), reason })),
                Rollout::Done { proven } => workloads.add(name, deployment, &pods, proven),
            }
        }
        Ok(match (restart.is_empty(), waiting) {
            (false, _) => Err(Step::Restart(restart)),
            (true, Some(waiting)) => Err(Step::Wait(waiting)),
            (true, None) => Ok(workloads),
        })
    }
}

/// What is left once servers have been seen.
fn conclude(trust: &Trust, pair: &Pair, secret: &Secret, proof: Proof) -> Step {
    let Some(authority) = &pair.authority else { return Step::Wait("no CA signs the pair".to_owned()) };
    let Proof { is_safe, mut notes } = proof;
    if is_safe {
        if trust.authority_secret.is_some() && !trust.previous.is_empty() {
            return Step::Forget;
        }
        let others = trust.targets.iter().enumerate().filter(|(_, target)| !target.is(from_ref(authority)));
        let others: Vec<usize> = others.map(|(index, _)| index).collect();
        if !others.is_empty() {
            return Step::Narrow(others, authority.clone());
        }
    } else if trust.targets.iter().any(|target| target.has_besides(authority)) {
        notes.push("bundles still trust what they have trusted before, too".to_owned());
    }
    if secrets::is_unfinished(secret) { Step::Finish } else { Step::Done(notes) }
}
