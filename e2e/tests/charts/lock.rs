//! The lock of jobs: a container that runs under `jobwright lock run`.

use crate::Test;
use crate::library::{chart, example};
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::render::{Rendered, Renderer, annotation, name};
use serde_json::{Value, json};

pub(crate) const TESTS: &[Test] = &[
    ("a locked job takes one Lease in every mode and every revision", named),
    ("a locked job may use its Lease and nothing else", allowed),
    ("a lock keeps the command, the arguments and the volumes of its job", wrapped),
    ("a job that cannot be locked is refused with the reason", refused),
    ("without a lock nothing of it is there", unlocked),
];

const LOCKED: &str = "releaseHooks.lock.enabled=true";

fn render(helm: &Renderer, set: &str) -> Result<Rendered> {
    Ok(helm.template("shop", &example(), &["--set", LOCKED, "--set", set])?)
}

fn pod(job: &Value) -> &Value {
    &job["spec"]["template"]["spec"]
}

/// What is behind a flag of the wrapper.
fn flag(job: &Value, flag: &str) -> Result<String> {
    let words: Vec<_> = pod(job)["containers"][0]["command"].as_array().into_iter().flatten().collect();
    let place = words.iter().position(|word| **word == flag).with_context(|| format!("no {flag}: {job}"))?;
    Ok(words.get(place + 1).and_then(|word| word.as_str()).unwrap_or_default().to_owned())
}

fn named(helm: &Renderer) -> Result<()> {
    for set in ["releaseHooks.mode=hook", "releaseHooks.mode=plain", "releaseHooks.mode=plain,schema=2"] {
        let rendered = render(helm, set)?;
        let job = rendered.one("Job", "shop-migrate")?;
        ensure!(flag(job, "--name")? == "shop-migrate", "{job}");
        // It does not give up before the deployer does.
        ensure!(flag(job, "--wait")? == "270s" && job["spec"]["activeDeadlineSeconds"] == 270, "{job}");
    }
    Ok(())
}

fn allowed(helm: &Renderer) -> Result<()> {
    for mode in ["hook", "plain"] {
        let rendered = render(helm, &format!("releaseHooks.mode={mode}"))?;
        let account = name(rendered.one("ServiceAccount", "shop-migrate")?).to_owned();
        let role = rendered.one("Role", &account)?;
        let leases = json!(["coordination.k8s.io"]);
        let rules = json!([
            {"apiGroups": leases, "resources": ["leases"], "verbs": ["create"]},
            {"apiGroups": leases, "resources": ["leases"], "verbs": ["get", "update"], "resourceNames": ["shop-migrate"]},
        ]);
        ensure!(role["rules"] == rules, "{role}");
        let binding = rendered.one("RoleBinding", &account)?;
        ensure!(binding["roleRef"]["name"] == account && binding["subjects"][0]["name"] == account, "{binding}");
        for object in [role, binding] {
            ensure!(annotation(object, "helm.sh/hook-weight") == (mode == "hook").then_some("0"), "{object}");
        }
    }
    Ok(())
}

fn wrapped(helm: &Renderer) -> Result<()> {
    let plain = helm.template("shop", &example(), &[])?;
    let (before, locked) = (plain.one("Job", "shop-migrate")?, render(helm, "replicas=1")?);
    let after = locked.one("Job", "shop-migrate")?;
    let (before, after) = (&pod(before)["containers"][0], &pod(after)["containers"][0]);
    let command = |container: &Value| container["command"].as_array().cloned().unwrap_or_default();
    ensure!(command(after).ends_with(&command(before)), "{after}");
    for kept in ["args", "env", "image", "name"] {
        ensure!(before[kept] == after[kept], "{kept}: {after}");
    }
    let chart = chart(
        "{{ include \"release-hooks.job\" (dict \"root\" $ \"name\" \"x\" \"template\" (dict \"spec\" (dict \"volumes\" (list (dict \"name\" \"v\" \"emptyDir\" dict)) \"initContainers\" (list (dict \"name\" \"i\" \"image\" \"i\")) \"containers\" (list (dict \"name\" \"c\" \"image\" \"i\" \"command\" (list \"run\") \"volumeMounts\" (list (dict \"name\" \"v\" \"mountPath\" \"/v\"))))))) }}\n",
    )?;
    let rendered = helm.template("r", chart.path(), &["--set", LOCKED])?;
    let spec = pod(rendered.one("Job", "r-x")?);
    for (list, wanted) in [("volumes", ["v", "jobwright-lock"]), ("initContainers", ["i", "install-jobwright"])] {
        let found: Vec<_> = spec[list].as_array().into_iter().flatten().map(|one| &one["name"]).collect();
        ensure!(found == wanted, "{list}: {spec}");
    }
    ensure!(spec["containers"][0]["volumeMounts"][0]["name"] == "v", "{spec}");
    Ok(())
}

fn refused(helm: &Renderer) -> Result<()> {
    let job = |containers: &str| {
        format!(
            "{{{{ include \"release-hooks.job\" (dict \"root\" $ \"name\" \"x\" \"template\" (dict \"spec\" (dict \"containers\" (list {containers})))) }}}}\n"
        )
    };
    let one = "(dict \"name\" \"c\" \"image\" \"i\" \"command\" (list \"run\"))";
    for (containers, told) in [
        ("(dict \"name\" \"c\" \"image\" \"i\")", "container c of job x has no command"),
        (format!("{one} {one}").as_str(), "job x has 2 containers"),
    ] {
        let chart = chart(&job(containers))?;
        ensure!(helm.refusal("r", chart.path(), &[])?.is_empty(), "it can be rendered without a lock");
        let said = helm.refusal("r", chart.path(), &["--set", LOCKED])?;
        ensure!(said.contains(told), "{said}");
    }
    Ok(())
}

fn unlocked(helm: &Renderer) -> Result<()> {
    let rendered = helm.template("shop", &example(), &[])?;
    ensure!(rendered.all("Role").next().is_none() && rendered.all("RoleBinding").next().is_none());
    ensure!(!pod(rendered.one("Job", "shop-migrate")?).to_string().contains("jobwright"));
    Ok(())
}
