//! Large numbers modulo others, and primes.

use crate::environment::Random;
use num_bigint::BigUint;

/// Powers modulo an odd number, in Montgomery's form.
pub(super) struct Modulus {
    limbs: Vec<u64>,
    inverse: u64,
    one: Vec<u64>,
    square: Vec<u64>,
}

impl Modulus {
    pub(super) fn new(modulus: &BigUint) -> Self {
        let limbs = modulus.to_u64_digits();
        let bits = limbs.len() as u64 * 64;
        let mut inverse = 1_u64;
        for _ in 0..6 {
            inverse =
                inverse.wrapping_mul(2_u64.wrapping_sub(limbs.first().copied().unwrap_or(1).wrapping_mul(inverse)));
        }
        let padded = |number: BigUint| {
            let mut digits = number.to_u64_digits();
            digits.resize(limbs.len(), 0);
            digits
        };
        let one = padded((BigUint::from(1_u8) << bits) % modulus);
        let square = padded((BigUint::from(1_u8) << (bits * 2)) % modulus);
        Self { inverse: inverse.wrapping_neg(), one, square, limbs }
    }

    fn multiply(&self, one: &[u64], other: &[u64]) -> Vec<u64> {
        let count = self.limbs.len();
        let mut sum = vec![0_u64; count + 2];
        for digit in one {
            let mut carry = 0_u128;
            for (slot, factor) in sum.iter_mut().zip(other) {
                carry += u128::from(*slot) + u128::from(*digit) * u128::from(*factor);
                *slot = carry as u64;
                carry >>= 64;
            }
            carry += u128::from(sum[count]);
            sum[count] = carry as u64;
            sum[count + 1] = (carry >> 64) as u64;
            let quotient = sum[0].wrapping_mul(self.inverse);
            let mut carry = (u128::from(sum[0]) + u128::from(quotient) * u128::from(self.limbs[0])) >> 64;
            for index in 1..count {
                carry += u128::from(sum[index]) + u128::from(quotient) * u128::from(self.limbs[index]);
                sum[index - 1] = carry as u64;
                carry >>= 64;
            }
            carry += u128::from(sum[count]);
            sum[count - 1] = carry as u64;
            sum[count] = sum[count + 1].wrapping_add((carry >> 64) as u64);
        }
        let is_larger = sum[count] != 0 || sum[..count].iter().rev().cmp(self.limbs.iter().rev()).is_ge();
        sum.truncate(count);
        if is_larger {
            let mut borrow = false;
            for (slot, limb) in sum.iter_mut().zip(&self.limbs) {
                let (less, first) = slot.overflowing_sub(*limb);
                let (less, second) = less.overflowing_sub(u64::from(borrow));
                (*slot, borrow) = (less, first || second);
            }
        }
        sum
    }

    /// A number to a power.
    pub(super) fn power(&self, base: &BigUint, exponent: &BigUint) -> BigUint {
        let mut digits = base.to_u64_digits();
        digits.resize(self.limbs.len(), 0);
        let base = self.multiply(&digits, &self.square);
        let mut result = self.one.clone();
        for bit in (0..exponent.bits()).rev() {
            result = self.multiply(&result, &result);
            if exponent.bit(bit) {
                result = self.multiply(&result, &base);
            }
        }
        let mut one = vec![0; self.limbs.len()];
        one[0] = 1;
        let digits = self.multiply(&result, &one);
        let words: Vec<u32> = digits.into_iter().flat_map(|digit| [digit as u32, (digit >> 32) as u32]).collect();
        BigUint::new(words)
    }
}

/// A number to a power modulo an odd number.
pub(super) fn power(base: &BigUint, exponent: &BigUint, modulus: &BigUint) -> BigUint {
    Modulus::new(modulus).power(&(base % modulus), exponent)
}

/// The inverse of a number modulo another one; `None` if they have a common divisor.
pub(super) fn inverse(number: &BigUint, modulus: &BigUint) -> Option<BigUint> {
    number.modinv(modulus)
}

/// A number with so many bits.
pub(super) fn number(random: &mut Random, bits: usize) -> BigUint {
    let bytes = random.bytes(bits.div_ceil(8));
    BigUint::from_bytes_be(&bytes) >> (bytes.len() * 8 - bits)
}

/// A number from 1 on, below another one.
pub(super) fn below(random: &mut Random, limit: &BigUint) -> BigUint {
    loop {
        let drawn = number(random, limit.bits() as usize);
        if drawn.bits() > 0 && drawn < *limit {
            return drawn;
        }
    }
}

/// The primes below 2000.
fn small_primes() -> Vec<u32> {
    let mut primes: Vec<u32> = Vec::new();
    for candidate in 2..2000_u32 {
        if primes.iter().all(|prime| !candidate.is_multiple_of(*prime)) {
            primes.push(candidate);
        }
    }
    primes
}

/// Tells primes from other numbers.
pub(super) struct Sieve {
    primes: Vec<u32>,
}

impl Sieve {
    pub(super) fn new() -> Self {
        Self { primes: small_primes() }
    }

    /// Whether a large odd number is prime, but for a chance of one in 2^40 at most; for random ones it is far smaller.
    pub(super) fn is_prime(&self, number: &BigUint, random: &mut Random) -> bool {
        let zero = BigUint::default();
        if self.primes.iter().any(|prime| number % *prime == zero) {
            return false;
        }
        let one = BigUint::from(1_u8);
        let minus_one = number - &one;
        let twos = minus_one.trailing_zeros().unwrap_or(0);
        let odd = &minus_one >> twos;
        let modulus = Modulus::new(number);
        (0..20).all(|_| {
            let witness = below(random, &minus_one);
            let mut power = modulus.power(&witness, &odd);
            if power == one || power == minus_one {
                return true;
            }
            for _ in 1..twos {
                power = &power * &power % number;
                if power == minus_one {
                    return true;
                }
            }
            false
        })
    }

    /// A prime with so many bits, the two highest of which are set.
    pub(super) fn prime(&self, random: &mut Random, bits: usize) -> BigUint {
        loop {
            let mut candidate = number(random, bits);
            for bit in [0, bits as u64 - 1, bits as u64 - 2] {
                candidate.set_bit(bit, true);
            }
            if self.is_prime(&candidate, random) {
                return candidate;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Entropy;

    #[test]
    fn powers_are_those_of_the_library() {
        let mut random = Entropy::fixed(1, jiff::Timestamp::UNIX_EPOCH).draw("t", 0);
        for bits in [64, 65, 128, 250, 512] {
            let mut modulus = number(&mut random, bits);
            modulus.set_bit(0, true);
            modulus.set_bit(bits as u64 - 1, true);
            let (base, exponent) = (number(&mut random, bits) % &modulus, number(&mut random, 64));
            assert_eq!(power(&base, &exponent, &modulus), base.modpow(&exponent, &modulus));
        }
    }

    #[test]
    fn primes_are_told_from_others() {
        let mut random = Entropy::fixed(2, jiff::Timestamp::UNIX_EPOCH).draw("t", 0);
        let sieve = Sieve::new();
        let mersenne = (BigUint::from(1_u8) << 127_u32) - 1_u8;
        assert!(sieve.is_prime(&mersenne, &mut random));
        let carmichael = BigUint::from(2003_u32) * BigUint::from(2011_u32);
        assert!(!sieve.is_prime(&carmichael, &mut random));
        assert_eq!(sieve.prime(&mut random, 128).bits(), 128);
    }
}
