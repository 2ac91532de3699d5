//! The permissions that a plan needs, asked for before anything is changed.

use crate::component::{Caller, Kinds, Manifest, Resource, load};
use crate::plan::{self, Job, PlanFile, PodPolicies, Source, Work, WorkloadKind};
use jobwright_engine::{Condition, Failure, Retry};
use jobwright_jobs::access::{Permission, Permissions};
use jobwright_jobs::init_cert::{Dialling, Stage};
use kube::Client;
use kube::discovery::Discovery;
use std::collections::{BTreeMap, BTreeSet};

/// The permissions that a plan needs, by namespace; those about objects of no namespace are with the release's. Charts
/// are helm's own business. Manifests that cannot be read, and kinds that the cluster does not serve, are left to the
/// deploy, which reports them. Fails as soon as the cluster cannot be asked for its kinds.
pub async fn permissions(
    file: &PlanFile,
    client: &Client,
    retry: Retry,
    dialling: &Dialling,
) -> Result<BTreeMap<String, BTreeSet<Permission>>, Failure> {
    let mut needs =
        Needs { file, caller: Caller::new(client.clone(), retry), kinds: Kinds::default(), wanted: BTreeMap::new() };
    needs.add_engine();
    for component in &file.plan.components {
        match &component.source {
            Source::Chart { .. } => needs.here().add("", "secrets", &["list", "get", "create", "update", "delete"]),
            Source::Manifests(manifests) => needs.add_manifests(manifests).await?,
        }
    }
    for job in &file.plan.jobs {
        needs.add_job(job, dialling).await?;
    }
    Ok(needs.wanted.into_iter().map(|(namespace, wanted)| (namespace, wanted.into_set())).collect())
}

/// Permissions in the making.
struct Needs<'a> {
    file: &'a PlanFile,
    caller: Caller,
    kinds: Kinds,
    wanted: BTreeMap<String, Permissions>,
}

/// What is done to objects.
struct Verbs<'a> {
    /// To any object of the kind.
    of_kind: &'a [&'a str],
    /// To the object itself. In a namespace, these are asked for the kind, too.
    of_object: &'a [&'a str],
}

