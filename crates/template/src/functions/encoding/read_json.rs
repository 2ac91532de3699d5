//! JSON with the messages of `encoding/json`.

use serde_json::Value;

/// Reads JSON; `Err` has Go's message.
pub(crate) fn read(text: &[u8]) -> Result<Value, String> {
    check(text)?;
    match serde_json::from_slice(text) {
        Ok(value) => Ok(value),
        // Go reads broken characters and lone surrogates as replacement characters.
        Err(_) => serde_json::from_str(&repaired(text)).map_err(|error| error.to_string()),
    }
}

fn repaired(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut output = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('\\') {
        output.push_str(&rest[..at]);
        let escape = &rest[at..];
        let code = |escape: &str| u32::from_str_radix(escape.get(2..6)?, 16).ok().filter(|_| escape.starts_with("\\u"));
        let (piece, length) = match code(escape) {
            Some(0xd800..=0xdbff) if matches!(escape.get(6..).and_then(code), Some(0xdc00..=0xdfff)) => {
                (&escape[..12], 12)
            }
            Some(0xd800..=0xdfff) => ("\\ufffd", 6),
            _ => {
                let length = escape.chars().take(2).map(char::len_utf8).sum();
                (&escape[..length], length)
            }
        };
        output.push_str(piece);
        rest = &escape[length..];
    }
    output + rest
}

/// What the scanner is in the middle of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Map,
    List,
}

/// Finds the first error of syntax, in Go's words.
fn check(text: &[u8]) -> Result<(), String> {
    let mut scanner = Scanner { text, at: 0 };
    let mut open: Vec<Inside> = Vec::new();
    loop {
        scanner.space();
        // A value begins here.
        match scanner.next("looking for beginning of value")? {
            b'{' => {
                scanner.space();
                if scanner.peek() == Some(b'}') {
                    scanner.at += 1;
                } else {
                    scanner.key("looking for beginning of object key string")?;
                    open.push(Inside::Map);
                    continue;
                }
            }
            b'[' => {
                scanner.space();
                if scanner.peek() == Some(b']') {
                    scanner.at += 1;
                } else {
                    open.push(Inside::List);
                    if open.len() > 10_000 {
                        return Err("exceeded max depth".to_owned());
                    }
                    continue;
                }
            }
            b'"' => scanner.string()?,
            b'-' => match scanner.next("in numeric literal")? {
                b'0' => scanner.fraction()?,
                b'1'..=b'9' => scanner.digits_and_fraction()?,
                _ => return Err(scanner.invalid("in numeric literal")),
            },
            b'0' => scanner.fraction()?,
            b'1'..=b'9' => scanner.digits_and_fraction()?,
            b't' => scanner.word("true")?,
            b'f' => scanner.word("false")?,
            b'n' => scanner.word("null")?,
            _ => return Err(scanner.invalid("looking for beginning of value")),
        }
        // A value ends here.
        loop {
            scanner.space();
            match open.last().copied() {
                None => {
                    return if scanner.peek().is_none() {
                        Ok(())
                    } else {
                        scanner.at += 1;
                        Err(scanner.invalid("after top-level value"))
                    };
                }
                Some(Inside::List) => match scanner.next("after array element")? {
                    b',' => break,
                    b']' => {
                        open.pop();
                    }
                    _ => return Err(scanner.invalid("after array element")),
                },
                Some(Inside::Map) => match scanner.next("after object key:value pair")? {
                    b',' => {
                        scanner.space();
                        scanner.key("looking for beginning of object key string")?;
                        break;
                    }
                    b'}' => {
                        open.pop();
                    }
                    _ => return Err(scanner.invalid("after object key:value pair")),
                },
            }
        }
    }
}

struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self, _: &str) -> Result<u8, String> {
        let byte = self.peek().ok_or("unexpected end of JSON input")?;
        self.at += 1;
        Ok(byte)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The error that the last byte is wrong.
    fn invalid(&self, context: &str) -> String {
        let byte = self.text.get(self.at.saturating_sub(1)).copied().unwrap_or_default();
        let shown = match byte {
            b'\'' => r"'\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            _ => crate::quote::quote_character(char::from(byte), false),
        };
        format!("invalid character {shown} {context}")
    }

    fn key(&mut self, context: &str) -> Result<(), String> {
        if self.next(context)? != b'"' {
            return Err(self.invalid(context));
        }
        self.string()?;
        self.space();
        if self.next("after object key")? != b':' {
            return Err(self.invalid("after object key"));
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        loop {
            match self.next("in string literal")? {
                b'"' => return Ok(()),
                b'\\' => match self.next("in string escape code")? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            if !self.next("in \\u hexadecimal character escape")?.is_ascii_hexdigit() {
                                return Err(self.invalid("in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    _ => return Err(self.invalid("in string escape code")),
                },
                byte if byte < b' ' => return Err(self.invalid("in string literal")),
                _ => {}
            }
        }
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        for (index, expected) in word.bytes().enumerate().skip(1) {
            if self.next("")? != expected {
                return Err(self.invalid(&format!(
                    "in literal {word} (expecting {})",
                    crate::quote::quote_character(char::from(word.as_bytes()[index]), false)
                )));
            }
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn digits_and_fraction(&mut self) -> Result<(), String> {
        self.digits();
        self.fraction()
    }

    fn fraction(&mut self) -> Result<(), String> {
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !self.next("")?.is_ascii_digit() {
                return Err(self.invalid("after decimal point in numeric literal"));
            }
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.next("")?.is_ascii_digit() {
                return Err(self.invalid("in exponent of numeric literal"));
            }
            self.digits();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_go() {
        for (text, message) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("a", "invalid character 'a' looking for beginning of value"),
            ("{a", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("1 2", "invalid character '2' after top-level value"),
            ("tru3", "invalid character '3' in literal true (expecting 'e')"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
        ] {
            assert_eq!(read(text.as_bytes()), Err(message.to_owned()), "{text}");
        }
        assert_eq!(read(br#"{"a": ["\ud800", 1e3, null]}"#), Ok(serde_json::json!({"a": ["\u{fffd}", 1000.0, null]})));
    }
}
