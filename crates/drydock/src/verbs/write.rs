//! What all writes share: how a new object is taken in, and how a changed one replaces the old.

use crate::cluster::Cluster;
use crate::kinds::rules::zeros;
use crate::kinds::{Kind, Kinds};
use crate::object::Object;
use crate::options::WriteOptions;
use crate::patch::fields::{FieldSet, Tracked};
use crate::patch::managers::{self, Manager, Versions};
use crate::request::Request;
use crate::schema::View;
use crate::status::Status;
use crate::store::Key;
use crate::validate;
use serde_json::Value;
use std::sync::Arc;

/// How a write is meant.
#[derive(Clone, Debug)]
pub(crate) struct Write<'a> {
    pub(crate) manager: String,
    pub(crate) subresource: Option<&'a str>,
    pub(crate) dry_run: bool,
    /// Server-side apply keeps the records of who manages what itself.
    pub(crate) tracked: bool,
}

/// Where an update came from, which decides how a version that does not fit is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Update,
    Patch,
}

impl<'a> Write<'a> {
    pub(crate) fn new(request: &'a Request, options: &WriteOptions) -> Self {
        let manager = match options.field_manager.as_str() {
            "" => managers::name_from_user_agent(&request.user_agent),
            manager => manager.to_owned(),
        };
        Self { manager, subresource: request.target.subresource.as_deref(), dry_run: options.dry_run, tracked: true }
    }

    /// A write of the cluster's own.
    pub(crate) fn internal(manager: &str) -> Self {
        Self { manager: manager.to_owned(), subresource: None, dry_run: false, tracked: true }
    }

    /// The same write through a subresource.
    pub(crate) fn through(mut self, subresource: &'a str) -> Self {
        self.subresource = Some(subresource);
        self
    }
}

