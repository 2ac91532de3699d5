//! The release `r` as Helm stores it: one Secret for each revision.

use crate::error::Error;
use crate::object::Object;
use crate::version::HelmVersion;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;
use std::io::Read as _;

/// The name of the release that scenarios are about.
const RELEASE: &str = "r";

/// A stored revision.
#[derive(Debug, Deserialize)]
pub(super) struct Revision {
    version: u32,
    info: Info,
    #[serde(default)]
    apply_method: String,
    #[serde(default = "Vec::new")]
    hooks: Vec<Hook>,
}

#[derive(Debug, Deserialize)]
struct Info {
    status: String,
}

#[derive(Debug, Deserialize)]
struct Hook {
    #[serde(default)]
    name: String,
    #[serde(default)]
    weight: i64,
    #[serde(default = "Vec::new")]
    delete_policies: Vec<String>,
    #[serde(default = "Vec::new")]
    output_log_policies: Vec<String>,
    #[serde(default)]
    last_run: LastRun,
}

#[derive(Debug, Default, Deserialize)]
struct LastRun {
    #[serde(default)]
    started_at: String,
    #[serde(default)]
    phase: String,
}

/// The revisions among these objects, oldest first.
pub(super) fn revisions(objects: &[Object]) -> Result<Vec<Revision>, Error> {
    let of_release = |object: &&Object| {
        object.type_ == "helm.sh/release.v1" && object.metadata.labels.get("name").is_some_and(|name| name == RELEASE)
    };
    let mut revisions: Vec<Revision> = objects.iter().filter(of_release).map(decode).collect::<Result<_, _>>()?;
    revisions.sort_by_key(|revision| revision.version);
    Ok(revisions)
}

/// Base64 of the API, base64 of Helm, gzip, JSON.
fn decode(secret: &Object) -> Result<Revision, Error> {
    let fail = |reason: String| Error::Release { secret: secret.metadata.name.clone(), reason };
    let data = secret.data["release"].as_str().ok_or_else(|| fail("it has no `release`".to_owned()))?;
    let outer = STANDARD.decode(data).map_err(|error| fail(format!("base64 of the API: {error}")))?;
    let inner = STANDARD.decode(outer).map_err(|error| fail(format!("base64 of Helm: {error}")))?;
    let mut text = String::new();
    GzDecoder::new(inner.as_slice()).read_to_string(&mut text).map_err(|error| fail(format!("gzip: {error}")))?;
    serde_json::from_str(&text).map_err(|error| fail(format!("JSON: {error}")))
}

/// `1 superseded; 2 deployed (methods ssa,csa)`; methods are told where one is not the usual one of the version.
pub(super) fn describe(revisions: &[Revision], version: HelmVersion) -> String {
    if revisions.is_empty() {
        return "none".to_owned();
    }
    let statuses: Vec<String> =
        revisions.iter().map(|revision| format!("{} {}", revision.version, revision.info.status)).collect();
    let line = statuses.join("; ");
    if revisions.iter().any(|revision| revision.apply_method != version.usual_method()) {
        let method = |revision: &Revision| match revision.apply_method.as_str() {
            "" => "-".to_owned(),
            method => method.to_owned(),
        };
        let methods: Vec<String> = revisions.iter().map(method).collect();
        format!("{line} (methods {})", methods.join(","))
    } else {
        line
    }
}

/// `h1 (weight 1, policies hook-succeeded, Succeeded); …` by start time; hooks that never ran are left out.
pub(super) fn hooks(revision: &Revision) -> String {
    let mut hooks: Vec<&Hook> = revision.hooks.iter().filter(|hook| has_run(&hook.last_run)).collect();
    hooks.sort_by_key(|hook| time_order(&hook.last_run.started_at));
    let describe = |hook: &&Hook| {
        let logs = if hook.output_log_policies.is_empty() {
            String::new()
        } else {
            format!(", log {}", hook.output_log_policies.join(","))
        };
        let policies = hook.delete_policies.join(",");
        format!("{} (weight {}, policies {policies}{logs}, {})", hook.name, hook.weight, hook.last_run.phase)
    };
    let lines: Vec<String> = hooks.iter().map(describe).collect();
    if lines.is_empty() { "none".to_owned() } else { lines.join("; ") }
}

