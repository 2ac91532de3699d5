//! What words become when a process comes to them.

use super::{BYTES_OF_A_STEP, FILE_LIMIT, Process, What};
use crate::containers::shell::{Command, Part, Word};

impl Process {
    /// A word as the words it becomes: unquoted text is split, an unquoted word that comes out empty is none.
    pub(super) fn expand(&mut self, word: &Word) -> Vec<String> {
        let text = self.text(word);
        if word.quoted || word.literal().is_some() {
            return vec![text];
        }
        text.split_whitespace().map(str::to_owned).collect()
    }

    pub(super) fn text(&mut self, word: &Word) -> String {
        let mut text = String::new();
        for part in &word.parts {
            if self.is_exhausted() || text.len() > FILE_LIMIT {
                break;
            }
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Variable { name, default } => match self.variable(name) {
                    Some(value) if !(value.is_empty() && default.is_some()) => text.push_str(&value),
                    _ => text.push_str(default.as_deref().unwrap_or_default()),
                },
                Part::Substitution(command) => text.push_str(&self.output_of(command)),
                Part::Arithmetic(expression) => text.push_str(&self.arithmetic(expression).to_string()),
            }
        }
        self.effort += text.len() / BYTES_OF_A_STEP;
        text
    }

    pub(super) fn variable(&self, name: &str) -> Option<String> {
        match name {
            "?" => Some(self.status.to_string()),
            "$" => Some("1".to_owned()),
            "!" => Some((100 + self.background.len()).to_string()),
            "#" => Some("0".to_owned()),
            "0" => Some("sh".to_owned()),
            _ => self.variables.get(name).cloned(),
        }
    }

    /// What a command prints before it takes any time.
    fn output_of(&mut self, command: &Command) -> String {
        let mut process = self.child(command.clone());
        process.step_while_ready();
        self.effort = process.effort;
        let lines = process.effects.into_iter().filter_map(|effect| match effect.what {
            What::Printed(line) => Some(line),
            What::Exited(_) => None,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Sums and differences of numbers and variables.
    fn arithmetic(&self, expression: &str) -> i64 {
        let spaced = expression.replace('+', " + ").replace('-', " - ");
        let (mut sum, mut sign) = (0i64, 1i64);
        for token in spaced.split_whitespace() {
            match token {
                "+" => sign = 1,
                "-" => sign = -1,
                token => {
                    let name = token.trim_start_matches('$');
                    let value = token.parse().ok().or_else(|| self.variable(name)?.parse().ok()).unwrap_or(0i64);
                    sum = sum.saturating_add(value.saturating_mul(sign));
                    sign = 1;
                }
            }
        }
        sum
    }
}
