//! Many Jobs at once.

use crate::jobs::lab::Lab;
use jobwright_drydock::Drydock;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn dozens_of_jobs_come_and_go() {
    let lab = Lab::unwatched(Drydock::builder());
    for number in 0..30 {
        lab.job(&format!("job-{number}"), "sleep 5", json!({"ttlSecondsAfterFinished": 30})).await;
    }
    lab.wait(20).await;
    let jobs = lab.list::<Job>().await;
    assert_eq!(jobs.iter().filter(|job| job["status"]["succeeded"] == 1).count(), 30);
    lab.wait(30).await;
    assert_eq!((lab.list::<Job>().await.len(), lab.list::<Pod>().await.len()), (0, 0));
    assert_eq!(lab.drydock.witness().len(), 30);
}
