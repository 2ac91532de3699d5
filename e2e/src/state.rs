//! Reading what is in a namespace, in the words of the scenarios.

mod objects;
mod release;

use crate::clock;
use crate::error::Error;
use crate::kubectl::Kubectl;
use crate::object::{List, Object};
use crate::outcome::State;
use crate::scenario::Read;
use crate::version::HelmVersion;
use crate::witness::Witness;
use objects::Ordinals;
use std::time::Duration;

/// Reads the state of one namespace again and again.
#[derive(Debug)]
pub(crate) struct Reader {
    kubectl: Kubectl,
    witness: Witness,
    version: HelmVersion,
    ordinals: Ordinals,
    objects: Vec<Object>,
}

/// The kinds that are looked at.
const KINDS: &str = "jobs.batch,pods,configmaps,deployments.apps,serviceaccounts,secrets";

impl Reader {
    /// Starts to watch the namespace; nothing has happened in it yet.
    pub(crate) fn new(kubectl: Kubectl, version: HelmVersion) -> Result<Self, Error> {
        let witness = Witness::new(&kubectl)?;
        Ok(Self { kubectl, witness, version, ordinals: Ordinals::default(), objects: Vec::new() })
    }

    /// Reads the state, after the Jobs have come to rest if asked, but not later than the limit.
    pub(crate) fn read(&mut self, when: Read, limit: Duration) -> Result<State, Error> {
        self.objects = match when {
            Read::AtOnce => self.get()?,
            Read::AtRest => self.get_at_rest(limit)?,
        };
        let pods: Vec<&Object> = self.objects.iter().filter(|object| object.kind == "Pod").collect();
        let runs = self.witness.runs(&pods);
        let release = release::describe(&release::revisions(&self.objects)?, self.version);
        let left = objects::left(&self.objects, &mut self.ordinals);
        Ok(State { release, left, runs })
    }

    /// The hooks that the last revision records, by start time.
    pub(crate) fn recorded_hooks(&self) -> Result<String, Error> {
        let revisions = release::revisions(&self.get()?)?;
        Ok(revisions.last().map_or_else(|| "no release".to_owned(), release::hooks))
    }

    /// Jobs of the last read that something holds.
    pub(crate) fn with_finalizers(&self) -> impl Iterator<Item = &str> {
        let held = |object: &&Object| object.kind == "Job" && !object.metadata.finalizers.is_empty();
        self.objects.iter().filter(held).map(|object| object.metadata.name.as_str())
    }

    fn get(&self) -> Result<Vec<Object>, Error> {
        let text = self.kubectl.run(&["get", KINDS, "--output", "json"])?;
        let list: List = serde_json::from_str(&text).map_err(Error::json("the objects of the namespace"))?;
        Ok(list.items)
    }

    fn get_at_rest(&self, limit: Duration) -> Result<Vec<Object>, Error> {
        let start = clock::now();
        loop {
            let objects = self.get()?;
            let counts = |object: &&Object| ["Job", "Deployment"].contains(&object.kind.as_str());
            let at_rest = objects.iter().filter(counts).all(Object::is_at_rest);
            let left = limit.saturating_sub(start.elapsed());
            if at_rest || left.is_zero() {
                return Ok(objects);
            }
            // The watch may be behind what was just read: do not read again at once.
            std::thread::sleep(Duration::from_millis(300));
            self.witness.wait_for_rest(left);
        }
    }
}