impl Cluster {
    /// Takes a new object in.
    pub(crate) fn insert(
        &mut self,
        kind: &Arc<Kind>,
        namespace: &str,
        object: Object,
        write: &Write<'_>,
    ) -> Result<Arc<Object>, Status> {
        let mut object = object;
        place(&mut object, kind, namespace)?;
        if !matches!(object.resource_version(), "" | "0") {
            return Err(Status::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        kind.default(&mut object);
        if write.tracked {
            self.track(kind, None, &mut object, write);
        }
        self.fill_metadata(&mut object);
        self.admit(kind, &mut object, None)?;
        self.complete_name(&mut object);
        let rules = kind.rules();
        (rules.prepare_create)(&mut object);
        if kind.custom().is_some() && kind.has("status") {
            object.remove(&["status"]);
        }
        if let Some(first) = rules.generation.first() {
            object.set(&["metadata", "generation"], first);
        }
        zeros::write_zeros(kind.schema(), &mut object);
        let mut errors = rules.refuse_create(&object, kind.namespaced);
        errors.extend(kind.check_custom(&object, None));
        if !errors.is_empty() {
            return Err(Status::invalid(kind, object.name(), &errors));
        }
        self.warnings.extend((rules.warnings)(&object, None));
        zeros::forget_empty(kind.schema(), &mut object);
        let stored = kind.stored(object);
        if let Some(known) = self.store.get(&kind.storage, &Key::of(&stored)) {
            return Err(Status::already_exists(kind, known));
        }
        if write.dry_run {
            return Ok(kind.served(&Arc::new(stored)));
        }
        Ok(kind.served(&self.store.put(&kind.storage, stored)))
    }

    /// Replaces an object by what `change` makes of it. A change that changes nothing writes nothing.
    pub(crate) fn modify(
        &mut self,
        kind: &Arc<Kind>,
        key: &Key,
        write: &Write<'_>,
        source: Source,
        change: impl FnOnce(&Self, &Arc<Object>) -> Result<Object, Status>,
    ) -> Result<Arc<Object>, Status> {
        let old = self.fetch(kind, key).ok_or_else(|| Status::not_found(kind, &key.name))?;
        let mut new = change(self, &old)?;
        place(&mut new, kind, &key.namespace)?;
        check_preconditions(kind, &new, &old, source)?;
        kind.default(&mut new);
        if write.tracked {
            self.track(kind, Some(&old), &mut new, write);
        }
        carry_over(&mut new, &old);
        self.admit(kind, &mut new, Some(&old))?;
        let rules = kind.rules();
        match write.subresource {
            None => (rules.prepare_update)(&mut new, &old),
            Some("status") => (rules.prepare_status)(&mut new, &old),
            Some(_) => {}
        }
        if write.subresource != Some("status") && kind.custom().is_some() && kind.has("status") {
            keep_status(&mut new, &old);
        }
        zeros::write_zeros(kind.schema(), &mut new);
        if !matches!(write.subresource, Some("binding" | "status"))
            && rules.generation.rises(&new, &old, kind.has("status"))
        {
            new.set(&["metadata", "generation"], old.generation() + 1);
        }
        if matches!(new.resource_version(), "" | "0") {
            new.set(&["metadata", "resourceVersion"], old.resource_version());
        }
        let mut errors = match write.subresource {
            None => rules.refuse_update(&new, &old, kind.namespaced),
            Some("status") => rules.refuse_status(&new, &old, kind.namespaced),
            Some(_) => validate::metadata_update(&new, &old),
        };
        errors.extend(kind.check_custom(&new, Some(&old)));
        if !errors.is_empty() {
            return Err(Status::invalid(kind, new.name(), &errors));
        }
        if write.subresource.is_none() {
            self.warnings.extend((rules.warnings)(&new, Some(&old)));
        }
        zeros::forget_empty(kind.schema(), &mut new);
        new.set(&["metadata", "resourceVersion"], old.resource_version());
        managers::keep_times(&old, &mut new);
        let goes = is_ready_to_go(kind, &new);
        if new == *old && !goes {
            return Ok(old);
        }
        if write.dry_run {
            return Ok(Arc::new(new));
        }
        let stored = self.store.put(&kind.storage, kind.stored(new));
        if goes {
            let key = Key::of(&stored);
            return Ok(self
                .store
                .delete(&kind.storage, &key)
                .map_or_else(|| kind.served(&stored), |last| kind.served(&last)));
        }
        Ok(kind.served(&stored))
    }

    /// Gives an object a name that only has the beginning of one. Admission still sees the beginning.
    fn complete_name(&mut self, object: &mut Object) {
        let generated = object.text(&["metadata", "generateName"]).to_owned();
        if object.name().is_empty() && !generated.is_empty() {
            let base: String = generated.chars().take(58).collect();
            let name = format!("{base}{}", self.new_suffix());
            object.set(&["metadata", "name"], name);
        }
    }

    fn fill_metadata(&mut self, object: &mut Object) {
        let uid = self.new_uid();
        let metadata = object.metadata_mut();
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
            metadata.remove(field);
        }
        metadata.insert("uid".to_owned(), uid.into());
        metadata.insert("creationTimestamp".to_owned(), crate::clock::time(self.now).into());
    }

    /// Notes who manages which fields after a write.
    fn track(&self, kind: &Kind, old: Option<&Object>, new: &mut Object, write: &Write<'_>) {
        self.with_books(kind, write, |books| managers::track_update(books, old, new));
    }

    /// What the books on managed fields need to know of a write.
    pub(super) fn with_books<T>(
        &self,
        kind: &Kind,
        write: &Write<'_>,
        keep: impl FnOnce(&managers::Write<'_>) -> T,
    ) -> T {
        let manager = Manager {
            name: write.manager.clone(),
            api_version: kind.api_version(),
            subresource: write.subresource.unwrap_or_default().to_owned(),
        };
        let tracked = tracked(kind, write.subresource);
        let versions = ServedVersions { kinds: &self.kinds, kind };
        keep(&managers::Write {
            schema: kind.schema().root(),
            manager: &manager,
            now: self.now,
            tracked: &tracked,
            versions: Some(&versions),
        })
    }
}

/// Which fields a write can be the manager of.
fn tracked(kind: &Kind, subresource: Option<&str>) -> Tracked {
    match subresource {
        None if kind.has("status") => Tracked::Except(FieldSet::of(&[&["status"]])),
        Some("status") if kind.is_pod() => Tracked::Except(FieldSet::of(&[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ])),
        Some("status") => Tracked::Except(FieldSet::of(&[&["spec"]])),
        Some("ephemeralcontainers") => Tracked::Only(&[&["spec", "ephemeralContainers"]]),
        Some("resize") => {
            Tracked::Only(&[&["spec", "containers", "*", "resources"], &["spec", "containers", "*", "resizePolicy"]])
        }
        _ => Tracked::All,
    }
}

/// The versions in which a kind is served.
struct ServedVersions<'a> {
    kinds: &'a Kinds,
    kind: &'a Kind,
}

impl Versions for ServedVersions<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Option<(View<'_>, Value)> {
        let other =
            self.kinds.by_kind(api_version, &self.kind.kind).filter(|other| other.storage == self.kind.storage)?;
        let object = Object::from_value(object.clone()).ok()?;
        // It is in the words of the version that it names, which need not be that of the request.
        let own = self.kinds.by_kind(object.api_version(), &self.kind.kind).map_or(self.kind, AsRef::as_ref);
        let stored = Arc::new(own.stored(object));
        Some((other.schema().root(), Object::clone(&other.served(&stored)).into_value()))
    }
}

