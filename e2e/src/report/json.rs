//! The report for machines.

use super::chain;
use crate::play::{Result, StepDifference};
use crate::run::{End, Played};
use serde_json::{Value, json};

/// All plays as one document.
pub fn json(played: &[Played<'_>]) -> Value {
    let plays: Vec<Value> = played.iter().map(play).collect();
    json!({"plays": plays})
}

fn play(played: &Played<'_>) -> Value {
    let mut value = json!({"scenario": played.scenario.name, "helm": played.version.number()});
    let (result, more) = match &played.end {
        End::Played(Result::AsInReality(race), _) if race.is_empty() => ("as in reality", Value::Null),
        End::Played(Result::AsInReality(race), _) => ("as in reality", json!({"race": race})),
        End::Played(Result::Differs(steps), _) => {
            ("differs", json!({"steps": steps.iter().map(step).collect::<Vec<_>>()}))
        }
        End::Played(Result::Broken(error), _) => ("broken", json!({"why": chain(error)})),
        End::NeedsContainers => ("needs containers", Value::Null),
    };
    if let Some(fields) = value.as_object_mut() {
        fields.insert("result".to_owned(), result.into());
        fields.extend(more.as_object().cloned().unwrap_or_default());
    }
    value
}

fn step(step: &StepDifference) -> Value {
    json!({"number": step.number, "step": step.title, "differences": step.differences})
}
