//! Plans that are good, and what is reported of those that are not.

use super::*;

mod whole;

/// A plan with most kinds of jobs.
const GOOD: &str = r#"
apiVersion: jobwright.io/v1alpha1
kind: Plan
release: {name: shop, namespace: shop, version: 1.4.0, upgradeFrom: ["1.3"]}
parallel: 4
components:
- name: db
  chart: {path: charts/db}
  values: [values/db.yaml]
- name: api
  dependsOn: [db]
  chart: {path: charts/api}
  helm: {wait: true, timeout: 10m}
- name: rules
  manifests: {path: rules/}
jobs:
- id: migrate
  component: api
  phase: pre
  on: [install, upgrade]
  run: OncePerFingerprint
  after: []
  skipIf: [{kind: ConfigMap, name: schema, jsonPath: "{.data.version}", equals: "14"}]
  onFailure: Stop
  onSupersede: Wait
  onUnknown: Fail
  retires: {at: 2.0.0}
  retries: {limit: 2, backoff: 10s}
  timeout: 10m
  keep: {finished: 1h, runs: 10, logBytes: 16384}
  pod: {template: {spec: {containers: [{name: m, image: "shop/api:1.4.0", args: [migrate]}]}}}
- {id: snapshot, phase: post, run: OnChange, retires: {never: base}, backfill: {sink: "remote-write:https://c.example/w", auth: {secret: api-key}}}
- {id: hello, phase: post, retires: {never: base}, command: {program: echo, args: [hello]}}
"#;

/// The errors, a line each: the line and column, the message, the help.
fn errors(text: &str) -> Vec<String> {
    let Err(findings) = PlanFile::parse(Path::new("jobwright.yaml"), text) else { return Vec::new() };
    let line = |finding: &Finding| {
        let place = jobwright_yaml::position(text, finding.span.start);
        let help = finding.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{}:{} {}{help}", place.line, place.column, finding.message)
    };
    findings.findings.iter().map(line).collect()
}

#[test]
fn a_good_plan_is_read() {
    let file = PlanFile::parse(Path::new("deploy/jobwright.yaml"), GOOD).unwrap();
    assert_eq!(errors(GOOD), [""; 0]);
    let plan = &file.plan;
    assert_eq!((plan.components.len(), plan.jobs.len(), plan.parallel), (3, 3, 4));
    assert_eq!(plan.jobs[0].timeout.as_secs(), 600);
    assert_eq!(file.resolve(Path::new("charts/db")), Path::new("deploy/charts/db"));
    assert!(file.warnings.findings.is_empty());
}

