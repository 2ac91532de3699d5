//! How controllers act: as clients of the API, each under its own name.

use crate::cluster::Cluster;
use crate::kinds::{Kind, Storage};
use crate::object::Object;
use crate::status::Status;
use crate::store::Key;
use crate::verbs::delete::{DeleteOptions, Deletion, Propagation};
use crate::verbs::write::{Source, Write};
use jiff::Timestamp;
use std::sync::Arc;

/// A controller's client.
pub(crate) struct Client<'a> {
    pub(crate) cluster: &'a mut Cluster,
    /// The manager of what it writes: `kube-controller-manager`.
    manager: &'static str,
    /// The component that its events name: `job-controller`.
    pub(super) component: &'static str,
}

/// Whether an event is about something that went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Normal,
    Warning,
}

impl Tone {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl<'a> Client<'a> {
    /// The client of a controller of the controller manager.
    pub(crate) fn of_controller(cluster: &'a mut Cluster, component: &'static str) -> Self {
        Self { cluster, manager: "kube-controller-manager", component }
    }

    pub(crate) fn new(cluster: &'a mut Cluster, manager: &'static str, component: &'static str) -> Self {
        Self { cluster, manager, component }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.cluster.now
    }

    fn kind(&self, storage: &Storage) -> Result<Arc<Kind>, Status> {
        self.cluster.kinds.of_storage(storage).cloned().ok_or_else(Status::unknown_resource)
    }

    pub(crate) fn get(&self, storage: &Storage, key: &Key) -> Option<Arc<Object>> {
        self.cluster.store.get(storage, key).cloned()
    }

    /// The objects of a storage that an owner controls.
    pub(crate) fn owned(&self, storage: &Storage, owner: &Object) -> Vec<Arc<Object>> {
        let places = self.cluster.store.owned_by(owner.uid());
        places.filter(|(its, _)| its == storage).filter_map(|(_, key)| self.get(storage, key)).collect()
    }

    /// Makes an object.
    pub(crate) fn create(&mut self, storage: &Storage, object: Object) -> Result<Arc<Object>, Status> {
        let kind = self.kind(storage)?;
        let namespace = object.namespace().to_owned();
        self.cluster.insert(&kind, &namespace, object, &Write::internal(self.manager))
    }

    /// Changes an object.
    pub(crate) fn change(
        &mut self,
        storage: &Storage,
        key: &Key,
        change: impl FnOnce(&mut Object),
    ) -> Result<Arc<Object>, Status> {
        self.write(storage, key, None, change)
    }

    /// Changes the status of an object.
    pub(crate) fn change_status(
        &mut self,
        storage: &Storage,
        key: &Key,
        change: impl FnOnce(&mut Object),
    ) -> Result<Arc<Object>, Status> {
        self.write(storage, key, Some("status"), change)
    }

    fn write(
        &mut self,
        storage: &Storage,
        key: &Key,
        subresource: Option<&'static str>,
        change: impl FnOnce(&mut Object),
    ) -> Result<Arc<Object>, Status> {
        let kind = self.kind(storage)?;
        let write = Write::internal(self.manager);
        let write = match subresource {
            Some(subresource) => write.through(subresource),
            None => write,
        };
        self.cluster.modify(&kind, key, &write, Source::Patch, |_, old| {
            let mut new = Object::clone(old);
            change(&mut new);
            Ok(new)
        })
    }

    /// Deletes an object, with what it owns in the background.
    pub(crate) fn delete(&mut self, storage: &Storage, key: &Key) -> Result<Deletion, Status> {
        let options = DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
        self.delete_with(storage, key, &options)
    }

    pub(crate) fn delete_with(
        &mut self,
        storage: &Storage,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Deletion, Status> {
        let kind = self.kind(storage)?;
        self.cluster.remove(&kind, key, options)
    }
}
