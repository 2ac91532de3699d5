//! The foot of a terminal: a few lines that are drawn again and again, below lines that stay.

use crate::output;
use anstream::ColorChoice;
use std::io::Write as _;

/// A terminal, or whatever takes its place.
pub(crate) struct Terminal {
    is_live: bool,
    has_colours: bool,
    drawn: usize,
    tick: usize,
}

impl Terminal {
    pub(crate) fn new(is_live: bool) -> Self {
        let has_colours = anstream::AutoStream::choice(&std::io::stderr()) != ColorChoice::Never;
        Self { is_live, has_colours, drawn: 0, tick: 0 }
    }

    /// Lines that stay.
    pub(crate) fn print(&mut self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.clear();
        self.write(lines);
    }

    /// The lines at the foot, as things are now, for a width, a height and a turn of the spinner.
    pub(crate) fn draw(&mut self, frame: impl FnOnce(usize, usize, usize) -> Vec<String>) {
        if !self.is_live {
            return;
        }
        self.tick += 1;
        let lines = frame(output::width(), output::height(), self.tick);
        self.clear();
        self.drawn = lines.len();
        self.write(&lines);
    }

    /// Takes the lines at the foot away.
    pub(crate) fn clear(&mut self) {
        if self.drawn > 0 {
            // If the terminal is gone there is nobody to tell.
            let _ = write!(std::io::stderr(), "\x1b[{}A\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }

    fn write(&self, lines: &[String]) {
        let mut text = String::new();
        for line in lines {
            if self.has_colours {
                text.push_str(line);
            } else {
                text.push_str(&anstream::adapter::strip_str(line).to_string());
            }
            text.push('\n');
        }
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
