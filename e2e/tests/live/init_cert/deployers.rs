//! `init-cert` beside Helm on one set of objects: webhook entries are added, dropped and renamed, a definition gets and
//! loses its conversion, and a release is rolled back. Nobody fails for the other, and the API server is always answered.

use super::load::Load;
use super::{RATE, serve, wait_until_asked};
use crate::Test;
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::cluster::Deployer;
use jobwright_e2e::image::build::AGENT;
use jobwright_e2e::live::{Deploys, Need, Stage};
use jobwright_e2e::version::HelmVersion;
use serde_json::{Value, json};
use std::path::PathBuf;

const HELM_3: &[Need] = &[Need::Containers, Need::Image(AGENT), Need::Deployer(&[Deployer::Helm3])];
const HELM_4: &[Need] = &[Need::Containers, Need::Image(AGENT), Need::Deployer(&[Deployer::Helm4])];

pub(crate) const TESTS: &[Test] = &[
    Test {
        name: "helm_3_and_init_cert_share_objects",
        needs: HELM_3,
        play: |stage| share(stage, HelmVersion::V3_17_3),
    },
    Test { name: "helm_4_and_init_cert_share_objects", needs: HELM_4, play: |stage| share(stage, HelmVersion::V4_3_1) },
    Test { name: "helm_4_upgrades_what_an_earlier_init_cert_owned", needs: HELM_4, play: inherit },
    Test { name: "a_service_is_renamed_by_helm_4", needs: HELM_4, play: rename },
];

/// The first entry is asked about every ConfigMap, and fails what is not answered.
const STEADY: &str = "hook.jobwright.local";
/// Further entries of each revision, and whether the definition converts.
const REVISIONS: [(&[&str], bool); 6] = [
    (&["a.jobwright.local", "b.jobwright.local"], true),
    (&["a.jobwright.local", "b.jobwright.local", "c.jobwright.local"], true),
    (&["c.jobwright.local"], false),
    (&["d.jobwright.local"], true),
    (&[], false),
    (&["b.jobwright.local", "a.jobwright.local"], true),
];

/// A release on a stage, and who sees to its certificate.
struct Play<'a> {
    stage: &'a Stage<'a>,
    helm: HelmVersion,
    jobwright: Deploys<'a>,
    service: &'static str,
}

impl<'a> Play<'a> {
    /// A release that is installed and served.
    fn begin(stage: &'a Stage<'a>, helm: HelmVersion) -> Result<Self> {
        let play = Self { stage, helm, jobwright: Deploys::new(stage, "init-cert")?, service: "hook" };
        // Nothing is there yet but the namespace.
        play.init_cert(&["--stage", "secret"])?;
        serve(stage)?;
        play.deploy(REVISIONS[0])?;
        play.init_cert(&["--stage", "inject"])?;
        wait_until_asked(stage)?;
        play.expect_trusted(REVISIONS[0])?;
        Ok(play)
    }

    fn definition(&self) -> String {
        format!("orders.{}.jobwright.local", self.stage.namespace())
    }

