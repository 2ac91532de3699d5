//! The library chart `release-hooks`, and the example that uses it.

use crate::{Test, repository};
use anyhow::{Result, ensure};
use jobwright_e2e::render::{Rendered, Renderer, annotation, name};
use serde_json::{Value, json};
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) const TESTS: &[Test] = &[
    ("every chart passes helm lint in every mode", lints),
    ("a hook is the same on install and on upgrade", same_on_upgrade),
    ("a hook has a ttl, a deadline and no annotations of Argo CD", well_behaved),
    ("a hook has an account of its own that comes before it", own_account),
    ("a job and its account toggle together", toggles),
    ("a hook leaves a mark that changes with it", fingerprint),
    ("a plain job is called by its content", content),
    ("a plain job can be replaced by itself", replaceable),
    ("another mode is another name", modes),
    ("the longest names fit", longest),
    ("the old gate rules where it is set", gate),
    ("the old helpers do what their successors do", aliases),
    ("a bundled database is waited for and never met by a hook", bundled),
    ("who has no account uses the default one", default_account),
    ("a job after the release is a post hook", post),
    ("wrong values are told with a remedy", wrong),
    ("a release job is one where the operator is", release_job),
    ("pods that serve never see who migrates", credentials),
    ("no service leads to the pods of a job", services),
    ("hooks come in the order of their weights", weights),
];

const MODES: [&str; 3] = ["releaseHooks.mode=hook", "releaseHooks.mode=plain", "releaseHooks.database=bundled"];

pub(crate) fn example() -> PathBuf {
    repository("examples/migration")
}

fn render(helm: &Renderer, set: &str) -> Result<Rendered> {
    Ok(helm.template("shop", &example(), &["--set", set])?)
}

/// A chart that uses the library, with one template.
pub(crate) fn chart(template: &str) -> Result<TempDir> {
    let directory = tempfile::tempdir()?;
    let write = |path: &str, text: &str| -> Result<()> {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
        Ok(std::fs::write(path, text)?)
    };
    let dependency = "dependencies: [{name: release-hooks, version: 2.x, repository: 'file://unused'}]";
    write("Chart.yaml", &format!("apiVersion: v2\nname: probe\nversion: 0.1.0\nappVersion: '7'\n{dependency}\n"))?;
    write("templates/all.yaml", template)?;
    for path in ["Chart.yaml", "values.yaml"] {
        let text = std::fs::read_to_string(repository("charts/release-hooks").join(path))?;
        write(&format!("charts/release-hooks/{path}"), &text)?;
    }
    for file in std::fs::read_dir(repository("charts/release-hooks/templates"))? {
        let file = file?;
        let text = std::fs::read_to_string(file.path())?;
        write(&format!("charts/release-hooks/templates/{}", file.file_name().display()), &text)?;
    }
    Ok(directory)
}

fn lints(helm: &Renderer) -> Result<()> {
    for path in ["charts/release-hooks", "examples/migration", "examples/agent"] {
        let path = repository(path).display().to_string();
        for set in MODES {
            helm.helm(&["lint", "--strict", &path, "--set", set])?;
        }
    }
    Ok(())
}

fn same_on_upgrade(helm: &Renderer) -> Result<()> {
    for set in MODES {
        let install = helm.template("shop", &example(), &["--set", set])?;
        let upgrade = helm.template("shop", &example(), &["--set", set, "--is-upgrade"])?;
        ensure!(install == upgrade, "{set}: install and upgrade differ");
    }
    Ok(())
}

fn well_behaved(helm: &Renderer) -> Result<()> {
    let rendered = render(helm, "releaseHooks.mode=hook")?;
    let job = rendered.one("Job", "shop-migrate")?;
    ensure!(annotation(job, "helm.sh/hook") == Some("pre-install,pre-upgrade"), "{job}");
    ensure!(annotation(job, "helm.sh/hook-delete-policy") == Some("before-hook-creation"), "{job}");
    ensure!(annotation(job, "helm.sh/hook-weight") == Some("10"), "{job}");
    ensure!(job["spec"]["ttlSecondsAfterFinished"] == 3600, "{job}");
    ensure!(job["spec"]["activeDeadlineSeconds"] == 270, "{job}");
    for object in rendered.objects() {
        ensure!(!object["metadata"]["annotations"].to_string().contains("argocd"), "{object}");
    }
    let slow = render(helm, "releaseHooks.deployerTimeoutSeconds=900")?;
    ensure!(slow.one("Job", "shop-migrate")?["spec"]["activeDeadlineSeconds"] == 870);
    Ok(())
}

