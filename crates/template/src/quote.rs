//! Go's string literals (`strconv.Quote`, `strconv.Unquote`).

use crate::utf8::{REPLACEMENT, characters, decode, push};

/// A text in quotes, with escapes, as Go prints it. With `ascii`, everything beyond ASCII is escaped, too.
pub(crate) fn quote(text: &[u8], ascii: bool) -> String {
    let mut output = String::with_capacity(text.len() + 2);
    output.push('"');
    for (offset, character, width) in characters(text) {
        if width == 1 && character == REPLACEMENT {
            output.push_str(&format!("\\x{:02x}", text[offset]));
        } else {
            escape(&mut output, character, '"', ascii);
        }
    }
    output.push('"');
    output
}

/// A character in single quotes, as Go prints it.
pub(crate) fn quote_character(character: char, ascii: bool) -> String {
    let mut output = String::from("'");
    escape(&mut output, character, '\'', ascii);
    output.push('\'');
    output
}

fn escape(output: &mut String, character: char, quote: char, ascii: bool) {
    if character == quote || character == '\\' {
        output.push('\\');
        output.push(character);
        return;
    }
    if (!ascii || character.is_ascii()) && is_printable(character) {
        output.push(character);
        return;
    }
    match character {
        '\x07' => output.push_str("\\a"),
        '\x08' => output.push_str("\\b"),
        '\x0c' => output.push_str("\\f"),
        '\n' => output.push_str("\\n"),
        '\r' => output.push_str("\\r"),
        '\t' => output.push_str("\\t"),
        '\x0b' => output.push_str("\\v"),
        _ if character < ' ' || character == '\x7f' => output.push_str(&format!("\\x{:02x}", u32::from(character))),
        _ if u32::from(character) < 0x10000 => output.push_str(&format!("\\u{:04x}", u32::from(character))),
        _ => output.push_str(&format!("\\U{:08x}", u32::from(character))),
    }
}

/// Whether Go prints a character as it is (`strconv.IsPrint`).
pub(crate) fn is_printable(character: char) -> bool {
    match character {
        ' '..='~' => true,
        _ if character.is_ascii() => false,
        '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{ff}' => true,
        '\u{80}'..='\u{a0}' | '\u{ad}' => false,
        // Format characters, separators, private use and what is not assigned.
        '\u{600}'..='\u{605}'
        | '\u{61c}'
        | '\u{6dd}'
        | '\u{70f}'
        | '\u{180e}'
        | '\u{1680}'
        | '\u{2000}'..='\u{200f}'
        | '\u{2028}'..='\u{202f}'
        | '\u{205f}'..='\u{206f}'
        | '\u{3000}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{fffe}'..='\u{ffff}'
        | '\u{e0000}'..='\u{10ffff}' => false,
        _ => true,
    }
}

/// What a Go literal in double quotes or backquotes stands for; `None` if it is none.
pub(crate) fn unquote(literal: &[u8]) -> Option<Vec<u8>> {
    let (&quote, rest) = literal.split_first()?;
    let (&last, inner) = rest.split_last()?;
    if last != quote {
        return None;
    }
    match quote {
        b'`' => (!inner.contains(&b'`')).then(|| inner.iter().copied().filter(|byte| *byte != b'\r').collect()),
        b'"' => {
            let mut output = Vec::with_capacity(inner.len());
            let mut rest = inner;
            while !rest.is_empty() {
                if rest[0] == b'"' || rest[0] == b'\n' {
                    return None;
                }
                let (unit, taken) = unquote_unit(rest, b'"')?;
                match unit {
                    Unit::Byte(byte) => output.push(byte),
                    Unit::Character(character) => push(&mut output, character),
                }
                rest = &rest[taken..];
            }
            Some(output)
        }
        _ => None,
    }
}

/// What an escape stands for.
enum Unit {
    Byte(u8),
    Character(char),
}

/// The character of a literal in single quotes; `Err` has Go's message.
pub(crate) fn unquote_character(literal: &[u8]) -> Result<u32, String> {
    let syntax = || "invalid syntax".to_owned();
    let inner = literal.get(1..).filter(|inner| !inner.is_empty()).ok_or_else(syntax)?;
    if inner[0] == b'\'' {
        return Err(syntax());
    }
    let (unit, taken) = unquote_unit(inner, b'\'').ok_or_else(syntax)?;
    if &inner[taken..] != b"'" {
        return Err(format!("malformed character constant: {}", String::from_utf8_lossy(literal)));
    }
    Ok(match unit {
        Unit::Byte(byte) => u32::from(byte),
        Unit::Character(character) => u32::from(character),
    })
}

fn unquote_unit(text: &[u8], quote: u8) -> Option<(Unit, usize)> {
    if text[0] != b'\\' {
        let (character, width) = decode(text)?;
        // Bytes that are no UTF-8 stay as they are.
        let unit =
            if character == REPLACEMENT && width == 1 { Unit::Byte(text[0]) } else { Unit::Character(character) };
        return Some((unit, width));
    }
    let escape = *text.get(1)?;
    let simple = |character| Some((Unit::Character(character), 2));
    match escape {
        b'a' => simple('\x07'),
        b'b' => simple('\x08'),
        b'f' => simple('\x0c'),
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'v' => simple('\x0b'),
        b'\\' => simple('\\'),
        b'\'' | b'"' => (escape == quote).then(|| (Unit::Character(char::from(escape)), 2)),
        b'x' | b'u' | b'U' => {
            let digits = match escape {
                b'x' => 2,
                b'u' => 4,
                _ => 8,
            };
            let code = number(text.get(2..2 + digits)?, 16)?;
            let unit = if escape == b'x' {
                Unit::Byte(u8::try_from(code).ok()?)
            } else {
                Unit::Character(char::from_u32(code)?)
            };
            Some((unit, 2 + digits))
        }
        b'0'..=b'7' => Some((Unit::Byte(u8::try_from(number(text.get(1..4)?, 8)?).ok()?), 4)),
        _ => None,
    }
}

fn number(digits: &[u8], base: u32) -> Option<u32> {
    digits.iter().try_fold(0_u32, |sum, digit| sum.checked_mul(base)?.checked_add(char::from(*digit).to_digit(base)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_escape_what_go_escapes() {
        for (text, expected) in [
            (&b"a\"b\\"[..], r#""a\"b\\""#),
            (b"\x00\x07\n\x7f", r#""\x00\a\n\x7f""#),
            ("héllo\u{a0}\u{feff}😀".as_bytes(), "\"héllo\\u00a0\\ufeff😀\""),
            (b"\xff", r#""\xff""#),
            ("\u{fffd}".as_bytes(), "\"\u{fffd}\""),
        ] {
            assert_eq!(quote(text, false), expected);
        }
        assert_eq!(quote("é😀".as_bytes(), true), r#""\u00e9\U0001f600""#);
    }

    #[test]
    fn literals_are_read_back() {
        for (literal, expected) in [
            (&br#""a\tb\x41\u00e9\101\"""#[..], Some("a\tbAéA\"".as_bytes().to_vec())),
            (b"`a\r\n\\n`", Some(b"a\n\\n".to_vec())),
            (br#""\'""#, None),
            (br#""\z""#, None),
            (b"\"a\nb\"", None),
            (b"\"\xff\"", Some(b"\xff".to_vec())),
            (b"\"", None),
        ] {
            assert_eq!(unquote(literal), expected, "{}", String::from_utf8_lossy(literal));
        }
        assert_eq!(unquote_character(br"'\n'"), Ok(10));
        assert!(unquote_character(b"'ab'").is_err());
        assert!(unquote_character(b"''").is_err());
    }
}
