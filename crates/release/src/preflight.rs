//! Asks for the permissions that a plan needs, before anything is changed.

use crate::plan::{Job, Plan};
use jobwright_jobs::access::{Permission, Permissions};
use jobwright_jobs::init_cert::{Dialling, Stage};
use std::collections::BTreeSet;

/// The permissions that a plan needs in its namespace. What manifests and charts hold is left to who applies it.
pub fn permissions(plan: &Plan, dialling: &Dialling) -> BTreeSet<Permission> {
    let mut wanted = Permissions::default();
    wanted.add("coordination.k8s.io", "leases", &["get", "create", "update"]);
    wanted.add("", "configmaps", &["get", "list", "create", "update"]);
    if plan.jobs.iter().any(|job| job.pod.is_some() || job.pod_from.is_some()) {
        wanted.add("batch", "jobs", &["get", "list", "watch", "create", "patch", "delete"]);
        wanted.add("", "pods", &["list", "watch"]);
        wanted.add("", "pods/log", &["get"]);
        wanted.add("", "events", &["list"]);
    }
    if plan.components.iter().any(|component| component.chart.is_some()) {
        wanted.add("", "secrets", &["list", "get", "create", "update", "delete"]);
    }
    for job in &plan.jobs {
        add_job(job, &plan.release.namespace, dialling, &mut wanted);
    }
    wanted.into_set()
}

fn add_job(job: &Job, namespace: &str, dialling: &Dialling, wanted: &mut Permissions) {
    if job.pod_from.is_some() {
        wanted.add("apps", "deployments", &["get"]);
    }
    // What is listed is told when it is: kinds are only known by then, and some may be left out.
    if job.backfill.as_ref().is_some_and(crate::plan::Backfill::has_secrets) {
        wanted.add("", "secrets", &["get"]);
    }
    if let Some(certificate) = &job.init_cert {
        let options = certificate.options(namespace, Stage::All);
        let dialling = if certificate.handshake { dialling.clone() } else { Dialling::Not(String::new()) };
        wanted.add_all(jobwright_jobs::init_cert::permissions(&options, &dialling, false));
    }
    if let Some(grow) = &job.grow_volume {
        wanted.add("", "persistentvolumeclaims", &["get", "list", "watch", "patch"]);
        wanted.add("", "resourcequotas", &["list"]);
        if let Some(workload) = &grow.detach {
            let resource = match workload.kind {
                crate::plan::WorkloadKind::Deployment => "deployments",
                crate::plan::WorkloadKind::StatefulSet => "statefulsets",
            };
            wanted.add("apps", resource, &["get", "patch"]);
            wanted.add("", "pods", &["list", "watch"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlanFile;
    use jobwright_jobs::access::roles;
    use std::path::Path;

    #[test]
    fn a_role_grants_what_a_plan_needs() {
        let text = "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {name: shop, namespace: shop}\njobs:\n\
            - {id: m, phase: pre, pod: {template: {spec: {}}}}\n\
            - {id: g, phase: pre, growVolume: {claim: data, to: 1Gi, detach: {kind: StatefulSet, name: db}}}\n";
        let plan = PlanFile::parse(Path::new("p"), text).unwrap().plan;
        let role = roles("jobwright-shop", "shop", &permissions(&plan, &Dialling::Not(String::new())));
        let parsed = jobwright_yaml::parse(&role).unwrap().remove(0).root.to_json();
        let rules = parsed["rules"].as_array().unwrap();
        let verbs = |resource: &str| {
            let rule = rules.iter().find(|rule| rule["resources"][0] == resource).unwrap();
            rule["verbs"].as_array().unwrap().iter().map(|verb| verb.as_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(verbs("jobs"), "create delete get list patch watch");
        assert_eq!(verbs("statefulsets"), "get patch");
        assert_eq!(verbs("pods/log"), "get");
        assert!(!role.contains("secrets"), "{role}");
    }

    #[test]
    fn a_certificate_needs_its_own_secrets_and_no_others() {
        let text = "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {name: shop, namespace: shop}\njobs:\n\
            - {id: c, initCert: {service: hook, secret: tls, validatingWebhooks: [shop]}}\n";
        let plan = PlanFile::parse(Path::new("p"), text).unwrap().plan;
        let role = roles("jobwright-shop", "shop", &permissions(&plan, &Dialling::Not(String::new())));
        assert!(
            role.contains("resources: [secrets]\n  resourceNames: [tls, tls-ca]\n  verbs: [get, update]\n"),
            "{role}"
        );
        assert!(role.contains("kind: ClusterRole\n"), "{role}");
    }
}
