//! Trees of charts in temporary directories.

use super::*;
use crate::version::Bump;
use tempfile::TempDir;

fn tree(files: &[(&str, &str)]) -> (TempDir, Tree) {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let tree = Tree::read(directory.path()).unwrap();
    (directory, tree)
}

fn bump(tree: &Tree, name: &str, bump: Bump) -> Result<Cascade, Error> {
    let start = tree.find(name, tree.root())?;
    cascade(tree, start, Options { bump, by_name: false, now: "2026-02-03T04:05:06Z".parse().unwrap() })
}

fn table(cascade: &Cascade) -> Vec<String> {
    cascade.charts.iter().map(|chart| format!("{} {} {}", chart.name, chart.old, chart.new)).collect()
}

fn text<'a>(cascade: &'a Cascade, directory: &TempDir, path: &str) -> &'a str {
    let path = directory.path().join(path);
    &cascade
        .files
        .iter()
        .find(|file| file.path == path)
        .unwrap_or_else(|| panic!("{} is as it was", path.display()))
        .text
}

fn chart(name: &str, version: &str, dependencies: &[(&str, &str)]) -> String {
    let mut text = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    if !dependencies.is_empty() {
        text.push_str("dependencies:\n");
    }
    for (on, constraint) in dependencies {
        text.push_str(&format!("- name: {on}\n  version: {constraint:?}\n  repository: file://../{on}\n"));
    }
    text
}

#[test]
fn a_bump_reaches_every_level() {
    let (_directory, tree) = tree(&[
        ("charts/core/Chart.yaml", &chart("core", "1.5.1", &[])),
        ("charts/agent/Chart.yaml", &chart("agent", "2.14.0", &[("core", "1.X")])),
        ("charts/regions/Chart.yaml", &chart("regions", "3.10.7", &[("agent", "2.X")])),
        ("charts/cloudprem/Chart.yaml", &chart("cloudprem", "4.9.2", &[("regions", "3.X"), ("core", "1.X")])),
        ("charts/other/Chart.yaml", &chart("other", "1.0.0", &[])),
    ]);
    let cascade = bump(&tree, "core", Bump::Minor).unwrap();
    assert_eq!(
        table(&cascade),
        ["core 1.5.1 1.6.0", "agent 2.14.0 2.15.0", "regions 3.10.7 3.11.0", "cloudprem 4.9.2 4.10.0"]
    );
    assert_eq!(cascade.charts[3].because_of, ["regions", "core"]);
}

#[test]
fn comments_quotes_and_formatting_stay() {
    let agent = "# the agent\napiVersion: v2\nname: agent   # of the cluster\nversion: '2.14.0' # ours\nappVersion: \"2.14.0\"\ndependencies:\n  - {name: core, version: \"1.5.1\", repository: 'file://../core'} # pinned\n";
    let (directory, tree) = tree(&[("core/Chart.yaml", &chart("core", "1.5.1", &[])), ("agent/Chart.yaml", agent)]);
    let cascade = bump(&tree, "core", Bump::Patch).unwrap();
    assert_eq!(
        text(&cascade, &directory, "agent/Chart.yaml"),
        agent.replace("version: '2.14.0'", "version: '2.14.1'").replace("\"1.5.1\"", "\"1.5.2\"")
    );
}

#[test]
fn a_constraint_is_changed_only_where_it_must_be() {
    for (old, new) in [("1.X", "2.X"), ("^1.5.1", "^2.0.0"), ("1.5.1", "2.0.0"), (">=1.0.0", ">=1.0.0"), ("*", "*")] {
        let (directory, tree) = tree(&[
            ("core/Chart.yaml", &chart("core", "1.5.1", &[])),
            ("agent/Chart.yaml", &chart("agent", "2.14.0", &[("core", old)])),
        ]);
        let cascade = bump(&tree, "core", Bump::Major).unwrap();
        assert_eq!(text(&cascade, &directory, "agent/Chart.yaml"), chart("agent", "3.0.0", &[("core", new)]));
    }
}

#[test]
fn a_constraint_that_nobody_can_carry_on_is_told_with_its_place() {
    let (_directory, tree) = tree(&[
        ("core/Chart.yaml", &chart("core", "1.5.1", &[])),
        ("agent/Chart.yaml", &chart("agent", "2.14.0", &[("core", ">=1 <2")])),
    ]);
    let error = bump(&tree, "core", Bump::Major).unwrap_err().to_string();
    assert!(error.contains("Chart.yaml:6:12: `>=1 <2` does not take core 2.0.0"), "{error}");
}

#[test]
fn circles_are_refused_and_named() {
    let (_directory, tree) = tree(&[
        ("a/Chart.yaml", &chart("a", "1.0.0", &[("c", "*")])),
        ("b/Chart.yaml", &chart("b", "1.0.0", &[("a", "*")])),
        ("c/Chart.yaml", &chart("c", "1.0.0", &[("b", "*")])),
        ("d/Chart.yaml", &chart("d", "1.0.0", &[("a", "*")])),
    ]);
    let error = bump(&tree, "a", Bump::Patch).unwrap_err().to_string();
    assert_eq!(error, "charts depend on each other in a circle: a → c → b → a");
}

