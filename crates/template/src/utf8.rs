//! Text as Go reads it: bytes that usually are UTF-8, decoded one character at a time.

/// The character that stands for bytes that are no UTF-8.
pub(crate) const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// The first character of a text and its width in bytes; [`REPLACEMENT`] of width 1 where the text is no UTF-8.
pub(crate) fn decode(text: &[u8]) -> Option<(char, usize)> {
    let first = *text.first()?;
    if first < 0x80 {
        return Some((char::from(first), 1));
    }
    let width = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Some((REPLACEMENT, 1)),
    };
    let character =
        text.get(..width).and_then(|bytes| std::str::from_utf8(bytes).ok()).and_then(|one| one.chars().next());
    Some(character.map_or((REPLACEMENT, 1), |character| (character, width)))
}

/// The last character of a text and its width in bytes.
pub(crate) fn decode_last(text: &[u8]) -> Option<(char, usize)> {
    for width in 1..=text.len().min(4) {
        let tail = &text[text.len() - width..];
        if let Some((character, taken)) = decode(tail)
            && taken == width
            && (width > 1 || tail[0] < 0x80)
        {
            return Some((character, width));
        }
    }
    text.last().map(|_| (REPLACEMENT, 1))
}

/// The characters of a text, each with its offset and width.
pub(crate) struct Characters<'a> {
    text: &'a [u8],
    offset: usize,
}

impl Iterator for Characters<'_> {
    type Item = (usize, char, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let (character, width) = decode(&self.text[self.offset..])?;
        let offset = self.offset;
        self.offset += width;
        Some((offset, character, width))
    }
}

/// The characters of a text, each with its offset and width.
pub(crate) fn characters(text: &[u8]) -> Characters<'_> {
    Characters { text, offset: 0 }
}

/// How many characters a text has.
pub(crate) fn count(text: &[u8]) -> usize {
    characters(text).count()
}

/// Appends a character to bytes.
pub(crate) fn push(output: &mut Vec<u8>, character: char) {
    output.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// A letter, a digit or an underscore: what names are made of.
pub(crate) fn is_alphanumeric(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_text_is_read_one_byte_at_a_time() {
        let read: Vec<(char, usize)> =
            characters(b"a\xc3\xa9\xff\xe2\x82z").map(|(_, one, width)| (one, width)).collect();
        assert_eq!(read, [('a', 1), ('é', 2), (REPLACEMENT, 1), (REPLACEMENT, 1), (REPLACEMENT, 1), ('z', 1)]);
    }

    #[test]
    fn the_last_character_is_found_from_behind() {
        assert_eq!(decode_last("aé".as_bytes()), Some(('é', 2)));
        assert_eq!(decode_last(b"a\xa9"), Some((REPLACEMENT, 1)));
        assert_eq!(decode_last(b""), None);
    }
}