fn own_account(helm: &Renderer) -> Result<()> {
    let rendered = render(helm, "releaseHooks.mode=hook")?;
    let account = rendered.one("ServiceAccount", "shop-migrate")?;
    let job = rendered.one("Job", "shop-migrate")?;
    ensure!(job["spec"]["template"]["spec"]["serviceAccountName"] == name(account), "{job}");
    ensure!(annotation(account, "helm.sh/hook-weight") == Some("0"), "{account}");
    let policy = annotation(account, "helm.sh/hook-delete-policy");
    ensure!(policy == Some("before-hook-creation,hook-succeeded"), "{account}");
    for deployment in rendered.all("Deployment") {
        let used = &deployment["spec"]["template"]["spec"]["serviceAccountName"];
        ensure!(*used != name(account), "an account that comes and goes is used by {deployment}");
    }
    Ok(())
}

fn toggles(helm: &Renderer) -> Result<()> {
    for set in MODES {
        let rendered = render(helm, set)?;
        let is_hook = |object: &Value| annotation(object, "helm.sh/hook").is_some();
        let job = is_hook(rendered.one("Job", "shop-migrate")?);
        let account = is_hook(rendered.one("ServiceAccount", "shop-migrate")?);
        let secret = is_hook(rendered.one("Secret", "shop-ddl")?);
        ensure!(job == account && job == secret, "{set}: {job} {account} {secret}");
    }
    Ok(())
}

fn fingerprint(helm: &Renderer) -> Result<()> {
    let mark = |set: &str| -> Result<Value> {
        let rendered = render(helm, set)?;
        let map = rendered.one("ConfigMap", "shop-migrate-fingerprint")?.clone();
        ensure!(annotation(&map, "helm.sh/hook").is_none(), "{map}");
        Ok(map["data"]["fingerprint"].clone())
    };
    let first = mark("replicas=1")?;
    ensure!(first == mark("replicas=5")?, "it changes though the job does not");
    ensure!(first != mark("schema=2")?, "it does not change though the job does");
    ensure!(render(helm, "releaseHooks.mode=plain")?.all("ConfigMap").next().is_none());
    Ok(())
}

fn content(helm: &Renderer) -> Result<()> {
    let called = |set: &str| -> Result<String> {
        Ok(name(render(helm, &format!("releaseHooks.mode=plain,{set}"))?.one("Job", "shop-migrate-")?).to_owned())
    };
    let first = called("replicas=1")?;
    ensure!(first.len() == "shop-migrate-".len() + 10, "{first}");
    ensure!(first == called("replicas=5")?, "what the job does not use gives it another name");
    for set in ["image=busybox:1.38", "schema=2", "database.migration.user=other"] {
        ensure!(first != called(set)?, "{set} is another job and has the same name");
    }
    Ok(())
}

fn replaceable(helm: &Renderer) -> Result<()> {
    let rendered = render(helm, "releaseHooks.mode=plain")?;
    let job = rendered.one("Job", "shop-migrate-")?;
    ensure!(job["spec"]["manualSelector"] == true, "{job}");
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    for (key, value) in job["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten() {
        ensure!(labels[key] == *value && *value == name(job), "{job}");
    }
    ensure!(job["spec"].get("ttlSecondsAfterFinished").is_none(), "whoever compares would make it again: {job}");
    Ok(())
}

fn modes(helm: &Renderer) -> Result<()> {
    for (kind, start) in [("Job", "shop-migrate"), ("ServiceAccount", "shop-migrate"), ("Secret", "shop-ddl")] {
        let hook = render(helm, "releaseHooks.mode=hook")?;
        let plain = render(helm, "releaseHooks.mode=plain")?;
        ensure!(name(hook.one(kind, start)?) != name(plain.one(kind, start)?), "{kind} has one name in both modes");
    }
    Ok(())
}

fn longest(helm: &Renderer) -> Result<()> {
    let release = "r".repeat(52) + "1";
    let mut names = Vec::new();
    for set in [MODES[0], MODES[1], MODES[2], "releaseHooks.mode=plain,schema=2"] {
        let rendered = helm.template(&release, &example(), &["--set", set])?;
        for object in rendered.objects() {
            let limit = if object["kind"] == "ConfigMap" || object["kind"] == "Secret" { 253 } else { 63 };
            let name = name(object);
            let fits = name.len() <= limit && name.ends_with(|last: char| last.is_ascii_alphanumeric());
            ensure!(fits, "{set}: {} {name} has {} characters", object["kind"], name.len());
        }
        names.push(name(rendered.one("Job", &release[..30])?).to_owned());
    }
    names.sort();
    names.dedup();
    ensure!(names.len() == 4, "what tells jobs apart was cut away: {names:?}");
    Ok(())
}

