//! The agent's chart: its webhook, its certificate and its backfill.

use crate::{Test, repository};
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::render::{Rendered, Renderer, annotation, name};
use serde_json::{Value, json};

pub(crate) const TESTS: &[Test] = &[
    ("every value of a job of the agent has an effect", effective),
    ("jobs of the agent can be found by the documented label", labelled),
    ("the certificate of the agent is made before it and trusted after it", stages),
    ("annotations of Argo CD are the Job's alone, and nobody waits for each other", argocd),
    ("another version, image or text is another job of the agent", changes),
    ("jobs of the agent after a release notice that it was forced", forced),
    ("the mark of the agent changes with the release and is no hook", marked),
    ("roles of the agent name what they are for", least),
    ("containers of the agent may do little", restricted),
    ("values that the agent does not know are told", unknown),
    ("the longest name of a release fits the agent", longest),
];

const MODES: [&str; 2] = ["releaseHooks.mode=hook", "releaseHooks.mode=plain"];
const JOBS: [(&str, &str, i64); 2] = [("initCertJob", "a-init-cert", 3600), ("initBackfillJob", "a-backfill", 60)];

fn render(helm: &Renderer, words: &[&str]) -> Result<Rendered> {
    Ok(helm.template("a", &repository("examples/agent"), words)?)
}

/// The Jobs whose names begin so.
fn jobs<'a>(rendered: &'a Rendered, start: &str) -> Vec<&'a Value> {
    rendered.all("Job").filter(|job| name(job).starts_with(start)).collect()
}

fn effective(helm: &Renderer) -> Result<()> {
    for mode in MODES {
        for (key, start, ttl) in JOBS {
            let plain = render(helm, &["--set", mode])?;
            ensure!(
                jobs(&plain, start).iter().all(|job| job["spec"]["ttlSecondsAfterFinished"] == ttl),
                "{mode} {key}"
            );
            let set = format!(
                "{mode},{key}.ttlSecondsAfterFinished=7,{key}.nodeSelector.pool=jobs,{key}.tolerations[0].key=jobs,\
                 {key}.image.repository=r,{key}.image.tag=t,{key}.resources.limits.memory=77Mi,{key}.annotations.why=me"
            );
            let rendered = render(helm, &["--set", &set])?;
            let found = jobs(&rendered, start);
            ensure!(!found.is_empty(), "{mode} {key}: no Job");
            for job in found {
                ensure!(job["spec"]["ttlSecondsAfterFinished"] == 7 && annotation(job, "why") == Some("me"), "{job}");
                let pod = &job["spec"]["template"]["spec"];
                ensure!(pod["nodeSelector"] == json!({"pool": "jobs"}), "{job}");
                ensure!(pod["tolerations"] == json!([{"key": "jobs"}]), "{job}");
                ensure!(pod["containers"][0]["image"] == "r:t", "{job}");
                ensure!(pod["containers"][0]["resources"]["limits"]["memory"] == "77Mi", "{job}");
            }
            let none = render(helm, &["--set", &format!("{mode},{key}.enabled=false")])?;
            ensure!(
                jobs(&none, start).is_empty() && none.all("CronJob").all(|job| !name(job).starts_with(start)),
                "{mode} {key}"
            );
            let unscheduled = render(helm, &["--set", &format!("{mode},{key}.schedule=null")])?;
            ensure!(unscheduled.all("CronJob").all(|job| name(job) != start), "{mode} {key}: there is a CronJob");
        }
    }
    Ok(())
}

fn labelled(helm: &Renderer) -> Result<()> {
    for mode in MODES {
        for job in render(helm, &["--set", mode])?.all("Job") {
            ensure!(job["metadata"]["labels"]["app.kubernetes.io/component"] == "webhook-server", "{job}");
        }
    }
    Ok(())
}

