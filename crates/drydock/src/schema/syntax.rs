//! What is wrong with a text that should be JSON, in the words of Go's standard library.

/// How deep Go reads.
const DEPTH_LIMIT: usize = 10_000;

/// Why a text is not JSON; `None` if it is.
pub(crate) fn error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.document().err().map(|fault| match fault {
        Fault::End => "unexpected end of JSON input".to_owned(),
        Fault::Character(character, place) => format!("invalid character {} {place}", quoted(character)),
        Fault::Depth => "exceeded max depth".to_owned(),
    })
}

enum Fault {
    End,
    Character(u8, String),
    Depth,
}

/// What has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Object,
    Array,
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    /// Reads the text without a call for each level of it: the text may be deeper than the stack.
    fn document(&mut self) -> Result<(), Fault> {
        let mut open = Vec::new();
        loop {
            if self.value(&mut open)? {
                continue;
            }
            while !self.goes_on(&mut open)? {
                if open.is_empty() {
                    self.skip_blanks();
                    return match self.text.get(self.at) {
                        None => Ok(()),
                        Some(_) => self.refuse("after top-level value"),
                    };
                }
            }
        }
    }

    fn skip_blanks(&mut self) {
        while self.text.get(self.at).is_some_and(|byte| b" \t\r\n".contains(byte)) {
            self.at += 1;
        }
    }

    /// The next byte. Where the text ends inside a word, Go looks at a blank instead.
    fn next(&self) -> Result<u8, Fault> {
        self.text.get(self.at).copied().ok_or(Fault::End)
    }

    fn refuse<T>(&self, place: &str) -> Result<T, Fault> {
        Err(Fault::Character(self.next()?, place.to_owned()))
    }

    /// Reads a value up to its end, or up to the first value inside it. Says whether it is the latter.
    fn value(&mut self, open: &mut Vec<Open>) -> Result<bool, Fault> {
        self.skip_blanks();
        match self.next()? {
            b'{' => {
                self.at += 1;
                self.skip_blanks();
                if self.next()? != b'}' {
                    self.key()?;
                    return Self::enter(Open::Object, open);
                }
                self.at += 1;
            }
            b'[' => {
                self.at += 1;
                self.skip_blanks();
                if self.next()? != b']' {
                    return Self::enter(Open::Array, open);
                }
                self.at += 1;
            }
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.word("true")?,
            b'f' => self.word("false")?,
            b'n' => self.word("null")?,
            _ => return self.refuse("looking for beginning of value"),
        }
        Ok(false)
    }

    fn enter(what: Open, open: &mut Vec<Open>) -> Result<bool, Fault> {
        open.push(what);
        if open.len() > DEPTH_LIMIT { Err(Fault::Depth) } else { Ok(true) }
    }

    /// What comes after a value: another one, or the end of what it is in. Says whether it is the former.
    fn goes_on(&mut self, open: &mut Vec<Open>) -> Result<bool, Fault> {
        let Some(last) = open.last() else { return Ok(false) };
        let (end, place) = match last {
            Open::Object => (b'}', "after object key:value pair"),
            Open::Array => (b']', "after array element"),
        };
        self.skip_blanks();
        match self.next()? {
            b',' => {
                self.at += 1;
                if *last == Open::Object {
                    self.skip_blanks();
                    self.key()?;
                }
                Ok(true)
            }
            byte if byte == end => {
                self.at += 1;
                open.pop();
                Ok(false)
            }
            _ => self.refuse(place),
        }
    }

    fn key(&mut self) -> Result<(), Fault> {
        if self.next()? != b'"' {
            return self.refuse("looking for beginning of object key string");
        }
        self.string()?;
        self.skip_blanks();
        if self.next()? != b':' {
            return self.refuse("after object key");
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            match self.next()? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    match self.next()? {
                        b'u' => {
                            for _ in 0..4 {
                                self.at += 1;
                                if !self.next()?.is_ascii_hexdigit() {
                                    return self.refuse("in \\u hexadecimal character escape");
                                }
                            }
                        }
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                        _ => return self.refuse("in string escape code"),
                    }
                }
                0..0x20 => return self.refuse("in string literal"),
                _ => {}
            }
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.next()? == b'-' {
            self.at += 1;
            if !self.next()?.is_ascii_digit() {
                return self.refuse("in numeric literal");
            }
        }
        if self.next()? == b'0' {
            self.at += 1;
        } else {
            self.digits();
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            if !self.next()?.is_ascii_digit() {
                return self.refuse("after decimal point in numeric literal");
            }
            self.digits();
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.next()?, b'+' | b'-') {
                self.at += 1;
            }
            if !self.next()?.is_ascii_digit() {
                return self.refuse("in exponent of numeric literal");
            }
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Fault> {
        for expected in word.bytes() {
            let place = || format!("in literal {word} (expecting {})", quoted(expected));
            match self.text.get(self.at) {
                Some(found) if *found == expected => self.at += 1,
                // Go ends a text with a blank to see whether it is whole.
                None => return Err(Fault::Character(b' ', place())),
                Some(found) => return Err(Fault::Character(*found, place())),
            }
        }
        Ok(())
    }
}

/// A byte as Go quotes it.
fn quoted(character: u8) -> String {
    match character {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => "'\\\\'".to_owned(),
        b'\n' => "'\\n'".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        b'\r' => "'\\r'".to_owned(),
        0x20..0x7f => format!("'{}'", char::from(character)),
        0..0x20 | 0x7f => format!("'\\x{character:02x}'"),
        0x80..0xa1 | 0xad => format!("'\\u{character:04x}'"),
        _ => format!("'{}'", char::from(character)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn faults_are_told_as_go_tells_them() {
        let cases = [
            (r#"{"spec":"#, "unexpected end of JSON input"),
            ("", "unexpected end of JSON input"),
            (r#"{"a":tru"#, "invalid character ' ' in literal true (expecting 'e')"),
            (r#"{"a":1}}"#, "invalid character '}' after top-level value"),
            (r#"{"a" 1}"#, "invalid character '1' after object key"),
            ("\u{81}", "invalid character 'Â' looking for beginning of value"),
        ];
        for (text, expected) in cases {
            assert_eq!(error(text.as_bytes()).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(error(&[0x81]).unwrap(), "invalid character '\\u0081' looking for beginning of value");
        assert_eq!(error(br#" {"a": [1, -2.5e3, "\u0041", null, true, {}]} "#), None);
    }

    #[test]
    fn depth_takes_no_stack() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(error(nested(10_000).as_bytes()), None);
        assert_eq!(error(nested(1_000_000).as_bytes()).unwrap(), "exceeded max depth");
        assert_eq!(error("{\"a\":".repeat(10_000).as_bytes()).unwrap(), "unexpected end of JSON input");
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_parser(text in r#"[\[\]{}:,"0-9a\\ tfnrue.+-]{0,12}"#) {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(error(text.as_bytes()).is_none(), is_json, "{}", text);
        }
    }
}
