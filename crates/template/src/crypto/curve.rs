//! Points of P-256 and of Ed25519.

use super::modular::{inverse, power};
use num_bigint::BigUint;
use sha2::{Digest as _, Sha512};

fn hexadecimal(digits: &str) -> BigUint {
    BigUint::parse_bytes(digits.as_bytes(), 16).unwrap_or_default()
}

/// A point of P-256; `None` is the one at infinity.
type Point = Option<(BigUint, BigUint)>;

/// The curve that ECDSA keys are on.
pub(crate) struct P256 {
    prime: BigUint,
    pub(crate) order: BigUint,
    generator: Point,
}

impl P256 {
    pub(crate) fn new() -> Self {
        Self {
            prime: hexadecimal("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"),
            order: hexadecimal("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"),
            generator: Some((
                hexadecimal("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"),
                hexadecimal("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"),
            )),
        }
    }

    fn minus(&self, one: &BigUint, other: &BigUint) -> BigUint {
        (one + &self.prime - other % &self.prime) % &self.prime
    }

    fn add(&self, one: &Point, other: &Point) -> Point {
        let (Some((x1, y1)), Some((x2, y2))) = (one, other) else { return one.clone().or_else(|| other.clone()) };
        let slope = if x1 == x2 {
            if y1 != y2 || y1.bits() == 0 {
                return None;
            }
            // The coefficient of x is -3.
            let numerator = self.minus(&(x1 * x1 * 3_u8), &BigUint::from(3_u8));
            numerator * inverse(&(y1 * 2_u8 % &self.prime), &self.prime)?
        } else {
            self.minus(y2, y1) * inverse(&self.minus(x2, x1), &self.prime)?
        } % &self.prime;
        let x = self.minus(&(&slope * &slope), &(x1 + x2));
        let y = self.minus(&(slope * self.minus(x1, &x)), y1);
        Some((x, y))
    }

    /// The generator so many times.
    pub(crate) fn multiple(&self, times: &BigUint) -> Point {
        let mut sum = None;
        for bit in (0..times.bits()).rev() {
            sum = self.add(&sum, &sum);
            if times.bit(bit) {
                sum = self.add(&sum, &self.generator);
            }
        }
        sum
    }

    /// The public key of a secret, uncompressed.
    pub(crate) fn public(&self, secret: &BigUint) -> Vec<u8> {
        let (x, y) = self.multiple(secret).unwrap_or_default();
        [&[4], &*padded(&x), &padded(&y)].concat()
    }
}

/// A number in 32 bytes.
pub(crate) fn padded(number: &BigUint) -> Vec<u8> {
    let bytes = number.to_bytes_be();
    [vec![0; 32_usize.saturating_sub(bytes.len())], bytes].concat()
}

/// The curve of Ed25519 signatures.
pub(crate) struct Ed25519 {
    prime: BigUint,
    order: BigUint,
    coefficient: BigUint,
    generator: (BigUint, BigUint),
}

impl Ed25519 {
    pub(crate) fn new() -> Self {
        let prime = (BigUint::from(1_u8) << 255_u32) - 19_u8;
        let order = (BigUint::from(1_u8) << 252_u32) + hexadecimal("14def9dea2f79cd65812631a5cf5d3ed");
        let quotient = |one: u32, other: u32| inverse(&BigUint::from(other), &prime).unwrap_or_default() * one % &prime;
        let coefficient = &prime - quotient(121_665, 121_666);
        let y = quotient(4, 5);
        let x = hexadecimal("216936d3cd6e53fec0a4e231fdd6dc5c692cc7609525a7b2c9562d608f25d51a");
        Self { prime, order, coefficient, generator: (x, y) }
    }

    fn add(&self, one: &(BigUint, BigUint), other: &(BigUint, BigUint)) -> (BigUint, BigUint) {
        let ((x1, y1), (x2, y2)) = (one, other);
        let prime = &self.prime;
        let product = &self.coefficient * (x1 * x2 % prime) % prime * (y1 * y2 % prime) % prime;
        let divided = |numerator: BigUint, denominator: BigUint| {
            // Fermat: there is always an inverse, because the curve is complete.
            numerator * power(&denominator, &(prime - 2_u8), prime) % prime
        };
        let x = divided(x1 * y2 + x2 * y1, &product + 1_u8);
        let y = divided(y1 * y2 + x1 * x2, prime + 1_u8 - &product);
        (x, y)
    }

    fn multiple(&self, times: &BigUint) -> (BigUint, BigUint) {
        let mut sum = (BigUint::default(), BigUint::from(1_u8));
        for bit in (0..times.bits()).rev() {
            sum = self.add(&sum, &sum);
            if times.bit(bit) {
                sum = self.add(&sum, &self.generator);
            }
        }
        sum
    }

    fn encoded((x, y): &(BigUint, BigUint)) -> Vec<u8> {
        let mut bytes = y.to_bytes_le();
        bytes.resize(32, 0);
        bytes[31] |= u8::from(x.bit(0)) << 7;
        bytes
    }

    /// The number of a seed, and what its signatures begin with.
    fn expanded(seed: &[u8]) -> (BigUint, Vec<u8>) {
        let mut digest = Sha512::digest(seed).to_vec();
        digest[0] &= 0xf8;
        digest[31] = digest[31] & 0x3f | 0x40;
        (BigUint::from_bytes_le(&digest[..32]), digest[32..].to_vec())
    }

    /// The public key of a seed.
    pub(crate) fn public(&self, seed: &[u8]) -> Vec<u8> {
        Self::encoded(&self.multiple(&Self::expanded(seed).0))
    }

    /// A signature.
    pub(crate) fn sign(&self, seed: &[u8], message: &[u8]) -> Vec<u8> {
        let (secret, prefix) = Self::expanded(seed);
        let number = |parts: &[&[u8]]| BigUint::from_bytes_le(&Sha512::digest(parts.concat())) % &self.order;
        let nonce = number(&[&prefix, message]);
        let point = Self::encoded(&self.multiple(&nonce));
        let challenge = number(&[&point, &self.public(seed), message]);
        let mut answer = ((nonce + challenge * secret) % &self.order).to_bytes_le();
        answer.resize(32, 0);
        [point, answer].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;

    #[test]
    fn ed25519_is_that_of_rfc_8032() {
        let seed =
            HEXLOWER.decode(b"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").expect("hexadecimal");
        let curve = Ed25519::new();
        let public = curve.public(&seed);
        assert_eq!(HEXLOWER.encode(&public), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        assert_eq!(
            HEXLOWER.encode(&curve.sign(&seed, b"")),
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        );
    }

    #[test]
    fn p256_has_the_order_that_it_says() {
        let curve = P256::new();
        assert_eq!(curve.multiple(&curve.order), None);
        // From the test vectors of NIST.
        let (x, _) = curve.multiple(&BigUint::from(2_u8)).expect("a point");
        assert_eq!(HEXLOWER.encode(&padded(&x)), "7cf27b188d034f7e8a52380304b51ac3c08969e277f21b35a60b48fc47669978");
    }
}
