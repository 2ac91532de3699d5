//! StatefulSets.

use super::claim;
use super::fill::{each, make, or, or_text};
use super::pod::{defaults, template};
use super::workload::{
    TEMPLATE, WITH_TEMPLATE, amount, check_at_most_all, check_counts, check_number_or_percent, check_selector,
};
use super::{NameRule, Rules};
use crate::field::FieldError;
use crate::object::Object;
use crate::validate::{At, Errors, format, printed};
use serde_json::{Value, json};

const UPDATABLE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

pub(crate) static STATEFUL_SET: Rules = Rules {
    name: NameRule::Label,
    default,
    prepare_create: |set| {
        (WITH_TEMPLATE.prepare_create)(set);
        drop_disabled(set);
    },
    prepare_update: |new, old| {
        (WITH_TEMPLATE.prepare_update)(new, old);
        drop_disabled(new);
    },
    check: |set| check(&At::top(set, "spec"), true),
    check_update,
    check_status: |new, old| {
        let counts = [
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ];
        let of_all = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
        check_counts(new, old, &counts, &of_all, "status.readyReplicas")
    },
    warnings,
    ..WITH_TEMPLATE
};

fn default(set: &mut Object) {
    let spec = make(set.fields_mut(), "spec");
    or_text(spec, "podManagementPolicy", "OrderedReady");
    let strategy = make(spec, "updateStrategy");
    if super::fill::text(strategy, "type").is_empty() {
        or_text(strategy, "type", "RollingUpdate");
        make(strategy, "rollingUpdate");
    }
    if super::fill::text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = super::fill::inside(strategy, "rollingUpdate")
    {
        or(rolling, "partition", 0);
    }
    let retention = make(spec, "persistentVolumeClaimRetentionPolicy");
    or_text(retention, "whenDeleted", "Retain");
    or_text(retention, "whenScaled", "Retain");
    or(spec, "replicas", 1);
    or(spec, "revisionHistoryLimit", 10);
    each(spec, "volumeClaimTemplates", |template| {
        template.insert("apiVersion".to_owned(), json!("v1"));
        template.insert("kind".to_owned(), json!("PersistentVolumeClaim"));
        make(template, "metadata");
        claim::default_spec(make(template, "spec"));
        or_text(make(template, "status"), "phase", "Pending");
    });
    defaults::template(make(spec, "template"));
}

/// `maxUnavailable` belongs to a feature that is off.
fn drop_disabled(set: &mut Object) {
    set.remove(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]);
}

fn check(spec: &At<'_>, is_new: bool) -> Errors {
    let mut errors = Vec::new();
    let policy = spec.field("podManagementPolicy");
    match policy.text() {
        "" => errors.push(policy.required("")),
        "OrderedReady" | "Parallel" => {}
        _ => errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'")),
    }
    check_strategy(&spec.field("updateStrategy"), &mut errors);
    let retention = spec.field("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        if retention.is_set() && !matches!(retention.text_of(field), "Retain" | "Delete") {
            errors.push(retention.field(field).not_supported(&["Retain", "Delete"]));
        }
    }
    if is_new {
        for template in spec.field("volumeClaimTemplates").items() {
            claim::check_spec(&template.field("spec"), &mut errors);
        }
    }
    spec.field("replicas").check_not_negative(&mut errors);
    spec.field("minReadySeconds").check_not_negative(&mut errors);
    spec.below(&["ordinals", "start"]).check_not_negative(&mut errors);
    let service = spec.field("serviceName");
    if is_new && !service.text().is_empty() {
        errors.extend(service.all_invalid(format::dns_label(service.text())));
    }
    let selector = spec.field("selector");
    let pods = spec.field("template");
    if check_selector(&selector, "statefulset", "", &mut errors) {
        template::check_selected(&selector, &pods, &mut errors);
        let judged = with_claims(spec);
        template::check(&At::new(&judged, pods.path.clone()), &mut errors);
    }
    template::check_runs_for_ever(&pods, "StatefulSet", &mut errors);
    errors
}

fn check_strategy(strategy: &At<'_>, errors: &mut Errors) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.text_of("type") {
        "" => errors.push(strategy.required("")),
        "OnDelete" => {
            if rolling.is_set() {
                let shown = printed("apps.RollingUpdateStatefulSetStrategy", rolling.value);
                let why = "only allowed for updateStrategy 'RollingUpdate'";
                errors.push(FieldError::invalid_printed(&rolling.path, shown, why));
            }
        }
        "RollingUpdate" => {
            rolling.field("partition").check_not_negative(errors);
            let unavailable = rolling.field("maxUnavailable");
            if unavailable.is_set() {
                check_number_or_percent(&unavailable, errors);
                if amount(unavailable.value) == 0 {
                    errors.push(unavailable.invalid("cannot be 0"));
                }
                check_at_most_all(&unavailable, errors);
            }
        }
        _ => {
            let shown = printed("apps.StatefulSetUpdateStrategy", strategy.value);
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(FieldError::invalid_printed(&strategy.path, shown, why));
        }
    }
}

/// The template as its pods will be: each has a volume for every claim, and a host name of its own.
fn with_claims(spec: &At<'_>) -> Value {
    let mut template = spec.field("template").value.clone();
    let claims = spec.field("volumeClaimTemplates");
    let name = |claim: &At<'_>| claim.below(&["metadata", "name"]).text().to_owned();
    let names: std::collections::BTreeSet<String> = claims.items().map(|claim| name(&claim)).collect();
    if let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) {
        pod.remove("subdomain");
        pod.remove("hostname");
        if !names.is_empty() {
            let own = pod.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
            let is_own = |volume: &Value| !names.iter().any(|name| volume.get("name").is_some_and(|own| own == name));
            let mut volumes: Vec<Value> =
                names.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}})).collect();
            volumes.extend(own.into_iter().filter(is_own));
            pod.insert("volumes".to_owned(), Value::Array(volumes));
        }
    }
    template
}

fn check_update(new: &Object, old: &Object) -> Errors {
    let mut errors = check(&At::top(new, "spec"), false);
    let fixed = |object: &Object| {
        let mut spec = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        for field in [
            "replicas",
            "template",
            "updateStrategy",
            "minReadySeconds",
            "ordinals",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
        ] {
            spec.remove(field);
        }
        spec
    };
    if fixed(new) != fixed(old) {
        errors.push(At::top(new, "spec").forbidden(UPDATABLE));
    }
    errors
}

fn warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let mut warnings = template::warnings(new, old, &TEMPLATE);
    if new.integer(&["spec", "revisionHistoryLimit"]).is_some_and(|limit| limit < 0) {
        let why =
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
        warnings.push(why.to_owned());
    }
    warnings
}
