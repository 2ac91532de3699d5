use super::*;

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "api", "helm.sh/chart": "api-1.0.0"}, "annotations": {"checksum/config": "1"}},
        "spec": {
            "containers": [{
                "name": "m", "image": "shop/api:1.4.0", "args": ["migrate"],
                "envFrom": [{"configMapRef": {"name": "env"}}, {"secretRef": {"name": "password"}}],
                "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "keys", "key": "a"}}},
                        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "token", "key": "b"}}}],
            }],
            "initContainers": [{"name": "wait", "envFrom": [{"configMapRef": {"name": "first"}}]}],
            "volumes": [{"name": "v", "configMap": {"name": "files"}}, {"name": "s", "secret": {"secretName": "tls"}},
                        {"name": "p", "projected": {"sources": [{"configMap": {"name": "part"}}, {"secret": {"name": "half"}}]}}],
        },
    })
}

fn fingerprint(template: Value) -> Fingerprint {
    Fingerprints::of(&Inputs { template, ..Inputs::default() }).newest().clone()
}

#[test]
fn what_says_nothing_changes_nothing() {
    let plain = fingerprint(template());
    let mut other = template();
    other["metadata"]["labels"]["helm.sh/chart"] = json!("api-1.0.1");
    other["metadata"]["labels"]["app.kubernetes.io/version"] = json!("1.4.1");
    other["metadata"]["annotations"] = json!({"checksum/config": "2", "argocd.argoproj.io/sync-wave": "1"});
    other["spec"]["nodeName"] = Value::Null;
    assert_eq!(fingerprint(other), plain);
}

#[test]
fn what_a_pod_does_counts() {
    let plain = fingerprint(template());
    for (path, value) in [
        ("/spec/containers/0/image", json!("shop/api:1.4.1")),
        ("/spec/containers/0/args/0", json!("migrate-more")),
        ("/metadata/labels/app", json!("web")),
        ("/spec/volumes/0", json!({"name": "v", "emptyDir": {}})),
    ] {
        let mut other = template();
        *other.pointer_mut(path).unwrap() = value;
        assert_ne!(fingerprint(other), plain, "{path}");
    }
}

#[test]
fn config_maps_count_by_content_and_versions_when_asked() {
    let with = |content: Value, version: Option<&str>| {
        let config_maps = BTreeMap::from([("env".to_owned(), content)]);
        let inputs = Inputs { template: template(), config_maps, version: version.map(str::to_owned), secrets: None };
        Fingerprints::of(&inputs).newest().clone()
    };
    assert_eq!(with(json!({"a": "1", "b": "2"}), None), with(json!({"b": "2", "a": "1"}), None));
    assert_ne!(with(json!({"a": "1"}), None), with(json!({"a": "2"}), None));
    assert_ne!(with(Value::Null, None), with(json!({}), None));
    assert_ne!(with(json!({}), None), with(json!({}), Some("1.0")));
}

#[test]
fn secrets_are_hashed_with_a_key() {
    let with = |key: &str, password: &str| {
        let secrets = BTreeMap::from([("token".to_owned(), json!({"password": password}))]);
        let inputs = Inputs { secrets: Some((Key::new(key), secrets)), ..Inputs::default() };
        Fingerprints::of(&inputs).newest().clone()
    };
    assert_ne!(with("k", "a"), with("k", "b"));
    assert_ne!(with("k", "a"), with("l", "a"));
    assert_eq!(with("k", "a"), with("k", "a"));
    assert_eq!(format!("{:?}", Key::new("hidden")), "Key(…)");
}

/// Released fingerprints stay as they are: this is what ledgers in clusters hold.
#[test]
fn algorithm_1_never_changes() {
    assert_eq!(fingerprint(template()).to_string(), "5c7de2c80f8e84fe59b50f51f2fd45dd");
}

#[test]
fn a_new_algorithm_recognises_what_an_old_one_wrote() {
    fn algorithm_2(inputs: &Inputs) -> Value {
        json!({"new": algorithm_1(inputs)})
    }
    let inputs = Inputs { template: template(), ..Inputs::default() };
    let old = Fingerprints::of(&inputs);
    let new = Fingerprints::by(&[ALGORITHMS[0], (2, algorithm_2)], &inputs);
    assert!(new.newest().to_string().starts_with("2:"), "{}", new.newest());
    assert!(new.include(old.newest()));
    assert!(!old.include(new.newest()));
    let read: Fingerprint = serde_json::from_value(serde_json::to_value(new.newest()).unwrap()).unwrap();
    assert_eq!(read, *new.newest());
    let other = Inputs { template: json!({"spec": {}}), ..Inputs::default() };
    assert!(!Fingerprints::by(&[ALGORITHMS[0], (2, algorithm_2)], &other).include(old.newest()));
}

#[test]
fn numbers_and_keys_are_written_in_one_way() {
    assert_eq!(canonical::text(&json!({"b": [1.0, 2, 2.5], "a": "x\n"})), r#"{"a":"x\n","b":[1,2,2.5]}"#);
    assert_eq!(canonical::text(&json!(u64::MAX)), u64::MAX.to_string());
}

#[test]
fn everything_that_a_template_names_is_found() {
    let found = References::of(&template());
    let names = |set: &std::collections::BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(names(&found.config_maps), "env files first keys part");
    assert_eq!(names(&found.secrets), "half password tls token");
    assert_eq!(References::of(&json!("nonsense")), References::default());
}
