//! API calls of components: each with the client and the retries of its deploy.

use jobwright_engine::{Answer, DeployContext, Failure, Retry, classify};
use kube::Client;

/// A client, and how its calls are retried.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Client,
    retry: Retry,
}

impl Caller {
    pub(crate) fn new(client: Client, retry: Retry) -> Self {
        Self { client, retry }
    }

    /// Calls of a deploy.
    pub(crate) fn of(context: &DeployContext) -> Self {
        Self::new(context.client().clone(), context.retry())
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Makes a call that may be repeated. `doing` completes "cannot …".
    pub(crate) async fn call<T, F>(&self, doing: &str, call: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = kube::Result<T>>,
    {
        Ok(self.retry.call(doing, call).await?)
    }
}

/// None instead of an error about something that does not exist.
pub(crate) fn existing<T>(answer: kube::Result<T>) -> kube::Result<Option<T>> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if classify(&error) == Answer::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
