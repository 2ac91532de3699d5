//! Plays a case, and judges each deploy by the model and by what must always hold.

use crate::case::{Case, Deploy};
use crate::oracle::{Prediction, Report, predict, predict_killed};
use crate::state::{State, View, differ};
use crate::support::cluster::overlap;
use crate::support::journal::Entry;
use crate::world::{Outcome, World};
use std::collections::BTreeMap;
use std::time::Duration;

const SHORT: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_hours(2);

/// What happened in a case, counted.
pub(crate) type Marks = BTreeMap<&'static str, usize>;

/// A case that went wrong: what was played, and what was wrong with the last of it.
pub(crate) struct Wrong {
    pub(crate) story: Vec<String>,
    pub(crate) problems: Vec<String>,
}

struct Play {
    world: World,
    /// All that the world may be like.
    states: Vec<State>,
    marks: Marks,
    story: Vec<String>,
}

/// Plays a case.
pub(crate) async fn play(case: &Case) -> Result<Marks, Wrong> {
    let (marks, story) = (Marks::new(), Vec::new());
    let mut play = Play { world: World::new().await, states: vec![State::default()], marks, story };
    let mut deploys = case.deploys();
    // What was killed is deployed once more: otherwise much of what it left would never be judged.
    let again = deploys.last().filter(|last| last.kill.is_some()).cloned();
    deploys.extend(again.map(|last| Deploy { kill: None, acts: Vec::new(), ..last }));
    for deploy in &deploys {
        play.story.push(deploy.to_string());
        if let Err(problems) = play.step(deploy).await {
            return Err(Wrong { story: play.story, problems });
        }
    }
    Ok(play.marks)
}

impl Play {
    fn mark(&mut self, what: &'static str, count: usize) {
        *self.marks.entry(what).or_default() += count;
    }

    async fn step(&mut self, deploy: &Deploy) -> Result<(), Vec<String>> {
        tokio::time::sleep(if deploy.is_late { LONG } else { SHORT }).await;
        for act in &deploy.acts {
            let view = self.world.view().await;
            self.world.act(*act, &view).await;
            self.states.iter_mut().for_each(|state| state.act(*act));
            // What is deleted is gone before anything else happens.
            tokio::time::sleep(SHORT).await;
        }
        self.world.switch(&deploy.switches).await;
        let outcome = self.world.deploy(deploy).await;
        let is_killed = matches!(outcome, Outcome::Killed);
        if is_killed {
            // Whatever was let start has started by then.
            tokio::time::sleep(SHORT).await;
        }
        let view = self.world.view().await;
        let mut problems = self.always(deploy, is_killed).await;
        let judged = match outcome {
            Outcome::Wrong(problem) => Err(vec![problem]),
            Outcome::Killed => self.narrow_killed(deploy, &view),
            Outcome::Reported(report) => self.narrow(deploy, &report, &view),
        };
        problems.extend(judged.err().unwrap_or_default());
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Keeps the states from which the deploy would have gone as it did.
    fn narrow(&mut self, deploy: &Deploy, report: &Report, view: &View) -> Result<(), Vec<String>> {
        self.mark("deploys", 1);
        let mut nearest: Option<Vec<String>> = None;
        let mut fitting: Vec<Prediction> = Vec::new();
        for prediction in self.states.iter().flat_map(|state| predict(state, deploy)) {
            let mut wrong = compare(report, prediction.report.as_ref());
            wrong.extend(view.differences(&prediction.state.view()));
            if wrong.is_empty() {
                if !fitting.iter().any(|other| other.state == prediction.state) {
                    fitting.push(prediction);
                }
            } else if nearest.as_ref().is_none_or(|nearest| wrong.len() < nearest.len()) {
                nearest = Some(wrong);
            }
        }
        if fitting.is_empty() {
            return Err(nearest.unwrap_or_default());
        }
        for (what, count) in fitting[0].marks.clone() {
            self.mark(what, count);
        }
        self.states = fitting.into_iter().map(|prediction| prediction.state).collect();
        Ok(())
    }

    /// Keeps the states that a killed deploy may have left.
    fn narrow_killed(&mut self, deploy: &Deploy, view: &View) -> Result<(), Vec<String>> {
        self.mark("killed", 1);
        let mut nearest: Option<Vec<String>> = None;
        let mut fitting: Vec<State> = Vec::new();
        for state in self.states.iter().flat_map(|state| predict_killed(state, deploy)) {
            let wrong = view.differences(&state.view());
            if !wrong.is_empty() {
                if nearest.as_ref().is_none_or(|nearest| wrong.len() < nearest.len()) {
                    nearest = Some(wrong);
                }
            } else if !fitting.contains(&state) {
                fitting.push(state);
            }
        }
        if fitting.is_empty() {
            let problems = nearest.unwrap_or_default();
            return Err(problems.into_iter().map(|problem| format!("after it was killed: {problem}")).collect());
        }
        self.states = fitting;
        Ok(())
    }

    /// What must hold whatever the model says.
    async fn always(&self, deploy: &Deploy, is_killed: bool) -> Vec<String> {
        let entries = self.world.journal.take();
        let mut problems = self.world.journal.trespasses(&entries);
        problems.extend(entries.iter().filter_map(|entry| judge_delete(deploy, entry)));
        for (job, containers) in self.world.containers() {
            problems.extend(overlap(&containers).map(|pods| format!("two containers of `{job}` ran at once: {pods}")));
        }
        if !self.world.has_all_foreign().await {
            problems.push("objects of other clients were changed".to_owned());
        }
        if let Some(holder) = self.world.journal.holder().filter(|_| !is_killed) {
            problems.push(format!("`{holder}` holds the lease after its end"));
        }
        problems
    }
}

/// Nothing that a deploy applies is deleted by it.
fn judge_delete(deploy: &Deploy, entry: &Entry) -> Option<String> {
    let call = &entry.call;
    let kind = match call.resource.as_str() {
        "configmaps" => "ConfigMap",
        "deployments" => "Deployment",
        "horizontalpodautoscalers" => "HorizontalPodAutoscaler",
        _ => return None,
    };
    let is_declared = deploy.plan.holder(&format!("{kind} {}", call.name)).is_some();
    (is_declared && call.verb == "delete" && entry.succeeded)
        .then(|| format!("deploy {} deleted what it declares: {call}", entry.version))
}

/// How a report differs from what is expected.
fn compare(found: &Report, expected: Option<&Report>) -> Vec<String> {
    match (found, expected) {
        (
            Report::Ended { succeeded, components, jobs },
            Some(Report::Ended { succeeded: must_succeed, components: components_must, jobs: jobs_must }),
        ) => {
            let mut wrong = differ("component ", components, components_must);
            wrong.extend(differ("job ", jobs, jobs_must));
            if succeeded != must_succeed {
                wrong.push(format!("succeeded: {succeeded}, expected {must_succeed}"));
            }
            wrong
        }
        (found, Some(expected)) if found == expected => Vec::new(),
        (found, expected) => vec![format!("{found:?}, expected {expected:?}")],
    }
}
