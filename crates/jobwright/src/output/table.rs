//! Tables for people: columns as wide as they need to be, the last one as wide as the terminal allows.

use unicode_width::UnicodeWidthStr as _;

/// A table in the making.
pub(crate) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// A text, and how it is shown.
pub(crate) struct Cell {
    text: String,
    style: anstyle::Style,
}

impl Cell {
    pub(crate) fn styled(text: impl Into<String>, style: anstyle::Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, anstyle::Style::new())
    }
}

impl Table {
    pub(crate) fn new(heads: &[&'static str]) -> Self {
        Self { heads: heads.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The lines of the table. What does not fit into the last column goes on below.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        let columns = self.heads.len();
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width());
            cells.chain([self.heads[column].width()]).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        let before: usize = widths[..columns.saturating_sub(1)].iter().map(|width| width + 2).sum();
        let room = width.saturating_sub(before).max(20);
        let mut lines = Vec::new();
        let dim = super::DIM;
        let heads = self.heads.iter().zip(&widths).map(|(head, width)| pad(&head.to_uppercase(), *width));
        lines.push(format!("{dim}{}{dim:#}", heads.collect::<Vec<_>>().join("  ").trim_end()));
        for row in &self.rows {
            let Some((last, first)) = row.split_last() else { continue };
            let mut line = String::new();
            for (cell, width) in first.iter().zip(&widths) {
                let style = cell.style;
                line.push_str(&format!("{style}{}{style:#}  ", pad(&cell.text, *width)));
            }
            let mut parts = wrap(&last.text, room).into_iter();
            let style = last.style;
            lines.push(format!("{line}{style}{}{style:#}", parts.next().unwrap_or_default()).trim_end().to_owned());
            lines.extend(parts.map(|part| format!("{}{style}{part}{style:#}", " ".repeat(before))));
        }
        lines
    }
}

fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// A text in lines of no more than this width, cut at spaces where there are any.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        while line.width() > width {
            let rest = line.split_off(fitting(&line, width));
            lines.push(std::mem::replace(&mut line, rest));
        }
    }
    lines.push(line);
    lines
}

/// A text cut to a width, with a sign that it was.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    format!("{}…", &text[..fitting(text, width.saturating_sub(1))])
}

/// How many bytes of a text fit into a width.
fn fitting(text: &str, width: usize) -> usize {
    let mut taken = 0;
    for (index, character) in text.char_indices() {
        taken += unicode_width::UnicodeWidthChar::width(character).unwrap_or_default();
        if taken > width {
            return index.max(usize::from(index == 0) * character.len_utf8());
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_the_last_one_goes_on_below() {
        let mut table = Table::new(&["job", "reason"]);
        table.row(vec!["migrate".into(), "already succeeded in run 7, and that was a while ago".into()]);
        table.row(vec!["a".into(), "".into()]);
        let lines: Vec<String> =
            table.lines(36).iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        assert_eq!(
            lines,
            ["JOB      REASON", "migrate  already succeeded in run 7,", "         and that was a while ago", "a"]
        );
    }

    #[test]
    fn texts_are_cut_by_width_and_not_by_bytes() {
        assert_eq!(wrap("ääää ää", 4), ["ääää", "ää"]);
        assert_eq!(wrap("longerthanthis x", 6), ["longer", "thanth", "is x"]);
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("short", 10), "short");
        assert_eq!(wrap("", 5), [""]);
    }
}
