//! A backfill of a whole real cluster has what `kubectl get` shows, object by object; done once, it is not done again.

use crate::Test;
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::live::{Deploys, Stage};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(crate) const TESTS: &[Test] =
    &[Test { name: "a_backfill_of_the_cluster_is_what_kubectl_shows", needs: &[], play: whole_cluster }];

/// Part of everything that must never leave.
const PLANTED: &str = "pl4nted";
/// What stands for a value that does not leave.
const REMOVED: &str = "(removed)";
/// How many ConfigMaps there are: some pages.
const MAPS: usize = 25;

fn whole_cluster(stage: &Stage<'_>) -> Result<()> {
    fill(stage)?;
    let deploys = Deploys::new(stage, "backfill")?;
    let namespace = stage.namespace();
    // Events come and go, and so do the CRDs of other tests.
    let kinds =
        deploys.expect(0, &["backfill", "--sink", "stdout", "--dry-run", "--exclude-kinds", "events", "-o", "json"])?;
    let kinds = kinds.json()?["kinds"].as_array().cloned().unwrap_or_default();
    let is_built_in = |name: &&str| {
        let group = name.split_once('.').map_or("", |(_, group)| group);
        !group.contains('.') || group.ends_with(".k8s.io")
    };
    let names: Vec<&str> = kinds.iter().filter_map(|kind| kind["name"].as_str()).filter(is_built_in).collect();
    let names = names.join(",");
    ensure!(names.contains("configmaps") && names.contains("deployments.apps"), "only {names}");

    let before = shown(stage, &names)?;
    let words = ["backfill", "--sink", "file:out.ndjson", "--kinds", &names, "--page-size", "10", "-o", "json"];
    let once = ["--checkpoint", "configmap:progress", "--unless-complete", "k1", "-n", namespace];
    let words = [&words[..], &once[..]].concat();
    let said = deploys.expect(0, &words)?;
    let after = shown(stage, &names)?;
    ensure!(!said.stdout.contains(PLANTED) && !said.stderr.contains(PLANTED), "a secret was told");
    let text = std::fs::read_to_string(deploys.directory().join("out.ndjson"))?;
    ensure!(!text.contains(PLANTED), "a secret has left");

    let mut arrived = BTreeMap::new();
    for line in text.lines() {
        let object: Value = serde_json::from_str(line)?;
        let again = arrived.insert(key(&object), object);
        ensure!(again.is_none(), "it came twice: {again:?}");
    }
    let mut compared = 0;
    for (key, expected) in &before {
        // What has changed meanwhile arrived as it was or as it is; nobody knows which.
        let stayed = after.get(key).is_some_and(|now| now == expected);
        if !stayed {
            continue;
        }
        let object = arrived.get(key).with_context(|| format!("{key} has not arrived"))?;
        ensure!(is_equal(expected, object), "{key} is\n{expected}\nand arrived as\n{object}");
        compared += 1;
    }
    for key in arrived.keys() {
        let was_there = before.contains_key(key) || after.contains_key(key);
        ensure!(was_there || !key.contains(&format!("/{namespace}/")) || is_passing(key), "{key} was never there");
    }
    let own = arrived.keys().filter(|key| key.contains(&format!("/ConfigMap/{namespace}/map-"))).count();
    ensure!(own == MAPS && compared > 100, "{own} of ours, {compared} compared");
    let map = &arrived[&format!("v1/ConfigMap/{namespace}/map-000")];
    ensure!(map["data"] == json!({"DB_PASSWORD": REMOVED, "text": "map-000"}), "{map}");

    let again = deploys.expect(0, &words)?.json()?;
    ensure!(again["kept"]["key"] == "k1" && again["run"] == said.json()?["run"], "{again}");
    Ok(())
}

fn fill(stage: &Stage<'_>) -> Result<()> {
    let map = |index: usize| {
        let name = format!("map-{index:03}");
        let data = json!({"DB_PASSWORD": format!("{PLANTED}-{index}"), "text": name});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
    };
    let maps: Vec<Value> = (0..MAPS).map(map).collect();
    stage.apply(&json!({"apiVersion": "v1", "kind": "List", "items": maps}))?;
    let data = json!({"password": PLANTED});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret"}, "stringData": data});
    Ok(stage.apply(&secret)?)
}

/// What kubectl shows of some kinds, in all namespaces.
fn shown(stage: &Stage<'_>, kinds: &str) -> Result<BTreeMap<String, Value>> {
    let text = stage.kubectl(&["get", kinds, "--all-namespaces", "--output=json"])?;
    let list: Value = serde_json::from_str(&text)?;
    let items = list["items"].as_array().context("kubectl shows no list")?;
    Ok(items.iter().map(|object| (key(object), object.clone())).collect())
}

fn key(object: &Value) -> String {
    let metadata = &object["metadata"];
    let parts = [&object["apiVersion"], &object["kind"], &metadata["namespace"], &metadata["name"]];
    parts.map(|part| part.as_str().unwrap_or_default()).join("/")
}

/// Whether an object of ours may have come and gone between two looks; others' do as they like.
fn is_passing(key: &str) -> bool {
    ["/Lease/", "/Pod/", "/Job/", "/ConfigMap/"].iter().any(|kind| key.contains(kind))
}

/// Whether an object arrived as it is, but for what is secret.
fn is_equal(expected: &Value, arrived: &Value) -> bool {
    match (expected, arrived) {
        (Value::Object(one), Value::Object(other)) => {
            let is_secret = one.get("kind").is_some_and(|kind| kind == "Secret");
            // What a ledger keeps of logs.
            let is_ledger = ["head", "done", "runs"].iter().all(|key| one.contains_key(*key));
            let never_leaves = |key: &str| {
                key == "kubectl.kubernetes.io/last-applied-configuration"
                    || (is_secret && key == "data")
                    || (is_ledger && key == "logs")
            };
            let same = one
                .iter()
                .filter(|(key, _)| !never_leaves(key))
                .all(|(key, value)| other.get(key).is_some_and(|other| is_equal(value, other)));
            same && other.keys().all(|key| one.contains_key(key) && !never_leaves(key))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::String(_), Value::String(other)) if other == REMOVED => true,
        _ => expected == arrived,
    }
}
