//! `init-cert` under load: the real API server asks two pods of ours about every object, fails whatever they do not
//! answer, and nothing fails while their certificate is rotated again and again.

#[path = "init_cert/deployers.rs"]
pub(crate) mod deployers;
#[path = "init_cert/load.rs"]
mod load;

use crate::Test;
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jobwright_e2e::image::build::{AGENT, JOBWRIGHT};
use jobwright_e2e::live::{Deploys, Need, Stage};
use load::{Load, REFUSED, Tally};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[
    Test {
        name: "twenty_rotations_fail_no_admission",
        needs: &[Need::Containers, Need::Image(AGENT)],
        play: rotate_well,
    },
    Test {
        name: "a_naive_rotation_fails_admissions_in_the_same_harness",
        needs: &[Need::Containers, Need::Image(AGENT)],
        play: rotate_naively,
    },
    Test {
        name: "a_job_in_the_cluster_rotates_with_the_roles_that_are_printed",
        needs: &[Need::Containers, Need::Image(AGENT), Need::Image(JOBWRIGHT)],
        play: rotate_inside,
    },
];

const LIMIT: Duration = Duration::from_mins(2);
const ROUNDS: usize = 5;
/// What the API server is asked for each second, at least.
const RATE: f64 = 20.0;

/// Why a certificate is renewed: each makes the next one due.
const ROTATIONS: [(&str, &[&str], bool); 4] = [
    ("a new one was asked for", &["--force", "--validity", "365d", "--ca-validity", "366d"], true),
    ("is left", &["--validity", "365d", "--ca-validity", "366d", "--renew-before", "364d23h59m59s"], false),
    // The CA ends before a certificate of this length would.
    ("is left", &["--validity", "3000d", "--ca-validity", "3650d", "--renew-before", "2999d"], true),
    ("is left", &["--validity", "3000d", "--ca-validity", "3650d", "--renew-before", "2999d23h59m59s"], false),
];

fn rotate_well(stage: &Stage<'_>) -> Result<()> {
    let namespace = stage.namespace();
    let jobwright = Deploys::new(stage, "init-cert")?;
    let usual = ["init-cert", "-n", namespace, "--service", "hook", "--secret", "hook-tls", "-o", "json"];
    let inject = ["--validating-webhook", namespace, "--deployment", "hook", "--settle", "3s"];
    let run = |more: &[&str]| {
        let words: Vec<&str> = usual.iter().chain(&inject).chain(more).copied().collect();
        jobwright.expect(0, &words)?.json().context("a report")
    };
    // The Secret first, or no pod would start.
    jobwright.expect(0, &[&usual[..], &["--stage", "secret"]].concat())?;
    serve(stage)?;
    configure(stage, None)?;
    run(&["--stage", "inject"])?;
    wait_until_asked(stage)?;
    let load = Load::start(stage, "rotations")?;
    let played = (|| {
        for round in 0..ROUNDS {
            for (index, (reason, words, new_authority)) in ROTATIONS.iter().enumerate() {
                let before = bundle(stage)?;
                let report = run(words)?;
                load.mark(&format!("rotation {}: {}", round * ROTATIONS.len() + index + 1, report["reason"]));
                ensure!(report["action"] == "renewed", "{report}");
                ensure!(report["reason"].as_str().is_some_and(|said| said.contains(reason)), "{report}");
                ensure!(!report["reason"].to_string().contains("not seen"), "{report}");
                ensure!(report["restarted"] == json!(["hook"]), "{report}");
                ensure!(
                    (bundle(stage)? != before) == *new_authority,
                    "the CA should{} have changed",
                    if *new_authority { "" } else { " not" }
                );
            }
        }
        Ok(())
    })();
    let tally = load.stop()?;
    stage.kubectl(&["delete", "validatingwebhookconfiguration", namespace])?;
    played?;
    tally.say();
    ensure!(tally.failed.is_empty(), "{} of {} failed: {:?}", tally.failed.len(), tally.asked, tally.failed.first());
    ensure!(tally.rate() >= RATE, "only {:.1} a second", tally.rate());
    Ok(())
}

/// What many do: the Secret, a restart, and then the bundle.
fn rotate_naively(stage: &Stage<'_>) -> Result<()> {
    let namespace = stage.namespace();
    let first = write_pair(stage)?;
    serve(stage)?;
    configure(stage, Some(&first))?;
    wait_until_asked(stage)?;
    let load = Load::start(stage, "naive")?;
    let played = (|| {
        let second = write_pair(stage)?;
        stage.kubectl(&["rollout", "restart", "deployment/hook"])?;
        stage.kubectl(&["rollout", "status", "deployment/hook", "--timeout=2m"])?;
        load.mark("the Secret is new, and pods have it");
        configure(stage, Some(&second))?;
        load.mark("the bundle is new");
        Ok::<_, anyhow::Error>(())
    })();
    let tally: Tally = load.stop()?;
    stage.kubectl(&["delete", "validatingwebhookconfiguration", namespace])?;
    played?;
    tally.say();
    ensure!(!tally.failed.is_empty(), "a harness that sees no gap here proves nothing ({} asked)", tally.asked);
    ensure!(tally.failed.iter().any(|said| said.contains("x509")), "{:?}", tally.failed.first());
    Ok(())
}

