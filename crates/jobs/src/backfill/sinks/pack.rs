//! How batches are packed for the way.

use bytes::Bytes;
use std::io::{self, Write as _};

/// How lines are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// By zstd, each batch a frame of its own.
    Zstd,
    /// By gzip, each batch a member of its own.
    Gzip,
}

/// A good compromise of time and size.
const ZSTD_LEVEL: i32 = 3;

impl Compression {
    /// What HTTP calls it.
    pub(crate) fn encoding(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Zstd => Some("zstd"),
            Self::Gzip => Some("gzip"),
        }
    }

    /// What the names of files end with.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    pub(crate) fn pack(self, body: Vec<u8>) -> io::Result<Bytes> {
        match self {
            Self::None => Ok(body.into()),
            Self::Zstd => zstd::bulk::compress(&body, ZSTD_LEVEL).map(Bytes::from),
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(&body)?;
                encoder.finish().map(Bytes::from)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn what_is_packed_can_be_unpacked_one_batch_after_the_other() {
        let [one, two] = [b"one\n".repeat(1000), b"two\n".repeat(1000)];
        for compression in [Compression::None, Compression::Zstd, Compression::Gzip] {
            let packed = [one.clone(), two.clone()].map(|body| compression.pack(body).unwrap()).concat();
            let mut unpacked = Vec::new();
            match compression {
                Compression::None => unpacked = packed,
                Compression::Zstd => unpacked = zstd::stream::decode_all(&packed[..]).unwrap(),
                Compression::Gzip => {
                    flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
                }
            }
            assert_eq!(unpacked, [one.clone(), two.clone()].concat(), "{compression:?}");
        }
    }
}