/// Whether an update is about the object that is stored.
fn check_preconditions(kind: &Kind, new: &Object, old: &Object, source: Source) -> Result<(), Status> {
    let version = new.resource_version();
    if matches!(version, "" | "0") {
        if source == Source::Update && !kind.rules().unconditional_update {
            let error = validate::metadata::version_is_required();
            return Err(Status::invalid_resource(kind, new.name(), &[error]));
        }
    } else if version != old.resource_version() {
        return Err(Status::modified(kind, old.name()));
    }
    let uid = new.uid();
    if source == Source::Update && !uid.is_empty() && uid != old.uid() {
        let place = if kind.namespaced { format!("{}/{}", old.namespace(), old.name()) } else { old.name().to_owned() };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}/{place}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            kind.storage.plural,
            old.uid()
        );
        return Err(Status::conflict(kind, old.name(), &why));
    }
    Ok(())
}

/// Says where the object belongs, or that it says otherwise itself.
fn place(object: &mut Object, kind: &Kind, namespace: &str) -> Result<(), Status> {
    if !kind.namespaced {
        if !object.namespace().is_empty() {
            object.metadata_mut().remove("namespace");
        }
        return Ok(());
    }
    match object.namespace() {
        "" => object.set(&["metadata", "namespace"], namespace),
        other if other != namespace => {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(why));
        }
        _ => {}
    }
    Ok(())
}

/// What no update changes.
fn carry_over(new: &mut Object, old: &Object) {
    if new.uid().is_empty() {
        new.set(&["metadata", "uid"], old.uid());
    }
    for field in ["creationTimestamp", "deletionTimestamp", "generation", "deletionGracePeriodSeconds", "selfLink"] {
        match old.at(&["metadata", field]) {
            Some(value) => new.metadata_mut().insert(field.to_owned(), value.clone()),
            None => new.metadata_mut().remove(field),
        };
    }
}

/// Keeps the status of a custom resource, which only `/status` changes.
fn keep_status(new: &mut Object, old: &Object) {
    match old.get("status") {
        Some(status) => new.set(&["status"], status.clone()),
        None => {
            new.remove(&["status"]);
        }
    }
}

/// Whether an object that is being deleted has nothing left to wait for.
fn is_ready_to_go(kind: &Kind, object: &Object) -> bool {
    object.is_being_deleted()
        && object.finalizers().next().is_none()
        && object.integer(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or_default() == 0
        && (!kind.is_namespace() || object.list(&["spec", "finalizers"]).is_empty())
}
