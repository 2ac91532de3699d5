//! Asks for the permissions that a plan needs, before anything is changed.

use crate::plan::{Job, Plan};
use futures::StreamExt as _;
use jobwright_engine::Refusal;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};
use std::collections::{BTreeMap, BTreeSet};

/// Something that somebody may have to be allowed to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// `batch`; empty for the core group.
    pub group: String,
    /// `jobs`, or `pods/log`.
    pub resource: String,
    /// `create`.
    pub verb: String,
}

/// How many questions are asked at once.
const AT_ONCE: usize = 8;

/// The permissions that a plan needs in its namespace. What manifests and charts hold is left to who applies it.
pub fn permissions(plan: &Plan) -> BTreeSet<Permission> {
    let mut wanted = BTreeSet::new();
    let mut add = |group: &str, resource: &str, verbs: &[&str]| {
        wanted.extend(verbs.iter().map(|verb| Permission {
            group: group.to_owned(),
            resource: resource.to_owned(),
            verb: (*verb).to_owned(),
        }));
    };
    add("coordination.k8s.io", "leases", &["get", "create", "update"]);
    add("", "configmaps", &["get", "list", "create", "update"]);
    if plan.jobs.iter().any(|job| job.pod.is_some() || job.pod_from.is_some()) {
        add("batch", "jobs", &["get", "list", "watch", "create", "patch", "delete"]);
        add("", "pods", &["list", "watch"]);
        add("", "pods/log", &["get"]);
        add("", "events", &["list"]);
    }
    if plan.components.iter().any(|component| component.chart.is_some()) {
        add("", "secrets", &["list", "get", "create", "update", "delete"]);
    }
    for job in &plan.jobs {
        add_job(job, &mut add);
    }
    wanted
}

fn add_job(job: &Job, add: &mut impl FnMut(&str, &str, &[&str])) {
    if job.pod_from.is_some() {
        add("apps", "deployments", &["get"]);
    }
    // What is listed is told when it is: kinds are only known by then, and some may be left out.
    if job.backfill.as_ref().is_some_and(crate::plan::Backfill::has_secrets) {
        add("", "secrets", &["get"]);
    }
    if let Some(grow) = &job.grow_volume {
        add("", "persistentvolumeclaims", &["get", "list", "watch", "patch"]);
        add("", "resourcequotas", &["list"]);
        if let Some(workload) = &grow.detach {
            let resource = match workload.kind {
                crate::plan::WorkloadKind::Deployment => "deployments",
                crate::plan::WorkloadKind::StatefulSet => "statefulsets",
            };
            add("apps", resource, &["get", "patch"]);
            add("", "pods", &["list", "watch"]);
        }
    }
}

/// The permissions that the cluster says we do not have.
pub async fn missing(
    client: &Client,
    namespace: &str,
    permissions: BTreeSet<Permission>,
) -> Result<BTreeSet<Permission>, Refusal> {
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let ask = |permission: Permission| {
        let reviews = reviews.clone();
        async move {
            let (resource, subresource) = match permission.resource.split_once('/') {
                Some((resource, sub)) => (resource.to_owned(), Some(sub.to_owned())),
                None => (permission.resource.clone(), None),
            };
            let attributes = ResourceAttributes {
                group: Some(permission.group.clone()),
                namespace: Some(namespace.to_owned()),
                resource: Some(resource),
                subresource,
                verb: Some(permission.verb.clone()),
                ..ResourceAttributes::default()
            };
            let spec = SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            };
            let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
            let answer = reviews.create(&PostParams::default(), &review).await.map_err(Refusal::from)?;
            let allowed = answer.status.is_some_and(|status| status.allowed);
            Ok::<_, Refusal>((!allowed).then_some(permission))
        }
    };
    let mut answers = futures::stream::iter(permissions.into_iter().map(ask)).buffer_unordered(AT_ONCE);
    let mut found = BTreeSet::new();
    while let Some(answer) = answers.next().await {
        found.extend(answer?);
    }
    Ok(found)
}

/// A Role that grants permissions, ready to be applied.
pub fn role(name: &str, namespace: &str, permissions: &BTreeSet<Permission>) -> String {
    let mut rules: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for permission in permissions {
        rules.entry((&permission.group, &permission.resource)).or_default().push(&permission.verb);
    }
    let rule = |((group, resource), verbs): (&(&str, &str), &Vec<&str>)| {
        format!("- apiGroups: [\"{group}\"]\n  resources: [{resource}]\n  verbs: [{}]\n", verbs.join(", "))
    };
    let rules: Vec<String> = rules.iter().map(rule).collect();
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: {name}\n  namespace: {namespace}\nrules:\n{}",
        rules.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlanFile;
    use std::path::Path;

    #[test]
    fn a_role_grants_what_a_plan_needs() {
        let text = "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {name: shop, namespace: shop}\njobs:\n\
            - {id: m, phase: pre, pod: {template: {spec: {}}}}\n\
            - {id: g, phase: pre, growVolume: {claim: data, to: 1Gi, detach: {kind: StatefulSet, name: db}}}\n";
        let plan = PlanFile::parse(Path::new("p"), text).unwrap().plan;
        let role = role("jobwright-shop", "shop", &permissions(&plan));
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
}
