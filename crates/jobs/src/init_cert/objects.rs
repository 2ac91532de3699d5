//! The objects that have to trust the certificate, each read once and kept until it is changed or waited for.

use super::error::Error;
use super::observe::Mishap;
use super::options::{Options, Stage};
use super::target::{Kind, Missing, Target};
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long what was read is believed. What is written is tested against it, so that this matters only to what is not
/// written.
const BELIEVED: Duration = Duration::from_mins(1);

/// Objects as they were last read or written.
#[derive(Debug, Default)]
pub(super) struct Objects {
    named: BTreeMap<(Kind, String), Value>,
    /// Those that the selector has found.
    selected: Option<Vec<(Kind, String)>>,
    read_at: Option<Instant>,
}

/// Targets, by how they stand to the Services.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) ready: Vec<Target>,
    /// Those that only the release makes ready.
    pub(super) unready: Vec<Target>,
    pub(super) missing: Vec<Missing>,
}

/// Where the objects of a kind are.
pub(super) fn targets_of(client: &Client, kind: Kind) -> Api<DynamicObject> {
    let (group, version, name, plural) = kind.names();
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, name), plural);
    Api::all_with(client.clone(), &resource)
}

impl Objects {
    /// Reads what is not known: everything at first, then what was not there or was forgotten.
    pub(super) async fn read(&mut self, client: &Client, options: &Options) -> Result<(), Mishap> {
        for (kind, name) in options.targets.names() {
            let key = (kind, name.to_owned());
            if self.named.contains_key(&key) {
                continue;
            }
            let object = targets_of(client, kind).get_opt(name).await;
            let object = object.map_err(|error| Mishap::new(format!("read {kind} `{name}`"), error))?;
            if let Some(object) = object {
                self.named.insert(key, to_value(&object));
            }
        }
        if let Some(selector) = options.targets.webhook_selector.as_ref().filter(|_| self.selected.is_none()) {
            let mut selected = Vec::new();
            for kind in [Kind::Validating, Kind::Mutating] {
                let list = targets_of(client, kind).list(&ListParams::default().labels(selector)).await;
                let list = list.map_err(|error| Mishap::new(format!("list {kind}s with `{selector}`"), error))?;
                for object in list.items {
                    let key = (kind, object.metadata.name.clone().unwrap_or_default());
                    self.named.insert(key.clone(), to_value(&object));
                    selected.push(key);
                }
            }
            self.selected = Some(selected);
        }
        self.read_at.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// The targets among them, if these Services are ours. Before a release, what does not fit it yet is no error.
    pub(super) fn targets(&mut self, options: &Options, services: &[String]) -> Result<Found, Error> {
        let namespace = options.namespace.as_str();
        let mut found = Found::default();
        for (kind, name) in options.targets.names() {
            let Some(object) = self.named.get(&(kind, name.to_owned())) else {
                found.missing.push(Missing::Named(kind, name.to_owned()));
                continue;
            };
            let mut target = Target::read(kind, object, (namespace, services));
            if target.entries.is_empty() && target.obstacle.is_none() {
                let services = options.tell_services();
                target.obstacle = Some(format!("no entry of {target} leads to {services} in namespace `{namespace}`"));
            }
            found.add(target, options.stage)?;
        }
        let mut is_found = self.selected.is_none();
        for (kind, name) in self.selected.iter().flatten() {
            let Some(object) = self.named.get(&(*kind, name.clone())) else { continue };
            let target = Target::read(*kind, object, (namespace, services));
            if target.entries.is_empty() {
                continue;
            }
            is_found = true;
            if !found.ready.iter().chain(&found.unready).any(|known| (known.kind, &known.name) == (*kind, name)) {
                found.add(target, options.stage)?;
            }
        }
        if let Some(selector) = options.targets.webhook_selector.as_ref().filter(|_| !is_found) {
            // They may come.
            self.selected = None;
            found.missing.push(Missing::Selected(selector.clone()));
        }
        Ok(found)
    }

    /// Takes note of an object as it was written.
    pub(super) fn put(&mut self, kind: Kind, object: &DynamicObject) {
        let key = (kind, object.metadata.name.clone().unwrap_or_default());
        self.named.insert(key, to_value(object));
    }

    /// Reads an object again, the next time.
    pub(super) fn forget(&mut self, target: &Target) {
        self.named.remove(&(target.kind, target.name.clone()));
        // Nobody reads one of these by its name.
        if self
            .selected
            .as_ref()
            .is_some_and(|all| all.iter().any(|(kind, name)| (*kind, name) == (target.kind, &target.name)))
        {
            self.selected = None;
        }
    }

    /// Reads everything again, the next time.
    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }

    /// Whether they were read so long ago that others may have changed them.
    pub(super) fn is_old(&self) -> bool {
        self.read_at.is_some_and(|read| read.elapsed() > BELIEVED)
    }
}

impl Found {
    fn add(&mut self, mut target: Target, stage: Stage) -> Result<(), Error> {
        // After the release this is refused where the bundle has to change.
        if stage == Stage::Secret && target.obstacle.is_none() {
            target.obstacle = target.refusal();
        }
        match (&target.obstacle, stage) {
            (None, _) => self.ready.push(target),
            (Some(_), Stage::Secret) => self.unready.push(target),
            (Some(obstacle), Stage::All | Stage::Inject) => return Err(Error::Refused(obstacle.clone())),
        }
        Ok(())
    }
}

fn to_value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
