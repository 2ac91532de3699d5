//! What containers have printed, kept as long as their pods.

use jiff::Timestamp;
use std::collections::BTreeMap;

/// A printed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: Timestamp,
    pub(crate) text: String,
}

/// How long a log gets before what is in it goes, as in a kubelet (`containerLogMaxSize`).
const ROTATED_AT: usize = 10 << 20;

/// The lines of one run of a container.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    lines: Vec<Line>,
    /// How many bytes they have.
    size: usize,
    /// How many lines there were before them.
    gone: usize,
    /// Nothing will be added any more.
    pub(crate) closed: bool,
}

/// All logs, by the uid of the pod and the name of the container: the current run, and the one before.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    logs: BTreeMap<(String, String), Runs>,
    waiting: Vec<std::task::Waker>,
}

#[derive(Debug, Default)]
struct Runs {
    current: Option<Log>,
    previous: Option<Log>,
}

impl Log {
    fn push(&mut self, line: Line) {
        if self.size > ROTATED_AT {
            self.gone += self.lines.len();
            self.lines.clear();
            self.size = 0;
        }
        self.size += line.text.len() + 1;
        self.lines.push(line);
    }

    /// The lines that are still there.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The lines after so many.
    pub(crate) fn after(&self, count: usize) -> &[Line] {
        &self.lines[count.saturating_sub(self.gone).min(self.lines.len())..]
    }

    /// How many lines there have been.
    pub(crate) fn count(&self) -> usize {
        self.gone + self.lines.len()
    }
}

impl Logs {
    /// A container starts, for the first time or again.
    pub(crate) fn start(&mut self, pod_uid: &str, container: &str) {
        let runs = self.logs.entry((pod_uid.to_owned(), container.to_owned())).or_default();
        runs.previous = runs.current.take();
        runs.current = Some(Log::default());
        self.wake();
    }

    pub(crate) fn add(&mut self, pod_uid: &str, container: &str, line: Line) {
        if let Some(log) = self.current_mut(pod_uid, container) {
            log.push(line);
        }
        self.wake();
    }

    pub(crate) fn close(&mut self, pod_uid: &str, container: &str) {
        if let Some(log) = self.current_mut(pod_uid, container) {
            log.closed = true;
        }
        self.wake();
    }

    fn current_mut(&mut self, pod_uid: &str, container: &str) -> Option<&mut Log> {
        self.logs.get_mut(&(pod_uid.to_owned(), container.to_owned()))?.current.as_mut()
    }

    /// The log of a container's current run, or of the one before.
    pub(crate) fn get(&self, pod_uid: &str, container: &str, previous: bool) -> Option<&Log> {
        let runs = self.logs.get(&(pod_uid.to_owned(), container.to_owned()))?;
        if previous { runs.previous.as_ref() } else { runs.current.as_ref() }
    }

    /// The pod is gone, and its logs with it.
    pub(crate) fn forget(&mut self, pod_uid: &str) {
        let start = (pod_uid.to_owned(), String::new());
        let keys: Vec<_> =
            self.logs.range(start..).map(|(key, _)| key.clone()).take_while(|(uid, _)| uid == pod_uid).collect();
        for key in keys {
            self.logs.remove(&key);
        }
        self.wake();
    }

    /// Wakes whoever follows a log, at the next line of any.
    pub(crate) fn wake_on_line(&mut self, waker: &std::task::Waker) {
        if !self.waiting.iter().any(|known| known.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }

    fn wake(&mut self) {
        for waker in self.waiting.drain(..) {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_gets_too_long_starts_anew() {
        let mut log = Log::default();
        for number in 0..25 {
            log.push(Line { at: Timestamp::UNIX_EPOCH, text: number.to_string().repeat(1 << 20) });
        }
        assert_eq!(log.count(), 25);
        let shown = |lines: &[Line]| lines.iter().map(|line| line.text[..2].to_owned()).collect::<Vec<_>>();
        assert_eq!(shown(log.lines()), ["20", "21", "22", "23", "24"]);
        assert_eq!(shown(log.after(3)).len(), 5);
        assert_eq!(shown(log.after(23)), ["23", "24"]);
        assert!(log.after(99).is_empty());
    }
}