/// As a chart has it: a Job under an account that may do what `--print-rbac` says, and no more.
fn rotate_inside(stage: &Stage<'_>) -> Result<()> {
    let namespace = stage.namespace();
    let jobwright = Deploys::new(stage, "init-cert")?;
    let usual = ["init-cert", "-n", namespace, "--service", "hook", "--secret", "hook-tls"];
    let inject = ["--validating-webhook", namespace, "--deployment", "hook", "--settle", "3s"];
    let whole = [&usual[..], &inject].concat();
    jobwright.expect(0, &[&usual[..], &["--stage", "secret"]].concat())?;
    serve(stage)?;
    configure(stage, None)?;
    let roles = jobwright.expect(0, &[&whole[..], &["--print-rbac"]].concat())?.stdout;
    jobwright.file("roles.yaml", &roles)?;
    let file = jobwright.directory().join("roles.yaml").display().to_string();
    stage.kubectl(&["apply", "-f", &file])?;
    stage.kubectl(&["create", "serviceaccount", "init-cert"])?;
    let (account, wide) = (format!("{namespace}:init-cert"), format!("hook-tls-init-cert-{namespace}"));
    let account = format!("--serviceaccount={account}");
    stage.kubectl(&["create", "rolebinding", "init-cert", "--role=hook-tls-init-cert", &account])?;
    stage.kubectl(&["create", "clusterrolebinding", &wide, &format!("--clusterrole={wide}"), &account])?;
    let played = (|| {
        for (name, more, said) in
            [("first", "", "kept: valid until"), ("second", "--force", "renewed: a new one was asked for")]
        {
            let words: Vec<&str> = whole.iter().copied().chain(more.split_whitespace()).collect();
            stage.apply(&json!({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": namespace},
                "spec": {"backoffLimit": 0, "template": {"spec": {
                    "serviceAccountName": "init-cert", "restartPolicy": "Never",
                    "containers": [{"name": "init-cert", "image": JOBWRIGHT.image, "imagePullPolicy": "Never", "args": words}],
                }}},
            }))?;
            stage.until_condition("job", name, "Complete", "True", LIMIT)?;
            let log = stage.kubectl(&["logs", &format!("job/{name}")])?;
            ensure!(log.contains(said), "{log}");
            ensure!(!log.contains("not seen"), "the servers were not asked: {log}");
        }
        wait_until_asked(stage)
    })();
    stage.kubectl(&["delete", "validatingwebhookconfiguration", namespace])?;
    stage.kubectl(&["delete", "clusterrole,clusterrolebinding", &wide])?;
    played
}

fn serve(stage: &Stage<'_>) -> Result<()> {
    let namespace = stage.namespace();
    stage.apply(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook", "namespace": namespace},
        "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 8443}]},
    }))?;
    stage.apply(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "hook", "namespace": namespace},
        "spec": {
            "replicas": 2,
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "selector": {"matchLabels": {"app": "hook"}},
            "template": {
                "metadata": {"labels": {"app": "hook"}},
                "spec": {
                    "securityContext": {"runAsNonRoot": true},
                    "containers": [{
                        "name": "agent", "image": AGENT.image, "imagePullPolicy": "Never",
                        "securityContext": {"readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false},
                        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1},
                        "volumeMounts": [{"name": "certificate", "mountPath": "/certificate"}],
                    }],
                    "volumes": [{"name": "certificate", "secret": {"secretName": "hook-tls"}}],
                },
            },
        },
    }))?;
    stage.until_condition("deployment", "hook", "Available", "True", LIMIT)?;
    Ok(())
}

/// Lets the API server ask about every ConfigMap of the namespace, and fail what is not answered.
fn configure(stage: &Stage<'_>, authority: Option<&str>) -> Result<()> {
    let namespace = stage.namespace();
    let mut client = json!({"service": {"name": "hook", "namespace": namespace, "port": 443}});
    if let Some(authority) = authority {
        client["caBundle"] = STANDARD.encode(authority).into();
    }
    stage.apply(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [{
            "name": "hook.jobwright.local", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 5, "clientConfig": client,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        }],
    }))?;
    Ok(())
}

/// Until the API server knows the configuration and the Service, what is refused is let through or fails otherwise.
fn wait_until_asked(stage: &Stage<'_>) -> Result<()> {
    stage.until("the webhook to refuse", LIMIT, || {
        let metadata = json!({"name": "first", "namespace": stage.namespace(), "labels": {REFUSED: "not-today"}});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        match stage.try_apply(&object)? {
            Ok(()) => stage.kubectl(&["delete", "configmap", "first"]).map(|_| None),
            Err(said) => Ok(said.contains("not-today").then_some(())),
        }
    })?;
    Ok(())
}

fn bundle(stage: &Stage<'_>) -> Result<String> {
    let found = stage.find("validatingwebhookconfiguration", stage.namespace())?.context("it is gone")?;
    Ok(found["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned())
}

/// Writes a pair with a CA of its own, and returns that.
fn write_pair(stage: &Stage<'_>) -> Result<String> {
    let namespace = stage.namespace();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let leaf = CertificateParams::new([format!("hook.{namespace}.svc")])?.signed_by(&key, &authority)?;
    stage.apply(&json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": "hook-tls", "namespace": namespace},
        "stringData": {"tls.crt": leaf.pem(), "tls.key": key.serialize_pem()},
    }))?;
    Ok(authority.pem())
}
