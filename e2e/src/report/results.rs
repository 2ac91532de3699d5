//! Results as they are written down: one line of JSON for each play, in the order of the scenarios.

use super::chain;
use crate::error::Error;
use crate::play::{Result, StepDifference};
use crate::run::{End, Played};
use crate::version::HelmVersion;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) const AS_IN_REALITY: &str = "as in reality";

/// All plays, one line each.
pub fn lines(played: &[Played<'_>]) -> String {
    played.iter().map(|played| play(played).to_string() + "\n").collect()
}

fn play(played: &Played<'_>) -> Value {
    let mut value = json!({"case": played.scenario.name, "helm": played.version.number()});
    let (result, more) = match &played.end {
        End::Played(Result::AsInReality(_), _) => (AS_IN_REALITY, Value::Null),
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

/// What was written down about one target, by scenario and version.
#[derive(Debug, Default)]
pub struct Results(BTreeMap<(String, String), Value>);

impl Results {
    /// Reads what [`lines`] wrote.
    pub fn read(text: &str) -> std::result::Result<Self, Error> {
        let mut plays = BTreeMap::new();
        for line in text.lines() {
            let play: Value = serde_json::from_str(line).map_err(Error::json(format!("the result `{line}`")))?;
            let text = |field: &str| play[field].as_str().unwrap_or_default().to_owned();
            plays.insert((text("case"), text("helm")), play);
        }
        Ok(Self(plays))
    }

    /// How a play ended, in words.
    pub(super) fn of(&self, scenario: &str, version: HelmVersion) -> &str {
        self.play(scenario, version).and_then(|play| play["result"].as_str()).unwrap_or("not played")
    }

    pub(super) fn play(&self, scenario: &str, version: HelmVersion) -> Option<&Value> {
        self.0.get(&(scenario.to_owned(), version.number().to_owned()))
    }
}
