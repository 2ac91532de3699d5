//! The update of daemons: old pods go node by node, or new ones come beside them first
//! (kubernetes v1.34 `pkg/controller/daemon/update.go`).

use super::node::Fit;
use super::plan::{Daemons, Plan};
use crate::object::Object;
use std::sync::Arc;

/// The pods on a node that are not told to go, if there is at most one of each kind.
struct Pair<'a> {
    new: Option<&'a Arc<Object>>,
    old: Option<&'a Arc<Object>>,
}

impl<'a> Pair<'a> {
    fn of(daemons: &'a Daemons<'_>, node: &str) -> Option<Self> {
        let staying = || daemons.on(node).iter().filter(|pod| !pod.is_being_deleted());
        let mut new = staying().filter(|pod| daemons.is_updated(pod));
        let mut old = staying().filter(|pod| !daemons.is_updated(pod));
        let pair = Self { new: new.next(), old: old.next() };
        (new.next().is_none() && old.next().is_none()).then_some(pair)
    }
}

/// The nodes that have a pod, or should.
fn nodes<'a>(daemons: &'a Daemons<'_>) -> impl Iterator<Item = &'a str> {
    daemons
        .fits
        .iter()
        .filter(|(name, fit)| **fit == Fit::Wanted || !daemons.on(name).is_empty())
        .map(|(name, _)| *name)
}

pub(super) fn update(daemons: &Daemons<'_>, plan: &mut Plan) {
    if daemons.surge() > 0 { surge(daemons, plan) } else { replace(daemons, plan) }
}

fn replace(daemons: &Daemons<'_>, plan: &mut Plan) {
    let allowed = daemons.unavailable();
    let mut unavailable = 0;
    let mut candidates = Vec::new();
    for node in nodes(daemons) {
        match Pair::of(daemons, node) {
            Some(Pair { new: Some(new), old: None }) => unavailable += i64::from(!daemons.is_available(new)),
            Some(Pair { new: None, old: Some(old) }) if !daemons.is_available(old) => {
                plan.delete.push(Arc::clone(old));
                unavailable += 1;
            }
            Some(Pair { new: None, old: Some(old) }) => candidates.push(Arc::clone(old)),
            _ => unavailable += 1,
        }
    }
    let room = usize::try_from(allowed - unavailable).unwrap_or_default();
    plan.delete.extend(candidates.into_iter().take(room));
}

fn surge(daemons: &Daemons<'_>, plan: &mut Plan) {
    let mut surging = 0;
    let mut available = 0;
    let (mut candidates, mut misplaced) = (Vec::new(), Vec::new());
    for node in nodes(daemons) {
        let Some(pair) = Pair::of(daemons, node) else {
            surging += 1;
            continue;
        };
        available += i64::from(pair.old.or(pair.new).is_some_and(|pod| daemons.is_available(pod)));
        let wanted = daemons.fits.get(node) == Some(&Fit::Wanted);
        match (pair.old, pair.new) {
            (None, _) => {}
            (Some(old), None) if !daemons.is_available(old) && wanted => plan.create.push(node.to_owned()),
            (Some(old), None) if !daemons.is_available(old) => plan.delete.push(Arc::clone(old)),
            (Some(_), None) if wanted => candidates.push(node.to_owned()),
            (Some(old), None) => misplaced.push(Arc::clone(old)),
            (Some(old), Some(new)) if daemons.is_available(new) => plan.delete.push(Arc::clone(old)),
            (Some(_), Some(_)) => surging += 1,
        }
    }
    let spare = usize::try_from(available - daemons.wanted()).unwrap_or_default();
    plan.delete.extend(misplaced.into_iter().take(spare));
    let room = usize::try_from(daemons.surge() - surging).unwrap_or_default();
    plan.create.extend(candidates.into_iter().take(room));
}
