//! How a single value is written.

use super::{Context, Data, Emitter, Flavor};
use std::borrow::Cow;

/// Columns after which a line is folded at the next space.
const WIDTH: usize = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// What a text allows.
#[expect(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
struct Analysis {
    is_multiline: bool,
    allows_plain: bool,
    allows_single_quotes: bool,
    allows_block: bool,
}

impl Emitter {
    pub(super) fn scalar(&mut self, data: &Data<'_>, context: Context) {
        let (text, style): (Cow<'_, str>, Style) = match data {
            Data::Null => ("null".into(), Style::Plain),
            Data::Bool(value) => (if *value { "true" } else { "false" }.into(), Style::Plain),
            Data::Integer(number) => (number.to_string().into(), Style::Plain),
            Data::Unsigned(number) => (number.to_string().into(), Style::Plain),
            Data::Float(number) => (float(*number).into(), Style::Plain),
            Data::Bytes(bytes) => {
                self.indicator("!!binary", true, false);
                (base64(bytes).into(), Style::Plain)
            }
            Data::Text(text) => (Cow::Borrowed(&**text), wanted_style(text)),
            Data::List(_) | Data::Map(_) => return,
        };
        let style = self.allowed_style(&text, style, context);
        let folds = !context.is_simple_key && self.flavor == Flavor::V2;
        match style {
            Style::Plain => self.plain(&text, folds),
            Style::SingleQuoted => self.single_quoted(&text, folds),
            Style::DoubleQuoted => self.double_quoted(&text, folds),
            Style::Literal => self.literal(&text),
        }
    }

    fn allowed_style(&self, text: &str, style: Style, context: Context) -> Style {
        let allowed = analyze(text, self.flavor);
        let mut style = style;
        if context.is_simple_key && allowed.is_multiline {
            style = Style::DoubleQuoted;
        }
        if style == Style::Plain && (!allowed.allows_plain || (text.is_empty() && context.is_simple_key)) {
            style = Style::SingleQuoted;
        }
        if style == Style::SingleQuoted && !allowed.allows_single_quotes {
            style = Style::DoubleQuoted;
        }
        if style == Style::Literal && (!allowed.allows_block || context.is_simple_key) {
            style = Style::DoubleQuoted;
        }
        style
    }

    /// Writes a character of a text; breaks begin a line.
    fn write(&mut self, character: char) {
        if character == '\n' {
            self.put_break();
        } else {
            self.put(character);
            if is_break(character) {
                self.column = 0;
            }
        }
    }

    /// Text in which breaks are doubled, because one of them is a space.
    fn flowing(&mut self, text: &str, folds: bool, is_quoted: bool) {
        let characters: Vec<char> = text.chars().collect();
        let (mut spaces, mut breaks) = (false, false);
        for (at, character) in characters.iter().enumerate() {
            let next_is_space = characters.get(at + 1) == Some(&' ');
            match *character {
                ' ' => {
                    let is_inside = !is_quoted || (at > 0 && at + 1 < characters.len());
                    if folds && !spaces && self.column > WIDTH && is_inside && !next_is_space {
                        self.write_indent();
                    } else {
                        self.put(' ');
                    }
                    spaces = true;
                }
                character if is_break(character) => {
                    if !breaks && character == '\n' {
                        self.put_break();
                    }
                    self.write(character);
                    self.indention = true;
                    breaks = true;
                }
                character => {
                    if breaks {
                        self.write_indent();
                    }
                    if is_quoted && character == '\'' {
                        self.put('\'');
                    }
                    self.put(character);
                    self.indention = false;
                    spaces = false;
                    breaks = false;
                }
            }
        }
    }

