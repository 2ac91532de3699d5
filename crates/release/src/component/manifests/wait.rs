//! Waits until objects are ready.

use crate::component::caller::Caller;
use crate::component::kinds::Resource;
use crate::record::ObjectKey;
use futures::future::try_join_all;
use jobwright_engine::{Answer, DeployContext, Failure, classify};
use jobwright_jobs::readiness::{Readiness, judge};
use kube::api::DynamicObject;
use kube::runtime::wait::{self, await_condition};
use kube::runtime::watcher;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The pause before a watch that broke off is started again.
const PAUSE: Duration = Duration::from_secs(1);

/// Waits until all objects are ready, and fails with the first that cannot become ready.
pub(super) async fn wait_for_all(
    context: &DeployContext,
    objects: &[(ObjectKey, Resource)],
    limit: Duration,
) -> Result<(), Failure> {
    let waits = objects.iter().map(|(key, resource)| wait_for(context, key, resource, limit));
    tokio::select! {
        waited = try_join_all(waits) => waited.map(drop),
        () = context.cancellation().cancelled() => Err(Failure::new("cancelled before it was ready")),
    }
}

/// Waits until an object is ready.
pub(super) async fn wait_for(
    context: &DeployContext,
    key: &ObjectKey,
    resource: &Resource,
    limit: Duration,
) -> Result<(), Failure> {
    let last = Mutex::new(Readiness::Waiting("no state seen yet".to_owned()));
    let condition = |object: Option<&DynamicObject>| {
        let json = object.and_then(|object| serde_json::to_value(object).ok());
        let readiness =
            json.map_or_else(|| Readiness::Waiting("it does not exist".to_owned()), |json| judge(&key.kind, &json));
        let is_over = !matches!(readiness, Readiness::Waiting(_));
        *last.lock().unwrap_or_else(PoisonError::into_inner) = readiness;
        is_over
    };
    let api = resource.api(&Caller::of(context), key.namespace.as_deref());
    let watch = async {
        loop {
            match await_condition(api.clone(), &key.name, &condition).await {
                Err(error) if is_interrupted(&error) => tokio::time::sleep(PAUSE).await,
                watched => return watched,
            }
        }
    };
    let waited = tokio::time::timeout(limit, watch).await;
    let last = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match (waited, last) {
        (Ok(Err(error)), _) => Err(Failure::new(format!("cannot watch {key}")).because(error)),
        (_, Readiness::Ready) => Ok(()),
        (_, Readiness::Failed(why)) => Err(Failure::new(format!("{key}: {why}"))),
        (_, Readiness::Waiting(why)) => Err(Failure::new(format!("{key} is not ready after {limit:?}: {why}"))),
    }
}

/// Whether a watch only has to be started again.
fn is_interrupted(error: &wait::Error) -> bool {
    let wait::Error::ProbeFailed(error) = error;
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => matches!(classify(error), Answer::TryAgain(_) | Answer::Conflict),
        watcher::Error::WatchError(_) => true,
        watcher::Error::NoResourceVersion => false,
    }
}
