//! The few kinds of protobuf fields that remote write has.

/// Writes a number in as few bytes as it needs.
fn varint(mut number: u64, out: &mut Vec<u8>) {
    loop {
        let low = number.to_le_bytes()[0] & 0x7f;
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Writes a field of bytes: a text, or another message.
pub(super) fn bytes(field: u8, value: &[u8], out: &mut Vec<u8>) {
    out.push(field << 3 | 2);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// Writes a field of a whole number.
pub(super) fn int64(field: u8, value: i64, out: &mut Vec<u8>) {
    out.push(field << 3);
    varint(value.cast_unsigned(), out);
}

/// Writes a field of a number.
pub(super) fn double(field: u8, value: f64, out: &mut Vec<u8>) {
    out.push(field << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}
