//! What holds whatever happens.

use crate::jobs::lab::Lab;
use jobwright_drydock::Drydock;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Something that happens to Jobs.
#[derive(Clone, Debug)]
enum Happening {
    Make { job: usize, line: &'static str, spec: Value },
    Change { job: usize, patch: Value },
    DeleteJob { job: usize, how: usize },
    DeletePod { place: usize },
    ChangePod { place: usize, patch: Value },
    Wait(u64),
}

const LINES: [&str; 5] = ["echo hi", "exit 1", "sleep 7", "sleep 3; exit 3", "[ $JOB_COMPLETION_INDEX = 1 ]"];

fn happening() -> impl Strategy<Value = Happening> {
    let spec = (0..3_i64, 0..4_i64, 0..3_i64, any::<bool>(), any::<bool>(), 0..4_i64).prop_map(
        |(parallelism, completions, limit, indexed, rules, ttl)| {
            let mut spec = json!({"parallelism": parallelism, "completions": completions, "backoffLimit": limit,
                "completionMode": if indexed { "Indexed" } else { "NonIndexed" }});
            if rules {
                let rule = json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}});
                spec["podFailurePolicy"] = json!({"rules": [rule]});
            }
            if indexed && limit == 2 {
                spec["backoffLimitPerIndex"] = json!(1);
            }
            if ttl == 0 {
                spec["ttlSecondsAfterFinished"] = json!(5);
            }
            spec
        },
    );
    let change = proptest::sample::select(vec![
        json!({"spec": {"suspend": true}}),
        json!({"spec": {"suspend": false}}),
        json!({"spec": {"parallelism": 0}}),
        json!({"spec": {"parallelism": 3}}),
        json!({"spec": {"activeDeadlineSeconds": 4}}),
        json!({"status": {"succeeded": 9}}),
    ]);
    let pod_change = proptest::sample::select(vec![
        json!({"metadata": {"finalizers": null}}),
        json!({"metadata": {"ownerReferences": null}}),
        json!({"metadata": {"labels": {"batch.kubernetes.io/controller-uid": "other"}}}),
        json!({"metadata": {"annotations": {"batch.kubernetes.io/job-completion-index": "odd"}}}),
    ]);
    prop_oneof![
        4 => (0..3_usize, proptest::sample::select(&LINES[..]), spec)
            .prop_map(|(job, line, spec)| Happening::Make { job, line, spec }),
        3 => (0..3_usize, change).prop_map(|(job, patch)| Happening::Change { job, patch }),
        2 => (0..3_usize, 0..3_usize).prop_map(|(job, how)| Happening::DeleteJob { job, how }),
        2 => (0..4_usize).prop_map(|place| Happening::DeletePod { place }),
        2 => (0..4_usize, pod_change).prop_map(|(place, patch)| Happening::ChangePod { place, patch }),
        4 => (0..12_u64).prop_map(Happening::Wait),
    ]
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

async fn pod_at(lab: &Lab, place: usize) -> Option<String> {
    lab.list::<Pod>().await.get(place).map(name)
}

async fn play(lab: &Lab, happenings: &[Happening]) {
    let jobs: Api<Job> = lab.api();
    let pods: Api<Pod> = lab.api();
    let call = |job: usize| format!("job-{job}");
    for happening in happenings {
        // What is refused does not happen.
        match happening.clone() {
            Happening::Make { job, line, spec } => {
                let _ = lab.try_job(&call(job), line, spec).await;
            }
            Happening::Change { job, patch } if patch.get("status").is_some() => {
                let _ = jobs.patch_status(&call(job), &PatchParams::default(), &Patch::Merge(patch)).await;
            }
            Happening::Change { job, patch } => {
                let _ = jobs.patch(&call(job), &PatchParams::default(), &Patch::Merge(patch)).await;
            }
            Happening::DeleteJob { job, how } => {
                let how =
                    [DeleteParams::background(), DeleteParams::foreground(), DeleteParams::default()][how].clone();
                let _ = jobs.delete(&call(job), &how).await;
            }
            Happening::DeletePod { place } => {
                if let Some(pod) = pod_at(lab, place).await {
                    let _ = pods.delete(&pod, &DeleteParams::default()).await;
                }
            }
            Happening::ChangePod { place, patch } => {
                if let Some(pod) = pod_at(lab, place).await {
                    let _ = pods.patch(&pod, &PatchParams::default(), &Patch::Merge(patch)).await;
                }
            }
            Happening::Wait(seconds) => lab.wait(seconds).await,
        }
        check(lab).await;
    }
    lab.wait(200).await;
    check(lab).await;
    let owners: Vec<Value> = lab.list::<Job>().await.iter().map(|job| job["metadata"]["uid"].clone()).collect();
    for pod in lab.list::<Pod>().await {
        let owner = &pod["metadata"]["ownerReferences"][0]["uid"];
        assert!(owner.is_null() || owners.contains(owner), "its owner is gone: {pod:#}");
        assert!(!owner.is_null() || pod["metadata"]["finalizers"].is_null(), "nobody will count it: {pod:#}");
    }
}

/// A Job that is over has no pods that are newer than its end, and none that it holds.
async fn check(lab: &Lab) {
    let jobs = lab.list::<Job>().await;
    let pods = lab.list::<Pod>().await;
    for job in &jobs {
        let conditions = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_end = |condition: &&Value| condition["type"] == "Complete" || condition["type"] == "Failed";
        let Some(end) = conditions.iter().find(is_end) else { continue };
        for pod in pods.iter().filter(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]) {
            let (made, ended) = (&pod["metadata"]["creationTimestamp"], &end["lastTransitionTime"]);
            assert!(made.as_str() <= ended.as_str(), "made after the end: {pod:#} {job:#}");
            assert!(pod["metadata"]["finalizers"].is_null(), "still held: {pod:#}");
        }
    }
}

fn history(seed: u64, happenings: &[Happening]) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let lab = Lab::from(Drydock::builder().seed(seed));
        play(&lab, happenings).await;
        lab.log()
    })
}

proptest! {
    // Each case is a whole story, twice. PROPTEST_CASES asks for more of them.
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn jobs_keep_the_laws_and_repeat_themselves(happenings in proptest::collection::vec(happening(), 1..14), seed in 0..9_u64) {
        let one = history(seed, &happenings);
        let two = history(seed, &happenings);
        prop_assert_eq!(one, two);
    }
}
