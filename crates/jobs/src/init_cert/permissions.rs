//! What a run has to be allowed to do, object by object.

use super::dial::Dialling;
use super::lease_name;
use super::options::{Options, Stage};
use super::target::Kind;
use crate::access::{Permission, Permissions};
use std::collections::BTreeSet;

/// What a run needs; only what a look needs, if it is to change nothing.
pub fn permissions(options: &Options, dialling: &Dialling, only_look: bool) -> BTreeSet<Permission> {
    let mut wanted = Permissions::default();
    let verbs = |look: &'static [&'static str], change: &'static [&'static str]| if only_look { look } else { change };
    let authority = options.authority_secret();
    wanted.add_named("", "secrets", verbs(&["get"], &["get", "update"]), &[&options.secret, &authority]);
    if !only_look {
        wanted.add("", "secrets", &["create"]);
        wanted.add("coordination.k8s.io", "leases", &["create"]);
        wanted.add_named("coordination.k8s.io", "leases", &["get", "update"], &[&lease_name(options)]);
    }
    let patch = verbs(&["get"], &["get", "patch"]);
    if let Some(mark) = &options.mark {
        wanted.add_named("", "configmaps", patch, &[&mark.config_map]);
    }
    for (kind, name) in options.targets.names() {
        let (group, _, _, plural) = kind.names();
        wanted.add_cluster_wide(group, plural, patch, Some(name));
    }
    if options.targets.webhook_selector.is_some() {
        for kind in [Kind::Validating, Kind::Mutating] {
            let (group, _, _, plural) = kind.names();
            wanted.add_cluster_wide(group, plural, verbs(&["list"], &["list", "patch"]), None);
        }
    }
    if options.stage == Stage::Secret {
        return wanted.into_set();
    }
    if !options.deployments.is_empty() {
        let names: Vec<&str> = options.deployments.iter().map(String::as_str).collect();
        wanted.add_named("apps", "deployments", patch, &names);
        wanted.add("apps", "replicasets", &["list"]);
    }
    // Whether they are asked or not: who is behind the Services decides whether the earlier CA may go.
    let services: Vec<&str> = options.services.iter().map(String::as_str).collect();
    wanted.add_named("", "services", &["get"], &services);
    wanted.add("discovery.k8s.io", "endpointslices", &["list"]);
    wanted.add("", "pods", &["list"]);
    if let Dialling::With(dialler) = dialling
        && dialler.forwards_ports()
    {
        // The client asks by GET, which counts as `get`, or as `create` where that is more than a read.
        wanted.add("", "pods/portforward", &["get", "create"]);
    }
    wanted.into_set()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::roles;
    use crate::init_cert::{Direct, Targets};
    use std::sync::Arc;

    fn told(stage: Stage, only_look: bool) -> String {
        let targets = Targets { validating_webhooks: vec!["shop".to_owned()], ..Targets::default() };
        let deployments = vec!["hook".to_owned()];
        let options = Options { stage, targets, deployments, ..Options::new("shop", "hook", "hook-tls") };
        roles("r", "shop", &permissions(&options, &Dialling::With(Arc::new(Direct)), only_look))
    }

    #[test]
    fn a_stage_needs_no_more_than_it_uses() {
        let all = told(Stage::All, false);
        for part in [
            "resources: [secrets]\n  resourceNames: [hook-tls, hook-tls-ca]\n  verbs: [get, update]\n",
            "resources: [secrets]\n  verbs: [create]\n",
            "resources: [deployments]\n  resourceNames: [hook]\n  verbs: [get, patch]\n",
            "resources: [validatingwebhookconfigurations]\n  resourceNames: [shop]\n  verbs: [get, patch]\n",
            "resources: [replicasets]\n  verbs: [list]\n",
            "resources: [services]\n  resourceNames: [hook]\n  verbs: [get]\n",
        ] {
            assert!(all.contains(part), "{part} is not in\n{all}");
        }
        assert!(!all.contains("portforward") && !all.contains("delete") && !all.contains('*'), "{all}");
        let secret = told(Stage::Secret, false);
        assert!(!secret.contains("deployments") && !secret.contains("endpointslices"), "{secret}");
        let look = told(Stage::All, true);
        assert!(!look.contains("patch") && !look.contains("create") && !look.contains("leases"), "{look}");
    }
}
