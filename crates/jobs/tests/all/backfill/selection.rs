//! Which objects are wanted, and how much of them.

use super::stage::{Collector, Deed, Stage, backfill};
use jobwright_jobs::backfill::{Backfill, Filters, Names, Patterns, Selection, Summary};
use serde_json::{Value, json};
use std::collections::BTreeMap;

async fn arrived(stage: &Stage, backfill: &Backfill) -> (BTreeMap<String, Value>, Summary) {
    let sink = Collector::new(|_| Deed::Take);
    let summary = stage.run(backfill, &sink).await;
    assert!(summary.complete, "{summary:?}");
    (sink.objects().0, summary)
}

fn of(kinds: &[&str]) -> Backfill {
    Backfill { kinds: kinds.iter().map(|kind| (*kind).into()).collect(), ..backfill() }
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_listed_one_after_the_other_and_what_has_none_only_by_name() {
    let stage = Stage::new(12).await;
    for namespace in ["shop", "other"] {
        stage.create("v1", "Namespace", json!({"metadata": {"name": namespace}})).await;
        let maps = kube::Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(stage.stranger(), namespace);
        let map = serde_json::from_value(json!({"metadata": {"name": "of-it"}})).unwrap();
        maps.create(&kube::api::PostParams::default(), &map).await.unwrap();
    }
    let shop = |backfill: Backfill| Backfill { namespaces: vec!["default".to_owned(), "shop".to_owned()], ..backfill };
    let (objects, summary) = arrived(&stage, &shop(of(&["configmaps", "namespaces"]))).await;
    let maps: Vec<&String> = objects.keys().filter(|key| key.starts_with("ConfigMap/")).collect();
    assert_eq!(maps.len(), 13);
    assert!(maps.iter().all(|key| key.starts_with("ConfigMap/default/") || key.starts_with("ConfigMap/shop/")));
    assert!(objects.contains_key("Namespace//other"), "it was named");
    assert_eq!(summary.kinds.iter().find(|kind| kind.kind == "ConfigMap").unwrap().counts.listed, 13);
    let (objects, summary) = arrived(&stage, &Backfill { kinds: Vec::new(), ..shop(backfill()) }).await;
    assert!(objects.keys().all(|key| !key.contains("//")), "{:?}", objects.keys());
    assert!(!summary.kinds.iter().any(|kind| kind.kind == "Node"));
}

#[tokio::test(start_paused = true)]
async fn selectors_and_names_choose() {
    let stage = Stage::new(12).await;
    let labels = Selection { labels: "app=shop".to_owned(), ..Selection::default() };
    let (objects, _) = arrived(&stage, &Backfill { selection: labels, ..of(&["configmaps"]) }).await;
    assert_eq!(objects.len(), 12);
    let fields = Selection { fields: "metadata.name=map-003".to_owned(), ..Selection::default() };
    let (objects, _) = arrived(&stage, &Backfill { selection: fields, ..of(&["configmaps"]) }).await;
    assert_eq!(objects.keys().collect::<Vec<_>>(), ["ConfigMap/default/map-003"]);
    let names = Names { only: vec!["^map-00".parse().unwrap()], without: vec!["5$".parse().unwrap()] };
    let filters = Filters { names, ..Filters::default() };
    let (objects, summary) = arrived(&stage, &Backfill { filters, ..of(&["configmaps"]) }).await;
    assert_eq!(objects.len(), 9);
    let counts = summary.kinds[0].counts;
    assert_eq!((counts.listed, counts.sent, counts.skipped), (12, 9, 3));
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_goes_out_with_the_kind_of_the_object() {
    let stage = Stage::new(6).await;
    let selection = Selection { metadata_only: true, ..Selection::default() };
    let annotations = Patterns { only: vec!["nothing".parse().unwrap()], ..Patterns::default() };
    let filters = Filters { annotations, ..Filters::default() };
    let (objects, _) = arrived(&stage, &Backfill { selection, filters, ..of(&["configmaps", "secrets", "wd"]) }).await;
    assert_eq!(objects.len(), 6 + 2 + 2);
    let map = &objects["ConfigMap/default/map-000"];
    assert_eq!(map.as_object().unwrap().keys().collect::<Vec<_>>(), ["apiVersion", "kind", "metadata"]);
    assert_eq!((&map["apiVersion"], &map["kind"]), (&json!("v1"), &json!("ConfigMap")));
    assert_eq!((&map["metadata"]["labels"], &map["metadata"]["annotations"]), (&json!({"app": "shop"}), &json!({})));
    assert_eq!(objects["Widget/default/widget-003"]["apiVersion"], "example.com/v1");
}
