//! Laws of the lives, whatever happens to the objects: nothing panics, what an owner had goes with it, and the same
//! seed and the same requests make the same history.

use crate::cluster::{Cluster, Settings};
use crate::kinds::{Kind, Storage};
use crate::object::Object;
use crate::store::Key;
use crate::verbs::delete::{DeleteOptions, Propagation};
use crate::verbs::write::{Source, Write};
use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use std::sync::Arc;

const KINDS: [(&str, &str); 9] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("v1", "ReplicationController"),
    ("v1", "Service"),
    ("policy/v1", "PodDisruptionBudget"),
    ("v1", "Node"),
    ("v1", "Pod"),
];

/// Where objects are changed: a path, and what to put there.
const PLACES: [&str; 31] = [
    "spec.replicas",
    "spec.minReadySeconds",
    "spec.selector",
    "spec.selector.matchLabels",
    "spec.template.metadata.labels",
    "spec.template.spec.tolerations",
    "spec.template.spec.affinity",
    "spec.template.spec.containers",
    "spec.template.spec.nodeSelector",
    "spec.strategy",
    "spec.strategy.rollingUpdate.maxSurge",
    "spec.strategy.rollingUpdate.maxUnavailable",
    "spec.updateStrategy.rollingUpdate.maxSurge",
    "spec.updateStrategy.rollingUpdate.partition",
    "spec.updateStrategy.type",
    "spec.revisionHistoryLimit",
    "spec.progressDeadlineSeconds",
    "spec.podManagementPolicy",
    "spec.ordinals.start",
    "spec.paused",
    "spec.volumeClaimTemplates",
    "spec.ports",
    "spec.minAvailable",
    "spec.maxUnavailable",
    "spec.taints",
    "spec.unschedulable",
    "metadata.labels",
    "metadata.annotations",
    "metadata.ownerReferences",
    "status",
    "status.conditions",
];

#[derive(Clone, Debug)]
enum Deed {
    Create(usize, usize, Vec<(&'static str, Value)>),
    Change(usize, usize, bool, Vec<(&'static str, Value)>),
    Delete(usize, usize, Propagation),
    Lose,
    Restore,
    Wait(i64),
}

fn value() -> impl Strategy<Value = Value> {
    let condition = json!([{"type": "Ready", "status": "False"}, {"type": "Progressing"}, 7, {"type": "ReplicaFailure", "status": "True"}]);
    let chosen = vec![
        json!(null),
        json!(0),
        json!(1),
        json!(3),
        json!(-1),
        json!(7),
        json!("0%"),
        json!("50%"),
        json!("300%"),
        json!(true),
        json!("OnDelete"),
        json!("Parallel"),
        json!({}),
        json!([]),
        json!({"app": "a"}),
        json!({"app": "b", "pod-template-hash": "x"}),
        json!({"type": "Recreate", "rollingUpdate": null}),
        json!({"deployment.kubernetes.io/revision": "-9", "deployment.kubernetes.io/desired-replicas": "x"}),
        json!([{"key": "k", "effect": "NoExecute"}]),
        json!([{"operator": "Exists", "tolerationSeconds": 3}]),
        json!([{"name": "main", "image": "shop/a:2"}]),
        json!([{"name": "main", "image": "shop/a:3", "command": ["sh", "-c", "sleep 1; exit 1"]}]),
        json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}]),
        json!([{"port": 80, "targetPort": "http"}, {"port": 81, "name": "b"}]),
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "u", "controller": true}]),
        condition,
    ];
    prop_oneof![9 => select(chosen), 1 => crate::testing::json()]
}

fn deed() -> impl Strategy<Value = Deed> {
    let object = || (0..KINDS.len(), 0..2_usize);
    let changes = || vec((select(PLACES.to_vec()), value()), 0..3);
    let propagation = select(vec![Propagation::Background, Propagation::Foreground, Propagation::Orphan]);
    prop_oneof![
        6 => (object(), changes()).prop_map(|((kind, name), changes)| Deed::Create(kind, name, changes)),
        6 => (object(), any::<bool>(), changes())
            .prop_map(|((kind, name), status, changes)| Deed::Change(kind, name, status, changes)),
        2 => (object(), propagation).prop_map(|((kind, name), propagation)| Deed::Delete(kind, name, propagation)),
        1 => Just(Deed::Lose),
        1 => Just(Deed::Restore),
        4 => select(vec![5, 300, 2_000, 60_000, 700_000]).prop_map(Deed::Wait),
    ]
}