    fn plain(&mut self, text: &str, folds: bool) {
        if !self.whitespace {
            self.put(' ');
        }
        self.flowing(text, folds, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn single_quoted(&mut self, text: &str, folds: bool) {
        self.indicator("'", true, false);
        self.flowing(text, folds, true);
        self.indicator("'", false, false);
    }

    fn double_quoted(&mut self, text: &str, folds: bool) {
        self.indicator("\"", true, false);
        let characters: Vec<char> = text.chars().collect();
        let mut spaces = false;
        for (at, character) in characters.iter().enumerate() {
            match *character {
                ' ' => {
                    if folds && !spaces && self.column > WIDTH && at > 0 && at + 1 < characters.len() {
                        self.write_indent();
                        if characters.get(at + 1) == Some(&' ') {
                            self.put('\\');
                        }
                    } else {
                        self.put(' ');
                    }
                    spaces = true;
                }
                character if !is_printable(character) || is_break(character) || matches!(character, '"' | '\\') => {
                    for character in escape(character).chars() {
                        self.put(character);
                    }
                    spaces = false;
                }
                character => {
                    self.put(character);
                    spaces = false;
                }
            }
        }
        self.indicator("\"", false, false);
    }

    fn literal(&mut self, text: &str) {
        self.indicator("|", true, false);
        if text.starts_with(|first: char| first == ' ' || is_break(first)) {
            self.indicator("2", false, false);
        }
        let mut from_behind = text.chars().rev();
        match (from_behind.next(), from_behind.next()) {
            (Some(last), _) if !is_break(last) => self.indicator("-", false, false),
            (Some(_), None) => self.indicator("+", false, false),
            (Some(_), Some(before)) if is_break(before) => self.indicator("+", false, false),
            _ => {}
        }
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for character in text.chars() {
            if is_break(character) {
                self.write(character);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(character);
                self.indention = false;
                breaks = false;
            }
        }
    }
}

fn wanted_style(text: &str) -> Style {
    if text.contains('\n') {
        Style::Literal
    } else if means_something(text) {
        Style::DoubleQuoted
    } else {
        Style::Plain
    }
}

/// Whether a plain text would be read as something else, by any version of YAML.
fn means_something(text: &str) -> bool {
    let is_other_scalar = !matches!(crate::scalar::resolve(text), crate::Value::String(_));
    let is_special = matches!(
        text,
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" | ".nan" | ".NaN" | ".NAN"
    );
    is_other_scalar || is_special || is_base_60(text) || is_timestamp(text)
}

/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`
fn is_base_60(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = text.split(':');
    let is_number = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_digit())
            && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    if !parts.next().is_some_and(is_number) {
        return false;
    }
    let is_sixtieth = |part: &str| match part.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [tens, digit] => (b'0'..=b'5').contains(tens) && digit.is_ascii_digit(),
        _ => false,
    };
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    middle.iter().all(|part| is_sixtieth(part))
        && is_sixtieth(last)
        && fraction.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

/// Whether go-yaml reads a text as a time: `2026-1-2`, `2026-01-02T15:04:05Z`, `2026-01-02 15:04:05.5`.
fn is_timestamp(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some((text.as_bytes()[at], &text[at + 1..]))),
        None => (text, None),
    };
    let number = |part: &str, most: usize| {
        let is_number = !part.is_empty() && part.len() <= most && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse::<u32>().ok()).flatten()
    };
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (4, Some(year), Some(month), Some(day)) = (year.len(), number(year, 4), number(month, 2), number(day, 2))
    else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return false,
    };
    if !(1..=days).contains(&day) {
        return false;
    }
    let Some((separator, time)) = time else { return true };
    let (clock, has_zone) = match time.find(['Z', '+', '-']) {
        Some(at) => {
            let zone = &time[at..];
            let hours_and_minutes = zone[1..].split_once(':');
            let is_offset = hours_and_minutes.is_some_and(|(hours, minutes)| {
                hours.len() == 2
                    && minutes.len() == 2
                    && number(hours, 2).is_some_and(|hours| hours <= 24)
                    && number(minutes, 2).is_some_and(|minutes| minutes < 60)
            });
            if zone != "Z" && (zone.starts_with('Z') || !is_offset) {
                return false;
            }
            (&time[..at], true)
        }
        None => (time, false),
    };
    // With a letter between date and time there is a zone, with a space there is none.
    if has_zone == (separator == b' ') {
        return false;
    }
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let parts: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    number(hour, 2).is_some_and(|hour| hour < 24)
        && number(minute, 2).is_some_and(|minute| minute < 60)
        && number(second, 2).is_some_and(|second| second < 60)
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

/// A float as Go's `%g`.
fn float(number: f64) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if number != 0.0 && !(-4..6).contains(&exponent) {
        let (sign, size) = if exponent < 0 { ('-', -exponent) } else { ('+', exponent) };
        return format!("{mantissa}e{sign}{size:02}");
    }
    format!("{number}")
}

fn analyze(text: &str, flavor: Flavor) -> Analysis {
    let mut allowed =
        Analysis { is_multiline: false, allows_plain: true, allows_single_quotes: true, allows_block: true };
    if text.is_empty() {
        allowed.allows_block = false;
        return allowed;
    }
    let mut has_indicators = text.starts_with("---") || text.starts_with("...");
    let (mut has_special, mut has_tab, mut break_space, mut space_break) = (false, false, false, false);
    let (mut previous_space, mut previous_break, mut after_blank) = (false, false, true);
    let mut characters = text.chars().peekable();
    let mut is_first = true;
    while let Some(character) = characters.next() {
        let before_blank = characters.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
        has_indicators |= match character {
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`'
                if is_first =>
            {
                true
            }
            '?' | ':' | '-' if is_first => before_blank,
            ':' => before_blank,
            '#' => after_blank,
            _ => false,
        };
        if flavor == Flavor::V3 && character == '\t' {
            has_tab = true;
        } else if !is_printable(character) {
            has_special = true;
        }
        if character == ' ' {
            break_space |= previous_break;
            (previous_space, previous_break) = (true, false);
        } else if is_break(character) {
            allowed.is_multiline = true;
            space_break |= previous_space;
            (previous_space, previous_break) = (false, true);
        } else {
            (previous_space, previous_break) = (false, false);
        }
        after_blank = matches!(character, ' ' | '\t') || is_break(character);
        is_first = false;
    }
    let is_edge = |character: char| character == ' ' || is_break(character);
    let has_edges = text.starts_with(is_edge) || text.ends_with(is_edge);
    if has_edges || has_indicators || allowed.is_multiline || break_space || space_break || has_tab || has_special {
        allowed.allows_plain = false;
    }
    if break_space || space_break || has_tab || has_special {
        allowed.allows_single_quotes = false;
    }
    if text.ends_with(' ') || space_break || has_special {
        allowed.allows_block = false;
    }
    allowed
}

/// What ends a line in YAML 1.1.
pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What libyaml writes as it is; characters beyond the basic plane are not among it.
fn is_printable(character: char) -> bool {
    match character {
        '\n' | ' '..='~' => true,
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' => false,
        '\u{a0}'..='\u{ffff}' => true,
        _ => false,
    }
}

fn escape(character: char) -> String {
    match character {
        '\0' => "\\0".to_owned(),
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        '\u{1b}' => "\\e".to_owned(),
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\u{85}' => "\\N".to_owned(),
        '\u{2028}' => "\\L".to_owned(),
        '\u{2029}' => "\\P".to_owned(),
        _ => match u32::from(character) {
            code @ ..=0xff => format!("\\x{code:02X}"),
            code @ ..=0xffff => format!("\\u{code:04X}"),
            code => format!("\\U{code:08X}"),
        },
    }
}

/// Base64 in lines of 70 characters, as go-yaml writes it.
fn base64(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut output = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for index in 0..4 {
            let symbol = SYMBOLS[(bits >> (18 - 6 * index)) as usize & 63];
            output.push(if index <= group.len() { char::from(symbol) } else { '=' });
        }
    }
    output
}
