//! Exact decimal numbers, as shopspring/decimal has them: `addf 0.1 0.2` is 0.3.

use crate::error::Failure;
use num_bigint::BigInt;

/// A number and the power of ten that it is multiplied by.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    digits: BigInt,
    exponent: i32,
}

/// Digits after the point that a division yields.
const PRECISION: i32 = 16;

impl Decimal {
    /// The shortest decimal that is this number.
    pub(super) fn from_float(number: f64) -> Result<Self, Failure> {
        if !number.is_finite() {
            return Err(format!("Cannot create a Decimal from {}", crate::float::shortest(number)).into());
        }
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32);
        let digits = mantissa.replace('.', "").parse().unwrap_or_default();
        let exponent: i32 = exponent.parse().unwrap_or_default();
        Ok(Self { digits, exponent: exponent - fraction })
    }

    /// The nearest number.
    pub(super) fn to_float(&self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or_default()
    }

    fn aligned(&self, other: &Self) -> (BigInt, BigInt, i32) {
        let exponent = self.exponent.min(other.exponent);
        (self.scaled(exponent), other.scaled(exponent), exponent)
    }

    fn scaled(&self, exponent: i32) -> BigInt {
        &self.digits * BigInt::from(10).pow((self.exponent - exponent).unsigned_abs())
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let (one, other, exponent) = self.aligned(other);
        Self { digits: one + other, exponent }
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        let (one, other, exponent) = self.aligned(other);
        Self { digits: one - other, exponent }
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        Self { digits: &self.digits * &other.digits, exponent: self.exponent + other.exponent }
    }

    /// The quotient, rounded half away from zero.
    pub(super) fn over(&self, other: &Self) -> Result<Self, Failure> {
        let zero = BigInt::default();
        if other.digits == zero {
            return Err("decimal division by 0".into());
        }
        // The dividend gets so many digits that the quotient has its precision.
        let shift = PRECISION + self.exponent - other.exponent;
        let ten = BigInt::from(10);
        let (dividend, divisor) = if shift >= 0 {
            (&self.digits * ten.pow(shift.unsigned_abs()), other.digits.clone())
        } else {
            (self.digits.clone(), &other.digits * ten.pow(shift.unsigned_abs()))
        };
        let quotient = &dividend / &divisor;
        let rest = &dividend % &divisor;
        let double = BigInt::from(rest.magnitude().clone()) * 2;
        let is_negative = (dividend < zero) != (divisor < zero);
        let rounds = double >= BigInt::from(divisor.magnitude().clone());
        let step = BigInt::from(i32::from(rounds) * if is_negative { -1 } else { 1 });
        Ok(Self { digits: quotient + step, exponent: -PRECISION })
    }
}
