//! A deploy that is stopped at any call, or meets a fault there, and is asked for again: it ends as one that nobody
//! disturbed. The judges are the witness of the cluster and the objects that are left.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use jobwright_drydock::{Call, Drydock, Fault, Faults, When};
use jobwright_engine::{Clock, DeployOutcome, Events, Settings};
use jobwright_release::{Deployment, Driver, Environment, PlanFile, Records};
use k8s_openapi::api::apps::v1::Deployment as Workload;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Two versions of a release: the second changes one component, and takes one of its objects away.
fn write_plans(directory: &Path) {
    let plan = |version: &str| {
        format!(
            r#"
apiVersion: jobwright.io/v1alpha1
kind: Plan
release: {{name: shop, namespace: shop, version: {version}}}
components:
- {{name: db, manifests: {{path: db}}}}
- {{name: api, dependsOn: [db], manifests: {{path: api-{version}}}}}
jobs:
- {{id: check, phase: pre, retires: {{never: test}}, pod: {{template: {{spec: {{containers: [{{name: m, image: "busybox:1", command: [sh, -c, echo check]}}]}}}}}}}}
- id: migrate
  component: api
  phase: pre
  retires: {{never: test}}
  retries: {{limit: 1, backoff: 1s}}
  pod: {{template: {{spec: {{containers: [{{name: m, image: "busybox:{version}", command: [sh, -c, "echo migrate; test $JOBWRIGHT_ATTEMPT = 2"]}}]}}}}}}
- {{id: warm, component: api, phase: post, on: [upgrade], retires: {{never: test}}, pod: {{template: {{spec: {{containers: [{{name: m, image: "busybox:1", command: [sh, -c, echo warm]}}]}}}}}}}}
"#
        )
    };
    let workload = |name: &str, image: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": image}]}}}})
    };
    let map =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}});
    let write = |file: &str, objects: &[serde_json::Value]| {
        let path = directory.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let documents: Vec<String> = objects.iter().map(ToString::to_string).collect();
        std::fs::write(path, documents.join("\n---\n")).unwrap();
    };
    write("db/db.yaml", &[workload("db", "busybox:1")]);
    write("api-1.4.0/api.yaml", &[workload("api", "busybox:1"), map("old")]);
    write("api-1.5.0/api.yaml", &[workload("api", "busybox:2"), map("new")]);
    for version in ["1.4.0", "1.5.0"] {
        std::fs::write(directory.join(format!("{version}.yaml")), plan(version)).unwrap();
    }
}

#[derive(Clone, Debug)]
enum Disturbance {
    None,
    Stop(usize, When),
    Fault(usize, Fault),
}

/// What is left, and what has run.
#[derive(Debug, PartialEq, Eq)]
struct Ending {
    starts: BTreeMap<String, usize>,
    workloads: BTreeMap<String, String>,
    maps: Vec<String>,
    record: serde_json::Value,
}

fn play(directory: &Path, disturbance: &Disturbance) -> Result<(Vec<Call>, Ending), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let drydock = Drydock::new();
        let namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
        let namespaces = Api::<Namespace>::all(Client::new(drydock.clone(), "shop"));
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        let mut faults = Faults::new(0);
        match disturbance {
            Disturbance::None => {}
            Disturbance::Stop(call, when) => faults.stop_at(*call, *when),
            Disturbance::Fault(call, fault) => faults.on(|_| true).skip(call - 1).times(1).fail(fault.clone()),
        }
        let calls = faults.clone();
        for version in ["1.4.0", "1.5.0"] {
            let done = deploy(directory, version, &drydock, &faults);
            let done = tokio::select! {
                done = done => done,
                () = faults.stopped() => Err("stopped".to_owned()),
            };
            if let Err(problem) = done {
                if matches!(disturbance, Disturbance::None) {
                    return Err(problem);
                }
                // A new process, which knows nothing, is asked for the same; but for a deploy that the cluster knows to
                // have ended, which nobody would ask for again.
                faults = Faults::new(0);
                if !has_ended(&drydock, version).await {
                    deploy(directory, version, &drydock, &faults).await?;
                }
            }
        }
        Ok((calls.calls(), ending(&drydock).await))
    })
}

