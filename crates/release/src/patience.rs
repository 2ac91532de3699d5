//! Calls that are made again when the cluster has a bad moment.

use std::time::Duration;

/// How often a call is made before its error counts.
const TRIES: u32 = 6;
/// The pause after the first; each is twice as long as the one before.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);

/// Makes a call that may be made twice, until the cluster has an answer.
pub(crate) async fn patiently<T, F>(call: impl Fn() -> F) -> kube::Result<T>
where
    F: Future<Output = kube::Result<T>>,
{
    for tried in 0..TRIES - 1 {
        match call().await {
            Err(error) if is_passing(&error) => tokio::time::sleep(PAUSE * 2_u32.pow(tried)).await,
            answered => return answered,
        }
    }
    call().await
}

/// Whether the same call may well succeed a moment later.
pub(crate) fn is_passing(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 409 | 429 | 500 | 502..=504),
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;
    use std::cell::Cell;

    async fn tries(code: u16, fails: u32) -> (u32, bool) {
        let made = Cell::new(0);
        let call = || async {
            made.set(made.get() + 1);
            let status = Status { code, ..Status::default() };
            if made.get() <= fails { Err(kube::Error::Api(Box::new(status))) } else { Ok(()) }
        };
        let succeeded = patiently(call).await.is_ok();
        (made.get(), succeeded)
    }

    #[tokio::test(start_paused = true)]
    async fn a_bad_moment_passes_and_a_refusal_does_not() {
        assert_eq!(tries(503, 3).await, (4, true));
        assert_eq!(tries(503, 100).await, (TRIES, false));
        assert_eq!(tries(403, 1).await, (1, false));
    }
}
