//! Waiting that ends: when something has come about, with the deploy, or when the API server fails for too long.

use crate::answer::failed;
use jobwright_engine::{Answer, Context, Failure, Outage, classify};
use std::time::Duration;

/// How often something is asked for.
const POLL: Duration = Duration::from_secs(2);

/// Does something unless the deploy is cancelled first. What handles the cancellation itself has a moment to do so.
pub(crate) async fn unless_cancelled<T>(
    context: &Context,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        done = work => done,
        () = context.cancellation().cancelled() => Err(Failure::new("cancelled")),
    }
}

/// Asks until there is an answer. `doing` names the question in errors and events: ``read claim `data` ``.
///
/// Passing errors are retried up to the engine's retry limit; the caller bounds the rest.
pub(crate) async fn until<T, F>(context: &Context, doing: String, ask: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = kube::Result<Option<T>>>,
{
    let retry = context.retry();
    let mut outage = Outage::default();
    loop {
        match retry.attempt(ask()).await {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {
                outage = Outage::default();
                tokio::time::sleep(POLL).await;
            }
            Err(error) => match classify(&error) {
                Answer::TryAgain(_) | Answer::Conflict => retry.pause(&mut outage, &doing, error).await?,
                Answer::NotFound | Answer::AlreadyExists | Answer::Refused | Answer::LostLease => {
                    return Err(failed(format!("cannot {doing}"), error));
                }
            },
        }
    }
}
