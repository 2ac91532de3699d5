//! What a cluster has built in: one row a kind. The names come from the published types.

use super::rules::{self, Rules};
use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, authentication::v1 as authentication,
    authorization::v1 as authorization, autoscaling::v1 as autoscaling_v1, autoscaling::v2 as autoscaling_v2,
    batch::v1 as batch, certificates::v1 as certificates, coordination::v1 as coordination, core::v1 as core,
    discovery::v1 as discovery, events::v1 as events, flowcontrol::v1 as flowcontrol, networking::v1 as networking,
    node::v1 as node, policy::v1 as policy, rbac::v1 as rbac, resource::v1 as resource, scheduling::v1 as scheduling,
    storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;
use k8s_openapi::schemars::{JsonSchema, SchemaGenerator};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, Resource, SubResourceScope};

/// A built-in kind.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) short_names: &'static [&'static str],
    pub(crate) categories: &'static [&'static str],
    pub(crate) verbs: Verbs,
    /// `/status` and the like; see [`super::SUBRESOURCES`] for what each of them takes and gives.
    pub(crate) subresources: &'static [&'static str],
    /// The row whose objects these are, in another version's or group's words.
    pub(crate) stored_as: Option<(&'static str, &'static str)>,
    pub(crate) rules: &'static Rules,
    /// The name of the OpenAPI definition.
    pub(crate) definition: fn() -> String,
    pub(crate) register: fn(&mut SchemaGenerator),
}

/// What can be done with a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbs {
    /// Everything.
    All,
    /// Everything but deleting a whole collection.
    NoCollectionDelete,
    /// A question that is answered and not stored.
    CreateOnly,
    /// Only looked at.
    ReadOnly,
}

trait Scope {
    const NAMESPACED: bool;
}
impl Scope for ClusterResourceScope {
    const NAMESPACED: bool = false;
}
impl Scope for NamespaceResourceScope {
    const NAMESPACED: bool = true;
}
impl Scope for SubResourceScope {
    const NAMESPACED: bool = true;
}

fn definition<T: JsonSchema>() -> String {
    T::schema_name().into_owned()
}

fn register<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

const fn row<T>() -> Row
where
    T: Resource + JsonSchema,
    T::Scope: Scope,
{
    Row {
        group: T::GROUP,
        version: T::VERSION,
        kind: T::KIND,
        plural: T::URL_PATH_SEGMENT,
        namespaced: <T::Scope as Scope>::NAMESPACED,
        short_names: &[],
        categories: &[],
        verbs: Verbs::All,
        subresources: &[],
        stored_as: None,
        rules: &rules::PLAIN,
        definition: definition::<T>,
        register: register::<T>,
    }
}

impl Row {
    const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short_names = names;
        self
    }
    /// A member of what `kubectl get all` shows.
    const fn in_all(mut self) -> Self {
        self.categories = &["all"];
        self
    }
    const fn extends_the_api(mut self) -> Self {
        self.categories = &["api-extensions"];
        self
    }
    const fn with(mut self, subresources: &'static [&'static str]) -> Self {
        self.subresources = subresources;
        self
    }
    const fn verbs(mut self, verbs: Verbs) -> Self {
        self.verbs = verbs;
        self
    }
    const fn rules(mut self, rules: &'static Rules) -> Self {
        self.rules = rules;
        self
    }
    const fn stored_as(mut self, group: &'static str, version: &'static str) -> Self {
        self.stored_as = Some((group, version));
        self
    }
    const fn question(self) -> Self {
        self.verbs(Verbs::CreateOnly)
    }
    const fn with_status(self) -> Self {
        self.with(&["status"])
    }
}

