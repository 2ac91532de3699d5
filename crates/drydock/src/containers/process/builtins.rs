//! The programs that a process knows.

use super::{Process, State, UNKNOWN_PROGRAM};
use crate::containers::shell;
use std::time::Duration;

/// How many words a test may have.
const MOST_WORDS: usize = 100;

impl Process {
    /// Runs a program by its name and arguments.
    pub(super) fn run(&mut self, name: &str, arguments: &[String]) {
        let (name, arguments) = self.leave_for(name, arguments);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match name.rsplit('/').next().unwrap_or(name) {
            ":" | "true" | "cd" | "umask" | "export" | "mkdir" | "chmod" | "kill" | "shift" | "unset" => {
                self.assign_exports(name, arguments);
                self.status = 0;
            }
            "false" => self.status = 1,
            "echo" => {
                let text = words.iter().copied().skip_while(|word| matches!(*word, "-n" | "-e")).collect::<Vec<_>>();
                self.say(&text.join(" "));
            }
            "printf" => self.say(&printf(&words)),
            "sleep" => match words.first().map(|word| duration(word)) {
                Some(Some(duration)) => self.sleep(duration),
                Some(None) if words[0].starts_with("inf") => self.state = State::Forever,
                _ => self.status = 1,
            },
            "tail" if words.contains(&"-f") => self.state = State::Forever,
            "exit" | "return" => {
                let code = words.first().and_then(|word| word.parse().ok()).unwrap_or(self.status);
                self.exit_shell(code & 0xff);
            }
            "exec" => self.status = 0,
            "test" => self.status = i32::from(!self.test(&words)),
            "[" => self.status = i32::from(!self.test(words.strip_suffix(&["]"]).unwrap_or(&words))),
            "touch" => {
                for file in words.iter().filter(|word| !word.starts_with('-')) {
                    self.files.entry((*file).to_owned()).or_default();
                }
                self.status = 0;
            }
            "rm" => {
                for file in words.iter().filter(|word| !word.starts_with('-')) {
                    self.files.remove(*file);
                }
                self.status = 0;
            }
            program @ ("cat" | "ls" | "stat") => {
                self.status = 0;
                for file in words.iter().filter(|word| !word.starts_with('-')) {
                    match self.files.get(*file).cloned() {
                        Some(text) if program == "cat" && text.is_empty() => {}
                        Some(text) if program == "cat" => self.print(text.strip_suffix('\n').unwrap_or(&text)),
                        Some(_) => self.print(file),
                        None => {
                            self.print(&format!("{program}: {file}: No such file or directory"));
                            self.status = 1;
                        }
                    }
                }
            }
            "seq" => {
                let numbers: Vec<i64> = words.iter().filter_map(|word| word.parse().ok()).collect();
                let (first, step, last) = match numbers.as_slice() {
                    [last] => (1, 1, *last),
                    [first, last] => (*first, 1, *last),
                    [first, step, last] if *step > 0 => (*first, *step, *last),
                    _ => (1, 1, 0),
                };
                let step = usize::try_from(step).unwrap_or(1);
                for number in (first..=last).step_by(step).take(super::EFFORT_WITHOUT_TIME) {
                    self.print(&number.to_string());
                }
                self.status = 0;
            }
            "hostname" => {
                let name = self.variable("HOSTNAME").unwrap_or_else(|| name.to_owned());
                self.say(&name);
            }
            "set" => {
                for word in &words {
                    match *word {
                        option if option.starts_with('-') && option.contains('e') => self.exit_on_error = true,
                        option if option.starts_with('+') && option.contains('e') => self.exit_on_error = false,
                        _ => {}
                    }
                }
                self.status = 0;
            }
            "trap" => self.trap(&words),
            "wait" => {
                if self.background.is_empty() {
                    self.status = 0;
                } else {
                    self.state = State::Waiting;
                }
            }
            "date" | "id" | "whoami" | "uname" | "pwd" => self.say(name),
            "sh" | "bash" | "ash" if words.first() == Some(&"-c") => {
                match words.get(1).and_then(|text| shell::parse(text, 1)) {
                    Some(command) => {
                        self.stack.push(super::Frame::Subshell);
                        self.stack.push(super::Frame::Do(command));
                    }
                    None => self.sleep(UNKNOWN_PROGRAM),
                }
            }
            _ => self.sleep(UNKNOWN_PROGRAM),
        }
    }