fn gate(helm: &Renderer) -> Result<()> {
    let is_hook = |set: &str| -> Result<bool> {
        Ok(annotation(render(helm, set)?.one("Job", "shop-migrate")?, "helm.sh/hook").is_some())
    };
    ensure!(is_hook("replicas=1")?, "a hook is what there is by default");
    ensure!(!is_hook("feature.migrationHooks=false")?);
    ensure!(is_hook("feature.migrationHooks=true,releaseHooks.mode=plain")?);
    Ok(())
}

fn aliases(helm: &Renderer) -> Result<()> {
    let map = |helper: &str, arguments: &str| {
        let name = helper.to_lowercase().replace('.', "-");
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations:\n    x: z\n    {{{{- include \"{helper}\" {arguments} | nindent 4 }}}}\n"
        )
    };
    let text = [
        map("core.job.annotations", "."),
        map("core.postgres.job.annotations", "."),
        map("core.postgres.job.sa.annotations", "."),
        map("release-hooks.job.annotations", "."),
        map("release-hooks.serviceAccount.annotations", "."),
        "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: '{{ include \"core.postgres.job.serviceAccountName\" . }}'}\n".to_owned(),
    ];
    let chart = chart(&text.concat())?;
    for set in ["feature.migrationHooks=true", "feature.migrationHooks=false"] {
        let none = "config.migration.serviceAccount.create=false";
        let rendered = helm.template("r", chart.path(), &["--set", set, "--set", none])?;
        let annotations =
            |name: &str| -> Result<Value> { Ok(rendered.one("ConfigMap", name)?["metadata"]["annotations"].clone()) };
        let job = annotations("release-hooks-job-annotations")?;
        ensure!(annotations("core-job-annotations")? == job && annotations("core-postgres-job-annotations")? == job);
        let account = annotations("release-hooks-serviceaccount-annotations")?;
        ensure!(annotations("core-postgres-job-sa-annotations")? == account);
        ensure!((job == json!({"x": "z"})) == set.ends_with("false"), "{set}: {job}");
        ensure!(name(rendered.one("ServiceAccount", "")?) == "default", "nobody is named");
    }
    let created = "config.migration.serviceAccount.create=true";
    let rendered = helm.template("r", chart.path(), &["--set", created])?;
    ensure!(name(rendered.one("ServiceAccount", "")?) == "r-migrate-hook");
    Ok(())
}

fn bundled(helm: &Renderer) -> Result<()> {
    for mode in ["hook", "plain"] {
        let rendered = render(helm, &format!("releaseHooks.database=bundled,releaseHooks.mode={mode}"))?;
        for object in rendered.objects() {
            ensure!(annotation(object, "helm.sh/hook").is_none(), "{object}");
        }
        let job = rendered.one("Job", "shop-migrate-")?;
        ensure!(job["spec"].get("ttlSecondsAfterFinished").is_none(), "{job}");
        let waiter = &job["spec"]["template"]["spec"]["initContainers"][0];
        ensure!(waiter["command"][2] == "until nc -w 2 shop-db 5432 -e true; do sleep 1; done", "{waiter}");
    }
    Ok(())
}

fn default_account(helm: &Renderer) -> Result<()> {
    let rendered = render(helm, "releaseHooks.serviceAccount.create=false")?;
    let job = rendered.one("Job", "shop-migrate")?;
    ensure!(job["spec"]["template"]["spec"]["serviceAccountName"] == "default", "{job}");
    ensure!(rendered.all("ServiceAccount").next().is_none());
    let rendered = render(helm, "releaseHooks.serviceAccount.create=false,releaseHooks.serviceAccount.name=given")?;
    let job = rendered.one("Job", "shop-migrate")?;
    ensure!(job["spec"]["template"]["spec"]["serviceAccountName"] == "given", "{job}");
    Ok(())
}

const PROBE: &str = "{{- include \"release-hooks.resources\" (dict \"root\" $ \"name\" \"probe\" \"phase\" \"post\" \"run\" .Values.run \"ttlSecondsAfterFinished\" .Values.ttl \"template\" (dict \"spec\" (dict \"containers\" (list (dict \"name\" \"c\" \"image\" \"i\"))))) }}\n";

fn post(helm: &Renderer) -> Result<()> {
    let chart = chart(PROBE)?;
    let rendered = helm.template("r", chart.path(), &["--set", "ttl=60"])?;
    for kind in ["Job", "ServiceAccount"] {
        let object = rendered.one(kind, "r-probe")?;
        ensure!(annotation(object, "helm.sh/hook") == Some("post-install,post-upgrade"), "{object}");
    }
    ensure!(rendered.one("Job", "r-probe")?["spec"]["ttlSecondsAfterFinished"] == 60);
    let plain = helm.template("r", chart.path(), &["--set", "ttl=60,releaseHooks.mode=plain,run=Always"])?;
    ensure!(plain.one("Job", "r-probe-")?["spec"]["ttlSecondsAfterFinished"] == 60, "a job may ask for it itself");
    Ok(())
}

fn wrong(helm: &Renderer) -> Result<()> {
    for (set, told) in [
        ("releaseHooks.mode=hooks", "releaseHooks.mode is \"hooks\": it is hook, plain or releasejob"),
        ("releaseHooks.database=here", "releaseHooks.database is \"here\": it is external or bundled"),
        ("releaseHooks.ttl=5", "releaseHooks.ttl is not known: there are backoffLimit, database,"),
        ("releaseHooks.deadlineSeconds=300", "it has to be below deployerTimeoutSeconds (300)"),
        ("releaseHooks.mode=releasejob", "install the operator first"),
        ("releaseHooks.database=bundled,releaseHooks.waitFor.host=", "releaseHooks.waitFor.host names its Service"),
        ("nonsense=1", "nonsense"),
    ] {
        let said = helm.refusal("shop", &example(), &["--set", set])?;
        ensure!(said.contains(told), "{set}: {said}");
    }
    let chart = chart("{{- include \"release-hooks.job\" (dict \"root\" $ \"name\" \"x\" \"template\" \"a: [\") }}\n")?;
    let said = helm.refusal("r", chart.path(), &[])?;
    ensure!(said.contains("the pod template of job x:"), "{said}");
    Ok(())
}

fn release_job(helm: &Renderer) -> Result<()> {
    let words = ["--set", "releaseHooks.mode=releasejob", "--api-versions", "jobwright.io/v1alpha1"];
    let rendered = helm.template("shop", &example(), &words)?;
    let job = rendered.one("ReleaseJob", "shop-migrate")?;
    ensure!(job["spec"]["release"] == "shop" && job["spec"]["phase"] == "Pre", "{job}");
    ensure!(job["spec"]["version"] == "1.0.0" && job["spec"]["revision"] == "1", "{job}");
    ensure!(job["spec"]["run"] == "OncePerFingerprint" && job["spec"]["deadlineSeconds"] == 270, "{job}");
    ensure!(job["spec"]["template"]["spec"]["containers"][0]["name"] == "migrate", "{job}");
    ensure!(rendered.all("Job").next().is_none());
    Ok(())
}

fn credentials(helm: &Renderer) -> Result<()> {
    for set in MODES {
        let rendered = render(helm, set)?;
        let secret = name(rendered.one("Secret", "shop-ddl")?).to_owned();
        let job = rendered.one("Job", "shop-migrate")?.to_string();
        ensure!(job.contains(&secret) && !job.contains("shop-runtime"), "{job}");
        for deployment in rendered.all("Deployment") {
            let deployment = deployment.to_string();
            ensure!(!deployment.contains(&secret) && deployment.contains("shop-runtime"), "{deployment}");
        }
    }
    Ok(())
}

fn services(helm: &Renderer) -> Result<()> {
    for set in MODES {
        let rendered = render(helm, set)?;
        let job = rendered.one("Job", "shop-migrate")?;
        let labels = &job["spec"]["template"]["metadata"]["labels"];
        for service in rendered.all("Service") {
            let selector = service["spec"]["selector"].as_object();
            let leads = selector.is_some_and(|selector| selector.iter().all(|(key, value)| labels[key] == *value));
            ensure!(!leads, "{set}: {service} leads to {labels}");
        }
    }
    Ok(())
}

fn weights(helm: &Renderer) -> Result<()> {
    let job = |name: &str, weight: u32| {
        let template = "(dict \"spec\" (dict \"containers\" (list (dict \"name\" \"c\" \"image\" \"i\"))))";
        format!(
            "---\n{{{{ include \"release-hooks.job\" (dict \"root\" $ \"name\" \"{name}\" \"weight\" {weight} \"template\" {template}) }}}}\n"
        )
    };
    let chart = chart(&format!("{}{}", job("first", 10), job("second", 20)))?;
    let rendered = helm.template("r", chart.path(), &[])?;
    for (name, weight) in [("r-first", "10"), ("r-second", "20")] {
        ensure!(annotation(rendered.one("Job", name)?, "helm.sh/hook-weight") == Some(weight));
    }
    Ok(())
}
