//! Names of objects, for every name of a release that Helm accepts: a cluster accepts them, and no two are the same.

use crate::{Test, repository};
use anyhow::{Context as _, Result, ensure};
use jobwright_drydock::Drydock;
use jobwright_e2e::render::{Rendered, Renderer, name};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::discovery::ApiResource;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    ("a cluster accepts the names of every length and alphabet of a release", accepted),
    ("a release whose name reads as a number or a truth has texts as names", texts),
    ("the pods of a bundled database start under the longest name", database),
    ("two long releases that begin alike have no name in common", apart),
];

/// The longest name of a release.
const LONGEST: usize = 53;

/// The charts, and what changes their names.
const CHARTS: [(&str, &str); 5] = [
    ("examples/migration", "releaseHooks.mode=hook"),
    ("examples/migration", "releaseHooks.mode=plain"),
    ("examples/migration", "releaseHooks.database=bundled"),
    ("examples/agent", "releaseHooks.mode=hook"),
    ("examples/agent", "releaseHooks.mode=plain"),
];

/// What names of releases are made of, over and over.
const ALPHABETS: [&str; 4] = ["release", "4711", "a-b", "x.y1."];

/// Where names begin to be cut.
const CRITICAL: std::ops::RangeInclusive<usize> = 36..=LONGEST;

/// A name of a release of this length, which ends with what a name may end with.
fn release(alphabet: &str, length: usize) -> String {
    let mut name: String = alphabet.chars().cycle().take(length).collect();
    if !name.ends_with(|last: char| last.is_ascii_alphanumeric()) {
        name.pop();
        name.push('z');
    }
    name
}

/// A cluster that is asked whether it would take objects.
struct Cluster {
    drydock: Drydock,
    client: Client,
}

impl Cluster {
    fn new() -> Self {
        let drydock = Drydock::new();
        Self { client: Client::new(drydock.clone(), "default"), drydock }
    }

    async fn create(&self, object: &Value, dry_run: bool) -> Result<()> {
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        let types = object.types.clone().context("an object without a kind")?;
        let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
        let kind = kube::core::GroupVersionKind::gvk(group, version, &types.kind);
        let resource = ApiResource::from_gvk(&kind);
        let is_wide = types.kind.starts_with("Cluster") || types.kind.ends_with("WebhookConfiguration");
        let api: Api<DynamicObject> = if is_wide {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::default_namespaced_with(self.client.clone(), &resource)
        };
        let parameters = PostParams { dry_run, ..PostParams::default() };
        api.create(&parameters, &object).await.map(drop).with_context(|| format!("{} {object:?}", types.kind))
    }
}

fn play<F: Future<Output = Result<()>>>(test: F) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?.block_on(test)
}

/// The kinds and names, of which none may be there twice.
fn names(rendered: &Rendered) -> Result<BTreeSet<(String, String)>> {
    let mut names = BTreeSet::new();
    for object in rendered.objects() {
        let key = (object["kind"].to_string(), name(object).to_owned());
        ensure!(names.insert(key), "{} {} is there twice", object["kind"], name(object));
    }
    Ok(names)
}

/// What only shows when pods are made: their names and labels are longer than those of what makes them.
fn has_valid_pods(object: &Value) -> Result<()> {
    let limit = match object["kind"].as_str() {
        Some("StatefulSet" | "CronJob") => 52,
        Some("Job" | "Service" | "Deployment") => 63,
        _ => return Ok(()),
    };
    ensure!(name(object).len() <= limit, "{} has {} characters: {object}", name(object), name(object).len());
    ensure!(
        object["kind"] != "StatefulSet" || !name(object).contains('.'),
        "its pods have no valid host name: {object}"
    );
    Ok(())
}

fn accepted(helm: &Renderer) -> Result<()> {
    play(async {
        let cluster = Cluster::new();
        let mut rendered = 0;
        for length in 1..=LONGEST {
            for (index, alphabet) in ALPHABETS.into_iter().enumerate() {
                let release = release(alphabet, length);
                for (turn, (chart, set)) in CHARTS.into_iter().enumerate() {
                    // All of them where names are cut; in turn elsewhere.
                    let is_critical = index == 0 && CRITICAL.contains(&length);
                    if !is_critical && turn != (length + index) % CHARTS.len() {
                        continue;
                    }
                    let objects = helm.template(&release, &repository(chart), &["--set", set])?;
                    names(&objects).with_context(|| format!("{release} {chart} {set}"))?;
                    for object in objects.objects() {
                        let told = || format!("release {release} of {chart} with {set}");
                        has_valid_pods(object).with_context(told)?;
                        cluster.create(object, true).await.with_context(told)?;
                    }
                    rendered += 1;
                }
            }
        }
        let wanted = LONGEST * ALPHABETS.len() + CRITICAL.count() * (CHARTS.len() - 1);
        ensure!(rendered == wanted, "{rendered} of {wanted} were rendered");
        Ok(())
    })
}

fn texts(helm: &Renderer) -> Result<()> {
    play(async {
        let cluster = Cluster::new();
        for release in ["123", "1e3", "0x1f", "1.5", "2026-11-19", "true", "null", "on", "y", "0"] {
            for (chart, set) in CHARTS {
                for object in helm.template(release, &repository(chart), &["--set", set])?.objects() {
                    let told = || format!("release {release} of {chart} with {set}");
                    ensure!(object["metadata"]["name"].is_string(), "{}: {object}", told());
                    cluster.create(object, true).await.with_context(told)?;
                }
            }
        }
        Ok(())
    })
}

fn database(helm: &Renderer) -> Result<()> {
    play(async {
        let cluster = Cluster::new();
        for alphabet in ALPHABETS {
            let release = release(alphabet, LONGEST);
            let set = ["--set", "releaseHooks.database=bundled"];
            let rendered = helm.template(&release, &repository("examples/migration"), &set)?;
            let database = rendered.one("StatefulSet", "")?;
            cluster.create(database, false).await?;
            tokio::time::sleep(Duration::from_mins(1)).await;
            let pod = format!("{}-0", name(database));
            let pods = Api::<Pod>::default_namespaced(cluster.client.clone());
            ensure!(pods.get_opt(&pod).await?.is_some(), "{release}: there is no pod {pod}");
            let started = cluster.drydock.witness().iter().any(|start| start.pod.contains(&pod));
            ensure!(started, "{release}: no container of {pod} has started");
        }
        Ok(())
    })
}

fn apart(helm: &Renderer) -> Result<()> {
    let (one, other) = (format!("{}1", "r".repeat(LONGEST - 1)), format!("{}2", "r".repeat(LONGEST - 1)));
    for (chart, set) in CHARTS {
        let render =
            |release: &str| -> Result<_> { names(&helm.template(release, &repository(chart), &["--set", set])?) };
        let both: Vec<_> = render(&one)?.intersection(&render(&other)?).cloned().collect();
        ensure!(both.is_empty(), "{chart} {set}: {both:?}");
    }
    Ok(())
}