    /// `exec PROGRAM…`: the program takes the shell's place.
    fn leave_for<'a>(&mut self, name: &'a str, arguments: &'a [String]) -> (&'a str, &'a [String]) {
        let (mut name, mut arguments) = (name, arguments);
        while name == "exec"
            && let Some((program, rest)) = arguments.split_first()
        {
            self.stack.retain(|frame| matches!(frame, super::Frame::Exec | super::Frame::Subshell));
            (name, arguments) = (program, rest);
        }
        (name, arguments)
    }

    fn say(&mut self, text: &str) {
        self.print(text);
        self.status = 0;
    }

    fn assign_exports(&mut self, name: &str, arguments: &[String]) {
        if name == "export" {
            for (variable, value) in arguments.iter().filter_map(|argument| argument.split_once('=')) {
                self.variables.insert(variable.to_owned(), value.to_owned());
            }
        }
    }

    /// `trap 'command' SIGNAL…`, `trap - SIGNAL…`.
    fn trap(&mut self, words: &[&str]) {
        self.status = 0;
        let Some((action, signals)) = words.split_first() else { return };
        for signal in signals {
            let signal = match signal.trim_start_matches("SIG") {
                "15" => "TERM",
                "2" => "INT",
                other => other,
            };
            match *action {
                "-" => {
                    self.traps.remove(signal);
                }
                action => {
                    if let Some(command) = shell::parse(action, 1) {
                        self.traps.insert(signal.to_owned(), command);
                    }
                }
            }
        }
    }

    fn test(&self, words: &[&str]) -> bool {
        let number = |text: &str| text.parse::<i64>().unwrap_or_default();
        let refusals = words.iter().take_while(|word| **word == "!").count();
        if refusals > 0 {
            return self.test(&words[refusals..]) != (refusals % 2 == 1);
        }
        match words {
            [] => false,
            _ if words.len() > MOST_WORDS => false,
            [text] => !text.is_empty(),
            ["-s", file] => self.files.get(*file).is_some_and(|text| !text.is_empty()),
            ["-e" | "-f" | "-r" | "-w" | "-x" | "-d" | "-L", file] => self.files.contains_key(*file),
            ["-z", text] => text.is_empty(),
            ["-n", text] => !text.is_empty(),
            [left, "=" | "==", right] => left == right,
            [left, "!=", right] => left != right,
            [left, "-eq", right] => number(left) == number(right),
            [left, "-ne", right] => number(left) != number(right),
            [left, "-lt", right] => number(left) < number(right),
            [left, "-le", right] => number(left) <= number(right),
            [left, "-gt", right] => number(left) > number(right),
            [left, "-ge", right] => number(left) >= number(right),
            [left @ .., "-a", first, second] => self.test(left) && self.test(&[first, second]),
            [left @ .., "-o", first, second] => self.test(left) || self.test(&[first, second]),
            _ => false,
        }
    }
}

/// `2`, `1.5`, `3m`.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) => (number, &text[number.len()..]),
        None => (text, "s"),
    };
    let factor = match unit {
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => 1.0,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * factor).ok()
}

/// `%s`, `%d` and escapes are what charts use.
fn printf(words: &[&str]) -> String {
    let Some((format, arguments)) = words.split_first() else { return String::new() };
    let mut arguments = arguments.iter();
    let mut text = String::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' => match characters.next() {
                Some('%') | None => text.push('%'),
                Some(_) => text.push_str(arguments.next().copied().unwrap_or_default()),
            },
            '\\' => match characters.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            other => text.push(other),
        }
    }
    text.trim_end_matches('\n').to_owned()
}