/// The arguments of a Job, in one line.
fn arguments(job: &Value) -> String {
    let words = job["spec"]["template"]["spec"]["containers"][0]["args"].as_array().into_iter().flatten();
    words.filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

fn stages(helm: &Renderer) -> Result<()> {
    let hooks = render(helm, &[])?;
    for (start, event, stage) in [
        ("a-init-cert-hook", "pre-install,pre-upgrade", "--stage secret"),
        ("a-init-cert-inject", "post-install,post-upgrade", "--stage inject"),
    ] {
        let job = hooks.one("Job", start)?;
        ensure!(annotation(job, "helm.sh/hook") == Some(event) && arguments(job).contains(stage), "{job}");
    }
    let weight = |start: &str| -> Result<i64> {
        let weight = annotation(hooks.one("Job", start)?, "helm.sh/hook-weight").context("no weight")?;
        Ok(weight.parse()?)
    };
    ensure!(weight("a-init-cert-inject")? < weight("a-backfill")?, "the backfill comes before the webhook is trusted");
    let plain = render(helm, &["--set", "releaseHooks.mode=plain"])?;
    ensure!(!arguments(plain.one("Job", "a-init-cert")?).contains("--stage"), "a plain Job does both");
    let configuration = plain.all("ValidatingWebhookConfiguration").next().context("no webhook")?;
    ensure!(configuration["webhooks"][0]["clientConfig"]["caBundle"].is_null(), "the chart fights init-cert");
    Ok(())
}

fn argocd(helm: &Renderer) -> Result<()> {
    let hook = "annotations.argocd\\.argoproj\\.io/hook=PostSync";
    let policy = "annotations.argocd\\.argoproj\\.io/hook-delete-policy=HookSucceeded";
    let documented = format!("initBackfillJob.{hook},initBackfillJob.{policy},initCertJob.{hook},initCertJob.{policy}");
    for mode in MODES {
        let rendered = render(helm, &["--set", mode, "--set", &documented])?;
        for job in rendered.all("Job") {
            ensure!(annotation(job, "argocd.argoproj.io/hook") == Some("PostSync"), "{job}");
            ensure!(!arguments(job).contains("--stage"), "one Job does both: {job}");
        }
        for job in rendered.all("CronJob") {
            ensure!(annotation(job, "argocd.argoproj.io/hook").is_none(), "{job}");
        }
        let deployment = &rendered.one("Deployment", "a")?["spec"]["template"]["spec"];
        ensure!(deployment["volumes"][0]["secret"]["optional"] == true, "pods would wait for the Secret");
        ensure!(deployment["containers"][0]["args"] == json!(["--ready-without-certificate"]), "{deployment}");
        let accounts: Vec<&str> = rendered.all("ServiceAccount").map(name).collect();
        for job in rendered.all("Job") {
            let account = job["spec"]["template"]["spec"]["serviceAccountName"].as_str().unwrap_or_default();
            ensure!(accounts.contains(&account), "{account} is not there after the sync");
        }
    }
    let usual = render(helm, &[])?;
    ensure!(usual.one("Deployment", "a")?["spec"]["template"]["spec"]["volumes"][0]["secret"]["optional"].is_null());
    Ok(())
}

fn changes(helm: &Renderer) -> Result<()> {
    for (_, start, _) in JOBS {
        let named = |set: &str| -> Result<String> {
            let set = format!("releaseHooks.mode=plain,initCertJob.run=OnChangeOrExpired,{set}");
            Ok(name(render(helm, &["--set", &set])?.one("Job", start)?).to_owned())
        };
        let usual = named("replicas=2")?;
        ensure!(named("replicas=3")? == usual, "{start}: another number of servers is no other job");
        for set in ["initCertJob.image.tag=v2,initBackfillJob.image.tag=v2", "again=2"] {
            ensure!(named(set)? != usual, "{start}: {set} changes nothing");
        }
    }
    let label = |job: &Value| job["spec"]["template"]["metadata"]["labels"]["helm.sh/chart"].clone();
    ensure!(render(helm, &[])?.all("Job").all(|job| label(job) == "agent-2.0.0"), "a new version changes nothing");
    Ok(())
}

/// The Jobs and CronJobs whose arguments have a word.
fn with_argument<'a>(rendered: &'a Rendered, word: &str) -> Vec<&'a str> {
    let jobs = rendered.all("Job").filter(|job| arguments(job).split(' ').any(|argument| argument == word));
    let cron = rendered.all("CronJob").filter(|job| job.to_string().contains(&format!("\"{word}\"")));
    jobs.chain(cron).map(name).collect()
}

fn forced(helm: &Renderer) -> Result<()> {
    let runs = ["initCertJob.run=Always,initBackfillJob.run=OnChange", SECOND, "initBackfillJob.run=Always"];
    for (mode, run, marking, if_forced) in [
        (MODES[0], runs[0], 2, 0),
        (MODES[0], runs[1], 2, 0),
        (MODES[0], runs[2], 1, 0),
        (MODES[1], runs[0], 3, 1),
        (MODES[1], runs[1], 4, 2),
        (MODES[1], runs[2], 1, 0),
    ] {
        let set = format!("{mode},{run}");
        let rendered = render(helm, &["--set", &set])?;
        let (mark, only) = (with_argument(&rendered, "--mark"), with_argument(&rendered, "--if-forced"));
        ensure!(mark.len() == marking && only.len() == if_forced, "{set}: {mark:?}, {only:?}");
        // Before the release nothing is forced yet.
        ensure!(!mark.contains(&"a-init-cert-hook"), "{mark:?}");
        let keep = render(helm, &["--set", &format!("{set},onForce=Keep")])?;
        ensure!(with_argument(&keep, "--mark").is_empty(), "{set}");
        // A forced upgrade removes the bundle all the same.
        let restoring: &[&str] = if (mode, run) == (MODES[1], runs[1]) { &["a-if-forced-init-cert"] } else { &[] };
        let only = with_argument(&keep, "--if-forced");
        ensure!(only.len() == restoring.len(), "{set}: {only:?}");
        ensure!(restoring.iter().all(|start| only.iter().any(|name| name.starts_with(start))), "{set}: {only:?}");
        ensure!(keep.all("ConfigMap").all(|map| name(map) != "a-mark"), "{set}");
        ensure!(!keep.all("Role").any(|role| role.to_string().contains("a-mark")), "{set}");
    }
    Ok(())
}

