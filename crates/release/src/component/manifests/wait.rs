//! Waits until objects are ready.

use crate::component::caller::Caller;
use crate::component::kinds::Resource;
use crate::record::ObjectKey;
use futures::future::try_join_all;
use jobwright_engine::{Answer, DeployContext, Error, Failure, Outage, Refusal, classify};
use jobwright_jobs::readiness::{Readiness, judge};
use kube::api::DynamicObject;
use kube::core::Status;
use kube::runtime::wait::{self, await_condition};
use kube::runtime::watcher;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an object is read whose watch has not shown it ready in time.
const LAST_LOOK: Duration = Duration::from_secs(10);

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

/// Waits until an object is ready. A watch that fails is retried.
pub(super) async fn wait_for(
    context: &DeployContext,
    key: &ObjectKey,
    resource: &Resource,
    limit: Duration,
) -> Result<(), Failure> {
    let seen = Mutex::new(Seen { readiness: Readiness::Waiting("no state seen yet".to_owned()), error: None });
    let condition = |object: Option<&DynamicObject>| {
        let json = object.and_then(|object| serde_json::to_value(object).ok());
        let readiness =
            json.map_or_else(|| Readiness::Waiting("it does not exist".to_owned()), |json| judge(&key.kind, &json));
        let is_over = !matches!(readiness, Readiness::Waiting(_));
        *lock(&seen) = Seen { readiness, error: None };
        is_over
    };
    let api = resource.api(&Caller::of(context), key.namespace.as_deref());
    let watch = async {
        let (retry, doing) = (context.retry(), format!("watch {key}"));
        let mut outage = Outage::default();
        while let Err(wait::Error::ProbeFailed(error)) = await_condition(api.clone(), &key.name, &condition).await {
            let is_interrupted = is_interrupted(&error);
            let error = unwrap(error);
            let message = Refusal::from(error);
            // Something was seen since it failed last.
            if lock(&seen).error.replace(message.to_string()).is_none() {
                outage = Outage::default();
            }
            let error = kube::Error::from(message);
            if !is_interrupted {
                return Err(Error::refused(doing, Refusal::from(error)));
            }
            retry.pause(&mut outage, &doing, error).await?;
        }
        Ok(())
    };
    let waited = tokio::time::timeout(limit, watch).await;
    if waited.is_err() {
        // A watch may be silent although the object has changed.
        let (retry, doing) = (context.retry().within(LAST_LOOK), format!("read {key}"));
        let error = lock(&seen).error.clone();
        if let Ok(found) = retry.call(&doing, || api.get_opt(&key.name)).await {
            condition(found.as_ref());
            lock(&seen).error = error;
        }
    }
    let Seen { readiness, error } = lock(&seen).clone();
    match (waited, readiness) {
        (Ok(Err(error)), _) => Err(error.into()),
        (_, Readiness::Ready) => Ok(()),
        (_, Readiness::Failed(why)) => Err(Failure::new(format!("{key}: {why}"))),
        (_, Readiness::Waiting(why)) => {
            let failing = error.map(|error| format!("; its watch fails: {error}")).unwrap_or_default();
            Err(Failure::new(format!("{key} is not ready after {limit:?}: {why}{failing}")))
        }
    }
}

/// What was last seen of an object.
#[derive(Clone)]
struct Seen {
    readiness: Readiness,
    /// Why its watch shows nothing newer.
    error: Option<String>,
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a watch only has to be started again.
fn is_interrupted(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => matches!(classify(error), Answer::TryAgain(_) | Answer::Conflict),
        watcher::Error::WatchError(_) => true,
        watcher::Error::NoResourceVersion => false,
    }
}

/// What the API server answered to a watch, or why it could not be read.
fn unwrap(error: watcher::Error) -> kube::Error {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => error,
        watcher::Error::WatchError(status) => kube::Error::Api(status),
        watcher::Error::NoResourceVersion => {
            kube::Error::Api(Status::failure("the watched objects have no resourceVersion", "Unknown").boxed())
        }
    }
}
