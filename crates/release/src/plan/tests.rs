use super::*;

/// The plan of the contract, as far as the kinds are there.
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

/// What is wrong, a line each: the line and column, the message, the help.
fn told(text: &str) -> Vec<String> {
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
    assert_eq!(told(GOOD), [""; 0]);
    let plan = &file.plan;
    assert_eq!((plan.components.len(), plan.jobs.len(), plan.parallel), (3, 3, 4));
    assert_eq!(plan.jobs[0].timeout.duration().as_secs(), 600);
    assert_eq!(file.resolve(Path::new("charts/db")), Path::new("deploy/charts/db"));
    assert!(file.warnings.findings.is_empty());
}

#[test]
fn everything_wrong_is_told_at_once_where_it_stands() {
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
        "1:13 `apiVersion` cannot be `jobwright.io/v1` (did you mean `jobwright.io/v1alpha1`?)",
        "3:17 `Shop` cannot be a `name`: it takes lower-case letters, digits and dashes, up to 63",
        "3:49 `version` has to be a text, and this is a number with a fraction (put it into quotes)",
        "4:1 there is no field `paralel` here (did you mean `parallel`?)",
        "8:14 component `db` has both a `chart` and `manifests`",
        "9:9 component `api` has neither a `chart` nor `manifests`",
        "10:15 there is no component `dbb` (did you mean `db`?)",
        "11:9 there are two components `db`",
        "13:3 `values` is for charts, and component `db` has manifests",
        "16:14 there is no component `apy` (did you mean `api`?)",
        "17:10 `phase` cannot be `before` (it can be `pre`, `post`)",
        "18:8 `run` cannot be `oncePerFingerprint` (did you mean `OncePerFingerprint`?)",
        "19:12 `timeout` has to be a duration such as 90s or 10m, and this is a number",
        "20:11 there is no job `prepare`",
        "20:20 `hello` belongs to another component or phase (a job comes after others of its own component and phase; the phases themselves are in order)",
        "21:14 `onFailure` cannot be `Retry` (it can be `Stop`, `Abort`, `Continue`)",
        "22:3 `pod` has no field `template`",
        "25:12 `ten` is no duration: 90s, 10m and 1h30m are",
        "26:12 it is either `at` a version or `never`",
        "27:3 `keep` is for jobs that are pods",
        "27:16 `runs` has to be at least 1",
        "28:22 `program` has to be a text, and this is a list",
        "29:3 job `hello` does more than one thing (one of `pod`, `podFrom`, `initCert`, `backfill`, `adopt`, `growVolume`, `command`)",
        "29:10 job `hello` belongs to no component, so `adopt` has to name its `release`",
        "29:20 `objects` needs at least 1",
        "30:7 job `idle` does nothing (give it one of `pod`, `podFrom`, `initCert`, `backfill`, `adopt`, `growVolume`, `command`)",
    ];
    assert_eq!(told(text), expected);
}

#[test]
fn cycles_and_broken_files_are_told() {
    let cycle = GOOD.replace("chart: {path: charts/db}", "chart: {path: charts/db}\n  dependsOn: [api]");
    assert_eq!(told(&cycle), ["11:9 api → db → api wait for each other"]);
    assert!(told("a: [1,\n")[0].starts_with("2:1 ") || told("a: [1,\n")[0].starts_with("1:"), "{:?}", told("a: [1,\n"));
    assert_eq!(told(""), ["1:1 the file is empty (see docs/deploy.md for a plan)"]);
    assert_eq!(told("a: 1\n---\nb: 2\n").last().unwrap(), "3:1 a plan is one document, and here begins another");
    assert!(told("release: 1\nrelease: 2\n").contains(&"2:1 `release` stands here twice".to_owned()));
    let bomb = format!("a: &a [{}]\n", "x,".repeat(300_000));
    assert_eq!(told(&bomb).len(), 1);
}

#[test]
fn a_job_that_does_not_say_when_it_retires_is_warned_of() {
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
fn a_backfill_is_told_what_is_wrong_where_it_stands() {
    let plan = |backfill: &str| {
        format!(
            "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {{name: shop, namespace: shop}}\njobs:\n\
             - id: s\n  phase: post\n  backfill:\n{backfill}"
        )
    };
    let good = "    sink: s3://bucket/in\n    kinds: [Pod]\n    checkpoint: configmap:progress\n    waitFor: ['tcp:db:5432']\n";
    assert_eq!(told(&plan(good)), [""; 0]);
    let bad = "    sink: stdout\n    names: ['(']\n    labels: ['a=[']\n    checkpoint: secret:x\n    waitFor: ['tcp:db', 'pod/a=Ready']\n    \
               auth: {header: 'a b'}\n    tls: {cert: a}\n    pageSize: 0\n    compress: lz4\n    kindz: [Pod]\n";
    assert_eq!(
        told(&plan(bad)),
        [
            "8:11 a deploy prints other things: a plan cannot send to stdout",
            "9:13 `(` is no regular expression: unclosed group",
            "10:14 `[` is no regular expression: unclosed character class",
            "11:17 `secret:x` is no place for a checkpoint: file:PATH and configmap:NAME are",
            "12:15 `tcp:db` is nothing to wait for: tcp:HOST:PORT, http(s)://…, tls:HOST:PORT[,ca=FILE] and KIND/NAME=CONDITION are",
            "13:11 `auth` has either a `secret` or a `file`",
            "13:20 `a b` is no header",
            "14:10 a `cert` and its `key` go together",
            "15:15 `pageSize` has to be at least 1",
            "16:15 `compress` cannot be `lz4` (it can be `none`, `zstd`, `gzip`)",
            "17:5 there is no field `kindz` here (did you mean `kinds`?)",
        ]
    );
    let leaking = told(&plan("    sink: https://user:p4ss@c.example/\n"));
    assert!(leaking[0].contains("must not have a user or a password") && !leaking[0].contains("p4ss"), "{leaking:?}");
}