/// Jobs that run again only when they have changed or expired.
const SECOND: &str = "initCertJob.run=OnChangeOrExpired,initBackfillJob.run=OnChangeOrExpired";

fn marked(helm: &Renderer) -> Result<()> {
    let identity = |set: &str| -> Result<String> {
        let rendered = render(helm, &["--set", set])?;
        let map = rendered.one("ConfigMap", "a-mark")?;
        ensure!(map["metadata"]["annotations"].is_null(), "{map}");
        Ok(map["data"]["identity"].as_str().context("no identity")?.to_owned())
    };
    let usual = identity("replicas=2")?;
    ensure!(usual.starts_with("1.") && usual.len() == 18, "{usual}");
    ensure!(identity("replicas=2")? == usual, "it changes by itself");
    for set in ["replicas=3", "image.tag=v2", "again=x"] {
        ensure!(identity(set)? != usual, "{set} is no change of the release");
    }
    // Under Argo CD the revision is always the same: the plain Jobs that look run with every change.
    for (run, start) in
        [("initCertJob.run=Always", "a-init-cert"), (SECOND, "a-if-forced-init-cert"), (SECOND, "a-if-forced-backfill")]
    {
        let named = |set: &str| -> Result<String> {
            let rendered = render(helm, &["--set", &format!("{},{run},{set}", MODES[1])])?;
            Ok(name(rendered.one("Job", start)?).to_owned())
        };
        ensure!(
            named("replicas=2")? == named("replicas=2")? && named("replicas=2")? != named("replicas=3")?,
            "{start}"
        );
        let keep = "onForce=Keep";
        ensure!(start.contains("if-forced") || named(keep)? == named(&format!("{keep},replicas=3"))?, "{start}");
    }
    Ok(())
}

fn least(helm: &Renderer) -> Result<()> {
    for mode in MODES {
        let rendered = render(helm, &["--set", mode])?;
        for account in ["a-init-cert", "a-backfill"] {
            let role = rendered.all("Role").find(|role| name(role) == account).context("no role")?;
            let marks = json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a-mark"], "verbs": ["get", "patch"]});
            ensure!(role["rules"].as_array().is_some_and(|rules| rules.contains(&marks)), "{role}");
        }
        for role in rendered.all("Role").chain(rendered.all("ClusterRole")) {
            let text = role["rules"].to_string();
            ensure!(!text.contains('*') && !text.contains("delete"), "{role}");
            for rule in role["rules"].as_array().into_iter().flatten() {
                let reads_secrets = rule["resources"] == json!(["secrets"]) && rule["verbs"] != json!(["create"]);
                ensure!(!reads_secrets || rule["resourceNames"].is_array(), "{role}");
                let patches = rule["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("patch")));
                ensure!(!patches || rule["resourceNames"].as_array().is_some_and(|names| names.len() == 1), "{role}");
            }
        }
        for role in rendered.all("ClusterRole") {
            ensure!(!role["rules"].to_string().contains("secrets"), "{role}");
        }
    }
    Ok(())
}

fn restricted(helm: &Renderer) -> Result<()> {
    for mode in MODES {
        let rendered = render(helm, &["--set", mode])?;
        let templates = rendered.all("Job").chain(rendered.all("Deployment")).map(|object| &object["spec"]["template"]);
        let cron = rendered.all("CronJob").map(|object| &object["spec"]["jobTemplate"]["spec"]["template"]);
        for pod in templates.chain(cron).map(|template| &template["spec"]) {
            ensure!(pod["securityContext"]["runAsNonRoot"] == true, "{pod}");
            let container = &pod["containers"][0]["securityContext"];
            ensure!(
                container["readOnlyRootFilesystem"] == true && container["allowPrivilegeEscalation"] == false,
                "{pod}"
            );
        }
    }
    Ok(())
}

fn unknown(helm: &Renderer) -> Result<()> {
    for set in ["initCertJob.imagePullSecrets=x", "initBackfillJob.run=Sometimes", "webhook.failurePolicy=Perhaps"] {
        let said = helm.refusal("a", &repository("examples/agent"), &["--set", set])?;
        ensure!(said.contains(set.split(['.', '=']).nth(1).unwrap_or_default()), "{set}: {said}");
    }
    let said = helm.refusal("a", &repository("examples/agent"), &["--set", "onForce=Sometimes"])?;
    ensure!(said.contains("onForce"), "{said}");
    Ok(())
}

fn longest(helm: &Renderer) -> Result<()> {
    let release = "r".repeat(53);
    for mode in MODES {
        let rendered = helm.template(&release, &repository("examples/agent"), &["--set", mode])?;
        for (kind, limit) in [("Job", 63), ("CronJob", 52), ("Service", 63), ("Deployment", 63)] {
            for object in rendered.all(kind) {
                ensure!(name(object).len() <= limit && !name(object).ends_with('-'), "{kind} {}", name(object));
            }
        }
    }
    Ok(())
}
