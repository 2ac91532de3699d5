//! `adopt`: gives existing objects to a Helm release, so that a chart can take over what was there before it.
//!
//! Helm refuses to touch what it does not own. Ownership is a label and two annotations; they are put on by server-side
//! apply with the object's uid, so that an object that is not there is not made, and whoever else owns them is heard.

use crate::answer::is_field_conflict;
use crate::place::{Place, placed};
use crate::waiting::unless_cancelled;
use jobwright_engine::{Answer, Context, Failure, Job, Needed, Refusal, async_trait, classify};
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::core::discovery::{ApiResource, Scope};
use kube::discovery::pinned_kind;
use serde_json::{Value, json};
use std::fmt;

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const RELEASE_NAME: &str = "meta.helm.sh/release-name";
const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// Gives existing objects to a Helm release. There is nothing to do on a cluster that has none of them.
#[derive(Clone, Debug)]
pub struct Adopt {
    /// What every job has.
    pub place: Place,
    /// What is adopted.
    pub objects: Vec<ObjectReference>,
    /// The Helm release that adopts them.
    pub release: String,
    /// Its namespace; that of the deploy if none.
    pub namespace: Option<String>,
    /// Takes objects away from another release, and fields from another manager.
    pub force: bool,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectReference {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace; that of the deploy if none, and none if its kind has none.
    pub namespace: Option<String>,
}

impl fmt::Display for ObjectReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} `{}`", self.kind, self.name)
    }
}

/// How an object stands to the release.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    Missing,
    Ours,
    Free { uid: String },
    Theirs { release: String, uid: String },
}

/// What became of an object.
enum Adoption {
    /// There was nothing to do.
    Unneeded,
    Done,
    /// It belongs to this release.
    Refused {
        release: String,
    },
    /// Another manager owns what marks its release.
    Contested(kube::Error),
}

