//! The text of a transcript, read and written.

use std::fmt;

/// The line of a transcript that says so.
const NEEDS_CONTAINERS: &str = "# Needs containers.";

/// A session at a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The lines before the first command.
    pub about: String,
    /// Commands with what they print, in order.
    pub exchanges: Vec<Exchange>,
}

/// A command, and what it prints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The lines of the command.
    pub command: String,
    /// Everything it prints, and its exit code if that is not 0. Empty lines at the end do not count.
    pub answer: String,
    /// The line where it starts, from 1.
    pub line: usize,
}

impl Transcript {
    /// Reads a transcript. Any text is one.
    pub fn parse(text: &str) -> Self {
        let mut transcript = Self::default();
        for (number, line) in text.lines().enumerate() {
            if let Some(command) = line.strip_prefix("$ ") {
                let command = command.to_owned();
                transcript.exchanges.push(Exchange { command, answer: String::new(), line: number + 1 });
                continue;
            }
            let Some(exchange) = transcript.exchanges.last_mut() else {
                transcript.about.push_str(line);
                transcript.about.push('\n');
                continue;
            };
            match line.strip_prefix("> ").or_else(|| line.strip_prefix('>').filter(|rest| rest.is_empty())) {
                Some(rest) if exchange.answer.is_empty() => {
                    exchange.command.push('\n');
                    exchange.command.push_str(rest);
                }
                _ => {
                    exchange.answer.push_str(line);
                    exchange.answer.push('\n');
                }
            }
        }
        for exchange in &mut transcript.exchanges {
            exchange.answer.truncate(exchange.answer.trim_end().len());
        }
        transcript
    }

    /// What it is about, in a few words.
    pub fn title(&self) -> &str {
        self.about.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// Whether what it asks for only exists where containers run: logs, exit codes, restarts.
    pub fn needs_containers(&self) -> bool {
        self.about.lines().any(|line| line == NEEDS_CONTAINERS)
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.about)?;
        for exchange in &self.exchanges {
            writeln!(formatter, "$ {}", exchange.command.replace('\n', "\n> "))?;
            if !exchange.answer.is_empty() {
                writeln!(formatter, "{}", exchange.answer)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_the_same() {
        let text = "# About\n\n$ cat <<E\n> a: 1\n> E\na: 1\n\n  b\n$ true\n$ false\n[exit 1]\n";
        let transcript = Transcript::parse(text);
        assert_eq!(transcript.exchanges[0].command, "cat <<E\na: 1\nE");
        assert_eq!(transcript.exchanges[0].answer, "a: 1\n\n  b");
        assert_eq!(transcript.exchanges[2].answer, "[exit 1]");
        assert_eq!(transcript.exchanges[2].line, 10);
        assert_eq!(transcript.to_string(), text);
    }
}