#[test]
fn every_error_is_reported_in_one_pass_with_its_place() {
    let text = r"apiVersion: jobwright.io/v1
kind: Plan
release: {name: Shop, namespace: shop, version: 1.4}
paralel: 4
components:
- name: db
  chart: {path: a, version: 1.0.0}
  manifests: {path: b}
- name: api
  dependsOn: [dbb]
- name: db
  manifests: {path: c}
  values: [x]
jobs:
- id: migrate
  component: apy
  phase: before
  run: oncePerFingerprint
  timeout: 10
  after: [prepare, hello]
  onFailure: Retry
  pod: {}
- id: hello
  phase: post
  timeout: ten
  retires: {at: 1.0.0, never: x}
  keep: {runs: 0}
  command: {program: [a]}
  adopt: {objects: []}
- id: idle
  phase: pre
";
    let expected = [
        "1:13 invalid `apiVersion`: `jobwright.io/v1` (did you mean `jobwright.io/v1alpha1`?)",
        "3:17 invalid name `Shop`: use lower-case letters, digits and dashes, at most 63 characters",
        "3:49 `version` must be a string, not a number with a fraction (put it in quotes)",
        "4:1 unknown field `paralel` (did you mean `parallel`?)",
        "7:20 `version` requires `ref`",
        "8:3 `db` has both `chart` and `manifests` (keep exactly one of `chart`, `manifests`)",
        "9:9 `api` has none of `chart`, `manifests` (add exactly one of them)",
        "10:15 unknown component `dbb` (did you mean `db`?)",
        "11:9 duplicate component `db`",
        "13:3 `values` requires `chart`",
        "16:14 unknown component `apy` (did you mean `api`?)",
        "17:10 invalid `phase`: `before` (use `pre` or `post`)",
        "18:8 invalid `run`: `oncePerFingerprint` (did you mean `OncePerFingerprint`?)",
        "19:12 `timeout` must be a duration such as 90s or 10m, not a number",
        "20:11 unknown job `prepare`",
        "20:20 `hello` belongs to another component or phase (`after` orders jobs of the same component and phase; the phases are in order anyway)",
        "21:14 invalid `onFailure`: `Retry` (use `Stop`, `Abort` or `Continue`)",
        "22:3 `pod` lacks the field `template`",
        "25:12 invalid duration `ten`: write a number with a unit, as in 90s, 10m or 1h30m",
        "26:24 `retires` has both `at` and `never` (keep exactly one of `at`, `never`)",
        "27:3 `keep` requires `pod` or `podFrom`",
        "27:16 `runs` must be at least 1",
        "28:22 `program` must be a string, not a list",
        "29:3 `hello` has both `command` and `adopt` (keep exactly one of `pod`, `podFrom`, `initCert`, `backfill`, `adopt`, `growVolume`, `command`)",
        "29:10 job `hello` belongs to no component: `adopt` has to name its `release`",
        "29:20 `objects` needs at least 1 item",
        "30:7 `idle` has none of `pod`, `podFrom`, `initCert`, `backfill`, `adopt`, `growVolume`, `command` (add exactly one of them)",
    ];
    assert_eq!(errors(text), expected);
}

#[test]
fn cycles_and_broken_files_are_errors() {
    let cycle = GOOD.replace("chart: {path: charts/db}", "chart: {path: charts/db}\n  dependsOn: [api]");
    assert_eq!(errors(&cycle), ["11:9 api → db → api depend on each other"]);
    assert!(
        errors("a: [1,\n")[0].starts_with("2:1 ") || errors("a: [1,\n")[0].starts_with("1:"),
        "{:?}",
        errors("a: [1,\n")
    );
    assert_eq!(errors(""), ["1:1 the file is empty (docs/deploy.md shows a plan)"]);
    assert_eq!(errors("a: 1\n---\nb: 2\n").last().unwrap(), "3:1 a plan is one document, and this is a second one");
    assert!(errors("release: 1\nrelease: 2\n").contains(&"2:1 duplicate field `release`".to_owned()));
    let bomb = format!("a: &a [{}]\n", "x,".repeat(300_000));
    assert_eq!(errors(&bomb).len(), 1);
}

#[test]
fn a_job_that_does_not_say_when_it_retires_is_a_warning() {
    let text = GOOD.replace("  retires: {at: 2.0.0}\n", "");
    let file = PlanFile::parse(Path::new("p"), &text).unwrap();
    assert_eq!(file.warnings.findings[0].message, "job `migrate` does not say when it retires");
}

#[test]
fn nothing_in_a_file_makes_it_panic() {
    for cut in (0..GOOD.len()).step_by(3) {
        let _ = PlanFile::parse(Path::new("p"), &GOOD[..cut]);
        if let Some(rest) = GOOD.get(cut..) {
            let _ = PlanFile::parse(Path::new("p"), &format!("{}!{rest}", &GOOD[..cut]));
        }
    }
}