impl Adopt {
    /// The API of an object's kind; none for kinds that the cluster does not know.
    async fn find(&self, context: &Context, object: &ObjectReference) -> kube::Result<Option<Api<DynamicObject>>> {
        let (group, version) = object.api_version.split_once('/').unwrap_or(("", &object.api_version));
        let kind = GroupVersionKind::gvk(group, version, &object.kind);
        let (resource, capabilities): (ApiResource, _) = match pinned_kind(context.client(), &kind).await {
            Ok(found) => found,
            Err(kube::Error::Discovery(_)) => return Ok(None),
            Err(error) if classify(&error) == Answer::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let client = context.client().clone();
        let namespace = object.namespace.as_deref().unwrap_or(context.namespace());
        Ok(Some(match capabilities.scope {
            Scope::Namespaced => Api::namespaced_with(client, namespace, &resource),
            Scope::Cluster => Api::all_with(client, &resource),
        }))
    }

    async fn standing(&self, context: &Context, object: &ObjectReference) -> kube::Result<Standing> {
        let Some(api) = self.find(context, object).await? else { return Ok(Standing::Missing) };
        let found = api.get_opt(&object.name).await?;
        Ok(found.map_or(Standing::Missing, |found| self.judge(&found, context.namespace())))
    }

    fn judge(&self, found: &DynamicObject, namespace: &str) -> Standing {
        let uid = found.uid().unwrap_or_default();
        let annotation = |key: &str| found.annotations().get(key).cloned();
        let owner = annotation(RELEASE_NAME).map(|name| (annotation(RELEASE_NAMESPACE).unwrap_or_default(), name));
        let is_managed = found.labels().get(MANAGED_BY).is_some_and(|manager| manager == "Helm");
        let ours = (self.namespace.as_deref().unwrap_or(namespace).to_owned(), self.release.clone());
        match owner {
            Some(owner) if owner == ours && is_managed => Standing::Ours,
            Some(owner) if owner != ours => Standing::Theirs { release: format!("{}/{}", owner.0, owner.1), uid },
            _ => Standing::Free { uid },
        }
    }

    /// Reads an object and adopts it. May be repeated: an object that changes in between is read again.
    async fn adopt_one(&self, context: &Context, object: &ObjectReference) -> kube::Result<Adoption> {
        match self.standing(context, object).await? {
            Standing::Missing | Standing::Ours => Ok(Adoption::Unneeded),
            Standing::Theirs { release, .. } if !self.force => Ok(Adoption::Refused { release }),
            Standing::Free { uid } | Standing::Theirs { uid, .. } => self.take(context, object, &uid).await,
        }
    }

    async fn take(&self, context: &Context, object: &ObjectReference, uid: &str) -> kube::Result<Adoption> {
        let Some(api) = self.find(context, object).await? else { return Ok(Adoption::Unneeded) };
        let namespace = self.namespace.as_deref().unwrap_or(context.namespace());
        let patch = json!({
            "apiVersion": object.api_version,
            "kind": object.kind,
            "metadata": {
                "name": object.name,
                "uid": uid,
                "labels": {MANAGED_BY: "Helm"},
                "annotations": {RELEASE_NAME: self.release, RELEASE_NAMESPACE: namespace},
            },
        });
        let parameters = PatchParams { force: self.force, ..PatchParams::apply("jobwright") };
        match api.patch(&object.name, &parameters, &Patch::Apply(&patch)).await {
            Ok(_) => Ok(Adoption::Done),
            Err(error) if is_field_conflict(&error) => Ok(Adoption::Contested(error)),
            // It was deleted since it was read.
            Err(error) if classify(&error) == Answer::NotFound => Ok(Adoption::Unneeded),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl Job for Adopt {
    placed!();

    fn inputs(&self) -> Value {
        let objects = self.objects.iter().map(|object| format!("{object:?}")).collect::<Vec<_>>();
        json!({"adopt": objects, "release": self.release, "namespace": self.namespace})
    }

    async fn needed(&self, context: &Context) -> Result<Needed, Failure> {
        let mut missing = 0;
        for object in &self.objects {
            let doing = format!("read {object}");
            match context.retry().call(&doing, || self.standing(context, object)).await? {
                Standing::Missing => missing += 1,
                Standing::Ours => {}
                Standing::Free { .. } | Standing::Theirs { .. } => return Ok(Needed::Yes),
            }
        }
        Ok(Needed::No(if missing == self.objects.len() {
            "there is nothing to adopt".to_owned()
        } else {
            format!("all of it belongs to release {}", self.release)
        }))
    }

    async fn foresee(&self, context: &Context) -> Result<(), Failure> {
        for object in self.objects.iter().filter(|_| !self.force) {
            let doing = format!("read {object}");
            if let Standing::Theirs { release, .. } =
                context.retry().call(&doing, || self.standing(context, object)).await?
            {
                return Err(belongs_to(object, &release));
            }
        }
        Ok(())
    }

    async fn run(&self, context: &Context) -> Result<(), Failure> {
        unless_cancelled(context, self.adopt(context)).await
    }
}

fn belongs_to(object: &ObjectReference, release: &str) -> Failure {
    Failure::new(format!("{object} belongs to release {release}; `force: true` takes it away")).for_good()
}

impl Adopt {
    async fn adopt(&self, context: &Context) -> Result<(), Failure> {
        for object in &self.objects {
            let doing = format!("adopt {object}");
            match context.retry().call(&doing, || self.adopt_one(context, object)).await? {
                Adoption::Unneeded => {}
                Adoption::Done => context.log(format!("{object} belongs to release {} now", self.release)),
                Adoption::Refused { release } => return Err(belongs_to(object, &release)),
                Adoption::Contested(error) => {
                    let conflict = Refusal::from(error);
                    let message = format!("{object} has another manager for what marks its release: {conflict}");
                    return Err(Failure::new(format!("{message}; `force: true` takes it away")).for_good());
                }
            }
        }
        Ok(())
    }
}
