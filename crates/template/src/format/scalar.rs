//! Numbers, texts and padding.

use super::Printer;
use crate::float::{self, Form};
use crate::quote::{is_printable, quote, quote_character};
use crate::utf8::{REPLACEMENT, characters, count};
use crate::value::Value;

/// What stands between `%` and the verb.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%+v`
    pub(super) plus_v: bool,
    /// `%#v`
    pub(super) sharp_v: bool,
}

impl Printer<'_> {
    fn padding(&mut self, length: usize, zero: bool) {
        let byte = if zero && !self.flags.minus { b'0' } else { b' ' };
        self.output.extend(std::iter::repeat_n(byte, length));
    }

    fn pad(&mut self, text: &[u8], zero: bool) {
        let missing = self.flags.width.unwrap_or(0).saturating_sub(count(text));
        if self.flags.minus {
            self.output.extend_from_slice(text);
            self.padding(missing, zero);
        } else {
            self.padding(missing, zero);
            self.output.extend_from_slice(text);
        }
    }

    pub(super) fn pad_text(&mut self, text: &[u8]) {
        self.pad(text, self.flags.zero);
    }

    /// The characters that the precision leaves.
    fn truncate<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let end = self.flags.precision.and_then(|most| characters(text).nth(most)).map(|(offset, ..)| offset);
        &text[..end.unwrap_or(text.len())]
    }

    pub(super) fn truncated(&mut self, text: &[u8]) {
        let text = self.truncate(text);
        self.pad_text(text);
    }

    pub(super) fn bool(&mut self, value: bool, verb: char) {
        match verb {
            't' | 'v' => self.pad_text(if value { b"true" } else { b"false" }),
            _ => self.bad_verb(Value::Bool(value), verb),
        }
    }

    pub(super) fn text(&mut self, text: &[u8], verb: char, value: Value) {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => self.truncated(text),
            'x' => self.hexadecimal(text, false),
            'X' => self.hexadecimal(text, true),
            'q' => self.quoted(text),
            _ => self.bad_verb(value, verb),
        }
    }

    fn quoted(&mut self, text: &[u8]) {
        let text = self.truncate(text);
        if self.flags.sharp && can_be_raw(text) {
            let raw = [b"`", text, b"`"].concat();
            return self.pad_text(&raw);
        }
        let quoted = quote(text, self.flags.plus);
        self.pad_text(quoted.as_bytes());
    }

    fn hexadecimal(&mut self, text: &[u8], upper: bool) {
        let length = self.flags.precision.map_or(text.len(), |most| most.min(text.len()));
        if length == 0 {
            return self.padding(self.flags.width.unwrap_or(0), self.flags.zero);
        }
        let prefix = if upper { "0X" } else { "0x" };
        let mut output = String::new();
        for (index, byte) in text[..length].iter().enumerate() {
            if index > 0 && self.flags.space {
                output.push(' ');
            }
            if self.flags.sharp && (index == 0 || self.flags.space) {
                output.push_str(prefix);
            }
            output.push_str(&if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
        }
        self.pad_text(output.as_bytes());
    }

    pub(super) fn integer(&mut self, number: u64, is_signed: bool, verb: char, value: Value) {
        match verb {
            'v' if self.flags.sharp_v && !is_signed => {
                let sharp = std::mem::replace(&mut self.flags.sharp, true);
                self.digits(number, 16, false, 'v');
                self.flags.sharp = sharp;
            }
            'v' | 'd' => self.digits(number, 10, is_signed, verb),
            'b' => self.digits(number, 2, is_signed, verb),
            'o' | 'O' => self.digits(number, 8, is_signed, verb),
            'x' | 'X' => self.digits(number, 16, is_signed, verb),
            'c' => {
                let character = character(number);
                self.pad_text(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            'q' => {
                let quoted = quote_character(character(number), self.flags.plus);
                self.pad_text(quoted.as_bytes());
            }
            'U' => self.unicode(number),
            _ => self.bad_verb(value, verb),
        }
    }

    fn unicode(&mut self, number: u64) {
        let digits = self.flags.precision.unwrap_or(4).max(4);
        let mut text = format!("U+{number:0digits$X}");
        if self.flags.sharp
            && let Some(character) =
                u32::try_from(number).ok().and_then(char::from_u32).filter(|one| is_printable(*one))
        {
            text.push_str(&format!(" '{character}'"));
        }
        self.pad(text.as_bytes(), false);
    }

    fn digits(&mut self, number: u64, base: u32, is_signed: bool, verb: char) {
        let flags = self.flags;
        let negative = is_signed && number.cast_signed() < 0;
        let size = if negative { number.wrapping_neg() } else { number };
        let mut least = 0;
        if let Some(precision) = flags.precision {
            least = precision;
            if precision == 0 && size == 0 {
                return self.padding(flags.width.unwrap_or(0), false);
            }
        } else if flags.zero
            && !flags.minus
            && let Some(width) = flags.width
        {
            least = width.saturating_sub(usize::from(negative || flags.plus || flags.space));
        }
        let digits = match (base, verb) {
            (2, _) => format!("{size:b}"),
            (8, _) => format!("{size:o}"),
            (16, 'X') => format!("{size:X}"),
            (16, _) => format!("{size:x}"),
            _ => size.to_string(),
        };
        let mut text = String::new();
        match () {
            () if negative => text.push('-'),
            () if flags.plus => text.push('+'),
            () if flags.space => text.push(' '),
            () => {}
        }
        let zeros = least.saturating_sub(digits.len());
        if verb == 'O' {
            text.push_str("0o");
        }
        if flags.sharp {
            match base {
                2 => text.push_str("0b"),
                8 if zeros == 0 && !digits.starts_with('0') => text.push('0'),
                16 => text.push_str(if verb == 'X' { "0X" } else { "0x" }),
                _ => {}
            }
        }
        text.extend(std::iter::repeat_n('0', zeros));
        text.push_str(&digits);
        self.pad(text.as_bytes(), false);
    }

    pub(super) fn float(&mut self, number: f64, verb: char, value: Value) {
        let (form, precision) = match verb {
            'v' | 'g' | 'G' => (Form::General, None),
            'e' | 'E' => (Form::Exponent, Some(6)),
            'f' | 'F' => (Form::Fixed, Some(6)),
            'b' | 'x' | 'X' => return self.binary_float(number, verb),
            _ => return self.bad_verb(value, verb),
        };
        let text = float::format(number, form, self.flags.precision.or(precision));
        let text = if matches!(verb, 'E' | 'G') {
            text.to_ascii_uppercase().replace("+INF", "+Inf").replace("-INF", "-Inf").replace("NAN", "NaN")
        } else {
            text
        };
        self.signed_float(text, number, matches!(verb, 'v' | 'g' | 'G'));
    }

    fn signed_float(&mut self, text: String, number: f64, is_general: bool) {
        let flags = self.flags;
        let (sign, mut bare) = match text.strip_prefix(['+', '-']) {
            Some(bare) if text.starts_with('-') => ('-', bare.to_owned()),
            Some(bare) => ('+', bare.to_owned()),
            None => ('+', text),
        };
        let sign = if flags.space && sign == '+' && !flags.plus { ' ' } else { sign };
        if !number.is_finite() {
            let shows_sign = if number.is_nan() { flags.space || flags.plus } else { true };
            let text = if shows_sign && (flags.plus || sign != '+' || number.is_infinite()) {
                format!("{sign}{bare}")
            } else {
                bare
            };
            return self.pad(text.as_bytes(), false);
        }
        if flags.sharp {
            bare = with_all_digits(&bare, is_general.then(|| flags.precision.unwrap_or(6)));
        }
        if flags.plus || sign != '+' {
            let width = flags.width.unwrap_or(0);
            if flags.zero && !flags.minus && width > bare.len() + 1 {
                self.output.push(sign as u8);
                self.padding(width - bare.len() - 1, true);
                return self.output.extend_from_slice(bare.as_bytes());
            }
            return self.pad_text(format!("{sign}{bare}").as_bytes());
        }
        self.pad_text(bare.as_bytes());
    }

    /// `%b`, `%x` and `%X`: the number as it is stored.
    fn binary_float(&mut self, number: f64, verb: char) {
        if !number.is_finite() {
            let text = float::format(number, Form::General, None);
            return self.signed_float(text, number, false);
        }
        let bits = number.to_bits();
        let stored = ((bits >> 52) & 0x7ff) as i64;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, exponent) = if stored == 0 { (fraction, -1074) } else { (fraction | 1 << 52, stored - 1075) };
        let sign = if number.is_sign_negative() { "-" } else { "" };
        let text = if verb == 'b' {
            format!("{sign}{mantissa}p{exponent:+}")
        } else {
            hexadecimal_float(sign, mantissa, exponent, self.flags.precision)
        };
        let text = if verb == 'X' { text.to_ascii_uppercase() } else { text };
        self.signed_float(text, number, false);
    }
}

/// A float as `0x1.8p+01`.
fn hexadecimal_float(sign: &str, mantissa: u64, exponent: i64, precision: Option<usize>) -> String {
    if mantissa == 0 {
        let fraction =
            precision.filter(|digits| *digits > 0).map_or(String::new(), |digits| format!(".{}", "0".repeat(digits)));
        return format!("{sign}0x0{fraction}p+00");
    }
    // One bit before the point, 60 after it.
    let shift = mantissa.leading_zeros() - 3;
    let mut normal = mantissa << shift;
    let mut exponent = exponent - i64::from(shift) + 60;
    if let Some(precision) = precision.filter(|precision| *precision < 15) {
        let dropped = 60 - precision as u32 * 4;
        let rest = normal & ((1 << dropped) - 1);
        normal &= !((1_u64 << dropped) - 1);
        let half = 1_u64 << (dropped - 1);
        if rest > half || (rest == half && normal & (1 << dropped) != 0) {
            normal += 1 << dropped;
        }
        if normal >> 61 != 0 {
            normal >>= 1;
            exponent += 1;
        }
    }
    let digits = format!("{:015x}", normal & ((1 << 60) - 1));
    let digits = match precision {
        None => digits.trim_end_matches('0').to_owned(),
        Some(precision) if precision <= 15 => digits[..precision].to_owned(),
        Some(precision) => format!("{digits:0<precision$}"),
    };
    let point = if digits.is_empty() { "" } else { "." };
    let (exponent_sign, exponent) = if exponent < 0 { ('-', -exponent) } else { ('+', exponent) };
    format!("{sign}0x{}{point}{digits}p{exponent_sign}{exponent:02}", normal >> 60)
}

/// A number with its point, and for `%#g` with zeros up to the precision.
fn with_all_digits(text: &str, precision: Option<usize>) -> String {
    let (number, tail) = text.find(['e', 'E']).map_or((text, ""), |at| text.split_at(at));
    let mut output = number.to_owned();
    let mut missing = precision.unwrap_or(0);
    let mut seen = false;
    for character in number.chars().filter(char::is_ascii_digit) {
        seen |= character != '0';
        missing = missing.saturating_sub(usize::from(seen));
    }
    if !number.contains('.') {
        missing = missing.saturating_sub(usize::from(number == "0"));
        output.push('.');
    }
    output.extend(std::iter::repeat_n('0', missing));
    output + tail
}

/// Whether a text can stand between backquotes.
fn can_be_raw(text: &[u8]) -> bool {
    characters(text).all(|(_, character, width)| {
        !(character == REPLACEMENT && width == 1)
            && character != '\u{feff}'
            && character != '`'
            && character != '\u{7f}'
            && (character >= ' ' || character == '\t')
    })
}

fn character(number: u64) -> char {
    u32::try_from(number).ok().and_then(char::from_u32).unwrap_or(REPLACEMENT)
}
