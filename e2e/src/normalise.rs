//! Texts without what differs from run to run: names of namespaces, paths, times, process ids.

mod usual;

use crate::command::Ended;
use crate::outcome::Said;

/// Knows what differs in one play.
#[derive(Debug)]
pub(crate) struct Normaliser {
    /// What is replaced, longest first where one contains another.
    words: Vec<(String, String)>,
}

impl Normaliser {
    /// Replaces these words, in this order.
    pub(crate) fn new(words: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { words: words.into_iter().filter(|(word, _)| !word.is_empty()).collect() }
    }

    /// What a command of Helm said.
    pub(crate) fn said(&self, ended: &Ended) -> Said {
        let (before, error) = split_error(&ended.stderr);
        let lines: Vec<String> = before.lines().filter_map(|line| self.log_line(line)).collect();
        Said {
            exit: ended.exit,
            error: self.text(error),
            stderr: lines.join("\n").trim().to_owned(),
            stdout: self.text(&usual::without_usual_lines(&ended.stdout)),
        }
    }

    /// What kubectl printed, its warnings last.
    pub(crate) fn printed(&self, ended: &Ended) -> String {
        let stdout = self.text(&ended.stdout);
        let stderr = self.text(&ended.stderr);
        if stderr.is_empty() || stdout.is_empty() { stdout + &stderr } else { format!("{stdout}\n{stderr}") }
    }

    /// Any text.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut text = without_templates(text.trim()).replace('`', "´");
        for (word, name) in &self.words {
            text = text.replace(word, name);
        }
        text
    }

    /// A line of a log, or nothing if it only repeats the error or is noise.
    fn log_line(&self, line: &str) -> Option<String> {
        let line = without_time(line);
        let line = match klog(line) {
            Some(message) => format!("<klog> {message}"),
            None => line.to_owned(),
        };
        (!usual::is_noise(&line)).then(|| self.text(&line))
    }
}

/// What stands before `Error: ` at the start of a line, and what follows it.
fn split_error(stderr: &str) -> (&str, &str) {
    const MARK: &str = "Error: ";
    let start = if stderr.starts_with(MARK) { Some(0) } else { stderr.find(&format!("\n{MARK}")).map(|at| at + 1) };
    match start {
        Some(start) => (&stderr[..start], &stderr[start + MARK.len()..]),
        None => (stderr, ""),
    }
}

/// Without `time=2026-…T…+00:00 ` at the start.
fn without_time(line: &str) -> &str {
    let rest = line.strip_prefix("time=").and_then(|rest| rest.split_once(' '));
    rest.map_or(line, |(_, rest)| rest)
}

/// What follows the head of a klog line: `W1116 00:17:20.123456   12345 warnings.go:70] …`.
fn klog(line: &str) -> Option<&str> {
    let (level, rest) = line.split_at_checked(1)?;
    let (date, rest) = rest.split_once(' ')?;
    let (time, rest) = rest.split_once(' ')?;
    let (process, message) = rest.trim_start().split_once(' ')?;
    let digits = |text: &str, others: &str| text.chars().all(|c| c.is_ascii_digit() || others.contains(c));
    let is_head = "IWEF".contains(level) && date.len() == 4 && digits(date, "") && digits(time, ":.");
    (is_head && digits(process, "")).then_some(message)
}

/// With `<tmpl>` where the API prints a whole object: `spec.template: Invalid value: {…}: field is immutable`.
fn without_templates(text: &str) -> String {
    const MARK: &str = "Invalid value: ";
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("Invalid value: {") {
        let (head, tail) = rest.split_at(at + MARK.len());
        result.push_str(head);
        let mut values = serde_json::Deserializer::from_str(tail).into_iter::<serde_json::Value>();
        let length = match values.next() {
            Some(Ok(_)) => values.byte_offset(),
            _ => 0,
        };
        if length > 0 {
            result.push_str("<tmpl>");
        }
        rest = &tail[length..];
        if length == 0 {
            break;
        }
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use std::path::Path;

    fn normaliser() -> Normaliser {
        let words = [("/tmp/x/charts/a", "CHART"), ("ns-1", "NS")];
        Normaliser::new(words.map(|(word, name)| (word.to_owned(), name.to_owned())))
    }

    #[test]
    fn names_and_paths_are_replaced() {
        assert_eq!(normaliser().text("`/tmp/x/charts/a` in ns-1\n"), "´CHART´ in NS");
    }

    #[test]
    fn a_printed_template_is_left_out() {
        let text = r#"[spec.template: Invalid value: {"labels":{"a":"}"},"Spec":{}}: field is immutable, and more]"#;
        assert_eq!(normaliser().text(text), "[spec.template: Invalid value: <tmpl>: field is immutable, and more]");
        assert_eq!(normaliser().text("Invalid value: {broken"), "Invalid value: {broken");
        assert_eq!(normaliser().text("Invalid value: null: x"), "Invalid value: null: x");
    }

    #[test]
    fn logs_lose_their_times_and_processes() {
        let line = normaliser().log_line("W1116 00:17:20.123456   12345 warnings.go:70] unknown field in ns-1");
        assert_eq!(line.as_deref(), Some("<klog> warnings.go:70] unknown field in NS"));
        let line = normaliser().log_line("time=2026-11-16T00:17:20.1+00:00 level=INFO msg=hello");
        assert_eq!(line.as_deref(), Some("level=INFO msg=hello"));
        assert_eq!(normaliser().log_line("What a day").as_deref(), Some("What a day"));
    }

    #[test]
    fn the_error_is_apart_from_what_stands_before_it() {
        let script = "echo Flag old >&2; printf 'Error: UPGRADE FAILED: 1 error:\\n\\t* x\\n\\n' >&2; exit 1";
        let ended = Command::new(Path::new("/bin/sh")).arguments(["-c", script]).run().unwrap();
        let said = normaliser().said(&ended);
        assert_eq!(said.stderr, "Flag old");
        assert_eq!(said.error, "UPGRADE FAILED: 1 error:\n\t* x");
    }
}