impl Needs<'_> {
    /// Those in the namespace of the release.
    fn here(&mut self) -> &mut Permissions {
        self.wanted.entry(self.file.plan.release.namespace.clone()).or_default()
    }

    fn add_engine(&mut self) {
        let is_pod = |job: &Job| matches!(job.work, Work::Pod { .. } | Work::PodFrom { .. });
        let has_pods = self.file.plan.jobs.iter().any(is_pod);
        let here = self.here();
        here.add("coordination.k8s.io", "leases", &["get", "create", "update"]);
        here.add("", "configmaps", &["get", "list", "create", "update"]);
        if has_pods {
            here.add("batch", "jobs", &["get", "list", "watch", "create", "patch", "delete"]);
            here.add("", "pods", &["list", "watch"]);
            here.add("", "pods/log", &["get"]);
            here.add("", "events", &["list"]);
        }
    }

    /// Objects are applied (get, create, patch), compared (list), waited for (watch) and pruned (delete).
    async fn add_manifests(&mut self, manifests: &plan::Manifests) -> Result<(), Failure> {
        let Ok(objects) = load(&self.file.resolve(&manifests.path)) else { return Ok(()) };
        let of_kind: &[&str] = if manifests.wait { &["create", "list", "watch"] } else { &["create", "list"] };
        let verbs = Verbs { of_kind, of_object: &["get", "patch", "delete"] };
        let defined: Vec<Resource> = objects.iter().flat_map(Manifest::defines).collect();
        for object in &objects {
            let Manifest { api_version, kind, name, namespace, .. } = object;
            let own = defined.iter().find(|one| one.api.api_version == *api_version && one.api.kind == *kind);
            let found = self.kinds.find(&self.caller, api_version, kind).await?;
            if let Some(resource) = found.as_ref().or(own) {
                self.add_object(resource, namespace.as_deref(), name, &verbs);
            }
        }
        Ok(())
    }

    fn add_object(&mut self, resource: &Resource, namespace: Option<&str>, name: &str, verbs: &Verbs<'_>) {
        let (group, plural) = (&resource.api.group, &resource.api.plural);
        if resource.is_namespaced {
            let namespace = namespace.unwrap_or(&self.file.plan.release.namespace).to_owned();
            let wanted = self.wanted.entry(namespace).or_default();
            wanted.add(group, plural, verbs.of_kind);
            wanted.add(group, plural, verbs.of_object);
        } else {
            self.here().add_cluster_wide(group, plural, verbs.of_kind, None);
            self.here().add_cluster_wide(group, plural, verbs.of_object, Some(name));
        }
    }

    async fn add_job(&mut self, job: &Job, dialling: &Dialling) -> Result<(), Failure> {
        match &job.work {
            Work::Pod { policies, .. } => self.add_conditions(policies).await?,
            Work::PodFrom { policies, .. } => {
                self.here().add("apps", "deployments", &["get"]);
                self.add_conditions(policies).await?;
            }
            // What it lists is reported when it does: kinds are known only then, and some may be skipped.
            Work::Backfill { backfill, .. } if backfill.has_secrets() => self.here().add("", "secrets", &["get"]),
            Work::Backfill { .. } | Work::Command { .. } => {}
            Work::InitCert { certificate, .. } => {
                let options = certificate.options(&self.file.plan.release.namespace, Stage::All);
                let dialling = if certificate.handshake { dialling.clone() } else { Dialling::Not(String::new()) };
                self.here().add_all(jobwright_jobs::init_cert::permissions(&options, &dialling, false));
            }
            Work::Adopt { adopt, .. } => {
                let verbs = Verbs { of_kind: &[], of_object: &["get", "patch"] };
                for object in &adopt.objects {
                    let found = self.kinds.find(&self.caller, &object.api_version, &object.kind).await?;
                    if let Some(resource) = found {
                        self.add_object(&resource, object.namespace.as_deref(), &object.name, &verbs);
                    }
                }
            }
            Work::GrowVolume { grow, .. } => {
                let here = self.here();
                here.add("", "persistentvolumeclaims", &["get", "list", "watch", "patch"]);
                here.add("", "resourcequotas", &["list"]);
                if let Some(workload) = &grow.detach {
                    let resource = match workload.kind {
                        WorkloadKind::Deployment => "deployments",
                        WorkloadKind::StatefulSet => "statefulsets",
                    };
                    here.add("apps", resource, &["get", "patch"]);
                    here.add("", "pods", &["list", "watch"]);
                }
            }
        }
        Ok(())
    }

    async fn add_conditions(&mut self, policies: &PodPolicies) -> Result<(), Failure> {
        for condition in &policies.skip_if {
            if let Some(resource) = self.kind_of(condition).await? {
                self.add_object(&resource, None, &condition.name, &Verbs { of_kind: &[], of_object: &["get"] });
            }
        }
        Ok(())
    }

    /// The kind of a condition: in the core group, or wherever the cluster has it, if its version is not given.
    async fn kind_of(&self, condition: &Condition) -> Result<Option<Resource>, Failure> {
        let api_version = condition.api_version.as_deref();
        let found = self.kinds.find(&self.caller, api_version.unwrap_or("v1"), &condition.kind).await?;
        if found.is_some() || api_version.is_some() {
            return Ok(found);
        }
        let discover = || Discovery::new(self.caller.client().clone()).run_aggregated();
        let discovery = self.caller.call("discover the kinds of the cluster", discover).await?;
        let mut all = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
        match all.find(|(resource, _)| resource.kind == condition.kind) {
            Some((api, _)) => self.kinds.find(&self.caller, &api.api_version, &condition.kind).await,
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobwright_drydock::{Drydock, Fault, Faults};
    use jobwright_engine::{Clock, Events, RETRY_LIMIT};
    use jobwright_jobs::access::roles;
    use tokio_util::sync::CancellationToken;

    /// The roles that a plan needs, in a directory with these files.
    async fn roles_for(rest: &str, files: &[(&str, &str)]) -> BTreeMap<String, String> {
        let permissions = permissions_for(rest, files, &Faults::new(0)).await.unwrap();
        let role = |(namespace, wanted): (&String, &BTreeSet<Permission>)| {
            (namespace.clone(), roles("jobwright-shop", namespace, wanted))
        };
        permissions.iter().map(role).collect()
    }

    async fn permissions_for(
        rest: &str,
        files: &[(&str, &str)],
        faults: &Faults,
    ) -> Result<BTreeMap<String, BTreeSet<Permission>>, Failure> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        let head = "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {name: shop, namespace: shop}\n";
        let file = PlanFile::parse(&directory.path().join("p"), &format!("{head}{rest}")).unwrap();
        let drydock = Drydock::new();
        let client = Client::new(faults.around(drydock.clone()), "shop");
        let retry = Retry::new(Clock::new(move || drydock.now()), CancellationToken::new(), Events::nowhere());
        permissions(&file, &client, retry, &Dialling::Not(String::new())).await
    }

    /// The verbs of a resource in a role.
    fn verbs(role: &str, resource: &str) -> String {
        let start = role.find(&format!("resources: [{resource}]")).unwrap_or_else(|| panic!("{resource} in {role}"));
        let rule = role[start..].split("- apiGroups").next().unwrap();
        rule.split("verbs: [").nth(1).unwrap().split(']').next().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_role_grants_what_a_plan_needs() {
        let roles = roles_for(
            "jobs:\n- {id: m, phase: pre, pod: {template: {spec: {}}}}\n\
             - {id: g, phase: pre, growVolume: {claim: data, to: 1Gi, detach: {kind: StatefulSet, name: db}}}\n",
            &[],
        )
        .await;
        let role = &roles["shop"];
        assert_eq!(verbs(role, "jobs"), "create, delete, get, list, patch, watch");
        assert_eq!(verbs(role, "statefulsets"), "get, patch");
        assert_eq!(verbs(role, "pods/log"), "get");
        assert!(!role.contains("secrets"), "{role}");
    }

    #[tokio::test]
    async fn a_certificate_needs_its_own_secrets_and_no_others() {
        let roles =
            roles_for("jobs:\n- {id: c, initCert: {service: hook, secret: tls, validatingWebhooks: [shop]}}\n", &[])
                .await;
        let role = &roles["shop"];
        let expected = "resources: [secrets]\n  resourceNames: [tls, tls-ca]\n  verbs: [get, update]\n";
        assert!(role.contains(expected), "{role}");
        assert!(role.contains("kind: ClusterRole\n"), "{role}");
    }

    #[tokio::test]
    async fn manifests_need_their_own_kinds_where_they_go() {
        let objects = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: api}}\n---\n\
            {apiVersion: v1, kind: Service, metadata: {name: api, namespace: other}}\n---\n\
            {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}}\n---\n\
            {apiVersion: shop.example/v1, kind: Widget, metadata: {name: w}}\n---\n\
            {apiVersion: nowhere.example/v1, kind: Unknown, metadata: {name: u}}\n---\n\
            {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.shop.example},\
             spec: {group: shop.example, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1}]}}\n";
        let roles = roles_for("components:\n- {name: api, manifests: {path: a.yaml}}\n", &[("a.yaml", objects)]).await;
        let all = "create, delete, get, list, patch, watch";
        assert_eq!(verbs(&roles["shop"], "deployments"), all);
        assert_eq!(verbs(&roles["shop"], "widgets"), all);
        assert_eq!(verbs(&roles["other"], "services"), all);
        assert!(!roles["shop"].contains("services"), "{roles:?}");
        let wide = roles["shop"].split("---").nth(1).unwrap();
        assert_eq!(verbs(wide, "clusterroles"), "create, list, watch");
        assert!(wide.contains("resourceNames: [reader]\n  verbs: [delete, get, patch]"), "{wide}");
        let quiet = "components:\n- {name: api, manifests: {path: a.yaml, wait: false}}\n";
        assert_eq!(
            verbs(&roles_for(quiet, &[("a.yaml", objects)]).await["shop"], "deployments"),
            "create, delete, get, list, patch"
        );
    }

    #[tokio::test]
    async fn adopted_objects_and_conditions_are_asked_for() {
        let roles = roles_for(
            "jobs:\n- id: a\n  phase: pre\n  adopt: {release: shop, objects: [{apiVersion: v1, kind: Service, name: s, namespace: other},\
             {apiVersion: apps/v1, kind: StatefulSet, name: s}]}\n\
             - id: m\n  phase: pre\n  pod: {template: {spec: {}}}\n  skipIf: [{kind: Secret, name: s, jsonPath: '{.a}', equals: 1},\
             {kind: Ingress, name: i, jsonPath: '{.a}', equals: 1}, {apiVersion: v1, kind: Node, name: first, jsonPath: '{.a}', equals: 1}]\n",
            &[],
        )
        .await;
        assert_eq!(verbs(&roles["other"], "services"), "get, patch");
        assert_eq!(verbs(&roles["shop"], "statefulsets"), "get, patch");
        assert_eq!(verbs(&roles["shop"], "secrets"), "get");
        assert_eq!(verbs(&roles["shop"], "ingresses"), "get");
        assert_eq!(verbs(&roles["shop"], "nodes"), "get");
    }

    #[tokio::test(start_paused = true)]
    async fn kinds_that_cannot_be_discovered_are_an_error_after_the_first_outage() {
        let objects = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: api}}\n---\n\
            {apiVersion: v1, kind: Service, metadata: {name: api}}\n---\n\
            {apiVersion: batch/v1, kind: Job, metadata: {name: api}}\n";
        let condition = "jobs:\n- {id: m, phase: pre, pod: {template: {spec: {}}}, \
            skipIf: [{kind: Ingress, name: i, jsonPath: '{.a}', equals: 1}]}\n";
        for (plan, path, expected) in [
            ("components:\n- {name: api, manifests: {path: a.yaml}}\n", "/api", "discover the kinds of `apps/v1`"),
            (condition, "/apis", "discover the kinds of the cluster"),
        ] {
            let faults = Faults::new(0);
            faults.on(move |call| call.resource.starts_with(path)).fail(Fault::Unavailable);
            let begun = tokio::time::Instant::now();
            let failed = permissions_for(plan, &[("a.yaml", objects)], &faults).await.unwrap_err();
            assert_eq!(failed.to_string(), format!("cannot {expected}, retried for 5m"));
            assert_eq!(begun.elapsed().as_secs(), RETRY_LIMIT.as_secs(), "once, not for each API version");
        }
    }

    #[tokio::test]
    async fn manifests_that_cannot_be_read_are_left_to_the_deploy() {
        let roles = roles_for("components:\n- {name: api, manifests: {path: missing.yaml}}\n", &[]).await;
        assert!(roles["shop"].contains("leases"), "{roles:?}");
    }
}
