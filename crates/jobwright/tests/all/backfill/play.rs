//! A cluster with ConfigMaps and Secrets in it, and the binary on it.

use crate::backfill::collector::Collector;
use crate::deploy::stage::{Said, Stage};
use jobwright_drydock::{Builder, Drydock};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

/// Part of everything that must never leave.
pub(crate) const PLANTED: &str = "pl4nted";
/// How many ConfigMaps there are, and how many Secrets.
pub(crate) const MAPS: usize = 40;
pub(crate) const SECRETS: usize = 12;

/// A stage with objects in it.
pub(crate) fn stage() -> Stage {
    stage_on(Drydock::builder().bare())
}

pub(crate) fn stage_on(builder: Builder) -> Stage {
    let stage = Stage::on(builder, "");
    let client = stage.client();
    stage.block_on(async {
        let parameters = PostParams::default();
        let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
        for index in 0..MAPS {
            let data = json!({"DB_PASSWORD": format!("{PLANTED}-{index}"), "text": format!("of {index}")});
            let map = json!({"metadata": {"name": format!("map-{index:03}")}, "data": data});
            maps.create(&parameters, &serde_json::from_value(map).unwrap()).await.unwrap();
        }
        let secrets = Api::<Secret>::namespaced(client, "default");
        for index in 0..SECRETS {
            let data = json!({"password": format!("{PLANTED}-{index}")});
            let secret = json!({"metadata": {"name": format!("secret-{index:03}")}, "stringData": data});
            secrets.create(&parameters, &serde_json::from_value(secret).unwrap()).await.unwrap();
        }
    });
    stage
}

/// What is typed to send both kinds to a collector, in small pages and batches.
pub(crate) fn line(collector: &Collector, more: &str) -> String {
    format!(
        "backfill --sink http://127.0.0.1:{}/ --kinds cm,secrets --page-size 9 --batch-records 7 --concurrency 2 -o json {more}",
        collector.port
    )
}

/// Everything that is there has been taken.
pub(crate) fn expect_all(collector: &Collector, context: &str) -> usize {
    let (objects, again) = collector.objects();
    let maps = objects.keys().filter(|key| key.starts_with("ConfigMap/default/map-")).count();
    let secrets = objects.keys().filter(|key| key.starts_with("Secret/default/secret-")).count();
    assert_eq!((maps, secrets), (MAPS, SECRETS), "{context}");
    for (key, object) in &objects {
        assert!(object.get("data").is_none() || object["data"]["DB_PASSWORD"] == "(removed)", "{key}: {object}");
    }
    again
}

/// Nothing secret was said.
pub(crate) fn expect_quiet(said: &Said) {
    assert!(!said.out.contains(PLANTED) && !said.error.contains(PLANTED), "{}\n{}", said.out, said.error);
}
