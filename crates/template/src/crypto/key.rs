//! Private keys.

use super::curve::{Ed25519, P256, padded};
use super::der::{
    INTEGER, NULL, OBJECT, OCTET_STRING, Read, SEQUENCE, bits, from_pem, integer, read, read_all, sequence, to_pem,
    value,
};
use super::modular::{Sieve, below, inverse, number, power};
use crate::environment::Random;
use num_bigint::BigUint;
use sha2::{Digest as _, Sha256};

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const EC_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const CURVE_P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const SHA256: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];

/// A private key.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    Rsa {
        modulus: BigUint,
        public: BigUint,
        private: BigUint,
        primes: [BigUint; 2],
    },
    P256(BigUint),
    Ed25519(Vec<u8>),
    /// p, q, g, y and x.
    Dsa([BigUint; 5]),
}

impl Key {
    pub(crate) fn generate_rsa(random: &mut Random, bits: usize) -> Self {
        let sieve = Sieve::new();
        let public = BigUint::from(65537_u32);
        loop {
            let (one, other) = (sieve.prime(random, bits / 2), sieve.prime(random, bits / 2));
            if one == other {
                continue;
            }
            let totient = (&one - 1_u8) * (&other - 1_u8);
            if let Some(private) = inverse(&public, &totient) {
                return Self::Rsa { modulus: &one * &other, public, private, primes: [one, other] };
            }
        }
    }

    pub(crate) fn generate_p256(random: &mut Random) -> Self {
        Self::P256(below(random, &P256::new().order))
    }

    pub(crate) fn generate_ed25519(random: &mut Random) -> Self {
        Self::Ed25519(random.bytes(32))
    }

    /// A key with primes of 2048 and 256 bits.
    pub(crate) fn generate_dsa(random: &mut Random) -> Self {
        let sieve = Sieve::new();
        let order = sieve.prime(random, 256);
        let one = BigUint::from(1_u8);
        let prime = loop {
            let mut candidate = number(random, 2048);
            candidate.set_bit(2047, true);
            let rest = &candidate % (&order << 1_u32);
            candidate = candidate - rest + &one;
            if candidate.bits() == 2048 && sieve.is_prime(&candidate, random) {
                break candidate;
            }
        };
        let exponent = (&prime - &one) / &order;
        let generator = loop {
            let generator = power(&below(random, &prime), &exponent, &prime);
            if generator != one {
                break generator;
            }
        };
        let secret = below(random, &order);
        let public = power(&generator, &secret, &prime);
        Self::Dsa([prime, order, generator, public, secret])
    }

    /// As PEM, in the format that Sprig chooses for its kind.
    pub(crate) fn to_pem(&self) -> String {
        match self {
            Self::Rsa { .. } => to_pem("RSA PRIVATE KEY", &self.pkcs1()),
            Self::P256(secret) => {
                let parameters = value(0xa0, &value(OBJECT, CURVE_P256));
                let public = value(0xa1, &bits(&P256::new().public(secret)));
                let secret = value(OCTET_STRING, &padded(secret));
                to_pem("EC PRIVATE KEY", &sequence(&[integer(&1_u8.into()), secret, parameters, public]))
            }
            Self::Ed25519(seed) => {
                let algorithm = sequence(&[value(OBJECT, ED25519)]);
                let seed = value(OCTET_STRING, &value(OCTET_STRING, seed));
                to_pem("PRIVATE KEY", &sequence(&[value(INTEGER, &[0]), algorithm, seed]))
            }
            Self::Dsa(numbers) => {
                let numbers = numbers.iter().map(integer);
                to_pem("DSA PRIVATE KEY", &sequence(&[vec![value(INTEGER, &[0])], numbers.collect()].concat()))
            }
        }
    }