#[test]
fn errors_of_a_backfill_are_reported_with_their_places() {
    let plan = |backfill: &str| {
        format!(
            "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {{name: shop, namespace: shop}}\njobs:\n\
             - id: s\n  phase: post\n  backfill:\n{backfill}"
        )
    };
    let good = "    sink: s3://bucket/in\n    kinds: [Pod]\n    checkpoint: configmap:progress\n    waitFor: ['tcp:db:5432']\n";
    assert_eq!(errors(&plan(good)), [""; 0]);
    let bad = "    sink: stdout\n    names: ['(']\n    labels: ['a=[']\n    checkpoint: secret:x\n    waitFor: ['tcp:db', 'pod/a=Ready']\n    \
               auth: {header: 'a b'}\n    tls: {cert: a}\n    pageSize: 0\n    compress: lz4\n    kindz: [Pod]\n";
    assert_eq!(
        errors(&plan(bad)),
        [
            "8:11 a plan cannot send to stdout: the deploy reports there",
            "9:13 `(` is no regular expression: unclosed group",
            "10:14 `[` is no regular expression: unclosed character class",
            "11:17 `secret:x` is no place for a checkpoint: file:PATH and configmap:NAME are",
            "12:15 `tcp:db` is nothing to wait for: tcp:HOST:PORT, http(s)://…, tls:HOST:PORT[,ca=FILE] and KIND/NAME=CONDITION are",
            "13:5 `auth` has none of `secret`, `file` (add exactly one of them)",
            "13:20 invalid header name `a b`",
            "14:11 `cert` requires `key`",
            "15:15 `pageSize` must be at least 1",
            "16:15 invalid `compress`: `lz4` (use `none`, `zstd` or `gzip`)",
            "17:5 unknown field `kindz` (did you mean `kinds`?)",
        ]
    );
    let leaking = errors(&plan("    sink: https://user:p4ss@c.example/\n"));
    assert!(leaking[0].contains("must not have a user or a password") && !leaking[0].contains("p4ss"), "{leaking:?}");
}

/// A plan with one component and one job, which has these lines.
fn with_job(lines: &str) -> String {
    format!(
        "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {{name: shop, namespace: shop}}\ncomponents:\n\
         - {{name: api, chart: {{path: a}}}}\n- {{name: web, manifests: {{path: b}}}}\njobs:\n- {lines}\n"
    )
}

#[test]
fn a_renewal_is_a_fraction_or_a_duration() {
    let job =
        |renewal: &str| with_job(&format!("{{id: c, initCert: {{service: s, secret: t, renewBefore: {renewal}}}}}"));
    for good in ["1/3", "30d", "'1/2'"] {
        assert_eq!(errors(&job(good)), [""; 0], "{good}");
    }
    assert_eq!(
        errors(&job("third")),
        ["8:58 invalid renewal `third`: write a fraction of its validity, as in 1/3, or a duration, as in 30d"]
    );
    let expected =
        "8:58 `renewBefore` must be a fraction such as 1/3 or a duration such as 30d, not a number (put it in quotes)";
    assert_eq!(errors(&job("30")), [expected]);
}

#[test]
fn a_borrowed_pod_before_the_deploy_needs_an_image() {
    let job = |phase: &str, more: &str| {
        with_job(&format!("{{id: m, component: api, phase: {phase}, podFrom: {{deployment: api{more}}}}}"))
    };
    assert_eq!(
        errors(&job("pre", "")),
        [
            "8:39 job `m` would run the previous version's image: `podFrom` with `phase: pre` needs an `image` (set `podFrom.image`, use `pod`, or run it with `phase: post`)"
        ]
    );
    assert_eq!(errors(&job("pre", ", image: 'shop/api:2'")), [""; 0]);
    assert_eq!(errors(&job("post", "")), [""; 0]);
}

#[test]
fn adopting_needs_a_helm_release() {
    let job = |component: &str| {
        with_job(&format!(
            "{{id: a, {component}phase: pre, adopt: {{objects: [{{apiVersion: v1, kind: Service, name: s}}]}}}}"
        ))
    };
    assert_eq!(errors(&job("component: api, ")), [""; 0]);
    assert_eq!(
        errors(&job("component: web, ")),
        ["8:46 job `a` belongs to component `web`, which is no chart: `adopt` has to name its `release`"]
    );
    assert_eq!(errors(&job("")), ["8:30 job `a` belongs to no component: `adopt` has to name its `release`"]);
}

#[test]
fn a_job_needs_a_phase_unless_it_is_a_certificate() {
    let expected = "8:8 `x`: `phase: pre` or `phase: post` is required, except for `initCert`";
    assert_eq!(errors(&with_job("{id: x, command: {program: ls}}")), [expected]);
    assert_eq!(errors(&with_job("{id: x, initCert: {service: s, secret: t}}")), [""; 0]);
}