#[test]
fn a_lock_gets_the_version_and_the_digest_that_helm_would_write() {
    // The digest is that of `helm dependency update` for these charts, with Helm 3.17.3, 3.22.0 and 4.3.1 alike.
    let lock = "dependencies:\n- name: core\n  repository: file://../core\n  version: 1.5.1\ndigest: sha256:0\ngenerated: \"2026-01-01T00:00:00Z\"\n";
    let agent = "apiVersion: v2\nname: agent\nversion: 2.14.0\ndependencies:\n- name: core\n  version: '>=1.0.0'\n  repository: file://../core\n  condition: core.enabled\n  tags: [base]\n  alias: ''\n";
    let (directory, tree) = tree(&[
        ("core/Chart.yaml", &chart("core", "1.5.1", &[])),
        ("agent/Chart.yaml", agent),
        ("agent/Chart.lock", lock),
    ]);
    let cascade = bump(&tree, "core", Bump::Minor).unwrap();
    assert_eq!(
        text(&cascade, &directory, "agent/Chart.lock"),
        "dependencies:\n- name: core\n  repository: file://../core\n  version: 1.6.0\ndigest: sha256:28e8517866d08c4a48c0178a8e7336990c89f4ed5c366f93d5dbc12d44ef0b4c\ngenerated: \"2026-02-03T04:05:06Z\"\n"
    );
}

#[test]
fn tables_and_badges_follow() {
    let (directory, tree) = tree(&[
        ("README.md", "| Chart | Version |\n|---|---|\n| [core](charts/core) | 1.5.1 |\n| agent | 2.14.0 |\n"),
        ("charts/core/Chart.yaml", &chart("core", "1.5.1", &[])),
        (
            "charts/core/README.md",
            "# core\n![Version: 1.5.1](https://img.shields.io/badge/Version-1.5.1-informational)\n",
        ),
        ("charts/agent/Chart.yaml", &chart("agent", "2.14.0", &[("core", "1.5.1")])),
        (
            "charts/agent/README.md",
            "| Repository | Name | Version |\n|---|---|---|\n| file://../core | core | 1.5.1 |\n",
        ),
    ]);
    let cascade = bump(&tree, "core", Bump::Minor).unwrap();
    assert_eq!(
        text(&cascade, &directory, "README.md"),
        "| Chart | Version |\n|---|---|\n| [core](charts/core) | 1.6.0 |\n| agent | 2.15.0 |\n"
    );
    assert!(text(&cascade, &directory, "charts/core/README.md").contains("Version-1.6.0-informational"));
    assert!(text(&cascade, &directory, "charts/agent/README.md").contains("| core | 1.6.0 |"));
}

#[test]
fn what_comes_from_elsewhere_is_left_and_told() {
    let elsewhere = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: core, version: 1.x, repository: 'oci://registry.example/charts'}\n";
    let (_directory, tree) = tree(&[("core/Chart.yaml", &chart("core", "1.5.1", &[])), ("web/Chart.yaml", elsewhere)]);
    let cascade = bump(&tree, "core", Bump::Minor).unwrap();
    assert_eq!(table(&cascade), ["core 1.5.1 1.6.0"]);
    assert!(cascade.notes[0].starts_with("web takes core from oci://registry.example/charts"), "{:?}", cascade.notes);
    let start = tree.find("core", tree.root()).unwrap();
    let options = Options { bump: Bump::Minor, by_name: true, now: Timestamp::UNIX_EPOCH };
    assert_eq!(table(&super::cascade(&tree, start, options).unwrap()), ["core 1.5.1 1.6.0", "web 1.0.0 1.1.0"]);
}

#[test]
fn charts_are_found_by_path_and_by_name() {
    let (directory, tree) = tree(&[
        ("charts/core/Chart.yaml", &chart("core", "1.5.1", &[])),
        ("old/core/Chart.yaml", &chart("core", "1.0.0", &[])),
        ("web/Chart.yaml", &chart("web", "1.0.0", &[])),
        ("web/charts/lib/Chart.yaml", &chart("lib", "1.0.0", &[])),
        ("lib/Chart.yaml", &chart("lib", "1.1.0", &[])),
    ]);
    let version =
        |name: &str| Ok::<_, Error>(tree.chart(tree.find(name, directory.path())?).metadata.version.to_string());
    assert_eq!(version("charts/core").unwrap(), "1.5.1");
    assert_eq!(version("old/core/Chart.yaml").unwrap(), "1.0.0");
    // Copies in the `charts/` of others have no name of their own.
    assert_eq!(version("lib").unwrap(), "1.1.0");
    assert!(version("core").unwrap_err().to_string().contains("there are 2 charts `core`"));
    assert!(version("shop").unwrap_err().to_string().contains("there are core, lib, web"));
}