    fn chart(&self, (entries, converts): (&[&str], bool)) -> Result<PathBuf> {
        let namespace = self.stage.namespace();
        let service = json!({"service": {"name": self.service, "namespace": namespace, "port": 443}});
        let entry = |name: &str, policy: &str| {
            json!({"name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": policy,
                "timeoutSeconds": 5, "clientConfig": service,
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}})
        };
        let entries: Vec<Value> =
            std::iter::once(entry(STEADY, "Fail")).chain(entries.iter().map(|name| entry(name, "Ignore"))).collect();
        let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": {"name": namespace}, "webhooks": entries});
        let conversion = if converts {
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": service}})
        } else {
            json!({"strategy": "None"})
        };
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.definition()}, "spec": {"group": format!("{namespace}.jobwright.local"),
            "scope": "Namespaced", "names": {"kind": "Order", "listKind": "OrderList", "plural": "orders", "singular": "order"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            "conversion": conversion}});
        let chart = self.stage.directory().join("chart");
        std::fs::create_dir_all(chart.join("templates"))?;
        std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: shop\nversion: 1.0.0\n")?;
        std::fs::write(chart.join("templates/hook.yaml"), format!("{configuration}\n---\n{definition}\n"))?;
        Ok(chart)
    }

    fn deploy(&self, revision: (&[&str], bool)) -> Result<()> {
        let chart = self.chart(revision)?;
        self.stage.helm(self.helm, &["upgrade", "--install", "shop", &chart.to_string_lossy(), "--history-max=0"])?;
        Ok(())
    }

    fn init_cert(&self, more: &[&str]) -> Result<Value> {
        let (namespace, definition) = (self.stage.namespace(), self.definition());
        let usual = ["init-cert", "-n", namespace, "--service", self.service, "--secret", "hook-tls", "-o", "json"];
        let rest = ["--validating-webhook", namespace, "--deployment", "hook", "--settle", "3s"];
        // A definition without a conversion webhook trusts nobody.
        let converts = self.stage.find("customresourcedefinition", &definition)?;
        let converts = converts.is_none_or(|found| found["spec"]["conversion"]["strategy"] == "Webhook");
        let target: &[&str] = if converts || more.contains(&"secret") { &["--crd", &definition] } else { &[] };
        let words: Vec<&str> = usual.iter().chain(&rest).chain(target).chain(more).copied().collect();
        self.jobwright.expect(0, &words)?.json().context("a report")
    }

    fn read(&self) -> Result<(Value, Value)> {
        let configuration = self.stage.find("validatingwebhookconfiguration", self.stage.namespace())?;
        let definition = self.stage.find("customresourcedefinition", &self.definition())?;
        Ok((configuration.context("no configuration")?, definition.context("no definition")?))
    }

    fn expect_trusted(&self, (entries, converts): (&[&str], bool)) -> Result<()> {
        let (configuration, definition) = self.read()?;
        let found = configuration["webhooks"].as_array().cloned().unwrap_or_default();
        let names: Vec<&str> = found.iter().filter_map(|entry| entry["name"].as_str()).collect();
        let wanted: Vec<&str> = std::iter::once(STEADY).chain(entries.iter().copied()).collect();
        ensure!(names == wanted, "{names:?}, not {wanted:?}");
        ensure!(found.iter().all(|entry| entry["clientConfig"]["caBundle"].is_string()), "{configuration}");
        let conversion = &definition["spec"]["conversion"];
        let bundle = &conversion["webhook"]["clientConfig"]["caBundle"];
        ensure!(bundle.is_string() == converts, "{conversion}");
        ensure!(converts || conversion == &json!({"strategy": "None"}), "{conversion}");
        Ok(())
    }

    /// Deploying the same again, and looking again, changes nothing.
    fn expect_rest(&self, revision: (&[&str], bool)) -> Result<()> {
        let version = |object: &Value| (object["metadata"]["generation"].clone(), object["webhooks"].clone());
        let before = self.read()?;
        self.deploy(revision)?;
        let report = self.init_cert(&[])?;
        let changed = report["targets"].as_array().into_iter().flatten().any(|target| target["changed"] == true);
        ensure!(report["action"] == "kept" && !changed, "{report}");
        let after = self.read()?;
        ensure!(version(&before.0) == version(&after.0), "{}\n{}", before.0, after.0);
        ensure!(before.1["spec"] == after.1["spec"], "{}\n{}", before.1, after.1);
        Ok(())
    }

    fn end(&self) -> Result<()> {
        self.stage.helm(self.helm, &["uninstall", "shop"])?;
        Ok(())
    }
}

/// Plays under load, and expects that no admission fails.
fn under_load(play: &Play<'_>, name: &str, what: impl FnOnce(&Load) -> Result<()>) -> Result<()> {
    let load = Load::start(play.stage, name)?;
    let played = what(&load);
    let tally = load.stop()?;
    play.end()?;
    played?;
    tally.say();
    ensure!(tally.failed.is_empty(), "{} of {} failed: {:?}", tally.failed.len(), tally.asked, tally.failed.first());
    ensure!(tally.rate() >= RATE / 2.0, "only {:.1} a second", tally.rate());
    Ok(())
}

