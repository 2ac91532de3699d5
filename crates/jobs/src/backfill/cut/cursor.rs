//! Walks over JSON text without making values of it: where strings, members and values begin and end.
//!
//! A parser has been over the text before. What is no JSON all the same ends the walk with an error.

use std::borrow::Cow;
use std::ops::Range;

/// Text that is no JSON, or nested deeper than anything that a cluster stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an object of the answer cannot be read")]
pub(crate) struct Unreadable;

/// A place in a text.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

/// A string as it is written, and where.
#[derive(Clone, Debug)]
pub(super) struct Text<'a> {
    /// What stands between the quotes.
    pub(super) raw: &'a [u8],
    /// With the quotes.
    pub(super) range: Range<usize>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a [u8], at: usize) -> Self {
        Self { text, at }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is not blank.
    pub(super) fn peek(&mut self) -> Result<u8, Unreadable> {
        while let Some(byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Ok(*byte);
            }
            self.at += 1;
        }
        Err(Unreadable)
    }

    /// Goes past a byte if it comes next.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Ok(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Goes past a byte.
    pub(super) fn expect(&mut self, byte: u8) -> Result<(), Unreadable> {
        if self.take(byte) { Ok(()) } else { Err(Unreadable) }
    }

    /// Goes past a string.
    pub(super) fn string(&mut self) -> Result<Text<'a>, Unreadable> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            let rest = self.text.get(self.at..).ok_or(Unreadable)?;
            let found = memchr::memchr2(b'"', b'\\', rest).ok_or(Unreadable)?;
            self.at += found + 1;
            if rest[found] == b'"' {
                return Ok(Text { raw: &self.text[start..self.at - 1], range: start - 1..self.at });
            }
            // Whatever is escaped does not end the string.
            self.at += 1;
        }
    }

    /// Goes past any value, and says where it was.
    pub(super) fn skip(&mut self) -> Result<Range<usize>, Unreadable> {
        self.peek()?;
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.text.get(self.at).ok_or(Unreadable)? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1).ok_or(Unreadable)?;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {
                    self.at += 1;
                    continue;
                }
                _ => self.scalar(),
            }
            if depth == 0 {
                return Ok(start..self.at);
            }
        }
    }

    /// Goes past a number or a word.
    fn scalar(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r' | b'"' | b':');
        self.at += rest.iter().position(ends).unwrap_or(rest.len()).max(1);
    }

    /// The value of a member of the object that begins here.
    pub(super) fn find(&self, key: &[u8]) -> Option<Cursor<'a>> {
        let mut cursor = self.clone();
        if !cursor.take(b'{') {
            return None;
        }
        loop {
            let found = cursor.string().ok()?;
            cursor.expect(b':').ok()?;
            cursor.peek().ok()?;
            if found.is(key) {
                return Some(cursor);
            }
            cursor.skip().ok()?;
            if !cursor.take(b',') {
                return None;
            }
        }
    }

    /// The last text of the list that begins here, if its last item is one.
    pub(super) fn last_text(&self) -> Option<Text<'a>> {
        let mut cursor = self.clone();
        let mut last = None;
        if !cursor.take(b'[') || cursor.take(b']') {
            return None;
        }
        loop {
            let item = cursor.clone();
            cursor.skip().ok()?;
            last.replace(item);
            if !cursor.take(b',') {
                return last?.string().ok();
            }
        }
    }

    /// The text of a member of the object that begins here.
    pub(super) fn find_text(&self, key: &[u8]) -> Option<Text<'a>> {
        self.find(key)?.string().ok()
    }
}

impl<'a> Text<'a> {
    /// Whether nothing in it is escaped.
    pub(super) fn is_plain(&self) -> bool {
        memchr::memchr(b'\\', self.raw).is_none()
    }

    /// Whether it says this, however it is written.
    pub(super) fn is(&self, other: &[u8]) -> bool {
        self.raw == other || !self.is_plain() && self.read().as_bytes() == other
    }

    /// What it says. Halves of characters, which no text can have, are marked as such.
    pub(super) fn read(&self) -> Cow<'a, str> {
        if self.is_plain() {
            return String::from_utf8_lossy(self.raw);
        }
        let quoted = [b"\"", self.raw, b"\""].concat();
        let read = serde_json::from_slice::<String>(&quoted);
        read.map_or_else(|_| String::from_utf8_lossy(self.raw), Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_they_end() {
        for (text, value) in [
            (r#""a\"b" ,"#, r#""a\"b""#),
            (r#"{"a":[1,{"b":"}"}],"c":{}} tail"#, r#"{"a":[1,{"b":"}"}],"c":{}}"#),
            ("[] ]", "[]"),
            ("-1.5e+3}", "-1.5e+3"),
            ("null,", "null"),
            (" \n true", "true"),
        ] {
            let range = Cursor::new(text.as_bytes(), 0).skip().unwrap();
            assert_eq!(&text[range], value, "{text}");
        }
    }

    #[test]
    fn what_is_no_json_ends_the_walk() {
        for text in ["", "  ", "\"abc", "\"abc\\", "{", "[1,", "}", "{\"a\":", "]"] {
            assert_eq!(Cursor::new(text.as_bytes(), 0).skip(), Err(Unreadable), "{text}");
        }
    }

    #[test]
    fn members_are_found_however_they_are_written() {
        let text = br#"{"x":{"kind":"no"},"k\u0069nd":"S\u0065cret","n":1}"#;
        let object = Cursor::new(text, 0);
        assert_eq!(object.find_text(b"kind").unwrap().read(), "Secret");
        assert!(object.find_text(b"kind").unwrap().is(b"Secret"));
        assert!(object.find(b"absent").is_none() && object.find_text(b"n").is_none());
        assert!(Cursor::new(b"{}", 0).find(b"a").is_none() && Cursor::new(b"[]", 0).find(b"a").is_none());
    }

    #[test]
    fn half_a_character_is_no_reason_to_stop() {
        let text = br#""\ud800""#;
        assert_eq!(Cursor::new(text, 0).string().unwrap().read(), "\\ud800");
    }
}
