//! Floating-point numbers as Go prints them (`strconv.FormatFloat`).

/// How a number is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `%e`
    Exponent,
    /// `%f`
    Fixed,
    /// `%g`: whichever is shorter.
    General,
}

/// Prints a number, with as many digits as it takes if there is no precision.
pub(crate) fn format(value: f64, form: Form, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    match (form, precision) {
        (Form::Fixed, Some(precision)) => format!("{value:.precision$}"),
        (Form::Exponent, Some(precision)) => exponent(&format!("{value:.precision$e}")),
        (Form::Exponent, None) => exponent(&format!("{value:e}")),
        (Form::Fixed, None) => format!("{value}"),
        (Form::General, precision) => general(value, precision),
    }
}

/// What everything that is not told otherwise prints: `%v`.
pub(crate) fn shortest(value: f64) -> String {
    format(value, Form::General, None)
}

/// As `encoding/json` writes a number; `None` if JSON has no such number.
pub(crate) fn json(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format(value, Form::Exponent, None);
        // e-09 becomes e-9.
        return Some(text.replace("e-0", "e-"));
    }
    Some(format(value, Form::Fixed, None))
}

fn general(value: f64, precision: Option<usize>) -> String {
    let scientific = match precision {
        None => format!("{value:e}"),
        Some(precision) => format!("{value:.*e}", precision.max(1) - 1),
    };
    let Some((mantissa, exponent_text)) = scientific.split_once('e') else { return scientific };
    let point: i32 = exponent_text.parse().unwrap_or_default();
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |bare| ("-", bare));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = match precision {
        None => digits.as_str(),
        Some(_) => digits.trim_end_matches('0'),
    };
    let digits = if digits.is_empty() { "0" } else { digits };
    let mut most = match precision {
        None => 6,
        Some(precision) => precision.max(1) as i32,
    };
    let count = digits.len() as i32;
    if precision.is_some() && most > count && count > point {
        most = count;
    }
    if value != 0.0 && (point < -4 || point >= most) {
        let fraction = if digits.len() > 1 { format!(".{}", &digits[1..]) } else { String::new() };
        return exponent(&format!("{sign}{}{fraction}e{point}", &digits[..1]));
    }
    let plain = if point < 0 {
        format!("0.{}{digits}", "0".repeat((-point - 1) as usize))
    } else if count <= point + 1 {
        format!("{digits}{}", "0".repeat((point + 1 - count) as usize))
    } else {
        let whole = (point + 1) as usize;
        format!("{}.{}", &digits[..whole], &digits[whole..])
    };
    format!("{sign}{plain}")
}

/// Rust's `1e6` as Go's `1e+06`.
fn exponent(text: &str) -> String {
    let Some((mantissa, exponent)) = text.split_once('e') else { return text.to_owned() };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_in_go() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (12_345_678.0, "1.2345678e+07"),
            (123_456.5, "123456.5"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5, "-2.5"),
            (2e21, "2e+21"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(shortest(value), expected);
        }
        for (value, form, precision, expected) in [
            (1234.5, Form::Exponent, Some(6), "1.234500e+03"),
            (2.5, Form::Fixed, Some(0), "2"),
            (1.0, Form::General, Some(3), "1"),
            (123_456.0, Form::General, Some(3), "1.23e+05"),
            (100.0, Form::General, Some(10), "100"),
            (0.0, Form::General, Some(0), "0"),
            (1e6, Form::General, Some(10), "1000000"),
            (1_234_567.0, Form::General, Some(10), "1234567"),
        ] {
            assert_eq!(format(value, form, precision), expected, "{value} {form:?} {precision:?}");
        }
        assert_eq!(json(1e6).as_deref(), Some("1000000"));
        assert_eq!(json(1e21).as_deref(), Some("1e+21"));
        assert_eq!(json(1e-7).as_deref(), Some("1e-7"));
        assert_eq!(json(f64::NAN), None);
    }
}
