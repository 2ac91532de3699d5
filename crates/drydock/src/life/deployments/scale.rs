//! How many replicas each set gets.

use super::rollout::{Rollout, Which};
use super::set::{MAXIMUM, Set, is_rolling};
use crate::life::workload::count;

/// The size that a new set may have: as many more as the bounds leave room for.
pub(super) fn room_for(rollout: &Rollout, new: &Set) -> i64 {
    let wanted = rollout.wanted();
    let total: i64 = rollout.sets().map(Set::wanted).sum();
    let most = wanted + rollout.bounds.surge;
    if total >= most {
        return new.wanted();
    }
    new.wanted() + (most - total).min(wanted - new.wanted())
}

/// Brings the new set nearer to its size. Says whether it did.
pub(super) fn grow_new(rollout: &mut Rollout) -> bool {
    let wanted = rollout.wanted();
    let size = match &rollout.new {
        None => return false,
        Some(new) if new.wanted() == wanted => return false,
        Some(new) if new.wanted() > wanted => wanted,
        Some(new) => room_for(rollout, new),
    };
    rollout.resize_if_needed(Which::New, size)
}

/// Takes replicas from old sets, those that do not work first. Says whether it did.
pub(super) fn shrink_old(rollout: &mut Rollout) -> bool {
    let Some(new) = &rollout.new else { return false };
    let active: Vec<usize> = (0..rollout.old.len()).filter(|index| rollout.old[*index].wanted() > 0).collect();
    if active.is_empty() {
        return false;
    }
    let least = rollout.wanted() - rollout.bounds.unavailable;
    let total: i64 = rollout.sets().map(Set::wanted).sum();
    let most = total - least - (new.wanted() - new.available());
    if most <= 0 {
        return false;
    }
    let mut shrunk = 0;
    for index in active.iter().copied() {
        let (wanted, available) = (rollout.old[index].wanted(), rollout.old[index].available());
        if shrunk >= most || wanted == available {
            continue;
        }
        let less = (most - shrunk).min(wanted - available);
        if less > 0 {
            rollout.resize_if_needed(Which::Old(index), wanted - less);
            shrunk += less;
        }
    }
    let new = rollout.new.as_ref().map_or(0, Set::available);
    let available: i64 = new + active.iter().map(|index| rollout.old[*index].available()).sum::<i64>();
    let spare = available - least;
    let mut taken = 0;
    for index in active {
        let wanted = rollout.old[index].wanted();
        if taken >= spare {
            break;
        }
        let less = wanted.min(spare - taken);
        if less > 0 {
            rollout.resize_if_needed(Which::Old(index), wanted - less);
            taken += less;
        }
    }
    shrunk + taken > 0
}

/// Spreads another number of replicas over the sets that are in use.
pub(super) fn rescale(rollout: &mut Rollout) {
    let wanted = rollout.wanted();
    let mut active: Vec<Which> = (0..rollout.old.len()).map(Which::Old).chain([Which::New]).collect();
    active.retain(|which| set(rollout, *which).is_some_and(|set| set.wanted() > 0));
    match active.as_slice() {
        [] => {
            let newest =
                if rollout.new.is_some() { Some(Which::New) } else { rollout.old.len().checked_sub(1).map(Which::Old) };
            if let Some(newest) = newest {
                rollout.resize_if_needed(newest, wanted);
            }
        }
        [only] => {
            rollout.resize_if_needed(*only, wanted);
        }
        _ if is_saturated(rollout) => {
            for which in active.into_iter().filter(|which| *which != Which::New) {
                rollout.resize_if_needed(which, 0);
            }
        }
        _ if is_rolling(&rollout.deployment) => spread(rollout, active),
        _ => {}
    }
}

fn set(rollout: &Rollout, which: Which) -> Option<&Set> {
    match which {
        Which::New => rollout.new.as_ref(),
        Which::Old(index) => rollout.old.get(index),
    }
}

fn is_saturated(rollout: &Rollout) -> bool {
    let wanted = rollout.wanted();
    rollout.new.as_ref().is_some_and(|new| {
        new.wanted() == wanted && new.available() == wanted && new.number(super::set::DESIRED) == Some(wanted)
    })
}

/// Gives each set its share, the largest first and what is left over to it.
fn spread(rollout: &mut Rollout, mut active: Vec<Which>) {
    let wanted = rollout.wanted();
    let size = |rollout: &Rollout, which: Which| set(rollout, which).map_or(0, Set::wanted);
    let total: i64 = active.iter().map(|which| size(rollout, *which)).sum();
    let allowed = if wanted > 0 { wanted + rollout.bounds.surge } else { 0 };
    let more = allowed - total;
    active.sort_by_cached_key(|which| {
        let age = set(rollout, *which).map(Set::age);
        let newer = if more > 0 { (Some(std::cmp::Reverse(age.clone())), None) } else { (None, Some(age)) };
        (std::cmp::Reverse(size(rollout, *which)), newer)
    });
    let mut added = 0;
    let mut sizes: Vec<i64> = Vec::new();
    for which in &active {
        let now = size(rollout, *which);
        let left = more - added;
        let share = match set(rollout, *which) {
            Some(set) if now > 0 && left != 0 => {
                let fraction = fraction(rollout, set);
                if more > 0 { fraction.min(left) } else { fraction.max(left) }
            }
            _ => 0,
        };
        sizes.push(now + share);
        added += share;
    }
    if let Some(largest) = sizes.first_mut() {
        *largest = (*largest + more - added).max(0);
    }
    for (which, size) in active.into_iter().zip(sizes) {
        rollout.resize(which, size.max(0));
    }
}

/// How much a set grows if it keeps its share of the whole.
fn fraction(rollout: &Rollout, set: &Set) -> i64 {
    if rollout.wanted() == 0 {
        return -set.wanted();
    }
    let before = match set.number(MAXIMUM) {
        Some(before) if before > 0 => before,
        _ => count(&rollout.deployment, &["status", "replicas"]),
    };
    if before == 0 {
        return 0;
    }
    let scaled = set.wanted().saturating_mul(rollout.wanted() + rollout.bounds.surge);
    // Rounded to the nearest, halves up.
    (scaled.saturating_mul(2) + before).div_euclid(before * 2) - set.wanted()
}
