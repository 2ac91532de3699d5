//! `grow-volume`: makes a volume larger, after it has checked that it can.
//!
//! Nothing is changed before everything that can be known is known: the claim exists and is smaller, its storage class
//! allows it, the quota has room, the server would accept the change. Volumes never shrink. Where the storage demands that
//! the volume is unused meanwhile, the workload is scaled down first and restored whatever happens, if necessary by the
//! next deploy.

mod feasibility;
mod workload;

pub use workload::Workload;

use crate::place::{Place, placed};
use crate::quantity::Quantity;
use crate::waiting::{unless_cancelled, until};
use jobwright_engine::{Context, Failure, Job, Needed, async_trait};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;

/// Makes a volume larger.
#[derive(Clone, Debug)]
pub struct GrowVolume {
    /// What every job has.
    pub place: Place,
    /// The claim, in the namespace of the deploy.
    pub claim: String,
    /// How large it has to be at least.
    pub to: Quantity,
    /// The workload that must not use it meanwhile, where the storage demands that.
    pub detach: Option<Workload>,
    /// How long to wait until somebody begins to expand it.
    pub patience: Duration,
}

impl GrowVolume {
    /// How long to wait until somebody begins to expand a volume, unless told otherwise.
    pub const PATIENCE: Duration = Duration::from_mins(2);

    async fn claim(&self, context: &Context) -> Result<Option<PersistentVolumeClaim>, Failure> {
        let (claims, doing) = (claims(context), format!("read claim `{}`", self.claim));
        Ok(context.retry().call(&doing, || claims.get_opt(&self.claim)).await?)
    }

    fn patch(&self) -> Patch<Value> {
        Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": self.to.to_string()}}}}))
    }

    /// Asks for the larger volume and waits until it is there.
    async fn grow(&self, context: &Context) -> Result<(), Failure> {
        let claims = claims(context);
        let parameters = PatchParams { field_manager: Some("jobwright".to_owned()), ..PatchParams::default() };
        let (patch, doing) = (self.patch(), format!("grow claim `{}`", self.claim));
        let claim = context.retry().call(&doing, || claims.patch(&self.claim, &parameters, &patch)).await?;
        context.log(format!("asked for {} instead of {}", self.to, show(capacity(&claim))));
        let begun = self.wait_until(context, |claim| self.has_begun(claim));
        tokio::time::timeout(self.patience, begun).await.map_err(|_| feasibility::no_expander(self))??;
        context.log("it is being expanded");
        Ok(())
    }

    /// Waits until the claim is as it should be; fails if it is deleted.
    async fn wait_until(
        &self,
        context: &Context,
        is_done: impl Fn(&PersistentVolumeClaim) -> bool,
    ) -> Result<(), Failure> {
        let (claims, is_done) = (&claims(context), &is_done);
        let found = until(context, format!("read claim `{}`", self.claim), || async move {
            let claim = claims.get_opt(&self.claim).await?;
            Ok(claim.as_ref().is_none_or(is_done).then_some(claim))
        });
        match found.await? {
            Some(_) => Ok(()),
            None => Err(Failure::new(format!("claim `{}` was deleted while it was being expanded", self.claim))),
        }
    }

    /// Waits until the file system has the size, too: for that, a pod has to mount it.
    async fn wait_for_capacity(&self, context: &Context) -> Result<(), Failure> {
        tokio::select! {
            done = self.wait_until(context, |claim| self.is_large_enough(claim)) => done?,
            () = context.cancellation().cancelled() => {
                let message = format!("cancelled; claim `{}` is still being expanded, which continues", self.claim);
                return Err(Failure::new(message));
            }
        }
        context.log(format!("it has {}", self.to));
        Ok(())
    }

    fn is_large_enough(&self, claim: &PersistentVolumeClaim) -> bool {
        capacity(claim).is_some_and(|capacity| capacity >= self.to)
    }

    /// Makes the volume larger, if it is not large enough.
    async fn expand(&self, context: &Context) -> Result<(), Failure> {
        let Some(claim) = self.claim(context).await? else { return Ok(()) };
        if self.is_large_enough(&claim) {
            return Ok(());
        }
        feasibility::check(self, &claim, context).await?;
        if let Some(workload) = &self.detach {
            workload.detach(context).await?;
        }
        self.grow(context).await?;
        if let Some(workload) = &self.detach {
            workload.restore(context).await?;
        }
        self.wait_for_capacity(context).await
    }

    /// Whether the expansion has begun: the volume is large enough, or is said to be on its way.
    fn has_begun(&self, claim: &PersistentVolumeClaim) -> bool {
        let status = claim.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let resizes = |kind: &str| matches!(kind, "Resizing" | "FileSystemResizePending");
        let allocated = status.and_then(|status| status.allocated_resource_statuses.as_ref());
        self.is_large_enough(claim)
            || conditions.iter().any(|condition| condition.status == "True" && resizes(&condition.type_))
            || allocated.is_some_and(|statuses| statuses.contains_key("storage"))
    }
}

fn claims(context: &Context) -> Api<PersistentVolumeClaim> {
    Api::namespaced(context.client().clone(), context.namespace())
}

/// What a claim has.
fn capacity(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    let capacity = claim.status.as_ref()?.capacity.as_ref()?;
    capacity.get("storage")?.0.parse().ok()
}

/// What a claim asks for.
fn request(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    requests.get("storage")?.0.parse().ok()
}

fn show(quantity: Option<Quantity>) -> String {
    quantity.map_or_else(|| "an unknown size".to_owned(), |quantity| quantity.to_string())
}

#[async_trait]
impl Job for GrowVolume {
    placed!();

    fn inputs(&self) -> Value {
        json!({"claim": self.claim, "to": self.to.to_string()})
    }

    async fn needed(&self, context: &Context) -> Result<Needed, Failure> {
        // An earlier deploy may have died before it put the workload back.
        if let Some(workload) = &self.detach
            && workload.is_detached(context).await?
        {
            return Ok(Needed::Yes);
        }
        Ok(match self.claim(context).await? {
            None => Needed::No(format!("claim `{}` is not there yet", self.claim)),
            Some(claim) if self.is_large_enough(&claim) => {
                Needed::No(format!("claim `{}` has {}", self.claim, show(capacity(&claim))))
            }
            // Not bound yet: it will be made as it asks to be.
            Some(claim) if capacity(&claim).is_none() && request(&claim).is_some_and(|size| size >= self.to) => {
                Needed::No(format!("claim `{}` is not bound yet and asks for {}", self.claim, show(request(&claim))))
            }
            Some(_) => Needed::Yes,
        })
    }

    async fn foresee(&self, context: &Context) -> Result<(), Failure> {
        match self.claim(context).await? {
            Some(claim) if !self.is_large_enough(&claim) => feasibility::check(self, &claim, context).await,
            _ => Ok(()),
        }
    }

    async fn run(&self, context: &Context) -> Result<(), Failure> {
        let expanded = unless_cancelled(context, self.expand(context)).await;
        let Some(workload) = &self.detach else { return expanded };
        // Whatever happened, it comes back; what happened first is the reason of a failure.
        let restored = workload.restore(context).await;
        if let (Err(_), Err(failure)) = (&expanded, &restored) {
            context.log(format!("{workload} is still scaled down ({failure}); the next deploy restores it"));
        }
        expanded.and(restored)
    }
}