fn object(kind: usize, name: usize) -> Value {
    let (api_version, kind) = KINDS[kind];
    let name = ["a", "b"][name];
    let pod = json!({"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "shop/a:1"}]});
    let spec = match kind {
        "Service" => json!({"selector": {"app": name}, "ports": [{"port": 80}]}),
        "PodDisruptionBudget" => json!({"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}),
        "Node" => json!({}),
        "Pod" => pod,
        "ReplicationController" => {
            json!({"replicas": 2, "selector": {"app": name}, "template": {"metadata": {"labels": {"app": name}}, "spec": pod}})
        }
        _ => json!({"replicas": 2, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod}}),
    };
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": {"app": name}}, "spec": spec});
    if kind == "DaemonSet" {
        object["spec"].as_object_mut().unwrap().remove("replicas");
    }
    object
}

fn apply(object: &mut Object, changes: &[(&'static str, Value)]) {
    for (place, value) in changes {
        // Thousands of pods take time and teach nothing.
        if *place == "spec.replicas" && value.as_i64().is_some_and(|number| number > 9) {
            continue;
        }
        let path: Vec<&str> = place.split('.').collect();
        object.set(&path, value.clone());
    }
}

struct World {
    cluster: Cluster,
}

impl World {
    fn new() -> Self {
        let settings = Settings { seed: 5, nodes: 2, ..Settings::default() };
        Self { cluster: Cluster::new(Timestamp::from_second(1_767_225_600).unwrap(), settings) }
    }

    fn kind(&self, kind: usize) -> Arc<Kind> {
        Arc::clone(self.cluster.kinds.by_kind(KINDS[kind].0, KINDS[kind].1).unwrap())
    }

    fn key(&self, kind: usize, name: usize) -> Key {
        Key::new(if self.kind(kind).namespaced { "default" } else { "" }, ["a", "b"][name])
    }

    /// Does what a request would do. That the API refuses much of it is the API's business.
    fn play(&mut self, deed: &Deed) {
        match deed {
            Deed::Create(kind, name, changes) => {
                let mut new = Object::from_value(object(*kind, *name)).unwrap();
                apply(&mut new, changes);
                let (key, kind) = (self.key(*kind, *name), self.kind(*kind));
                let _ = self.cluster.insert(&kind, &key.namespace, new, &Write::internal("test"));
            }
            Deed::Change(kind, name, status, changes) => {
                let (key, kind) = (self.key(*kind, *name), self.kind(*kind));
                let write = Write::internal("test");
                let write = if *status && kind.has("status") { write.through("status") } else { write };
                let _ = self.cluster.modify(&kind, &key, &write, Source::Update, |_, old| {
                    let mut new = Object::clone(old);
                    apply(&mut new, changes);
                    Ok(new)
                });
            }
            Deed::Delete(kind, name, propagation) => {
                let options = DeleteOptions { propagation: Some(*propagation), ..DeleteOptions::default() };
                let (key, kind) = (self.key(*kind, *name), self.kind(*kind));
                let _ = self.cluster.remove(&kind, &key, &options);
            }
            Deed::Lose => self.cluster.outages.begin("drydock-2", self.cluster.now),
            Deed::Restore => self.cluster.outages.end("drydock-2"),
            Deed::Wait(milliseconds) => self.pass(SignedDuration::from_millis(*milliseconds)),
        }
        self.cluster.settle();
    }

    fn pass(&mut self, duration: SignedDuration) {
        let end = self.cluster.now.checked_add(duration).unwrap();
        for _ in 0..80 {
            let Some(due) = self.cluster.next_due().filter(|due| *due <= end) else { break };
            self.cluster.now = due.max(self.cluster.now);
            self.cluster.settle();
        }
        self.cluster.now = end;
        self.cluster.settle();
    }

    fn names(&self, group: &str, plural: &str) -> Vec<String> {
        self.cluster
            .store
            .list(&Storage::new(group, plural), Some("default"))
            .map(|object| object.name().to_owned())
            .collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn lives_stand_anything_and_repeat_themselves(deeds in vec(deed(), 1..14)) {
        let mut worlds = [World::new(), World::new()];
        for world in &mut worlds {
            for deed in &deeds {
                world.play(deed);
            }
            world.pass(SignedDuration::from_secs(5));
        }
        let history = |world: &World| {
            let storages: Vec<Storage> = world.cluster.store.storages().cloned().collect();
            let all = storages.iter().flat_map(|storage| world.cluster.store.list(storage, None).cloned());
            (world.cluster.store.revision(), all.collect::<Vec<_>>())
        };
        prop_assert_eq!(history(&worlds[0]), history(&worlds[1]));
    }

    #[test]
    fn what_an_owner_had_goes_with_it(kinds in vec(0..5_usize, 1..4), wait in 0..4_000_i64) {
        let mut world = World::new();
        for kind in &kinds {
            world.play(&Deed::Create(*kind, 0, Vec::new()));
            world.play(&Deed::Wait(wait));
        }
        for kind in &kinds {
            world.play(&Deed::Delete(*kind, 0, Propagation::Background));
        }
        world.pass(SignedDuration::from_secs(60));
        for (group, plural) in [("", "pods"), ("apps", "replicasets"), ("apps", "controllerrevisions")] {
            prop_assert_eq!(world.names(group, plural), Vec::<String>::new());
        }
    }
}
