//! Rendering again with other values is rendering anew, only faster.

use jobwright_chart::{
    Capabilities, Entropy, Helm, LIMITS, NoCluster, Package, Release, RenderOptions, Session, Values, render,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;

fn package(chart: &str) -> Package {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/charts").join(chart);
    Package::load(&directory).expect("a chart")
}

fn options(is_upgrade: bool) -> RenderOptions<'static> {
    let helm = Helm::new(3, 17, 3);
    RenderOptions {
        helm,
        release: Release { name: "rel".to_owned(), namespace: "default".to_owned(), revision: 1, is_upgrade },
        capabilities: Capabilities::of(helm),
        entropy: Entropy::fixed(1, "2026-01-02T03:04:05Z".parse().expect("a time")),
        lookup: &NoCluster,
        limits: LIMITS,
        skip_schema: false,
    }
}

fn table(value: Value) -> Values {
    let Value::Object(values) = value else { panic!("values are a table") };
    values
}

#[test]
fn only_files_that_read_a_change_are_executed_again() {
    let mut session = Session::new(package("typical"));
    session.render(&Values::new(), &options(false)).expect("manifests");
    let all = session.executed();
    session.render(&Values::new(), &options(false)).expect("manifests");
    assert_eq!(session.executed(), 0);
    session.render(&table(json!({"migrate": {"weight": 3}})), &options(false)).expect("manifests");
    assert_eq!(session.executed(), 1, "only the Job reads it");
    session.render(&table(json!({"migrate": {"weight": 3}, "unread": 1})), &options(false)).expect("manifests");
    assert_eq!(session.executed(), 0, "nothing reads it");
    session.render(&table(json!({"nameOverride": "other"})), &options(false)).expect("manifests");
    assert!((2..all).contains(&session.executed()), "{} of {all}", session.executed());
}

/// Values that the charts read, and some that they do not.
fn change() -> impl Strategy<Value = (String, Value)> {
    let path = prop_oneof![
        Just("replicaCount"),
        Just("image.tag"),
        Just("config.key"),
        Just("config.new"),
        Just("config.list"),
        Just("podAnnotations.a"),
        Just("ingress.enabled"),
        Just("ingress.hosts"),
        Just("nameOverride"),
        Just("unread"),
        Just("migrate.enabled"),
        Just("nodeSelector.x"),
        Just("resources"),
        Just("own.text"),
        Just("db.size"),
        Just("db.enabled"),
        Just("tags.extra"),
        Just("global.domain"),
        Just("global.nested.b.c"),
        Just("cache.x"),
        Just("replica.table.y"),
        Just("service"),
    ];
    let value = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(false)),
        Just(json!(0)),
        Just(json!(1.5)),
        Just(json!("")),
        Just(json!("text")),
        Just(json!([])),
        Just(json!([1, {"a": 2}])),
        Just(json!({})),
        Just(json!({"k": {"l": 1}})),
    ];
    (path.prop_map(str::to_owned), value)
}

fn with_changes(changes: &[(String, Value)]) -> Values {
    let mut values = Value::Object(Values::new());
    for (path, value) in changes {
        let mut inner = &mut values;
        for key in path.split('.') {
            if !inner.is_object() {
                *inner = json!({});
            }
            inner = &mut inner[key];
        }
        *inner = value.clone();
    }
    table(values)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn rendering_again_is_rendering_anew(
        renders in proptest::collection::vec((proptest::collection::vec(change(), 0..4), any::<bool>()), 1..5),
        chart in prop_oneof![Just("typical"), Just("umbrella")],
    ) {
        let package = package(chart);
        let mut session = Session::new(package.clone());
        for (changes, is_upgrade) in renders {
            let values = with_changes(&changes);
            let options = options(is_upgrade);
            let again = session.render(&values, &options).map_err(|error| error.to_string());
            let anew = render(&package, &values, &options).map_err(|error| error.to_string());
            prop_assert_eq!(again, anew, "{:?}", changes);
        }
    }
}
