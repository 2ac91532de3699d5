//! Jobs that complete or fail.

use crate::lab::Lab;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_job_completes() {
    let lab = Lab::new();
    lab.job("ok", "echo hi", json!({"backoffLimit": 0})).await;
    lab.wait(20).await;
    println!("{:#?}\n{:#?}\n{}", lab.log(), lab.events().await, lab.status("ok").await);
    println!("{:#?}", lab.conditions("ok").await);
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_when_its_pods_failed_too_often() {
    let lab = Lab::new();
    lab.job("fail", "exit 1", json!({"backoffLimit": 2})).await;
    lab.wait(100).await;
    println!("{:#?}\n{:#?}\n{}", lab.log(), lab.events().await, lab.status("fail").await);
    println!("{:#?} {:?}", lab.conditions("fail").await, lab.pods_made());
}
