//! Keys and certificates whose every byte is drawn from a seed.
//!
//! Nothing here guards a secret of its own: what is generated is printed. So there is no defence against observers of the
//! time that it takes, and no other library than one for large numbers.

pub(crate) mod certificate;
pub(crate) mod curve;
pub(crate) mod der;
pub(crate) mod key;
mod modular;