/// The second, then the digits of its fraction: text would put `02.12Z` before `02.1Z`.
fn time_order(time: &str) -> (&str, &str) {
    let (second, rest) = time.split_at_checked(19).unwrap_or((time, ""));
    let fraction = rest.strip_prefix('.').unwrap_or_default();
    (second, fraction.split(|character: char| !character.is_ascii_digit()).next().unwrap_or_default())
}

fn has_run(run: &LastRun) -> bool {
    // Go writes its zero time where there is none.
    !run.started_at.is_empty() && !run.started_at.starts_with("0001-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::{Value, json};
    use std::io::Write as _;

    fn secret(release: &Value) -> Object {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(release.to_string().as_bytes()).unwrap();
        let data = STANDARD.encode(STANDARD.encode(gzip.finish().unwrap()));
        serde_json::from_value(json!({
            "kind": "Secret", "type": "helm.sh/release.v1",
            "metadata": {"name": "sh.helm.release.v1.r.v1", "labels": {"name": release["name"]}},
            "data": {"release": data},
        }))
        .unwrap()
    }

    #[test]
    fn revisions_are_decoded_in_order_and_only_those_of_the_release() {
        let objects = [
            secret(&json!({"name": "r", "version": 10, "info": {"status": "deployed"}, "apply_method": "csa"})),
            secret(&json!({"name": "r", "version": 9, "info": {"status": "superseded"}})),
            secret(&json!({"name": "other", "version": 1, "info": {"status": "deployed"}})),
        ];
        let revisions = revisions(&objects).unwrap();
        assert_eq!(describe(&revisions, HelmVersion::V4_3_1), "9 superseded; 10 deployed (methods -,csa)");
    }

    #[test]
    fn usual_methods_are_not_told() {
        let ssa = [secret(&json!({"name": "r", "version": 1, "info": {"status": "failed"}, "apply_method": "ssa"}))];
        let revisions = revisions(&ssa).unwrap();
        assert_eq!(describe(&revisions, HelmVersion::V4_3_1), "1 failed");
        assert_eq!(describe(&revisions, HelmVersion::V3_17_3), "1 failed (methods ssa)");
        assert_eq!(describe(&[], HelmVersion::V3_17_3), "none");
    }

    #[test]
    fn hooks_come_in_the_order_they_ran() {
        let objects = [secret(&json!({"name": "r", "version": 1, "info": {"status": "deployed"}, "hooks": [
            {"name": "b", "weight": 2, "delete_policies": ["hook-succeeded"],
             "last_run": {"started_at": "2026-01-01T00:00:02Z", "phase": "Succeeded"}},
            {"name": "never", "last_run": {"started_at": "0001-01-01T00:00:00Z", "phase": ""}},
            {"name": "a", "delete_policies": ["x"], "output_log_policies": ["hook-failed"],
             "last_run": {"started_at": "2026-01-01T00:00:01.5Z", "phase": "Failed"}},
        ]}))];
        let revisions = revisions(&objects).unwrap();
        let expected =
            "a (weight 0, policies x, log hook-failed, Failed); b (weight 2, policies hook-succeeded, Succeeded)";
        assert_eq!(hooks(&revisions[0]), expected);
    }

    #[test]
    fn fractions_of_a_second_are_in_order() {
        let mut times = ["2026-01-01T00:00:02.12Z", "2026-01-01T00:00:02.1Z", "2026-01-01T00:00:02Z"];
        times.sort_by_key(|time| time_order(time));
        assert_eq!(times, ["2026-01-01T00:00:02Z", "2026-01-01T00:00:02.1Z", "2026-01-01T00:00:02.12Z"]);
    }

    #[test]
    fn a_secret_that_does_not_decode_is_named() {
        let mut object = secret(&json!({"name": "r"}));
        object.data["release"] = json!("!");
        let error = revisions(&[object]).unwrap_err().to_string();
        assert!(error.contains("sh.helm.release.v1.r.v1") && error.contains("base64"), "{error}");
    }
}