/// Every built-in kind, in the order of discovery.
pub(crate) static ROWS: &[Row] = &[
    row::<core::Binding>().question(),
    row::<core::ComponentStatus>().short(&["cs"]).verbs(Verbs::ReadOnly),
    row::<core::ConfigMap>().short(&["cm"]).rules(&rules::CONFIG_MAP),
    row::<core::Endpoints>().short(&["ep"]).rules(&rules::ENDPOINTS),
    row::<core::Event>().short(&["ev"]).rules(&rules::EVENT),
    row::<core::LimitRange>().short(&["limits"]).rules(&rules::LIMIT_RANGE),
    row::<core::Namespace>()
        .short(&["ns"])
        .with(&["finalize", "status"])
        .verbs(Verbs::NoCollectionDelete)
        .rules(&rules::NAMESPACE),
    row::<core::Node>().short(&["no"]).with_status().rules(&rules::NODE),
    row::<core::PersistentVolumeClaim>().short(&["pvc"]).with_status().rules(&rules::CLAIM),
    row::<core::PersistentVolume>().short(&["pv"]).with_status().rules(&rules::VOLUME),
    row::<core::Pod>()
        .short(&["po"])
        .in_all()
        .with(&["binding", "ephemeralcontainers", "eviction", "log", "resize", "status"])
        .rules(&rules::POD),
    row::<core::PodTemplate>().rules(&rules::POD_TEMPLATE),
    row::<core::ReplicationController>()
        .short(&["rc"])
        .in_all()
        .with(&["scale", "status"])
        .rules(&rules::REPLICATION_CONTROLLER),
    row::<core::ResourceQuota>().short(&["quota"]).with_status().rules(&rules::RESOURCE_QUOTA),
    row::<core::Secret>().rules(&rules::SECRET),
    row::<core::ServiceAccount>().short(&["sa"]).with(&["token"]).rules(&rules::SERVICE_ACCOUNT),
    row::<core::Service>().short(&["svc"]).in_all().with_status().rules(&rules::SERVICE),
    row::<admission::MutatingWebhookConfiguration>().extends_the_api().rules(&rules::MUTATING_WEBHOOKS),
    row::<admission::ValidatingAdmissionPolicy>().extends_the_api().with_status().rules(&rules::ADMISSION_POLICY),
    row::<admission::ValidatingAdmissionPolicyBinding>().extends_the_api().rules(&rules::POLICY_BINDING),
    row::<admission::ValidatingWebhookConfiguration>().extends_the_api().rules(&rules::VALIDATING_WEBHOOKS),
    row::<apiextensions::CustomResourceDefinition>()
        .short(&["crd", "crds"])
        .extends_the_api()
        .with_status()
        .rules(&rules::DEFINITION),
    row::<apiregistration::APIService>().extends_the_api().with_status().rules(&rules::API_SERVICE),
    row::<apps::ControllerRevision>().rules(&rules::CONTROLLER_REVISION),
    row::<apps::DaemonSet>().short(&["ds"]).in_all().with_status().rules(&rules::DAEMON_SET),
    row::<apps::Deployment>().short(&["deploy"]).in_all().with(&["scale", "status"]).rules(&rules::DEPLOYMENT),
    row::<apps::ReplicaSet>().short(&["rs"]).in_all().with(&["scale", "status"]).rules(&rules::REPLICA_SET),
    row::<apps::StatefulSet>().short(&["sts"]).in_all().with(&["scale", "status"]).rules(&rules::STATEFUL_SET),
    row::<authentication::SelfSubjectReview>().question(),
    row::<authentication::TokenReview>().question(),
    row::<authorization::LocalSubjectAccessReview>().question(),
    row::<authorization::SelfSubjectAccessReview>().question(),
    row::<authorization::SelfSubjectRulesReview>().question(),
    row::<authorization::SubjectAccessReview>().question(),
    row::<autoscaling_v2::HorizontalPodAutoscaler>().short(&["hpa"]).in_all().with_status().rules(&rules::AUTOSCALER),
    row::<autoscaling_v1::HorizontalPodAutoscaler>()
        .short(&["hpa"])
        .in_all()
        .with_status()
        .stored_as("autoscaling", "v2")
        .rules(&rules::AUTOSCALER_V1),
    row::<batch::CronJob>().short(&["cj"]).in_all().with_status().rules(&rules::CRON_JOB),
    row::<batch::Job>().in_all().with_status().rules(&rules::JOB),
    row::<certificates::CertificateSigningRequest>()
        .short(&["csr"])
        .with(&["approval", "status"])
        .rules(&rules::CERTIFICATE_REQUEST),
    row::<coordination::Lease>().rules(&rules::LEASE),
    row::<discovery::EndpointSlice>().rules(&rules::ENDPOINT_SLICE),
    row::<events::Event>().short(&["ev"]).stored_as("", "v1").rules(&rules::NEW_EVENT),
    row::<flowcontrol::FlowSchema>().with_status(),
    row::<flowcontrol::PriorityLevelConfiguration>().with_status(),
    row::<networking::IngressClass>().rules(&rules::INGRESS_CLASS),
    row::<networking::Ingress>().short(&["ing"]).with_status().rules(&rules::INGRESS),
    row::<networking::IPAddress>().short(&["ip"]).rules(&rules::ADDRESS),
    row::<networking::NetworkPolicy>().short(&["netpol"]).rules(&rules::NETWORK_POLICY),
    row::<networking::ServiceCIDR>().with_status().rules(&rules::SERVICE_CIDR),
    row::<node::RuntimeClass>().rules(&rules::RUNTIME_CLASS),
    row::<policy::PodDisruptionBudget>().short(&["pdb"]).with_status().rules(&rules::DISRUPTION_BUDGET),
    row::<rbac::ClusterRoleBinding>().rules(&rules::CLUSTER_ROLE_BINDING),
    row::<rbac::ClusterRole>().rules(&rules::CLUSTER_ROLE),
    row::<rbac::RoleBinding>().rules(&rules::ROLE_BINDING),
    row::<rbac::Role>().rules(&rules::ROLE),
    row::<resource::DeviceClass>(),
    row::<resource::ResourceClaim>().with_status(),
    row::<resource::ResourceClaimTemplate>(),
    row::<resource::ResourceSlice>(),
    row::<scheduling::PriorityClass>().short(&["pc"]).rules(&rules::PRIORITY_CLASS),
    row::<storage::CSIDriver>().rules(&rules::DRIVER),
    row::<storage::CSINode>().rules(&rules::DRIVER_NODE),
    row::<storage::CSIStorageCapacity>().rules(&rules::CAPACITY),
    row::<storage::StorageClass>().short(&["sc"]).rules(&rules::STORAGE_CLASS),
    row::<storage::VolumeAttachment>().with_status().rules(&rules::ATTACHMENT),
    row::<storage::VolumeAttributesClass>().short(&["vac"]).rules(&rules::ATTRIBUTES_CLASS),
];
