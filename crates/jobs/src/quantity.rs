//! Sizes as Kubernetes writes them: `30Gi`, `500M`, `1e9`.

use std::fmt;
use std::str::FromStr;

/// A size in bytes, as it was written.
#[derive(Clone, Debug)]
pub struct Quantity {
    text: String,
    bytes: u128,
}

/// A text that is no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no size: `30Gi` is one")]
pub struct NoQuantity(String);

const UNITS: [(&str, u128); 12] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
];

impl FromStr for Quantity {
    type Err = NoQuantity;

    fn from_str(text: &str) -> Result<Self, NoQuantity> {
        let refuse = || NoQuantity(text.to_owned());
        let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
        let (number, factor) = unit.map_or((text, 1), |(unit, factor)| (&text[..text.len() - unit.len()], *factor));
        let bytes = match (number.parse::<u128>(), number.parse::<f64>()) {
            (Ok(whole), _) => whole.checked_mul(factor).ok_or_else(refuse)?,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "sizes with a fraction are rounded up to a byte, and negative ones were refused"
            )]
            (_, Ok(fraction))
                if fraction.is_finite() && (0.0..1e30).contains(&fraction) && !number.starts_with('-') =>
            {
                (fraction * factor as f64).ceil() as u128
            }
            _ => return Err(refuse()),
        };
        Ok(Self { text: text.to_owned(), bytes })
    }
}

impl Quantity {
    /// How many bytes.
    pub fn bytes(&self) -> u128 {
        self.bytes
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_compared_by_what_they_mean() {
        let size = |text: &str| text.parse::<Quantity>().unwrap();
        assert_eq!(size("1Gi"), size("1024Mi"));
        assert_eq!(size("1.5Gi").bytes(), 1_610_612_736);
        assert_eq!(size("1e3"), size("1k"));
        assert!(size("1G") < size("1Gi") && size("30Gi") < size("50Gi"));
        for text in ["", "Gi", "-1Gi", "1 Gi", "ten", "1e400", "NaN"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }
}
