//! A running process: what a container's command does as time passes.

mod builtins;
#[cfg(test)]
mod tests;
mod words;

use super::shell::{self, Command, Output, Part, Word};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How long a program runs that nobody here knows.
const UNKNOWN_PROGRAM: Duration = Duration::from_secs(1);
/// How much a process may do in no time before it counts as a loop that only burns time: a step is one.
const EFFORT_WITHOUT_TIME: usize = 10_000;
/// How many bytes of text are as much effort as a step.
const BYTES_OF_A_STEP: usize = 64;
/// Files and texts that are longer take nothing more.
const FILE_LIMIT: usize = 1 << 20;
/// The shortest time for which a process sleeps, so that a minute has an end.
const SHORTEST_SLEEP: Duration = Duration::from_millis(10);
/// How many processes run in the background of one.
const MOST_BACKGROUND: usize = 1_000;

/// What a process did, and when, counted from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) at: Duration,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// It printed a line.
    Printed(String),
    /// It ended with this code.
    Exited(i32),
}

/// A process. Time passes in it only when it is told so.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    stack: Vec<Frame>,
    state: State,
    /// How far it has come.
    elapsed: Duration,
    /// The code of the last command.
    status: i32,
    variables: BTreeMap<String, String>,
    /// What it has written, by path.
    files: BTreeMap<String, String>,
    traps: BTreeMap<String, Command>,
    /// Signals whose traps have to run when the current command is done.
    pending: VecDeque<String>,
    background: Vec<Process>,
    exit_on_error: bool,
    effects: Vec<Effect>,
    /// What it has done since time passed last.
    effort: usize,
    /// Signals end it at once, as they do a program that handles them.
    ends_on_signal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// Busy until then.
    Sleeping(Duration),
    /// Waits for what it started in the background.
    Waiting,
    /// It will never do anything again.
    Forever,
    Exited(i32),
}

/// What is left to do.
#[derive(Clone, Debug)]
enum Frame {
    Do(Command),
    Rest(VecDeque<Command>),
    And(Command),
    Or(Command),
    Not,
    Branch {
        then: Command,
        otherwise: Option<Command>,
    },
    Check {
        condition: Command,
        until: bool,
        body: Command,
    },
    Again {
        condition: Command,
        until: bool,
        body: Command,
    },
    Each {
        variable: String,
        words: VecDeque<String>,
        body: Command,
    },
    /// The end of a subshell: `exit` goes no further.
    Subshell,
    /// The program that took the shell's place has ended.
    Exec,
    /// A failing command here is part of a condition and no error.
    Condition,
}

impl Process {
    /// The process of a container that runs these words with these variables.
    pub(crate) fn new(words: &[String], variables: BTreeMap<String, String>) -> Self {
        match shell_text(words).and_then(|text| shell::parse(text, 0)) {
            Some(command) => Self::of_command(command, variables),
            None => Self {
                ends_on_signal: !matches!(words.first().map(String::as_str), Some("sleep" | "tail")),
                ..Self::of_command(plain(words), variables)
            },
        }
    }

    /// The process of a shell that runs a command.
    pub(crate) fn of_command(command: Command, variables: BTreeMap<String, String>) -> Self {
        Self {
            stack: vec![Frame::Exec, Frame::Do(command)],
            state: State::Ready,
            elapsed: Duration::ZERO,
            status: 0,
            variables,
            files: BTreeMap::new(),
            traps: BTreeMap::new(),
            pending: VecDeque::new(),
            background: Vec::new(),
            exit_on_error: false,
            effects: Vec::new(),
            effort: 0,
            ends_on_signal: false,
        }
    }

    /// Lets time pass until `elapsed` since the start. Gives what happened.
    pub(crate) fn run_until(&mut self, elapsed: Duration) -> Vec<Effect> {
        loop {
            self.step_while_ready();
            let Some(next) = self.next_wake().filter(|next| *next <= elapsed) else { break };
            if next > self.elapsed {
                self.elapsed = next;
                self.effort = 0;
            }
            self.wake();
        }
        self.elapsed = self.elapsed.max(elapsed);
        std::mem::take(&mut self.effects)
    }

    /// When the process will do something next, if it ever does.
    pub(crate) fn next_wake(&self) -> Option<Duration> {
        let own = match self.state {
            State::Ready => Some(self.elapsed),
            State::Sleeping(until) => Some(until),
            State::Waiting | State::Forever | State::Exited(_) => None,
        };
        if matches!(self.state, State::Exited(_)) {
            return None;
        }
        self.background.iter().filter_map(Process::next_wake).chain(own).min()
    }

