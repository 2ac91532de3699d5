//! What plain texts mean, as go-yaml v2 decides it (`resolve.go`), and after it Kubernetes and Helm.

use crate::node::Value;
use serde_json::Number;

/// What a text without quotes and tag means.
pub(crate) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Value::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        // JSON has no such numbers; what comes of them is an error further on, and a text is as good.
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" | ".nan" | ".NaN"
        | ".NAN" => return Value::String(text.to_owned()),
        _ => {}
    }
    let may_be_number = text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.'));
    may_be_number.then(|| number(text)).flatten().map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    let plain = text.replace('_', "");
    integer(&plain).or_else(|| if is_float(&plain) { plain.parse().ok().and_then(Number::from_f64) } else { None })
}

/// An integer in any base that Go's `strconv` takes, which is not what YAML 1.2 takes: `0755` is octal.
fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let size = u64::from_str_radix(digits, base).ok()?;
    match (negative, i64::try_from(size)) {
        (false, _) => Some(size.into()),
        (true, Ok(size)) => Some((-size).into()),
        (true, Err(_)) => (size == 1 << 63).then(|| i64::MIN.into()),
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_is_number = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    mantissa_is_number && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_texts_mean_what_go_takes_them_for() {
        for (text, expected) in [
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("y", json!(true)),
            ("~", json!(null)),
            ("", json!(null)),
            ("0755", json!(493)),
            ("0o17", json!(15)),
            ("0x1F", json!(31)),
            ("-0b11", json!(-3)),
            ("1_000", json!(1000)),
            ("+12", json!(12)),
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("1e3", json!(1000.0)),
            (".5", json!(0.5)),
            ("1.", json!(1.0)),
            ("089", json!(89.0)),
            ("99999999999999999999", json!(1e20)),
            ("1.2.3", json!("1.2.3")),
            ("1e", json!("1e")),
            ("-", json!("-")),
            ("+-1", json!("+-1")),
            ("yEs", json!("yEs")),
            ("2026-01-01", json!("2026-01-01")),
            (".inf", json!(".inf")),
            ("12:30", json!("12:30")),
            ("0x", json!("0x")),
        ] {
            let node = crate::Node { span: 0..0, style: crate::Style::Plain, value: resolve(text) };
            assert_eq!(node.to_json(), expected, "{text}");
        }
    }
}
