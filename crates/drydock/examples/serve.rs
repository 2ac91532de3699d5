//! Serves an empty cluster on loopback until it is stopped: `KUBECONFIG=/tmp/drydock kubectl get namespaces`.

use jobwright_drydock::{Clock, Drydock, Http};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: serve KUBECONFIG")?;
    #[expect(clippy::disallowed_methods, reason = "this is where the wall clock comes in")]
    let clock = Clock::starting_at(jiff::Timestamp::now());
    let serving = Drydock::builder().clock(clock).serve(Http::default()).await?;
    std::fs::write(&path, serving.kubeconfig())?;
    tokio::signal::ctrl_c().await?;
    serving.stop().await;
    Ok(())
}
