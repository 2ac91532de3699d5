//! Changes of a text that leave everything else as it is.

use crate::metadata::File;
use std::ops::Range;

/// Changes to make in a text.
pub(super) struct Edits<'a> {
    text: &'a str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> Edits<'a> {
    pub(super) fn of(file: &'a File) -> Self {
        Self { text: &file.text, edits: Vec::new() }
    }

    /// Puts another text in the place of a scalar, in the quotes that it has.
    pub(super) fn replace_scalar(&mut self, span: Range<usize>, new: &str) {
        let quote = self.text[span.clone()].chars().next().filter(|character| matches!(character, '"' | '\''));
        let quote = quote.map(String::from).unwrap_or_default();
        self.edits.push((span, format!("{quote}{new}{quote}")));
    }

    /// The text with all changes.
    pub(super) fn finish(mut self) -> String {
        self.edits.sort_by_key(|(span, _)| span.start);
        let mut text = String::with_capacity(self.text.len());
        let mut end = 0;
        for (span, new) in self.edits {
            text.push_str(&self.text[end..span.start]);
            text.push_str(&new);
            end = span.end;
        }
        text.push_str(&self.text[end..]);
        text
    }
}
