//! Values that a template may take for empty: 0, false, the empty string and null; and values of the wrong type.

use crate::library::{chart, example};
use crate::{Test, repository};
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::render::{Rendered, Renderer, annotation, name};
use serde_json::Value;

pub(crate) const TESTS: &[Test] = &[
    ("a weight of 0 and a negative weight are kept, and the account precedes the job", weights),
    ("a ttl of 0 is kept, and null keeps a finished job of the agent", ttls),
    ("a backfill that never expires is complete for good", completions),
    ("a number of the wrong type is refused by its name", numbers),
    ("a word that is not known is refused by its name", words),
    ("null is the default of every setting", nulls),
    ("a value of again is an argument, also 0", again),
    ("no template falls back from a value that may be 0 or false", fallbacks),
];

const POD: &str = "(dict \"spec\" (dict \"containers\" (list (dict \"name\" \"c\" \"image\" \"i\"))))";

/// A chart with one job, which has more arguments.
fn job(arguments: &str) -> String {
    format!(
        "{{{{- include \"release-hooks.resources\" (dict \"root\" $ \"name\" \"x\" \"template\" {POD} {arguments}) }}}}\n"
    )
}

fn weight(object: &Value) -> Result<i64> {
    Ok(annotation(object, "helm.sh/hook-weight").context("no weight")?.parse()?)
}

