//! Lines of a stream, cut at a limit: memory stays bounded however long a line is.

use jobwright_engine::{Cut, Mask};
use std::io;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// Reads a stream line by line.
///
/// At most the limit is kept of a line; the rest is read and dropped, and the line ends with `…`. Values that the mask hides
/// are hidden before that, so that no part of one is left at the cut. Bytes that are not UTF-8 become `U+FFFD`.
/// [`next`](Self::next) is cancel-safe: what was read of a line is kept for the next call.
#[derive(Debug)]
pub struct Lines<R> {
    reader: BufReader<R>,
    limit: usize,
    mask: Mask,
    /// What has been read of the current line, up to the limit.
    line: Vec<u8>,
    /// Whether the current line is longer than that.
    is_cut: bool,
}

/// The limit that suits a log: longer lines are not read by people.
pub const LONGEST_LINE: usize = 8 * 1024;

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads lines of up to [`LONGEST_LINE`] bytes.
    pub fn new(stream: R, mask: &Mask) -> Self {
        Self::with_limit(stream, mask, LONGEST_LINE)
    }

    /// Reads lines of up to `limit` bytes.
    pub fn with_limit(stream: R, mask: &Mask, limit: usize) -> Self {
        Self { reader: BufReader::new(stream), limit, mask: mask.clone(), line: Vec::new(), is_cut: false }
    }

    /// The next line without its end and trailing white space; none at the end of the stream.
    pub async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok((!self.line.is_empty()).then(|| self.take(Cut::NOWHERE)));
            }
            let end = memchr::memchr(b'\n', available);
            let part = &available[..end.unwrap_or(available.len())];
            let kept = part.len().min(self.limit - self.line.len());
            self.line.extend_from_slice(&part[..kept]);
            self.is_cut |= kept < part.len();
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(self.take(Cut::NOWHERE)));
            }
        }
    }

    /// What has been read of a line that has not ended.
    pub fn take_rest(&mut self) -> Option<String> {
        (!self.line.is_empty()).then(|| self.take(Cut::END))
    }

    fn take(&mut self, cut: Cut) -> String {
        let is_cut = std::mem::take(&mut self.is_cut);
        let cut = Cut { end: cut.end || is_cut, ..cut };
        let mut line = self.mask.apply_to_bytes(&self.line, cut);
        self.line.clear();
        if is_cut {
            line.push('…');
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};

    async fn read(text: &[u8], limit: usize) -> Vec<String> {
        read_masked(text, &Mask::default(), limit).await
    }

    async fn read_masked(text: &[u8], mask: &Mask, limit: usize) -> Vec<String> {
        let mut lines = Lines::with_limit(text, mask, limit);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(line);
        }
        read
    }

    #[tokio::test]
    async fn lines_are_read_without_their_ends() {
        assert_eq!(read(b"one\r\n\ntwo \nthree", 100).await, ["one", "", "two", "three"]);
        assert_eq!(read(b"", 100).await, Vec::<String>::new());
        assert_eq!(read(b"\xff\n", 100).await, ["\u{fffd}"]);
    }

    #[tokio::test]
    async fn a_longer_line_is_cut_between_two_characters() {
        assert_eq!(read(b"12345\n123456\n1\n", 5).await, ["12345", "12345…", "1"]);
        assert_eq!(read("äöü\nx".as_bytes(), 5).await, ["äö…", "x"]);
        assert_eq!(read(b"123456", 5).await, ["12345…"]);
        assert_eq!(read(b"\xff\xff\xff\xff", 2).await, ["\u{fffd}\u{fffd}…"]);
    }

    #[tokio::test]
    async fn a_cut_line_leaves_no_part_of_a_hidden_value() {
        let mask = Mask::default();
        mask.hide(b"Qx7vZpL9");
        for before in 0..30 {
            let text = format!("{}Qx7vZpL9 after\nQx7vZpL9\n", ".".repeat(before));
            let lines = read_masked(text.as_bytes(), &mask, 20).await;
            assert!(!lines[0].contains(['Q', 'x', '7', 'v', 'Z', 'p', 'L', '9']), "{before}: {lines:?}");
            assert_eq!(lines[1], "***");
        }
        let mut lines = Lines::new(&b"words Qx7"[..], &mask);
        lines.line.extend_from_slice(b"words Qx7");
        assert_eq!(lines.take_rest().as_deref(), Some("words ***"), "the rest may follow");
    }

    /// A line that never ends.
    struct Endless;

    impl AsyncRead for Endless {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            let length = buffer.remaining();
            buffer.put_slice(&vec![b'x'; length]);
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_line_takes_no_more_memory_than_the_limit() {
        let mut lines = Lines::with_limit(Endless.take(1 << 26), &Mask::default(), 1000);
        assert_eq!(lines.next().await.unwrap().unwrap().len(), 1000 + "…".len());
        assert!(lines.line.capacity() <= 2048, "{}", lines.line.capacity());
    }

    #[tokio::test]
    async fn a_call_that_is_given_up_loses_nothing() {
        let (mut near, far) = tokio::io::duplex(64);
        let mut lines = Lines::new(far, &Mask::default());
        near.write_all(b"one tw").await.unwrap();
        tokio::select! {
            biased;
            line = lines.next() => panic!("it has not ended: {line:?}"),
            () = tokio::task::yield_now() => {}
        }
        near.write_all(b"o\nrest").await.unwrap();
        assert_eq!(lines.next().await.unwrap().as_deref(), Some("one two"));
        tokio::select! {
            biased;
            line = lines.next() => panic!("it has not ended: {line:?}"),
            () = tokio::task::yield_now() => {}
        }
        assert_eq!(lines.take_rest().as_deref(), Some("rest"));
        assert_eq!(lines.take_rest(), None);
    }
}
