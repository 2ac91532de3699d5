//! Can a volume grow at all? Asked before anything is changed; where it cannot, the steps by hand are told.

use super::{GrowVolume, claims, request, show};
use crate::answer::failed;
use crate::quantity::Quantity;
use jobwright_engine::{Answer, Context, Failure, classify};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, ResourceQuota};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, ListParams, PatchParams};

/// Makes sure that a claim can grow.
pub(super) async fn check(job: &GrowVolume, claim: &PersistentVolumeClaim, context: &Context) -> Result<(), Failure> {
    check_class(job, claim, context).await?;
    check_quota(job, claim, context).await?;
    let parameters =
        PatchParams { dry_run: true, field_manager: Some("jobwright".to_owned()), ..PatchParams::default() };
    let (claims, patch) = (claims(context), job.patch());
    let doing = format!("ask whether claim `{}` can grow", job.claim);
    match context.retry().answer(&doing, || claims.patch(&job.claim, &parameters, &patch)).await? {
        Ok(_) => Ok(()),
        Err(error) if classify(&error) == Answer::Refused => {
            Err(failed(format!("the server would refuse to grow claim `{}`", job.claim), error).for_good())
        }
        Err(error) => Err(failed(format!("cannot {doing}"), error)),
    }
}

async fn check_class(job: &GrowVolume, claim: &PersistentVolumeClaim, context: &Context) -> Result<(), Failure> {
    let name = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.clone()).unwrap_or_default();
    if name.is_empty() {
        let message = format!("claim `{}` has no storage class, so nobody can expand it", job.claim);
        return Err(Failure::new(format!("{message}; {}", by_hand(job))).for_good());
    }
    let classes = Api::<StorageClass>::all(context.client().clone());
    let doing = format!("read storage class `{name}`");
    let class = match context.retry().answer(&doing, || classes.get_opt(&name)).await? {
        Ok(Some(class)) => class,
        Ok(None) => {
            let message = format!("storage class `{name}` of claim `{}` is not there", job.claim);
            return Err(Failure::new(format!("{message}; {}", by_hand(job))).for_good());
        }
        // Without permission to read classes, the server's answer to the change has to do.
        Err(error) if classify(&error) == Answer::Refused => return Ok(()),
        Err(error) => return Err(failed(format!("cannot {doing}"), error)),
    };
    if class.allow_volume_expansion == Some(true) {
        return Ok(());
    }
    let remedy = format!(
        "if its provisioner can, allow it: kubectl patch storageclass {name} -p '{{\"allowVolumeExpansion\":true}}'"
    );
    let message = format!("storage class `{name}` of claim `{}` does not allow volumes to grow; {remedy}", job.claim);
    Err(Failure::new(message).for_good())
}

async fn check_quota(job: &GrowVolume, claim: &PersistentVolumeClaim, context: &Context) -> Result<(), Failure> {
    let quotas = Api::<ResourceQuota>::namespaced(context.client().clone(), context.namespace());
    let (all, doing) = (ListParams::default(), "list the quotas of the namespace");
    let quotas = match context.retry().answer(doing, || quotas.list(&all)).await? {
        Ok(quotas) => quotas.items,
        Err(error) if classify(&error) == Answer::Refused => return Ok(()),
        Err(error) => return Err(failed(format!("cannot {doing}"), error)),
    };
    let more = job.to.bytes().saturating_sub(request(claim).map_or(0, |size| size.bytes()));
    let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.clone()).unwrap_or_default();
    let keys = ["requests.storage".to_owned(), format!("{class}.storageclass.storage.k8s.io/requests.storage")];
    for quota in &quotas {
        let Some(status) = &quota.status else { continue };
        for key in &keys {
            let read = |map: &Option<std::collections::BTreeMap<String, _>>| -> Option<Quantity> {
                let map: &std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity> =
                    map.as_ref()?;
                map.get(key)?.0.parse().ok()
            };
            if let (Some(hard), Some(used)) = (read(&status.hard), read(&status.used))
                && used.bytes() + more > hard.bytes()
            {
                let name = quota.metadata.name.clone().unwrap_or_default();
                let message = format!(
                    "quota `{name}` has no room: {key} allows {hard}, {used} are used, and claim `{}` would go from {} to {}",
                    job.claim,
                    show(request(claim)),
                    job.to
                );
                return Err(Failure::new(message).for_good());
            }
        }
    }
    Ok(())
}

/// Nobody took notice of the wish.
pub(super) fn no_expander(job: &GrowVolume) -> Failure {
    let message = format!(
        "no expander on this cluster: nobody has begun to expand claim `{}` within {:?}",
        job.claim, job.patience
    );
    Failure::new(format!("{message}; {}", by_hand(job))).for_good()
}

fn by_hand(job: &GrowVolume) -> String {
    format!("by hand: stop what uses it, copy its data to a new claim of {}, and let the workload use that one", job.to)
}
