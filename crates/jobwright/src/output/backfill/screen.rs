//! What happens in a backfill, while it happens: lines for a log, or kinds at the foot of a terminal.

use crate::output::progress::{FRAME, Loudness, SPINNER, Terminal};
use crate::output::table::cut;
use crate::output::{BAD, DIM, DOUBTFUL, count, duration};
use anstyle::Style;
use jiff::Timestamp;
use jobwright_engine::Clock;
use jobwright_jobs::backfill::{KindView, Listener, Meter, Note, Stage};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Shows what happens, in a thread of its own: what is drawn does not wait for what is done.
pub(crate) struct Screen {
    notes: Sender<Told>,
    thread: JoinHandle<()>,
}

enum Told {
    Note(Box<Note>),
    Line(String),
    End,
}

/// How long it is said only once that something is tried again.
const SAY: Duration = Duration::from_secs(5);

impl Screen {
    pub(crate) fn open(meter: &Meter, clock: Clock, loudness: Loudness, is_watched: bool) -> Self {
        let (notes, told) = channel();
        let meter = meter.clone();
        let runtime = tokio::runtime::Handle::current();
        let thread = std::thread::spawn(move || {
            // The clock of a cluster in memory is that of its runtime.
            let _entered = runtime.enter();
            show(&told, &meter, &clock, loudness, is_watched);
        });
        Self { notes, thread }
    }

    /// Where notes go.
    pub(crate) fn listener(&self) -> Listener {
        let notes = self.notes.clone();
        // Whoever showed them may have gone; the work goes on.
        Listener::new(move |note| drop(notes.send(Told::Note(Box::new(note)))))
    }

    pub(crate) fn say(&self, line: &str) {
        let _ = self.notes.send(Told::Line(format!("{DOUBTFUL}{line}{DOUBTFUL:#}")));
    }

    /// Takes away what is drawn. What comes later is not shown.
    pub(crate) fn close(self) {
        let _ = self.notes.send(Told::End);
        // If it has broken, the summary is still worth telling.
        let _ = self.thread.join();
    }
}

fn show(told: &Receiver<Told>, meter: &Meter, clock: &Clock, loudness: Loudness, is_watched: bool) {
    let is_live = is_watched && loudness != Loudness::Quiet;
    let mut terminal = Terminal::new(is_live);
    let began = clock.now();
    let mut last_retry = None;
    loop {
        loop {
            let line = match told.try_recv() {
                Ok(Told::Note(note)) => write(&note, loudness, is_live, clock.now(), &mut last_retry),
                Ok(Told::Line(line)) => (loudness != Loudness::Quiet).then_some(line),
                Err(TryRecvError::Empty) => break,
                Ok(Told::End) | Err(TryRecvError::Disconnected) => {
                    terminal.clear();
                    return;
                }
            };
            terminal.print(line.as_slice());
        }
        terminal.draw(|width, height, tick| frame(&meter.view(), began, clock.now(), width, height, tick));
        std::thread::sleep(FRAME);
    }
}

/// The line of a note, if it is worth one.
fn write(
    note: &Note,
    loudness: Loudness,
    is_live: bool,
    now: Timestamp,
    last_retry: &mut Option<Timestamp>,
) -> Option<String> {
    let style = match note {
        _ if loudness == Loudness::Quiet => return None,
        Note::Retrying { .. } | Note::Resending { .. } | Note::Ending { .. } if loudness != Loudness::Verbose => {
            let is_new = last_retry
                .is_none_or(|last| Duration::try_from(now.duration_since(last)).is_ok_and(|since| since >= SAY));
            if !is_new {
                return None;
            }
            *last_retry = Some(now);
            DOUBTFUL
        }
        Note::KindDone(kind) => {
            let is_worth_it =
                kind.counts.listed > 0 && !is_live || !kind.errors.is_empty() || loudness == Loudness::Verbose;
            if !is_worth_it {
                return None;
            }
            if kind.errors.is_empty() { DIM } else { BAD }
        }
        Note::Began { .. } => DIM,
        Note::Refused { .. } | Note::Stopping(_) => BAD,
        _ => DOUBTFUL,
    };
    Some(format!("{style}{note}{style:#}"))
}

/// The kinds that are being listed, and how far all of it has come.
fn frame(
    kinds: &[KindView],
    began: Timestamp,
    now: Timestamp,
    width: usize,
    height: usize,
    tick: usize,
) -> Vec<String> {
    let spinner = SPINNER[tick % SPINNER.len()];
    let running: Vec<&KindView> = kinds.iter().filter(|kind| kind.stage == Stage::Running).collect();
    let widest = running.iter().map(|kind| kind.name.len()).max().unwrap_or_default().min(40);
    // The terminal must not scroll, or what is drawn cannot be taken away again.
    let room = height.saturating_sub(3).max(1);
    let mut lines: Vec<String> = running.iter().take(room).map(|kind| bar(kind, widest, width)).collect();
    let done = kinds.iter().filter(|kind| matches!(kind.stage, Stage::Done | Stage::Failed)).count();
    let sent: u64 = kinds.iter().map(|kind| kind.sent).sum();
    let took = duration(Duration::try_from(now.duration_since(began)).unwrap_or_default());
    let foot = format!("{spinner} {done} of {} kinds, {} objects sent, {took}", kinds.len(), count(sent));
    lines.push(paint(&cut(&foot, width.saturating_sub(1)), DIM));
    lines
}

fn bar(kind: &KindView, widest: usize, width: usize) -> String {
    const CELLS: u64 = 20;
    let filled = kind.sent.min(kind.expected) * CELLS / kind.expected.max(1);
    let cells: String = (0..CELLS).map(|cell| if cell < filled { '█' } else { '░' }).collect();
    let line = format!("  {:widest$} {cells} {} of {}", cut(&kind.name, 40), count(kind.sent), count(kind.expected));
    cut(&line, width.saturating_sub(1))
}

fn paint(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobwright_jobs::backfill::Problem;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn kinds_that_are_being_listed_have_a_bar() {
        let kind =
            |name: &str, stage, sent, expected| KindView { name: name.to_owned(), stage, listed: sent, sent, expected };
        let kinds = [
            kind("pods", Stage::Running, 1500, 3000),
            kind("configmaps", Stage::Running, 0, 0),
            kind("nodes", Stage::Done, 3, 3),
            kind("leases", Stage::Waiting, 0, 0),
        ];
        assert_eq!(
            plain(&frame(&kinds, at(0), at(12), 100, 40, 0)),
            [
                "  pods       ██████████░░░░░░░░░░ 1,500 of 3,000",
                "  configmaps ░░░░░░░░░░░░░░░░░░░░ 0 of 0",
                "⠋ 1 of 4 kinds, 1,503 objects sent, 12s",
            ]
        );
        assert_eq!(frame(&kinds, at(0), at(12), 30, 4, 0).len(), 2, "it does not scroll");
    }

    #[test]
    fn what_is_tried_again_is_said_now_and_then() {
        let retry = Note::Retrying {
            kind: "pods".to_owned(),
            problem: Problem { status: Some(429), message: "slow".to_owned() },
            pause: Duration::from_secs(1),
        };
        let mut last = None;
        let mut say = |second, loudness| write(&retry, loudness, false, at(second), &mut last).is_some();
        assert!(say(0, Loudness::Usual) && !say(3, Loudness::Usual) && say(6, Loudness::Usual));
        assert!(say(7, Loudness::Verbose) && !say(20, Loudness::Quiet));
    }
}
