//! How Jobs go: after their time, or when somebody deletes them.

use crate::jobs::lab::Lab;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams, PropagationPolicy};
use serde_json::json;

const PATIENT: &str = "trap 'exit 1' TERM; sleep 100 & wait";

async fn delete_a_running_job(how: DeleteParams) -> Lab {
    let lab = Lab::new();
    lab.job("del", PATIENT, json!({"parallelism": 2, "completions": 2})).await;
    lab.wait(4).await;
    lab.delete::<Job>("del", how).await;
    lab
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_goes_after_its_time_with_its_pods() {
    let lab = Lab::new();
    lab.job("ttl", "echo hi", json!({"ttlSecondsAfterFinished": 5})).await;
    lab.wait(20).await;
    let log = lab.log();
    assert_eq!(log.iter().find(|line| line.ends_with("job ttl DELETED")).unwrap(), "8.00 job ttl DELETED");
    assert!(log.contains(&"8.00 pod ttl DELETED".to_owned()), "{log:#?}");
    assert!(log.contains(&"8.00 job ttl deleting=true held=true".to_owned()), "{log:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_finished_job_can_be_changed() {
    let lab = Lab::new();
    lab.job("later", "echo hi", json!({})).await;
    lab.wait(6).await;
    lab.patch::<Job>("later", json!({"spec": {"ttlSecondsAfterFinished": 60}})).await;
    lab.wait(2).await;
    assert_eq!(lab.list::<Job>().await.len(), 1);
    lab.patch::<Job>("later", json!({"spec": {"ttlSecondsAfterFinished": 1}})).await;
    lab.wait(1).await;
    assert_eq!((lab.list::<Job>().await.len(), lab.list::<Pod>().await.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_goes_too_but_a_running_one_stays() {
    let lab = Lab::new();
    lab.job("failed", "exit 1", json!({"ttlSecondsAfterFinished": 0, "backoffLimit": 0})).await;
    lab.job("running", "sleep 1000", json!({"ttlSecondsAfterFinished": 0})).await;
    lab.wait(20).await;
    let left = lab.list::<Job>().await;
    assert_eq!(left.iter().map(|job| job["metadata"]["name"].as_str().unwrap()).collect::<Vec<_>>(), ["running"]);
}

#[tokio::test(start_paused = true)]
async fn pods_go_with_their_job() {
    for how in [DeleteParams::background(), DeleteParams::foreground()] {
        let lab = delete_a_running_job(how).await;
        lab.wait(5).await;
        assert_eq!((lab.list::<Job>().await.len(), lab.list::<Pod>().await.len()), (0, 0));
        let log = lab.log();
        assert!(!log.iter().any(|line| line.contains("failed=")), "nothing has failed: {log:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn orphans_run_on_and_are_held_by_nothing() {
    let how = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    let lab = delete_a_running_job(how).await;
    lab.wait(5).await;
    assert_eq!(lab.list::<Job>().await.len(), 0);
    let pods = lab.list::<Pod>().await;
    assert_eq!(pods.len(), 2);
    for pod in &pods {
        assert_eq!((&pod["metadata"]["finalizers"], &pod["metadata"]["ownerReferences"]), (&json!(null), &json!(null)));
        assert_eq!(pod["status"]["phase"], json!("Running"));
    }
    assert_eq!(lab.drydock.witness().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_takes_its_jobs_along() {
    let lab = Lab::new();
    let namespaces = Api::<Namespace>::all(lab.client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let jobs = Api::<Job>::namespaced(lab.client.clone(), "shop");
    let containers = json!([{"name": "main", "image": "busybox", "command": ["sh", "-c", "sleep 1000"]}]);
    let job = json!({"metadata": {"name": "job"}, "spec": {"parallelism": 3, "template": {"spec":
        {"restartPolicy": "Never", "containers": containers}}}});
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
    lab.wait(5).await;
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    lab.wait(120).await;
    assert!(namespaces.get_opt("shop").await.unwrap().is_none());
    let pods = Api::<Pod>::all(lab.client.clone()).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(pods.len(), 0);
    let events = Api::<Event>::all(lab.client.clone()).list(&ListParams::default()).await.unwrap().items;
    assert!(!events.iter().any(|event| event.reason.as_deref() == Some("FailedCreate")));
}