fn share(stage: &Stage<'_>, helm: HelmVersion) -> Result<()> {
    let play = Play::begin(stage, helm)?;
    under_load(&play, &format!("helm-{helm}"), |load| {
        for (number, revision) in REVISIONS.into_iter().enumerate().skip(1) {
            load.mark(&format!("revision {number}"));
            play.init_cert(&["--stage", "secret"])?;
            play.deploy(revision).with_context(|| format!("revision {number}"))?;
            play.init_cert(&["--stage", "inject"])?;
            play.expect_trusted(revision)?;
            play.expect_rest(revision)?;
        }
        let report = play.init_cert(&["--force"])?;
        ensure!(report["action"] == "renewed", "{report}");
        play.expect_rest(REVISIONS[5])?;
        // Each revision was deployed twice but the first.
        for (revision, number) in [(1, "2"), (2, "4"), (0, "1"), (3, "6")] {
            load.mark(&format!("back to revision {revision}"));
            play.init_cert(&["--stage", "secret"])?;
            stage
                .helm(helm, &["rollback", "shop", number, "--history-max=0"])
                .with_context(|| format!("back to {revision}"))?;
            play.init_cert(&["--stage", "inject"])?;
            play.expect_trusted(REVISIONS[revision])?;
        }
        Ok(())
    })
}

/// What an earlier version has made itself an owner of is given up before the upgrade that drops it.
fn inherit(stage: &Stage<'_>) -> Result<()> {
    let play = Play::begin(stage, HelmVersion::V4_3_1)?;
    under_load(&play, "inherit", |_| {
        let (configuration, definition) = play.read()?;
        let own = |entry: &Value| json!({"name": entry["name"], "clientConfig": {"caBundle": entry["clientConfig"]["caBundle"]}});
        let entries: Vec<Value> = configuration["webhooks"].as_array().into_iter().flatten().map(own).collect();
        let bundle = &definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"];
        for (name, object) in [
            (
                "configuration.json",
                json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": stage.namespace()}, "webhooks": entries}),
            ),
            (
                "definition.json",
                json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": play.definition()},
                "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}),
            ),
        ] {
            play.jobwright.file(name, &object.to_string())?;
            let file = play.jobwright.directory().join(name).display().to_string();
            let words =
                ["apply", "--server-side", "--force-conflicts", "--field-manager=jobwright-init-cert", "-f", &file];
            stage.kubectl(&words)?;
        }
        let chart = play.chart(REVISIONS[2])?;
        let said = stage.failing_helm(play.helm, &["upgrade", "shop", &chart.to_string_lossy()])?;
        ensure!(said.contains("Required value"), "what blocks an upgrade is not there: {said}");
        play.init_cert(&["--stage", "secret"])?;
        play.deploy(REVISIONS[2])?;
        play.init_cert(&["--stage", "inject"])?;
        play.expect_trusted(REVISIONS[2])
    })
}

/// The Service gets another name with the upgrade, and the entries with it.
fn rename(stage: &Stage<'_>) -> Result<()> {
    let play = Play::begin(stage, HelmVersion::V4_3_1)?;
    let renamed = Play { stage, helm: play.helm, jobwright: Deploys::new(stage, "renamed")?, service: "gate" };
    let played = (|| {
        let report = renamed.init_cert(&["--stage", "secret"])?;
        ensure!(report["action"] == "renewed", "{report}");
        // Until the release, the old name is called.
        wait_until_asked(stage)?;
        stage.apply(&json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "gate", "namespace": stage.namespace()},
            "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 8443}]},
        }))?;
        renamed.deploy(REVISIONS[0])?;
        renamed.init_cert(&["--stage", "inject"])?;
        renamed.expect_trusted(REVISIONS[0])?;
        stage.kubectl(&["delete", "service", "hook"])?;
        wait_until_asked(stage)?;
        renamed.expect_rest(REVISIONS[0])
    })();
    play.end()?;
    played
}
