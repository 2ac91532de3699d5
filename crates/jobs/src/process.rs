//! Programs that are told to end.

use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::Child;

/// Asks a program to end, and makes it after a while.
pub async fn end(child: &mut Child, grace: Duration) -> std::io::Result<ExitStatus> {
    let id = child.id().and_then(|id| rustix::process::Pid::from_raw(id.try_into().ok()?));
    if let Some(id) = id {
        // If it has ended already there is nobody to tell.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
    if let Ok(status) = tokio::time::timeout(grace, child.wait()).await {
        return status;
    }
    child.start_kill()?;
    child.wait().await
}
