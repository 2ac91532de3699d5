//! Components in the model: what is decided, applied, pruned and remembered.

use super::{Due, Flow, Oracle, Went};
use crate::plan::{Declared, Key, Kind, Phase};
use crate::state::{Known, Live, Occasion};
use jobwright_engine::Action;
use std::collections::BTreeMap;

/// What is decided on a component before anything is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Deploy(Occasion),
    Keep,
    /// The plan no longer has it.
    Remove,
}

impl Oracle<'_> {
    /// What is decided on each component: those of the plan, then those that it no longer has.
    pub(super) fn decide(&mut self) -> Vec<(usize, Decision)> {
        let plan = &self.deploy.plan;
        let mut decisions = Vec::new();
        for index in plan.components.keys() {
            decisions.push((*index, self.decide_one(*index)));
        }
        let removed = self.state.components.iter().filter(|(index, _)| !plan.components.contains_key(index));
        let removed: Vec<(usize, bool)> =
            removed.map(|(index, known)| (*index, known.objects.iter().any(|key| self.owns(*index, key)))).collect();
        for (index, owns_something) in removed {
            let decision = if plan.prunes_removed || !owns_something { Decision::Remove } else { Decision::Keep };
            if owns_something {
                self.mark("component removed");
            }
            decisions.push((index, decision));
        }
        decisions
    }

    fn decide_one(&mut self, index: usize) -> Decision {
        let plan = &self.deploy.plan;
        let Some(known) = self.state.components.get(&index) else { return Decision::Deploy(Occasion::Install) };
        if !known.is_complete {
            let occasion = if known.is_installed { Occasion::Upgrade } else { Occasion::Install };
            return Decision::Deploy(occasion);
        }
        let declared = plan.declares(index);
        let is_same = known.version == self.deploy.version && known.manifests.as_ref() == Some(&declared);
        // What was removed from it must go, once no other component is about to take it over.
        let is_left = |key: &&Key| self.owns(index, key) && plan.holder(key).is_none();
        let has_left = known.objects.iter().any(|key| is_left(&key));
        if !is_same || self.deploy.options.redeploy || has_left {
            return Decision::Deploy(Occasion::Upgrade);
        }
        let is_as_declared = |object: &Declared| {
            self.state.objects.get(&object.key).is_some_and(|live| live.component == Some(index) && !live.is_changed)
        };
        if declared.iter().all(is_as_declared) {
            return Decision::Keep;
        }
        self.mark("drift");
        if plan.components[&index].reports_drift { Decision::Keep } else { Decision::Deploy(Occasion::Upgrade) }
    }

    /// Whether an object exists and belongs to a component.
    fn owns(&self, index: usize, key: &Key) -> bool {
        self.state.objects.get(key).is_some_and(|live| live.component == Some(index))
    }

    /// Deploys the components, each after those that it depends on.
    pub(super) fn deploy_components(&mut self, decisions: &[(usize, Decision)]) -> Went<Flow> {
        let plan = &self.deploy.plan;
        let all: Vec<usize> = plan.components.keys().copied().collect();
        let mut done: BTreeMap<usize, Flow> = BTreeMap::new();
        // Indexes are in an order in which each comes after what it depends on.
        for (index, decision) in decisions {
            let befores =
                if plan.components.contains_key(index) { plan.components_before(*index) } else { all.clone() };
            let flow = if befores.iter().any(|before| done[before] == Flow::Blocked) {
                self.skip_component(*index);
                Flow::Blocked
            } else {
                self.component(*index, *decision)?
            };
            done.insert(*index, flow);
        }
        let is_blocked = done.values().any(|flow| *flow == Flow::Blocked);
        Ok(if is_blocked { Flow::Blocked } else { Flow::Open })
    }

    pub(super) fn skip_component(&mut self, index: usize) {
        self.show_component(index, Action::Skipped);
        self.skip_phase(Some(index), Phase::Pre);
        self.skip_phase(Some(index), Phase::Post);
    }

    fn component(&mut self, index: usize, decision: Decision) -> Went<Flow> {
        if self.deploy.options.components.as_ref().is_some_and(|selected| !selected.contains(&index)) {
            self.skip_component(index);
            return Ok(Flow::Open);
        }
        if self.is_aborted {
            self.skip_component(index);
            return Ok(Flow::Blocked);
        }
        match decision {
            Decision::Keep => self.keep(index),
            Decision::Remove => self.remove(index),
            Decision::Deploy(occasion) => self.deploy_one(index, occasion),
        }
    }

    /// The jobs of an unchanged component run if they are forced or owed.
    fn keep(&mut self, index: usize) -> Went<Flow> {
        let due = if self.deploy.options.force { Due::All(Occasion::Upgrade) } else { Due::OnlyOwed };
        let mut flow = Flow::Open;
        for phase in [Phase::Pre, Phase::Post] {
            match flow {
                Flow::Open => flow = self.phase(Some(index), phase, due)?,
                Flow::Blocked => self.skip_phase(Some(index), phase),
            }
        }
        self.show_component(index, if flow == Flow::Open { Action::Unchanged } else { Action::Failed });
        Ok(flow)
    }

    fn remove(&mut self, index: usize) -> Went<Flow> {
        let objects = self.state.components[&index].objects.clone();
        let kept = self.prune(index, objects)?;
        self.effect()?;
        if kept.is_empty() {
            self.state.components.remove(&index);
        } else if let Some(known) = self.state.components.get_mut(&index) {
            known.objects = kept;
        }
        self.show_component(index, Action::Removed);
        Ok(Flow::Open)
    }

    fn deploy_one(&mut self, index: usize, occasion: Occasion) -> Went<Flow> {
        let flow = self.phase(Some(index), Phase::Pre, Due::All(occasion))?;
        if flow == Flow::Blocked {
            self.skip_phase(Some(index), Phase::Post);
            self.show_component(index, Action::Failed);
            return Ok(flow);
        }
        if !self.apply(index)? {
            self.mark("half-way failure");
            self.skip_phase(Some(index), Phase::Post);
            self.show_component(index, Action::Failed);
            return Ok(Flow::Blocked);
        }
        let flow = self.phase(Some(index), Phase::Post, Due::All(occasion))?;
        if flow == Flow::Blocked {
            self.show_component(index, Action::Failed);
            return Ok(flow);
        }
        self.effect()?;
        if let Some(known) = self.state.components.get_mut(&index) {
            known.is_complete = true;
            known.is_installed = true;
        }
        // From here on nothing but this remembers what was skipped.
        let of_component = |job: &usize| self.deploy.plan.jobs.get(job).is_some_and(|job| job.component == Some(index));
        let owed = self.owed.iter().filter(|(job, _)| of_component(job)).map(|(job, occasion)| (*job, *occasion));
        self.state.owed.extend(owed.collect::<Vec<_>>());
        let action = if occasion == Occasion::Install { Action::Installed } else { Action::Upgraded };
        self.show_component(index, action);
        Ok(Flow::Open)
    }

    /// Applies what a component declares, and prunes what it no longer does. Says whether that succeeded.
    fn apply(&mut self, index: usize) -> Went<bool> {
        let declared = self.deploy.plan.declares(index);
        let keys: Vec<Key> = declared.iter().map(|object| object.key.clone()).collect();
        self.effect()?;
        let known = self.state.components.entry(index).or_default();
        let before = known.objects.clone();
        let left: Vec<Key> = before.iter().filter(|key| !keys.contains(key)).cloned().collect();
        *known = Known {
            manifests: None,
            version: known.version,
            objects: left.iter().chain(&keys).cloned().collect(),
            is_complete: false,
            is_installed: known.is_installed || known.is_complete,
        };
        for object in &declared {
            if object.kind == Kind::Refused {
                return Ok(false);
            }
            self.effect()?;
            let live = Live { mark: object.mark.clone(), component: Some(index), is_changed: false };
            let former = self.state.objects.insert(object.key.clone(), live);
            if former.is_some_and(|former| former.component.is_some_and(|former| former != index)) {
                self.mark("object moved");
            }
        }
        if declared.iter().any(|object| object.kind == Kind::Stuck) {
            return Ok(false);
        }
        let kept = self.prune(index, left)?;
        self.effect()?;
        if let Some(known) = self.state.components.get_mut(&index) {
            known.manifests = Some(declared);
            known.version = self.deploy.version;
            known.objects = kept.into_iter().chain(keys).collect();
        }
        Ok(true)
    }

    /// Deletes what still belongs to a component, and gives back what another component of the plan declares.
    fn prune(&mut self, index: usize, mut objects: Vec<Key>) -> Went<Vec<Key>> {
        objects.sort_by_key(|key| key.starts_with("ConfigMap"));
        let mut kept = Vec::new();
        for key in objects.into_iter().filter(|key| self.owns(index, key)).collect::<Vec<_>>() {
            if self.deploy.plan.holder(&key).is_some() {
                kept.push(key);
            } else {
                self.effect()?;
                self.state.objects.remove(&key);
                self.mark("object pruned");
            }
        }
        Ok(kept)
    }
}
