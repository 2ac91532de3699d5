//! A look and a run decide the same: what a look calls good, a run leaves alone, and what it does not, a run changes or
//! fails at.

use super::model::SECRET;
use super::world::{World, deployment, options, webhooks};
use jobwright_drydock::Faults;
use jobwright_jobs::init_cert::{Dialling, Options, RenewBefore, Report, Stage, check};
use serde_json::json;
use std::time::Duration;

const VALIDATING: &str = "ValidatingWebhookConfiguration";
const DAY: Duration = Duration::from_hours(24);

/// How the cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Empty,
    Good,
    ForeignAuthority,
    Wiped,
    Garbage,
    Expired,
    NoSecret,
    NoAuthority,
    OtherKey,
    NoConfiguration,
    NoService,
    NoDeployment,
    Paused,
    NotRestarted,
    OtherManager,
    OwnedByEarlierVersion,
    CertManagerSecret,
}

const STATES: [State; 17] = [
    State::Empty,
    State::Good,
    State::ForeignAuthority,
    State::Wiped,
    State::Garbage,
    State::Expired,
    State::NoSecret,
    State::NoAuthority,
    State::OtherKey,
    State::NoConfiguration,
    State::NoService,
    State::NoDeployment,
    State::Paused,
    State::NotRestarted,
    State::OtherManager,
    State::OwnedByEarlierVersion,
    State::CertManagerSecret,
];

impl State {
    async fn set(self) -> World {
        if self == Self::Empty {
            return World::new().await;
        }
        let world = World::running().await;
        let bundle = |text: &str| {
            let mut object = webhooks(VALIDATING, "shop", &[("one.shop.example", "hook")]);
            object["webhooks"][0]["clientConfig"]["caBundle"] = json!(text);
            object
        };
        match self {
            Self::ForeignAuthority => {
                let other = World::running().await;
                let both = world.secret_text(SECRET, "ca.crt").await + &other.secret_text(SECRET, "ca.crt").await;
                world.write_bundle(&both).await;
            }
            Self::Wiped => world.write_bundle("").await,
            Self::Garbage => world.write_bundle("nonsense").await,
            Self::Expired => world.pass(DAY * 400).await,
            Self::NoSecret => world.delete("v1", "Secret", SECRET).await,
            Self::NoAuthority => world.delete("v1", "Secret", "hook-tls-ca").await,
            Self::OtherKey => {
                let other = World::running().await;
                let key = other.secret_text(SECRET, "tls.key").await;
                world.fill("kubernetes.io/tls", &[("tls.key", &key)]).await;
            }
            Self::NoConfiguration => world.delete("admissionregistration.k8s.io/v1", VALIDATING, "shop").await,
            Self::NoService => world.delete("v1", "Service", "hook").await,
            Self::NoDeployment => world.delete("apps/v1", "Deployment", "hook").await,
            Self::Paused => {
                let mut paused = deployment();
                paused["spec"]["paused"] = json!(true);
                world.apply(paused).await;
            }
            Self::NotRestarted => {
                // The secret stage has made another pair, and nobody has gone on.
                world.run(&Options { force: true, stage: Stage::Secret, ..options() }).await.unwrap();
            }
            Self::OtherManager => world.apply_as("somebody", bundle("aGVsbG8=")).await,
            Self::OwnedByEarlierVersion => {
                let bundle = world.get("admissionregistration.k8s.io/v1", VALIDATING, "shop").await["webhooks"][0]
                    ["clientConfig"]["caBundle"]
                    .clone();
                world
                    .apply_as(
                        "jobwright-init-cert",
                        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": VALIDATING,
                            "metadata": {"name": "shop"},
                            "webhooks": [{"name": "one.shop.example", "clientConfig": {"caBundle": bundle}}]}),
                    )
                    .await;
            }
            Self::CertManagerSecret => {
                world
                    .apply_as(
                        "cert-manager",
                        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET,
                            "annotations": {"cert-manager.io/certificate-name": "hook"}}}),
                    )
                    .await;
            }
            Self::Empty | Self::Good => {}
        }
        world.pass(Duration::from_secs(30)).await;
        world
    }
}

fn variants() -> Vec<(&'static str, Options)> {
    let quick = Options { timeout: Duration::from_mins(3), ..options() };
    vec![
        ("as usual", quick.clone()),
        ("the secret stage", Options { stage: Stage::Secret, ..quick.clone() }),
        ("the inject stage", Options { stage: Stage::Inject, ..quick.clone() }),
        ("a Deployment that is not there", Options { deployments: vec!["nosuch".to_owned()], ..quick.clone() }),
        ("without Deployments", Options { deployments: Vec::new(), ..quick.clone() }),
        ("another Service", Options { services: vec!["gate".to_owned()], ..quick.clone() }),
        ("one name more", Options { cluster_domain: Some("cluster.local".to_owned()), ..quick.clone() }),
        ("again", Options { again: Some("7".to_owned()), ..quick.clone() }),
        (
            "early",
            Options { renew_before: RenewBefore::Left(DAY * 364 + DAY / 2 + DAY / 4 + DAY / 8 + DAY / 12), ..quick },
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_look_and_a_run_decide_the_same() {
    let mut wrong = Vec::new();
    let (mut good, mut bad) = (0, 0);
    for state in STATES {
        for dials in [true, false] {
            for (how, options) in variants() {
                let mut world = state.set().await;
                if !dials {
                    world.dialling = Dialling::Not("told not to".to_owned());
                }
                let looked = check(&world.surroundings(None), &options).await;
                world.faults = Faults::new(0);
                let ran = world.run(&options).await;
                let writes = world.faults.calls().into_iter().filter(|call| {
                    call.writes() && !matches!(call.resource.as_str(), "leases" | "selfsubjectaccessreviews")
                });
                let writes: Vec<String> = writes.map(|call| call.to_string()).collect();
                let is_left_alone = ran.is_ok() && writes.is_empty();
                let says_good = looked.as_ref().is_ok_and(Report::is_good);
                if says_good {
                    good += 1;
                } else {
                    bad += 1;
                }
                let said = looked.map_or_else(|error| format!("error: {error}"), |report| report.whole_reason());
                let did = ran.map_or_else(|error| format!("error: {error}"), |report| report.whole_reason());
                if says_good != is_left_alone {
                    wrong.push(format!(
                        "{state:?}, {how}, dials: {dials}: a look says {says_good} ({said}); a run: {did}, {writes:?}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(good > 20 && bad > 100, "{good} good, {bad} not: a table of one kind proves nothing");
}