fn weights(helm: &Renderer) -> Result<()> {
    for (given, wanted) in [("0", 0), ("-5", -5), ("1", 1), ("10", 10), ("\"-3\"", -3), ("nil", 10)] {
        let chart = chart(&job(&format!("\"weight\" {given}")))?;
        let rendered = helm.template("r", chart.path(), &[])?;
        let (job, account) = (weight(rendered.one("Job", "r-x")?)?, weight(rendered.one("ServiceAccount", "r-x")?)?);
        ensure!(job == wanted, "weight {given} became {job}");
        ensure!(account < job, "weight {given}: the account has {account}, the job {job}");
    }
    let own = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n  annotations:\n    {{- include \"release-hooks.serviceAccount.annotations\" (dict \"root\" $ \"weight\" -7) | nindent 4 }}\n";
    let chart = chart(own)?;
    ensure!(weight(helm.template("r", chart.path(), &[])?.one("ConfigMap", "m")?)? == -7, "another object of a hook");
    Ok(())
}

fn ttl(rendered: &Rendered, start: &str) -> Result<Value> {
    Ok(rendered.one("Job", start)?["spec"]["ttlSecondsAfterFinished"].clone())
}

fn ttls(helm: &Renderer) -> Result<()> {
    let none = helm.template("shop", &example(), &["--set", "releaseHooks.ttlSecondsAfterFinished=0"])?;
    ensure!(ttl(&none, "shop-migrate")? == 0, "0 became {}", ttl(&none, "shop-migrate")?);
    for (arguments, wanted) in [
        ("\"ttlSecondsAfterFinished\" 0", Value::from(0)),
        ("\"ttlSecondsAfterFinished\" nil", Value::from(3600)),
        ("\"ttlSecondsAfterFinished\" \"Never\"", Value::Null),
    ] {
        let chart = chart(&job(arguments))?;
        let found = ttl(&helm.template("r", chart.path(), &[])?, "r-x")?;
        ensure!(found == wanted, "{arguments} became {found}");
    }
    for mode in ["hook", "plain"] {
        for (key, start) in [("initCertJob", "a-init-cert"), ("initBackfillJob", "a-backfill")] {
            for (given, wanted) in [("null", Value::Null), ("0", Value::from(0))] {
                let set = format!("releaseHooks.mode={mode},{key}.ttlSecondsAfterFinished={given}");
                let rendered = helm.template("a", &repository("examples/agent"), &["--set", &set])?;
                for job in rendered.all("Job").filter(|job| name(job).starts_with(start)) {
                    let found = &job["spec"]["ttlSecondsAfterFinished"];
                    ensure!(*found == wanted, "{set}: {} has {found}", name(job));
                }
            }
        }
    }
    Ok(())
}

fn completions(helm: &Renderer) -> Result<()> {
    for (given, wanted) in [("null", None), ("0", Some("0s")), ("60", Some("60s"))] {
        let set = format!("initBackfillJob.run=OnChangeOrExpired,initBackfillJob.ttlSecondsAfterFinished={given}");
        let rendered = helm.template("a", &repository("examples/agent"), &["--set", &set])?;
        let job = rendered.one("Job", "a-backfill")?;
        let arguments = job["spec"]["template"]["spec"]["containers"][0]["args"].as_array().context("no arguments")?;
        let at = arguments.iter().position(|argument| argument == "--complete-for");
        let found = at.and_then(|at| arguments.get(at + 1)).and_then(Value::as_str);
        ensure!(found == wanted, "a TTL of {given} is complete for {found:?}");
        ensure!(arguments.iter().any(|argument| argument == "--unless-complete"), "{arguments:?}");
    }
    Ok(())
}

fn numbers(helm: &Renderer) -> Result<()> {
    for key in ["ttlSecondsAfterFinished", "deployerTimeoutSeconds", "deadlineSeconds", "backoffLimit"] {
        for wrong in ["1h", "abc", "2.9", "true", "-1", "3000000000", "010"] {
            let set = format!("releaseHooks.{key}={wrong}");
            let flag = if wrong == "010" { "--set-string" } else { "--set" };
            let said = helm.refusal("shop", &example(), &[flag, &set])?;
            ensure!(said.contains(&format!("releaseHooks.{key} is ")), "{set}: {said:?}");
        }
        let chart = chart(&job(&format!("\"{key}\" \"1h\"")))?;
        let said = helm.refusal("r", chart.path(), &[])?;
        let is_argument = key != "deployerTimeoutSeconds";
        ensure!(!is_argument || said.contains(&format!("{key} of job x is \"1h\"")), "{key}: {said:?}");
    }
    for (set, told) in [
        ("releaseHooks.deadlineSeconds=0", "releaseHooks.deadlineSeconds is 0"),
        ("releaseHooks.database=bundled,releaseHooks.waitFor.port=abc", "releaseHooks.waitFor.port is \"abc\""),
        ("releaseHooks.database=bundled,releaseHooks.waitFor.port=70000", "releaseHooks.waitFor.port is 70000"),
        ("releaseHooks.database=bundled,releaseHooks.waitFor.port=0", "releaseHooks.waitFor.port is 0"),
    ] {
        let said = helm.refusal("shop", &example(), &["--set", set])?;
        ensure!(said.contains(told), "{set}: {said:?}");
    }
    for (arguments, told) in [
        ("\"weight\" \"first\"", "weight of job x is \"first\""),
        ("\"weight\" 2.5", "weight of job x is 2.5"),
        ("\"deadlineSeconds\" 0", "deadlineSeconds of job x is 0"),
    ] {
        let chart = chart(&job(arguments))?;
        let said = helm.refusal("r", chart.path(), &[])?;
        ensure!(said.contains(told), "{arguments}: {said:?}");
    }
    // What was a number all along is one still.
    let texts = "releaseHooks.ttlSecondsAfterFinished=60,releaseHooks.backoffLimit=2";
    let job = helm.template("shop", &example(), &["--set-string", texts])?.one("Job", "shop-migrate")?.clone();
    ensure!(job["spec"]["ttlSecondsAfterFinished"] == 60 && job["spec"]["backoffLimit"] == 2, "{job}");
    Ok(())
}

fn words(helm: &Renderer) -> Result<()> {
    for (arguments, told) in [
        ("\"phase\" \"Post\"", "phase of job x is \"Post\""),
        ("\"phase\" \"after\"", "phase of job x is \"after\""),
        ("\"run\" \"Sometimes\"", "run of job x is \"Sometimes\""),
        ("\"serviceAccount\" (dict \"create\" \"false\")", "serviceAccount.create of job x is \"false\""),
    ] {
        let chart = chart(&job(arguments))?;
        let said = helm.refusal("r", chart.path(), &[])?;
        ensure!(said.contains(told), "{arguments}: {said:?}");
    }
    for (flag, set, told) in [
        ("--set", "feature.migrationHooks=yes", "feature.migrationHooks is \"yes\""),
        ("--set-string", "releaseHooks.serviceAccount.create=false", "releaseHooks.serviceAccount.create is \"false\""),
        ("--set-json", "releaseHooks=false", "releaseHooks"),
        ("--set", "releaseHooks.serviceAccount=x", "releaseHooks.serviceAccount is \"x\""),
        ("--set", "releaseHooks.waitFor.hosts=x", "releaseHooks.waitFor.hosts is not known"),
    ] {
        let said = helm.refusal("shop", &example(), &[flag, set])?;
        ensure!(said.contains(told), "{set}: {said:?}");
    }
    for set in ["initBackfillJob.kinds=null", "initBackfillJob.sink=null", "initCertJob.enabled=null"] {
        let said = helm.refusal("a", &repository("examples/agent"), &["--set", set])?;
        ensure!(said.contains(set.split(['.', '=']).nth(1).unwrap_or_default()), "{set}: {said:?}");
    }
    Ok(())
}

fn nulls(helm: &Renderer) -> Result<()> {
    let keys = ["mode", "database", "ttlSecondsAfterFinished", "deployerTimeoutSeconds", "deadlineSeconds"];
    for key in keys.into_iter().chain(["backoffLimit", "serviceAccount", "serviceAccount.create", "waitFor.port"]) {
        for base in ["releaseHooks.mode=hook", "releaseHooks.database=bundled"] {
            if base.contains(key) {
                continue;
            }
            let usual = helm.template("shop", &example(), &["--set", base])?;
            let null =
                helm.template("shop", &example(), &["--set", base, "--set", &format!("releaseHooks.{key}=null")])?;
            ensure!(usual == null, "{base}: {key}: null is not its default");
        }
    }
    helm.template("a", &repository("examples/agent"), &["--set", "webhook.namespaceSelector=null"])?;
    Ok(())
}

fn again(helm: &Renderer) -> Result<()> {
    for (given, wanted) in [("again=0", true), ("again=1", true), ("again=", false), ("again=null", false)] {
        let rendered = helm.template("a", &repository("examples/agent"), &["--set", given])?;
        let has = rendered.one("Job", "a-init-cert-hook")?.to_string().contains("--again");
        ensure!(has == wanted, "{given}: {has}");
    }
    Ok(())
}

fn fallbacks(_: &Renderer) -> Result<()> {
    for chart in ["charts/release-hooks", "examples/agent", "examples/migration"] {
        for file in std::fs::read_dir(repository(chart).join("templates"))? {
            let path = file?.path();
            for (number, line) in std::fs::read_to_string(&path)?.lines().enumerate() {
                for rest in line.split("default ").skip(1) {
                    let positive = rest.strip_prefix('-').unwrap_or(rest);
                    let falls_back = positive.starts_with(|first: char| first.is_ascii_digit())
                        || ["true", "false", "(sub", "(add", "(int"].iter().any(|start| rest.starts_with(start));
                    ensure!(!falls_back, "{}:{}: {line}", path.display(), number + 1);
                }
            }
        }
    }
    Ok(())
}
