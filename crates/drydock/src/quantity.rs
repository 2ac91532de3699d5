//! Resource quantities in their canonical form: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`
//! (apimachinery v0.34 `api/resource`).

use thiserror::Error;

/// The text is no quantity.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum QuantityError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// How a quantity is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    DecimalSi,
    BinarySi,
    DecimalExponent,
}

/// A number of nano-units, wide enough for every quantity the server keeps exactly.
const NANO: i128 = 1_000_000_000;
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The canonical form of a quantity.
pub(crate) fn canonical(text: &str) -> Result<String, QuantityError> {
    let (nano, format) = parse(text)?;
    Ok(write(nano, format))
}

/// A quantity in billionths of a unit.
pub(crate) fn nano_units(text: &str) -> Option<i128> {
    parse(text).ok().map(|(nano, _)| nano)
}

/// The quantity rounded up to thousandths, which is as fine as resource lists are kept.
pub(crate) fn round_up_to_milli(text: &str) -> Option<String> {
    let (nano, format) = parse(text).ok()?;
    let rest = nano.rem_euclid(NANO / 1000);
    let rounded = if rest == 0 { nano } else { nano - rest + NANO / 1000 };
    Some(write(rounded, format))
}

/// The sum of quantities, written as the first of them that is not zero.
pub(crate) fn sum<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut total = (0i128, Format::DecimalSi);
    for text in texts {
        let (nano, format) = parse(text).ok()?;
        total = (total.0.saturating_add(nano), if total.0 == 0 { format } else { total.1 });
    }
    Some(write(total.0, total.1))
}

fn parse(text: &str) -> Result<(i128, Format), QuantityError> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(QuantityError::Format);
    }
    let (format, shift) = parse_suffix(suffix)?;
    let nano = scale(whole, fraction, shift);
    Ok((if negative { -nano } else { nano }, format))
}

enum Shift {
    Ten(i32),
    Two(u32),
}

fn parse_suffix(suffix: &str) -> Result<(Format, Shift), QuantityError> {
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Ok((Format::DecimalSi, Shift::Ten(*power)));
    }
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Ok((Format::BinarySi, Shift::Two(*power)));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(if exponent.is_empty() { QuantityError::Suffix } else { QuantityError::Format });
    }
    let power = exponent.parse().unwrap_or(i32::MAX);
    Ok((Format::DecimalExponent, Shift::Ten(power)))
}

/// The number in nano-units, rounded up and capped as the server does.
fn scale(whole: &str, fraction: &str, shift: Shift) -> i128 {
    let limit = i128::from(i64::MAX) * NANO;
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    let (factor, power) = match shift {
        Shift::Ten(power) => (1i128, i64::from(power) + 9),
        Shift::Two(power) => (1i128 << power, 9),
    };
    let power = power - i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    // Beyond this many digits a number is either capped or lost in rounding.
    if i64::try_from(digits.len()).unwrap_or(i64::MAX).saturating_add(power) > 40 {
        return limit;
    }
    let kept = digits.len().min(36);
    let dropped = digits.len() - kept;
    let power = power + i64::try_from(dropped).unwrap_or(i64::MAX);
    let mut number = digits[..kept].parse::<i128>().unwrap_or(limit);
    let mut inexact = digits[kept..].bytes().any(|byte| byte != b'0');
    if power < 0 {
        number = number.checked_mul(factor).unwrap_or(limit);
        for _ in 0..power.unsigned_abs().min(80) {
            inexact |= number % 10 != 0;
            number /= 10;
        }
    } else {
        let tens = u32::try_from(power).ok().and_then(|power| 10i128.checked_pow(power));
        number = tens
            .and_then(|tens| number.checked_mul(tens))
            .and_then(|number| number.checked_mul(factor))
            .unwrap_or(limit);
    }
    (number + i128::from(inexact)).min(limit)
}

fn write(nano: i128, format: Format) -> String {
    if nano == 0 {
        return "0".to_owned();
    }
    if format == Format::BinarySi && nano % NANO == 0 && (nano / NANO).abs() >= 1024 {
        let units = nano / NANO;
        let (suffix, power) = BINARY.iter().rev().find(|(_, power)| units % (1i128 << power) == 0).unwrap_or(&("", 0));
        return format!("{}{suffix}", units >> power);
    }
    let mut number = nano;
    let mut power = -9;
    while number % 1000 == 0 && power < 18 {
        number /= 1000;
        power += 3;
    }
    if format == Format::DecimalExponent && power != 0 {
        return format!("{number}e{power}");
    }
    let suffix = DECIMAL.iter().find(|(_, known)| *known == power).map_or("", |(suffix, _)| suffix);
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms() {
        for (text, expected) in [
            ("1", "1"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("100m", "100m"),
            ("1500", "1500"),
            ("1000", "1k"),
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("1.5Gi", "1536Mi"),
            ("512", "512"),
            ("0.1m", "100u"),
            ("1e3", "1e3"),
            ("1E6", "1e6"),
            ("0", "0"),
            ("-2", "-2"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("999999999999999999999999", "9223372036854775807"),
            ("512Ki", "512Ki"),
            ("1Ki", "1Ki"),
            ("10.", "10"),
            (".5", "500m"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn quantities_can_be_rounded_and_added() {
        assert_eq!(round_up_to_milli("100u").as_deref(), Some("1m"));
        assert_eq!(round_up_to_milli("-1500u").as_deref(), Some("-1m"));
        assert_eq!(round_up_to_milli("1Gi").as_deref(), Some("1Gi"));
        assert_eq!(sum(["0", "1Gi", "1Mi"]).as_deref(), Some("1025Mi"));
        assert_eq!(sum(["100m", "1"]).as_deref(), Some("1100m"));
        assert_eq!(nano_units("2n"), Some(2));
    }

    #[test]
    fn what_is_no_quantity() {
        assert_eq!(canonical(""), Err(QuantityError::Format));
        assert_eq!(canonical("x"), Err(QuantityError::Format));
        assert_eq!(canonical("1.2.3"), Err(QuantityError::Format));
        assert_eq!(canonical("1Q"), Err(QuantityError::Suffix));
        assert_eq!(canonical("1e99999999999999"), canonical("999999999999999999999999"));
    }
}
