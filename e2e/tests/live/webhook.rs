//! A ValidatingWebhookConfiguration of ours is called through its Service, which leads to a pod of ours.

use crate::Test;
use anyhow::{Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jobwright_e2e::image::build::AGENT;
use jobwright_e2e::live::{Need, Stage};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const TESTS: &[Test] = &[Test {
    name: "a_webhook_is_called_through_its_service",
    needs: &[Need::Containers, Need::Image(AGENT)],
    play: called,
}];

/// Who has this label is refused by the agent.
const REFUSED: &str = "jobwright.local/refused";
const LIMIT: Duration = Duration::from_mins(1);

fn called(stage: &Stage<'_>) -> Result<()> {
    let namespace = stage.namespace();
    let authority = serve(stage)?;
    stage.apply(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [{
            "name": "refuse.jobwright.local",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "timeoutSeconds": 5,
            "clientConfig": {
                "caBundle": STANDARD.encode(authority),
                "service": {"name": "webhook", "namespace": namespace, "port": 443},
            },
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        }],
    }))?;
    let tried = refuses(stage);
    stage.kubectl(&["delete", "validatingwebhookconfiguration", namespace])?;
    tried
}

/// Until it is called, what is labelled is let through, and until its Service is known it fails for another reason.
fn refuses(stage: &Stage<'_>) -> Result<()> {
    let mut last = String::new();
    let refused = stage.until("the webhook to refuse", LIMIT, || {
        let name = format!("refused-{}", last.len());
        match stage.try_apply(&configmap(stage, &name, &json!({REFUSED: "not-today"})))? {
            Ok(()) => stage.kubectl(&["delete", "configmap", &name]).map(|_| None),
            Err(said) if said.contains("not-today") => Ok(Some(said)),
            Err(said) => {
                last = said;
                Ok(None)
            }
        }
    });
    let Ok(refused) = refused else { bail!("the webhook never refused; the last answer was `{last}`") };
    let expected = "admission webhook \"refuse.jobwright.local\" denied the request: not-today";
    ensure!(refused.contains(expected), "it was refused by `{refused}`");
    stage.apply(&configmap(stage, "allowed", &json!({"other": "label"})))?;
    Ok(())
}

fn configmap(stage: &Stage<'_>, name: &str, labels: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": stage.namespace(), "labels": labels});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// Starts the webhook, and returns the certificate of the authority that vouches for it.
fn serve(stage: &Stage<'_>) -> Result<String> {
    let namespace = stage.namespace();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let leaf = CertificateParams::new([format!("webhook.{namespace}.svc")])?.signed_by(&key, &authority)?;
    stage.apply(&json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": "webhook", "namespace": namespace},
        "stringData": {"tls.crt": leaf.pem(), "tls.key": key.serialize_pem()},
    }))?;
    stage.apply(&json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "webhook", "namespace": namespace},
        "spec": {"selector": {"app": "webhook"}, "ports": [{"port": 443, "targetPort": 8443}]},
    }))?;
    stage.apply(&json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "webhook", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "webhook"}},
            "template": {
                "metadata": {"labels": {"app": "webhook"}},
                "spec": {
                    "securityContext": {"runAsNonRoot": true},
                    "containers": [{
                        "name": "c",
                        "image": AGENT.image,
                        "imagePullPolicy": "Never",
                        "securityContext": {"readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false},
                        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1},
                        "volumeMounts": [{"name": "certificate", "mountPath": "/certificate"}],
                    }],
                    "volumes": [{"name": "certificate", "secret": {"secretName": "webhook"}}],
                },
            },
        },
    }))?;
    stage.until_condition("deployment", "webhook", "Available", "True", LIMIT)?;
    Ok(authority.pem())
}