    fn pkcs1(&self) -> Vec<u8> {
        let Self::Rsa { modulus, public, private, primes: [one, other] } = self else { return Vec::new() };
        let coefficient = inverse(other, one).unwrap_or_default();
        let numbers = [
            modulus,
            public,
            private,
            one,
            other,
            &(private % (one - 1_u8)),
            &(private % (other - 1_u8)),
            &coefficient,
        ];
        let numbers = numbers.into_iter().map(integer);
        sequence(&[vec![value(INTEGER, &[0])], numbers.collect()].concat())
    }

    /// Reads a key; `Err` has Sprig's message.
    pub(crate) fn from_pem(text: &str) -> Result<Self, String> {
        let (kind, der) = from_pem(text).ok_or("no PEM data in input")?;
        let malformed = "asn1: structure error: the key is malformed";
        match kind.as_str() {
            "PRIVATE KEY" => Self::from_pkcs8(&der).ok_or_else(|| format!("decoding PEM as PKCS#8: {malformed}")),
            "RSA PRIVATE KEY" => {
                Self::from_pkcs1(&der).ok_or_else(|| format!("parsing RSA private key from PEM: {malformed}"))
            }
            "EC PRIVATE KEY" => {
                Self::from_sec1(&der).ok_or_else(|| format!("parsing EC private key from PEM: {malformed}"))
            }
            "DSA PRIVATE KEY" => {
                let numbers = numbers(&der).and_then(|numbers| <[BigUint; 5]>::try_from(numbers[1..].to_vec()).ok());
                numbers.map(Self::Dsa).ok_or_else(|| format!("parsing DSA private key from PEM: {malformed}"))
            }
            _ => match kind.strip_suffix(" PRIVATE KEY") {
                Some(kind) => Err(format!("invalid private key type {kind}")),
                None => Err(format!("no private key data in PEM block of type {kind}")),
            },
        }
    }

    fn from_pkcs1(der: &[u8]) -> Option<Self> {
        let numbers = numbers(der)?;
        let [_, modulus, public, private, one, other, ..] = &numbers[..] else { return None };
        if one * other != *modulus || !modulus.bit(0) {
            return None;
        }
        Some(Self::Rsa {
            modulus: modulus.clone(),
            public: public.clone(),
            private: private.clone(),
            primes: [one.clone(), other.clone()],
        })
    }

    fn from_sec1(der: &[u8]) -> Option<Self> {
        let (whole, _) = read(der)?;
        let parts = read_all(whole.content)?;
        let secret = parts.get(1).filter(|part| part.tag == OCTET_STRING)?;
        let other_curve = parts.iter().any(|part| part.tag == 0xa0 && part.content != value(OBJECT, CURVE_P256));
        let secret = BigUint::from_bytes_be(secret.content);
        (!other_curve && secret.bits() > 0 && secret < P256::new().order).then_some(Self::P256(secret))
    }

    fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let (whole, _) = read(der)?;
        let parts = read_all(whole.content)?;
        let [_, algorithm, key, ..] = &parts[..] else { return None };
        let (object, _) = read(algorithm.content)?;
        match object.content {
            RSA => Self::from_pkcs1(key.content),
            EC => Self::from_sec1(key.content),
            ED25519 => {
                let (seed, _) = read(key.content)?;
                (seed.content.len() == 32).then(|| Self::Ed25519(seed.content.to_vec()))
            }
            _ => None,
        }
    }

    /// The public key as certificates have it.
    pub(crate) fn public_info(&self) -> Result<Vec<u8>, String> {
        let null = value(NULL, &[]);
        Ok(match self {
            Self::Rsa { .. } => sequence(&[sequence(&[value(OBJECT, RSA), null]), bits(&self.public_bits())]),
            Self::P256(_) => {
                let algorithm = sequence(&[value(OBJECT, EC), value(OBJECT, CURVE_P256)]);
                sequence(&[algorithm, bits(&self.public_bits())])
            }
            Self::Ed25519(_) => sequence(&[sequence(&[value(OBJECT, ED25519)]), bits(&self.public_bits())]),
            Self::Dsa(_) => return Err("x509: unsupported public key type: *dsa.PublicKey".to_owned()),
        })
    }

    /// The bits of the public key, which identify it.
    pub(crate) fn public_bits(&self) -> Vec<u8> {
        match self {
            Self::Rsa { modulus, public, .. } => sequence(&[integer(modulus), integer(public)]),
            Self::P256(secret) => P256::new().public(secret),
            Self::Ed25519(seed) => Ed25519::new().public(seed),
            Self::Dsa(numbers) => integer(&numbers[3]),
        }
    }

    /// The name of the algorithm that it signs with.
    pub(crate) fn signature_algorithm(&self) -> Vec<u8> {
        match self {
            Self::Rsa { .. } => sequence(&[value(OBJECT, RSA_SHA256), value(NULL, &[])]),
            Self::P256(_) => sequence(&[value(OBJECT, EC_SHA256)]),
            Self::Ed25519(_) | Self::Dsa(_) => sequence(&[value(OBJECT, ED25519)]),
        }
    }

    /// Signs a message.
    pub(crate) fn sign(&self, message: &[u8], random: &mut Random) -> Result<Vec<u8>, String> {
        let digest = Sha256::digest(message);
        match self {
            Self::Rsa { modulus, private, primes: [one, other], .. } => {
                let info =
                    sequence(&[sequence(&[value(OBJECT, SHA256), value(NULL, &[])]), value(OCTET_STRING, &digest)]);
                let length = modulus.bits().div_ceil(8) as usize;
                let filler = length.checked_sub(info.len() + 3).filter(|filler| *filler >= 8);
                let filler = filler.ok_or("crypto/rsa: message too long for RSA key size")?;
                let padded = BigUint::from_bytes_be(&[&[0, 1], &*vec![0xff; filler], &[0], &info].concat());
                // By the Chinese remainder theorem, which takes a quarter of the time.
                let (first, second) = (
                    power(&padded, &(private % (one - 1_u8)), one),
                    power(&padded, &(private % (other - 1_u8)), other),
                );
                let coefficient = inverse(other, one).ok_or("crypto/rsa: invalid primes")?;
                let factor = (&first + one - &second % one) % one * coefficient % one;
                let mut signature = (second + factor * other).to_bytes_be();
                signature.splice(0..0, vec![0; length.saturating_sub(signature.len())]);
                Ok(signature)
            }
            Self::P256(secret) => {
                let curve = P256::new();
                loop {
                    let nonce = below(random, &curve.order);
                    let Some((x, _)) = curve.multiple(&nonce) else { continue };
                    let first = x % &curve.order;
                    let Some(inverted) = inverse(&nonce, &curve.order) else { continue };
                    let second = (BigUint::from_bytes_be(&digest) + &first * secret) * inverted % &curve.order;
                    if first.bits() > 0 && second.bits() > 0 {
                        return Ok(sequence(&[integer(&first), integer(&second)]));
                    }
                }
            }
            Self::Ed25519(seed) => Ok(Ed25519::new().sign(seed, message)),
            Self::Dsa(_) => Err("x509: only RSA, ECDSA and Ed25519 keys supported".to_owned()),
        }
    }
}

/// The numbers of a sequence, up to the first that is none.
fn numbers(der: &[u8]) -> Option<Vec<BigUint>> {
    let (whole, _) = read(der).filter(|(whole, _)| whole.tag == SEQUENCE)?;
    let parts = read_all(whole.content)?;
    let is_number = |part: &&Read<'_>| part.tag == INTEGER;
    let numbers: Vec<_> = parts.iter().take_while(is_number).map(|part| BigUint::from_bytes_be(part.content)).collect();
    (numbers.len() > 1).then_some(numbers)
}

/// The identifier of a public key: its hash.
pub(crate) fn identifier(key: &Key) -> Vec<u8> {
    use sha1::Sha1;
    Sha1::digest(key.public_bits()).to_vec()
}