async fn deploy(directory: &Path, version: &str, drydock: &Drydock, faults: &Faults) -> Result<(), String> {
    let path = directory.join(format!("{version}.yaml"));
    let file = PlanFile::parse(&path, &std::fs::read_to_string(&path).unwrap()).map_err(|error| error.to_string())?;
    let clock = drydock.clone();
    let deployment = Deployment {
        file: &file,
        client: Client::new(faults.around(drydock.clone()), "shop"),
        clock: Clock::new(move || clock.now()),
        helm: None,
        driver: Driver::Secrets,
        host: "test".to_owned(),
        settings: Settings { holder: format!("{:p}", std::ptr::from_ref(&file)), ..Settings::default() },
        redeploy: false,
        force: false,
        unlock: false,
        environment: Environment::default(),
        dialling: jobwright_release::Dialling::Not("nobody serves".to_owned()),
    };
    let done = deployment.deploy(CancellationToken::new(), Events::nowhere());
    let done = tokio::time::timeout(Duration::from_hours(6), done).await.map_err(|_| "it hangs".to_owned())?;
    let report = done.map_err(|error| error.to_string())?;
    if report.outcome == DeployOutcome::Succeeded { Ok(()) } else { Err(format!("{report:?}")) }
}

async fn has_ended(drydock: &Drydock, version: &str) -> bool {
    let records = Records::open(Client::new(drydock.clone(), "shop"), "shop", "shop").await.unwrap();
    let record = records.get().await;
    record.deploying.is_none() && record.version.is_some_and(|deployed| deployed.to_string() == version)
}

async fn ending(drydock: &Drydock) -> Ending {
    let client = Client::new(drydock.clone(), "shop");
    let mut starts = BTreeMap::new();
    for started in drydock.witness() {
        let what = format!("{} {}", started.image, started.command.last().cloned().unwrap_or_default());
        *starts.entry(what).or_default() += 1;
    }
    let image = |workload: &Workload| {
        let template = workload.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        template.and_then(|spec| spec.containers.first()?.image.clone()).unwrap_or_default()
    };
    let workloads = Api::<Workload>::namespaced(client.clone(), "shop").list(&ListParams::default()).await.unwrap();
    let maps = Api::<ConfigMap>::namespaced(client, "shop").list(&ListParams::default()).await.unwrap();
    let record = maps.iter().find(|map| map.labels().contains_key("jobwright.io/record")).unwrap();
    let mut record: serde_json::Value = serde_json::from_str(&record.data.as_ref().unwrap()["record"]).unwrap();
    // How often it was begun is what differs.
    record["deploys"] = json!(null);
    Ending {
        starts,
        workloads: workloads.iter().map(|workload| (workload.name_any(), image(workload))).collect(),
        maps: maps.iter().map(kube::ResourceExt::name_any).filter(|name| name != "kube-root-ca.crt").collect(),
        record,
    }
}

/// Plays every disturbance on all processors. Gives the number of calls and of plays.
fn play_all(disturb: impl Fn(&[Call]) -> Vec<Disturbance>) -> (usize, usize) {
    let directory = tempfile::tempdir().unwrap();
    write_plans(directory.path());
    let (calls, expected) = play(directory.path(), &Disturbance::None).unwrap();
    assert_eq!(expected.starts["busybox:1 echo check"], 2, "{expected:?}");
    assert!(expected.maps.contains(&"new".to_owned()) && !expected.maps.contains(&"old".to_owned()), "{expected:?}");
    let plays = disturb(&calls);
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(disturbance) = plays.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (Disturbance::Stop(at, _) | Disturbance::Fault(at, _)) = disturbance else { continue };
                    let problem = match play(directory.path(), disturbance) {
                        Ok((_, ending)) if ending == expected => continue,
                        Ok((_, ending)) => format!("ends as {ending:#?} instead of {expected:#?}"),
                        Err(problem) => problem,
                    };
                    wrong.lock().unwrap().push(format!("{disturbance:?} ({}): {problem}", calls[at - 1]));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} went wrong:\n{}", wrong.len(), plays.len(), wrong.join("\n"));
    (calls.len(), plays.len())
}

#[test]
fn a_deploy_that_is_stopped_at_any_call_ends_as_one_that_was_not() {
    let (calls, plays) = play_all(|calls| {
        let both = |call| [When::Before, When::After].map(|when| Disturbance::Stop(call, when));
        (1..=calls.len()).flat_map(both).collect()
    });
    println!("{calls} calls, stopped before and after each: {plays} points");
    assert_eq!(plays, calls * 2);
}

#[test]
fn a_deploy_that_meets_a_fault_at_any_call_ends_as_one_that_did_not() {
    let (calls, plays) = play_all(|calls| {
        let faults = [
            Fault::Conflict,
            Fault::TooManyRequests { retry_after: 2 },
            Fault::Internal,
            Fault::TimeOut(When::After),
            Fault::Disconnect(When::After),
        ];
        let one = |call: usize| Disturbance::Fault(call, faults[call % faults.len()].clone());
        (1..=calls.len()).map(one).collect()
    });
    println!("{calls} calls, {plays} faults");
    assert_eq!(plays, calls);
}
