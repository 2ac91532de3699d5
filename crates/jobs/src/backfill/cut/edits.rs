//! What is taken out of a text, and what comes in its place.

use std::borrow::Cow;
use std::ops::Range;

/// Changes of a text, in the order of their places.
#[derive(Debug, Default)]
pub(super) struct Edits(Vec<(Range<usize>, Cow<'static, [u8]>)>);

impl Edits {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn remove(&mut self, range: Range<usize>) {
        self.0.push((range, Cow::Borrowed(b"")));
    }

    /// Removes a range, and what was to change inside of it.
    pub(super) fn remove_whole(&mut self, range: Range<usize>) {
        while self.0.last().is_some_and(|(last, _)| last.start >= range.start) {
            self.0.pop();
        }
        self.remove(range);
    }

    pub(super) fn replace(&mut self, range: Range<usize>, by: impl Into<Cow<'static, [u8]>>) {
        self.0.push((range, by.into()));
    }

    /// Writes a part of the text with its changes.
    pub(super) fn write(&self, text: &[u8], part: Range<usize>, out: &mut Vec<u8>) {
        let mut at = part.start;
        for (range, by) in &self.0 {
            if range.start < at || range.end > part.end {
                continue;
            }
            out.extend_from_slice(&text[at..range.start]);
            out.extend_from_slice(by);
            at = range.end;
        }
        out.extend_from_slice(&text[at..part.end]);
    }
}
