//! Makes cases. Small numbers of everything, so that deploys meet what earlier ones left.

use crate::case::{Act, Case, Edit, Kill, Move, Options, Step, Switch};
use crate::plan::{
    COMPONENTS, Component, JOBS, Job, Kind, OBJECTS, Object, On, OnFailure, Phase, Plan, Policy, SECONDS,
};
use jobwright_drydock::When;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option::weighted;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// As many pod jobs as there are.
const SWITCHES: usize = JOBS.len() - 1;

pub(crate) fn case() -> impl Strategy<Value = Case> {
    // Most of what can go wrong takes three deploys.
    let steps = prop_oneof![3 => vec(step(), 2..=4), 1 => vec(step(), 5..=8)];
    (plan(), steps).prop_map(|(plan, steps)| Case { plan, steps })
}

fn plan() -> impl Strategy<Value = Plan> {
    let components = btree_map(0..COMPONENTS.len(), component(), 1..=COMPONENTS.len());
    let objects = btree_map(0..OBJECTS, object(sound()), 2..=OBJECTS);
    let jobs = btree_map(0..JOBS.len(), job(), 1..=JOBS.len());
    let removed = any::<bool>();
    (components, objects, jobs, removed).prop_map(|(components, objects, jobs, prunes_removed)| {
        let mut plan = Plan { components, objects, jobs, prunes_removed };
        let all = plan.clone();
        plan.objects.values_mut().for_each(|object| object.component = all.nth_component(object.component));
        for job in plan.jobs.values_mut() {
            job.component = job.component.map(|component| all.nth_component(component));
        }
        plan
    })
}

fn component() -> impl Strategy<Value = Component> {
    let depends_on = btree_set(0..COMPONENTS.len(), 0..=2);
    (0..3_u8, depends_on, prop::bool::weighted(0.2)).prop_map(|(base, depends_on, reports_drift)| Component {
        base,
        depends_on,
        reports_drift,
    })
}

/// A kind of object that can be deployed.
fn sound() -> impl Strategy<Value = Kind> {
    prop_oneof![6 => Just(Kind::Map), 1 => Just(Kind::Workload), 2 => Just(Kind::ScalerV1), 2 => Just(Kind::ScalerV2)]
}

fn broken() -> impl Strategy<Value = Kind> {
    prop_oneof![2 => Just(Kind::Refused), 1 => Just(Kind::Stuck)]
}

fn object(kind: impl Strategy<Value = Kind>) -> impl Strategy<Value = Object> {
    (0..COMPONENTS.len(), kind, 0..2_u8).prop_map(|(component, kind, value)| Object { component, kind, value })
}

fn job() -> impl Strategy<Value = Job> {
    let component = prop_oneof![1 => Just(None), 4 => (0..COMPONENTS.len()).prop_map(Some)];
    let phase = prop_oneof![Just(Phase::Pre), Just(Phase::Post)];
    let on = prop_oneof![4 => Just(On::Both), 1 => Just(On::Install), 1 => Just(On::Upgrade)];
    let run = prop_oneof![
        3 => Just(Policy::OncePerFingerprint),
        2 => Just(Policy::OnChange),
        1 => Just(Policy::Once),
        2 => Just(Policy::Always),
    ];
    let on_failure =
        prop_oneof![4 => Just(OnFailure::Stop), 1 => Just(OnFailure::Abort), 2 => Just(OnFailure::Continue)];
    let after = btree_set(0..JOBS.len(), 0..=2);
    let rest = (any::<bool>(), 0..=1_u32, after, 0..SECONDS.len());
    (component, phase, on, run, on_failure, rest).prop_map(
        |(component, phase, on, run, on_failure, (repeats_unknown, retries, after, content))| Job {
            component,
            phase,
            on,
            run,
            on_failure,
            repeats_unknown,
            retries,
            after,
            content,
        },
    )
}

fn edit() -> impl Strategy<Value = Edit> {
    let (components, objects, jobs) = (0..COMPONENTS.len(), 0..OBJECTS, 0..JOBS.len());
    prop_oneof![
        2 => (components.clone(), component()).prop_map(|(index, component)| Edit::Add(index, component)),
        2 => components.clone().prop_map(Edit::Remove),
        2 => (components.clone(), 0..3_u8).prop_map(|(index, value)| Edit::Base(index, value)),
        3 => (objects.clone(), object(sound())).prop_map(|(index, object)| Edit::Put(index, object)),
        2 => (objects.clone(), object(broken())).prop_map(|(index, object)| Edit::Put(index, object)),
        5 => (objects.clone(), components.clone()).prop_map(|(index, component)| Edit::Move(index, component)),
        3 => objects.prop_map(Edit::Drop),
        2 => Just(Edit::Mend),
        2 => (jobs.clone(), job()).prop_map(|(index, job)| Edit::Schedule(index, job)),
        1 => jobs.clone().prop_map(Edit::Unschedule),
        5 => (jobs, 0..SECONDS.len()).prop_map(|(index, content)| Edit::Content(index, content)),
        1 => any::<bool>().prop_map(Edit::PruneRemoved),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let version = prop_oneof![
        6 => Just(Move::Same),
        3 => Just(Move::Up),
        1 => Just(Move::TwoUp),
        3 => Just(Move::Down),
        1 => Just(Move::None),
    ];
    let switch = prop_oneof![5 => Just(Switch::Well), 1 => Just(Switch::Once), 1 => Just(Switch::Badly)];
    let when = prop_oneof![Just(When::Before), Just(When::After)];
    let kill = weighted(0.35, (0..1000_usize, when).prop_map(|(at, when)| Kill { at, when }));
    let back = weighted(0.25, 0..6_usize);
    let first = (vec(edit(), 0..=3), back, version, options());
    let second = (vec(switch, SWITCHES), kill, any::<bool>(), acts(), prop::bool::weighted(0.3));
    let third = (any::<bool>(), prop::bool::weighted(0.3));
    (first, second, third).prop_map(
        |((edits, back, version, options), (switches, kill, is_parallel, acts, is_late), (repeats, deletes_jobs))| {
            Step { edits, back, version, options, switches, kill, is_parallel, acts, is_late, repeats, deletes_jobs }
        },
    )
}

fn options() -> impl Strategy<Value = Options> {
    let rarely = || prop::bool::weighted(0.15);
    let skip = prop_oneof![2 => Just(BTreeSet::new()), 1 => btree_set(0..JOBS.len(), 1..=2)];
    let only = weighted(0.15, btree_set(0..JOBS.len(), 1..=3));
    let components = weighted(0.15, btree_set(0..COMPONENTS.len(), 1..=2));
    // Most steps back are meant.
    let allow = (prop::bool::weighted(0.8), prop::bool::weighted(0.8));
    (rarely(), rarely(), skip, only, components, allow).prop_map(
        |(force, redeploy, skip, only, components, (allow_older, allow_skip_version))| Options {
            force,
            redeploy,
            skip,
            only,
            components,
            allow_older,
            allow_skip_version,
        },
    )
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    prop_oneof![3 => Just(Vec::new()), 2 => vec(act(), 1..=2)]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..8_usize).prop_map(Act::DeleteObject),
        (0..8_usize).prop_map(Act::ChangeObject),
        (0..8_usize).prop_map(Act::TakeObject),
        Just(Act::DeleteJobs),
    ]
}
