//! Numbers as Go writes them in source text.

/// A number of a template: everything that it can be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Number {
    /// As it is written.
    pub(crate) text: Box<str>,
    pub(crate) integer: Option<i64>,
    pub(crate) unsigned: Option<u64>,
    pub(crate) float: Option<f64>,
}

/// What a number is where no type is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ideal {
    Int(i64),
    Float(f64),
    /// It is a whole number, and too large.
    Overflow,
}

impl Number {
    /// A character in single quotes.
    pub(crate) fn from_character(text: &str, code: u32) -> Self {
        let code = u64::from(code);
        Self { text: text.into(), integer: i64::try_from(code).ok(), unsigned: Some(code), float: Some(code as f64) }
    }

    /// Reads a number; `Err` has Go's message.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let quoted = || crate::quote::quote(text.as_bytes(), false);
        let mut number = Self {
            text: text.into(),
            integer: parse_int(text, 0).ok(),
            unsigned: parse_uint(text, 0).ok(),
            float: None,
        };
        if number.integer == Some(0) {
            number.unsigned = Some(0);
        }
        if let Some(integer) = number.integer {
            number.float = Some(integer as f64);
        } else if let Some(unsigned) = number.unsigned {
            number.float = Some(unsigned as f64);
        } else if let Ok(float) = parse_float(text) {
            if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                return Err(format!("integer overflow: {}", quoted()));
            }
            number.float = Some(float);
            number.integer = Some(float as i64).filter(|integer| *integer as f64 == float && float.abs() < 9.3e18);
            number.unsigned = Some(float as u64).filter(|unsigned| *unsigned as f64 == float && float < 1.85e19);
        }
        if number.float.is_none() {
            return Err(format!("illegal number syntax: {}", quoted()));
        }
        Ok(number)
    }

    /// What it is where no type is asked for.
    pub(crate) fn ideal(&self) -> Ideal {
        let bytes = self.text.as_bytes();
        let is_hexadecimal = matches!(bytes, [b'0', b'x' | b'X', _, ..]) && !self.text.contains(['p', 'P']);
        let is_character = bytes.first() == Some(&b'\'');
        match (self.float, self.integer) {
            (Some(float), _) if !is_hexadecimal && !is_character && self.text.contains(['.', 'e', 'E', 'p', 'P']) => {
                Ideal::Float(float)
            }
            (_, Some(integer)) => Ideal::Int(integer),
            _ => Ideal::Overflow,
        }
    }
}

/// Why a text is no number, in the words of `strconv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotNumber {
    Syntax,
    /// With the nearest number that fits.
    Range(i64),
}

/// `strconv.ParseInt` with 64 bits.
pub(crate) fn parse_int(text: &str, base: u32) -> Result<i64, NotNumber> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let size = match parse_uint(digits, base) {
        Ok(size) => size,
        Err(NotNumber::Syntax) => return Err(NotNumber::Syntax),
        Err(NotNumber::Range(_)) => u64::MAX,
    };
    match (negative, i64::try_from(size)) {
        (false, Ok(size)) => Ok(size),
        (true, Ok(size)) => Ok(-size),
        (true, Err(_)) if size == 1 << 63 => Ok(i64::MIN),
        (true, Err(_)) => Err(NotNumber::Range(i64::MIN)),
        (false, Err(_)) => Err(NotNumber::Range(i64::MAX)),
    }
}

/// `strconv.ParseUint` with 64 bits. With base 0, the prefix decides, and underscores may separate digits.
pub(crate) fn parse_uint(text: &str, base: u32) -> Result<u64, NotNumber> {
    let lower = text.to_ascii_lowercase();
    let (radix, digits) = match (base, lower.as_bytes()) {
        (0, [b'0', b'x', _, ..]) => (16, &lower[2..]),
        (0, [b'0', b'b', _, ..]) => (2, &lower[2..]),
        (0, [b'0', b'o', _, ..]) => (8, &lower[2..]),
        (0, [b'0', _, ..]) => (8, &lower[1..]),
        (0, _) => (10, lower.as_str()),
        (base, _) => (base, lower.as_str()),
    };
    if digits.is_empty() || (lower.contains('_') && (base != 0 || !underscores_are_fine(&lower))) {
        return Err(NotNumber::Syntax);
    }
    let mut sum: u64 = 0;
    let mut overflows = false;
    for character in digits.chars().filter(|character| *character != '_') {
        let digit = character.to_digit(radix).ok_or(NotNumber::Syntax)?;
        match sum.checked_mul(u64::from(radix)).and_then(|sum| sum.checked_add(u64::from(digit))) {
            Some(next) => sum = next,
            None => overflows = true,
        }
    }
    if overflows { Err(NotNumber::Range(i64::MAX)) } else { Ok(sum) }
}

