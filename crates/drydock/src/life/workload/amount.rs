//! Amounts that are a number or a percentage of something.

use serde_json::Value;

/// Which way a percentage is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    Up,
    Down,
}

/// `3`, or `25%` of a total. What makes no sense is nothing.
pub(crate) fn resolve(amount: Option<&Value>, total: i64, rounding: Rounding) -> i64 {
    match amount {
        Some(Value::Number(number)) => number.as_i64().unwrap_or_default(),
        Some(Value::String(text)) => {
            let percent: i64 = text.strip_suffix('%').and_then(|digits| digits.parse().ok()).unwrap_or_default();
            let hundredths = percent.saturating_mul(total);
            match rounding {
                Rounding::Up => hundredths.saturating_add(99).div_euclid(100),
                Rounding::Down => hundredths.div_euclid(100),
            }
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn percentages_are_rounded_as_asked() {
        assert_eq!(resolve(Some(&json!("25%")), 3, Rounding::Up), 1);
        assert_eq!(resolve(Some(&json!("25%")), 3, Rounding::Down), 0);
        assert_eq!(resolve(Some(&json!(2)), 3, Rounding::Down), 2);
        assert_eq!(resolve(None, 3, Rounding::Up), 0);
    }
}