    /// The code it has ended with.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        match self.state {
            State::Exited(code) => Some(code),
            _ => None,
        }
    }

    /// Sends a signal. Whoever has no trap for it ignores it, as the first process of a container does.
    pub(crate) fn signal(&mut self, name: &str) {
        if self.ends_on_signal {
            self.exit(0);
        } else if self.traps.contains_key(name) {
            self.pending.push_back(name.to_owned());
            if self.state == State::Waiting {
                self.state = State::Ready;
            }
        }
    }

    /// What a command finds to be true of the process right now, in no time: an `exec` probe.
    pub(crate) fn probe(&self, words: &[String]) -> bool {
        let mut probe = Self::new(words, self.variables.clone());
        probe.files.clone_from(&self.files);
        probe.step_while_ready();
        // A probe that takes time runs a program that nobody here knows, which succeeds.
        probe.exit_code().unwrap_or(0) == 0
    }

    fn wake(&mut self) {
        let now = self.elapsed;
        let mut ended = Vec::new();
        for process in &mut self.background {
            self.effects
                .extend(process.run_until(now).into_iter().filter(|effect| matches!(effect.what, What::Printed(_))));
            self.files.extend(process.files.iter().map(|(file, text)| (file.clone(), text.clone())));
            ended.extend(process.exit_code());
        }
        self.background.retain(|process| process.exit_code().is_none());
        match self.state {
            State::Sleeping(until) if until <= now => self.state = State::Ready,
            State::Waiting if self.background.is_empty() => {
                self.status = ended.last().copied().unwrap_or_default();
                self.state = State::Ready;
            }
            _ => {}
        }
    }

    fn step_while_ready(&mut self) {
        while self.state == State::Ready {
            if let Some(signal) = self.pending.pop_front()
                && let Some(trap) = self.traps.get(&signal)
            {
                self.stack.push(Frame::Do(trap.clone()));
            }
            match self.stack.pop() {
                None => self.exit(self.status),
                Some(frame) => self.step(frame),
            }
            self.effort += 1;
            if self.is_exhausted() && self.state == State::Ready {
                self.state = State::Forever;
            }
        }
    }

    /// Whether it has done so much in no time that it does no more.
    fn is_exhausted(&self) -> bool {
        self.effort > EFFORT_WITHOUT_TIME
    }

    fn step(&mut self, frame: Frame) {
        match frame {
            Frame::Do(command) => self.start(command),
            Frame::Rest(mut rest) => {
                if let Some(next) = rest.pop_front() {
                    self.stack.push(Frame::Rest(rest));
                    self.stack.push(Frame::Do(next));
                }
            }
            Frame::And(next) if self.status == 0 => self.stack.push(Frame::Do(next)),
            Frame::Or(next) if self.status != 0 => self.stack.push(Frame::Do(next)),
            Frame::And(_) | Frame::Or(_) | Frame::Subshell | Frame::Condition => {}
            Frame::Not => self.status = i32::from(self.status == 0),
            Frame::Branch { then, otherwise } => match (self.status == 0, otherwise) {
                (true, _) => self.stack.push(Frame::Do(then)),
                (false, Some(otherwise)) => self.stack.push(Frame::Do(otherwise)),
                (false, None) => self.status = 0,
            },
            Frame::Check { condition, until, body } => {
                let succeeded = self.status == 0;
                if succeeded == until {
                    self.status = 0;
                } else {
                    self.stack.push(Frame::Again { condition, until, body: body.clone() });
                    self.stack.push(Frame::Do(body));
                }
            }
            Frame::Again { condition, until, body } => {
                self.stack.push(Frame::Check { condition: condition.clone(), until, body });
                self.condition(condition);
            }
            Frame::Each { variable, mut words, body } => {
                if let Some(word) = words.pop_front() {
                    self.variables.insert(variable.clone(), word);
                    self.stack.push(Frame::Each { variable, words, body: body.clone() });
                    self.stack.push(Frame::Do(body));
                }
            }
            Frame::Exec => self.exit(self.status),
        }
    }

    fn condition(&mut self, command: Command) {
        self.stack.push(Frame::Condition);
        self.stack.push(Frame::Do(command));
    }

    fn start(&mut self, command: Command) {
        match command {
            Command::Simple { assignments, words, output } => self.simple(&assignments, &words, output.as_ref()),
            Command::Sequence(commands) => self.stack.push(Frame::Rest(commands.into())),
            Command::Pipe(commands) => self.stack.push(Frame::Rest(commands.into())),
            Command::And(first, second) => {
                self.stack.push(Frame::And(*second));
                self.condition(*first);
            }
            Command::Or(first, second) => {
                self.stack.push(Frame::Or(*second));
                self.condition(*first);
            }
            Command::Not(command) => {
                self.stack.push(Frame::Not);
                self.condition(*command);
            }
            Command::Background(command) => {
                if self.background.len() >= MOST_BACKGROUND {
                    self.status = 1;
                    return;
                }
                let mut process = self.child(*command);
                process.step_while_ready();
                self.effort = process.effort;
                self.background.push(process);
                self.status = 0;
            }
            Command::If { condition, then, otherwise } => {
                self.stack.push(Frame::Branch { then: *then, otherwise: otherwise.map(|otherwise| *otherwise) });
                self.condition(*condition);
            }
            Command::Loop { condition, until, body } => {
                self.stack.push(Frame::Again { condition: *condition, until, body: *body });
            }
            Command::For { variable, words, body } => {
                let words = words.iter().flat_map(|word| self.expand(word)).collect();
                self.stack.push(Frame::Each { variable, words, body: *body });
            }
            Command::Subshell(command) => {
                self.stack.push(Frame::Subshell);
                self.stack.push(Frame::Do(*command));
            }
        }
    }

    /// A process that starts from here with its own command.
    fn child(&mut self, command: Command) -> Self {
        let texts = self.files.values().chain(self.variables.values());
        self.effort += texts.map(String::len).sum::<usize>() / BYTES_OF_A_STEP;
        Self {
            stack: vec![Frame::Exec, Frame::Do(command)],
            state: State::Ready,
            pending: VecDeque::new(),
            background: Vec::new(),
            effects: Vec::new(),
            traps: BTreeMap::new(),
            ..self.clone()
        }
    }

    fn simple(&mut self, assignments: &[(String, Word)], words: &[Word], output: Option<&Output>) {
        let words: Vec<String> = words.iter().flat_map(|word| self.expand(word)).collect();
        for (name, value) in assignments {
            let value = self.text(value);
            self.variables.insert(name.clone(), value);
        }
        let printed = self.effects.len();
        match words.split_first() {
            Some((name, arguments)) => self.run(name, arguments),
            None => self.status = 0,
        }
        if let Some(output) = output {
            self.redirect(output, printed);
        }
        if self.exit_on_error && self.status != 0 && self.state == State::Ready && !self.in_condition() {
            self.exit_shell(self.status);
        }
    }

    /// Puts into a file what has been printed since.
    fn redirect(&mut self, output: &Output, since: usize) {
        let file = self.text(&output.file);
        if matches!(file.as_str(), "/dev/stdout" | "/dev/stderr" | "/proc/1/fd/1" | "/proc/1/fd/2") {
            return;
        }
        let mut text = String::new();
        for effect in self.effects.split_off(since.min(self.effects.len())) {
            match &effect.what {
                What::Printed(line) => {
                    text.push_str(line);
                    text.push('\n');
                }
                What::Exited(_) => self.effects.push(effect),
            }
        }
        if file == "/dev/null" {
            return;
        }
        let content = self.files.entry(file).or_default();
        if !output.append {
            content.clear();
        }
        // No file here grows without end.
        if content.len() < FILE_LIMIT {
            content.push_str(&text);
        }
    }

    /// What is in a file that the process has written.
    pub(crate) fn file(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether a failure here is only an answer.
    fn in_condition(&self) -> bool {
        self.stack
            .iter()
            .rev()
            .take_while(|frame| !matches!(frame, Frame::Subshell))
            .any(|frame| matches!(frame, Frame::Condition))
    }

    fn print(&mut self, line: &str) {
        if self.is_exhausted() {
            return;
        }
        self.effort += line.len() / BYTES_OF_A_STEP;
        for line in line.split('\n') {
            self.effects.push(Effect { at: self.elapsed, what: What::Printed(line.to_owned()) });
        }
    }

    fn sleep(&mut self, duration: Duration) {
        self.status = 0;
        let duration = if duration.is_zero() { duration } else { duration.max(SHORTEST_SLEEP) };
        self.state = State::Sleeping(self.elapsed.saturating_add(duration));
    }

    /// Ends the innermost shell.
    fn exit_shell(&mut self, code: i32) {
        self.status = code;
        while let Some(frame) = self.stack.pop() {
            if matches!(frame, Frame::Subshell) {
                return;
            }
        }
        self.exit(code);
    }

    fn exit(&mut self, code: i32) {
        if self.exit_code().is_none() {
            self.state = State::Exited(code);
            self.effects.push(Effect { at: self.elapsed, what: What::Exited(code) });
        }
    }
}

/// Whether a container's command is a shell line that is understood here.
pub(crate) fn is_understood(words: &[String]) -> bool {
    match shell_text(words) {
        Some(text) => shell::parse(text, 0).is_some(),
        None => words.first().is_some_and(|name| {
            matches!(name.rsplit('/').next(), Some("sleep" | "true" | "false" | "echo" | "tail" | "test"))
        }),
    }
}

/// The text of `sh -c TEXT`, whatever the shell is called.
fn shell_text(words: &[String]) -> Option<&str> {
    let (name, rest) = words.split_first()?;
    let shell = matches!(name.rsplit('/').next()?, "sh" | "bash" | "ash" | "dash");
    let position =
        rest.iter().position(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('c'))?;
    let options = rest[..position].iter().all(|word| word.starts_with('-'));
    (shell && options).then(|| rest.get(position + 1).map(String::as_str))?
}

/// A command of plain words.
fn plain(words: &[String]) -> Command {
    let word = |text: &String| Word { parts: vec![Part::Text(text.clone())], quoted: true };
    Command::Simple { assignments: Vec::new(), words: words.iter().map(word).collect(), output: None }
}