/// Underscores stand between digits, or between a prefix and digits.
fn underscores_are_fine(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let has_prefix = matches!(text.as_bytes(), [b'0', b'x' | b'b' | b'o', ..]);
    let (mut previous, rest) = if has_prefix { ('0', &text[2..]) } else { ('^', text) };
    let is_digit = |character: char| character.is_ascii_digit() || (has_prefix && character.is_ascii_hexdigit());
    for character in rest.chars() {
        match character {
            '_' if previous != '0' => return false,
            '_' => previous = '_',
            _ if is_digit(character) => previous = '0',
            _ if previous == '_' => return false,
            _ => previous = '!',
        }
    }
    previous != '_'
}

/// `strconv.ParseFloat` with 64 bits: what is too large is infinite, as `Err(Range)` with the value lost is to callers.
pub(crate) fn parse_float(text: &str) -> Result<f64, NotNumber> {
    let lower = text.to_ascii_lowercase();
    let bare = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    if matches!(bare, "inf" | "infinity" | "nan") {
        return lower.parse().map_err(|_| NotNumber::Syntax);
    }
    if lower.contains('_') && !underscores_are_fine(&lower) {
        return Err(NotNumber::Syntax);
    }
    let plain = lower.replace('_', "");
    if let Some(hexadecimal) = plain.strip_prefix(['+', '-']).unwrap_or(&plain).strip_prefix("0x") {
        let size = parse_hexadecimal_float(hexadecimal).ok_or(NotNumber::Syntax)?;
        return Ok(if plain.starts_with('-') { -size } else { size });
    }
    if plain.is_empty() || !plain.bytes().all(|byte| byte.is_ascii_digit() || b"+-.e".contains(&byte)) {
        return Err(NotNumber::Syntax);
    }
    let float: f64 = plain.parse().map_err(|_| NotNumber::Syntax)?;
    if float.is_infinite() { Err(NotNumber::Range(0)) } else { Ok(float) }
}

fn parse_hexadecimal_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut size = 0.0;
    for character in whole.chars().chain(fraction.chars()) {
        size = size * 16.0 + f64::from(character.to_digit(16)?);
    }
    let exponent: i32 = exponent.parse().ok()?;
    let shift = exponent.saturating_sub(i32::try_from(fraction.len()).ok()?.saturating_mul(4));
    Some(size * f64::powi(2.0, shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_go_takes_them_for() {
        for (text, expected) in [
            ("1", Ideal::Int(1)),
            ("+7", Ideal::Int(7)),
            ("-0x1F", Ideal::Int(-31)),
            ("1_000", Ideal::Int(1000)),
            ("0b11", Ideal::Int(3)),
            ("0o17", Ideal::Int(15)),
            ("017", Ideal::Int(15)),
            ("1e3", Ideal::Float(1000.0)),
            (".5", Ideal::Float(0.5)),
            ("5.", Ideal::Float(5.0)),
            ("0x1p-2", Ideal::Float(0.25)),
            ("0xep1", Ideal::Float(28.0)),
            ("18446744073709551615", Ideal::Overflow),
            ("9223372036854775807", Ideal::Int(i64::MAX)),
        ] {
            assert_eq!(Number::parse(text).map(|number| number.ideal()), Ok(expected), "{text}");
        }
        for text in ["1__0", "_1", "1_", "08", "0x", "1e", ".", "-", "1e400"] {
            assert!(Number::parse(text).is_err(), "{text}");
        }
        assert_eq!(Number::parse("99999999999999999999"), Err("integer overflow: \"99999999999999999999\"".to_owned()));
    }
}
