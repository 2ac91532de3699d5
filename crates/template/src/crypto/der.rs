//! DER: what keys and certificates are written in, and PEM around it.

use data_encoding::BASE64;
use num_bigint::BigUint;

pub(crate) const INTEGER: u8 = 2;
pub(crate) const BIT_STRING: u8 = 3;
pub(crate) const OCTET_STRING: u8 = 4;
pub(crate) const NULL: u8 = 5;
pub(crate) const OBJECT: u8 = 6;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// A value with its tag and length.
pub(crate) fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut output = vec![tag];
    let length = content.len();
    if length < 128 {
        output.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(0);
        output.push(0x80 | (bytes.len() - start) as u8);
        output.extend_from_slice(&bytes[start..]);
    }
    output.extend_from_slice(content);
    output
}

/// A sequence of values.
pub(crate) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    value(SEQUENCE, &parts.concat())
}

/// A number that is not negative.
pub(crate) fn integer(number: &BigUint) -> Vec<u8> {
    let mut bytes = number.to_bytes_be();
    if bytes.first().is_some_and(|first| *first >= 0x80) {
        bytes.insert(0, 0);
    }
    value(INTEGER, &bytes)
}

/// Bits that are whole bytes.
pub(crate) fn bits(bytes: &[u8]) -> Vec<u8> {
    value(BIT_STRING, &[&[0], bytes].concat())
}

/// A value that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read<'d> {
    pub(crate) tag: u8,
    pub(crate) content: &'d [u8],
    /// With tag and length.
    pub(crate) whole: &'d [u8],
}

/// Reads the first value, and returns what is left.
pub(crate) fn read(data: &[u8]) -> Option<(Read<'_>, &[u8])> {
    let (tag, first) = (*data.first()?, *data.get(1)?);
    let (length, start) = if first < 128 {
        (usize::from(first), 2)
    } else {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return None;
        }
        let bytes = data.get(2..2 + count)?;
        (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), 2 + count)
    };
    let end = start.checked_add(length)?;
    let content = data.get(start..end)?;
    Some((Read { tag, content, whole: &data[..end] }, &data[end..]))
}

/// Reads all values.
pub(crate) fn read_all(data: &[u8]) -> Option<Vec<Read<'_>>> {
    let mut rest = data;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (value, next) = read(rest)?;
        found.push(value);
        rest = next;
    }
    Some(found)
}

/// A PEM block, its lines 64 characters long.
pub(crate) fn to_pem(kind: &str, der: &[u8]) -> String {
    let mut output = format!("-----BEGIN {kind}-----\n");
    let encoded = BASE64.encode(der);
    for line in encoded.as_bytes().chunks(64) {
        output.push_str(&String::from_utf8_lossy(line));
        output.push('\n');
    }
    output.push_str(&format!("-----END {kind}-----\n"));
    output
}

/// The first PEM block of a text: its kind and what is in it.
pub(crate) fn from_pem(text: &str) -> Option<(String, Vec<u8>)> {
    let begin = text.find("-----BEGIN ")? + "-----BEGIN ".len();
    let rest = &text[begin..];
    let (kind, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {kind}-----"))?;
    // Headers such as `Proc-Type: 4` end with an empty line.
    let body = if body.contains(": ") { body.split_once("\n\n").map_or(body, |(_, body)| body) } else { body };
    let bare: String = body.chars().filter(|character| !character.is_whitespace()).collect();
    Some((kind.to_owned(), BASE64.decode(bare.as_bytes()).ok()?))
}
