//! A migration that meets itself: a hook whose helm gave up, and a plain Job that is replaced while it runs. With and
//! without the lock of `release-hooks`, by what the migrations themselves write into a file of the node.

use crate::Test;
use crate::release_hooks::files;
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::cluster::Deployer;
use jobwright_e2e::image::build::JOBWRIGHT;
use jobwright_e2e::live::{Need, Stage};
use jobwright_e2e::version::HelmVersion::{self, V3_17_3, V4_3_1};
use serde_json::json;
use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HELM_3: &[Need] = &[Need::Containers, Need::Image(JOBWRIGHT), Need::Deployer(&[Deployer::Helm3])];
const HELM_4: &[Need] = &[Need::Containers, Need::Image(JOBWRIGHT), Need::Deployer(&[Deployer::Helm4])];

pub(crate) const TESTS: &[Test] = &[
    Test {
        name: "migrations_under_a_lock_never_overlap_as_hooks_3_17_3",
        needs: HELM_3,
        play: |s| locked(s, V3_17_3, "hook"),
    },
    Test {
        name: "migrations_under_a_lock_never_overlap_as_hooks_4_3_1",
        needs: HELM_4,
        play: |s| locked(s, V4_3_1, "hook"),
    },
    Test {
        name: "migrations_under_a_lock_never_overlap_as_plain_jobs_3_17_3",
        needs: HELM_3,
        play: |s| locked(s, V3_17_3, "plain"),
    },
    Test {
        name: "migrations_under_a_lock_never_overlap_as_plain_jobs_4_3_1",
        needs: HELM_4,
        play: |s| locked(s, V4_3_1, "plain"),
    },
    // What these tests would not see if they saw nothing.
    Test { name: "migrations_without_a_lock_overlap", needs: HELM_3, play: unlocked },
];

const SOON: Duration = Duration::from_mins(2);

/// Writes what it does twice a second. Told to end, it works on for some seconds, as one in the middle of a transaction.
const MIGRATE: &str = "say() { echo \"$1 $SCHEMA\" >> /witness/lines; }; \
    trap 'for i in 1 2 3 4 5 6 7 8; do say work; sleep 0.5; done; exit 1' TERM; \
    say begin; i=0; while [ $i -lt $STEPS ]; do say work; sleep 0.5; i=$((i+1)); done; say end";

/// A chart with this migration.
struct Shop<'a> {
    stage: &'a Stage<'a>,
    helm: HelmVersion,
    mode: &'static str,
    is_locked: bool,
    chart: PathBuf,
}

impl<'a> Shop<'a> {
    fn new(stage: &'a Stage<'a>, helm: HelmVersion, mode: &'static str, is_locked: bool) -> Result<Self> {
        let chart = stage.directory().join(format!("{mode}-{is_locked}"));
        let shop = Self { stage, helm, mode, is_locked, chart };
        let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/release-hooks");
        for (name, text) in files(Path::new(library), "charts/release-hooks/")? {
            shop.write(&name, &text)?;
        }
        std::fs::create_dir_all(shop.witness())?;
        // The image's user is nobody.
        std::fs::set_permissions(shop.witness(), Permissions::from_mode(0o777))?;
        let dependency = "{name: release-hooks, version: '>=1', repository: 'file://unused'}";
        shop.write(
            "Chart.yaml",
            &format!("apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies: [{dependency}]\n"),
        )?;
        let mut template = String::from("{{- define \"shop.migration\" }}\nspec:\n");
        writeln!(template, "  terminationGracePeriodSeconds: 30")?;
        writeln!(template, "  volumes: [{{name: witness, hostPath: {{path: {}}}}}]", json!(shop.witness()))?;
        writeln!(template, "  containers:\n  - name: migrate\n    image: {}", stage.image())?;
        writeln!(template, "    command: [sh, -c]\n    args: [{MIGRATE:?}]")?;
        template.push_str("    env: [{name: SCHEMA, value: {{ .Values.schema | quote }}}, {name: STEPS, value: {{ .Values.steps | quote }}}]\n");
        template.push_str("    volumeMounts: [{name: witness, mountPath: /witness}]\n{{- end }}\n");
        template.push_str("{{- include \"release-hooks.resources\" (dict \"root\" $ \"name\" \"migrate\" \"template\" (include \"shop.migration\" $)) }}\n");
        shop.write("templates/migrate.yaml", &template)?;
        Ok(shop)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.chart.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
        Ok(std::fs::write(path, text)?)
    }

    fn witness(&self) -> PathBuf {
        self.chart.join("witness")
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.witness().join("lines")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn until_line(&self, line: &str) -> Result<()> {
        let seen = || Ok(self.lines().iter().any(|found| found == line).then_some(()));
        self.stage.until(&format!("`{line}`"), SOON, seen).with_context(|| format!("{:?}", self.lines()))?;
        Ok(())
    }

    fn words(&self, schema: &str, steps: u32, more: &[&str]) -> Vec<String> {
        let chart = self.chart.display().to_string();
        let set = format!(
            "schema={schema},steps={steps},releaseHooks.mode={},releaseHooks.lock.enabled={},releaseHooks.lock.image={}",
            self.mode, self.is_locked, JOBWRIGHT.image
        );
        // Two of a test are two releases.
        let release = if self.is_locked { "locked" } else { "unlocked" };
        let words = [&["upgrade", "--install", release, &chart, "--set", &set], more].concat();
        words.into_iter().map(str::to_owned).collect()
    }

    fn deploy(&self, schema: &str, steps: u32, more: &[&str]) -> Result<()> {
        let words = self.words(schema, steps, more);
        self.stage.helm(self.helm, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
        Ok(())
    }

    /// Begins a migration that runs on when the next comes, and lets the next come. Gives what the old one has written
    /// after the new one began.
    fn replace(&self) -> Result<Vec<String>> {
        self.deploy("1", 1, &["--wait", "--wait-for-jobs", "--timeout=3m"])?;
        if self.mode == "hook" {
            // As if it was killed, but that the next may begin at once.
            let words = self.words("2", 600, &["--timeout=12s"]);
            self.stage.failing_helm(self.helm, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
        } else {
            self.deploy("2", 600, &[])?;
        }
        self.until_line("work 2")?;
        self.deploy("3", 4, &["--wait", "--wait-for-jobs", "--timeout=3m"])?;
        self.until_line("end 3")?;
        let lines = self.lines();
        let begin = lines.iter().position(|line| line == "begin 3").context("the new one has not begun")?;
        Ok(lines[begin..].iter().filter(|line| line.ends_with(" 2")).cloned().collect())
    }
}

fn locked(stage: &Stage<'_>, helm: HelmVersion, mode: &'static str) -> Result<()> {
    let shop = Shop::new(stage, helm, mode, true)?;
    let late = shop.replace()?;
    ensure!(late.is_empty(), "the old one worked beside the new one: {:?}", shop.lines());
    Ok(())
}

fn unlocked(stage: &Stage<'_>) -> Result<()> {
    for mode in ["hook", "plain"] {
        let shop = Shop::new(stage, V3_17_3, mode, false)?;
        let late = shop.replace()?;
        ensure!(!late.is_empty(), "{mode}: they did not overlap: {:?}", shop.lines());
        stage.helm(V3_17_3, &["uninstall", "unlocked", "--wait"])?;
    }
    Ok(())
}
