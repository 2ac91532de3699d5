//! Values of Secrets that must not be printed or recorded.

use crate::error::{Answer, Error, classify};
use crate::retry::Retry;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shorter values are no secrets, and masking them would hide words.
const SHORTEST: usize = 5;

/// Where a text was cut off: a part of a value may be left there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Something stood before it.
    pub start: bool,
    /// Something stood behind it.
    pub end: bool,
}

impl Cut {
    /// The text is whole.
    pub const NOWHERE: Self = Self { start: false, end: false };
    /// The text is the beginning of a longer one.
    pub const END: Self = Self { start: false, end: true };

    /// The text of bytes. Those that are not UTF-8 become `U+FFFD`; half a character at a cut is dropped.
    pub(crate) fn decode(self, mut bytes: &[u8]) -> Cow<'_, str> {
        let is_continued = |byte: &u8| byte & 0xc0 == 0x80;
        while self.start && bytes.first().is_some_and(is_continued) {
            bytes = &bytes[1..];
        }
        if self.end
            && let Some(last) = bytes.utf8_chunks().last()
            && std::str::from_utf8(last.invalid()).is_err_and(|error| error.error_len().is_none())
        {
            bytes = &bytes[..bytes.len() - last.invalid().len()];
        }
        String::from_utf8_lossy(bytes)
    }
}

/// Values that are replaced wherever they would be printed or recorded. Clones share them.
///
/// A text is masked before it is cut, or with the [`Cut`] that was made: else a part of a value would be left at the cut.
#[derive(Clone, Default)]
pub struct Mask {
    values: Names,
    /// The Secrets that were read.
    secrets: Names,
}

type Names = Arc<Mutex<BTreeSet<String>>>;

impl Mask {
    /// Hides a value, each line of it, and its base64 form.
    pub fn hide(&self, value: &[u8]) {
        let encoded = serde_json::to_value(ByteString(value.to_vec())).ok();
        let encoded = encoded.as_ref().and_then(|encoded| encoded.as_str()).map(|text| text.trim_end_matches('='));
        let text = String::from_utf8_lossy(value);
        let parts = text.lines().chain(encoded).map(str::trim).filter(|part| part.len() >= SHORTEST);
        lock(&self.values).extend(parts.map(str::to_owned));
    }

    /// A mask that hides the same values, for work that reads its Secrets itself: they may have changed since.
    pub(crate) fn share(&self) -> Self {
        Self { values: Arc::clone(&self.values), secrets: Names::default() }
    }

    /// Hides the values of Secrets that this process may read. What it may not read it cannot recognise.
    pub(crate) async fn hide_secrets(
        &self,
        client: &Client,
        namespace: &str,
        names: &BTreeSet<String>,
        retry: &Retry,
    ) -> Result<(), Error> {
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        for name in names {
            if lock(&self.secrets).contains(name) {
                continue;
            }
            let read = || async {
                match secrets.get_opt(name).await {
                    // As if it were empty. One that does not exist yet is read again.
                    Err(error) if classify(&error) == Answer::Refused => Ok(Some(Secret::default())),
                    read => read,
                }
            };
            if let Some(secret) = retry.call(&format!("read Secret `{name}`"), read).await? {
                secret.data.iter().flatten().for_each(|(_, value)| self.hide(&value.0));
                lock(&self.secrets).insert(name.clone());
            }
        }
        Ok(())
    }

    /// The text without these values.
    pub fn apply(&self, text: &str) -> String {
        self.apply_to_part(text, Cut::NOWHERE)
    }

    /// The text of bytes without these values, and without what is left of them at a cut. Bytes that are not UTF-8 become
    /// `U+FFFD`; half a character at a cut is dropped.
    pub fn apply_to_bytes(&self, bytes: &[u8], cut: Cut) -> String {
        self.apply_to_part(&cut.decode(bytes), cut)
    }

    /// A part of a text without these values, and without what is left of them where it was cut.
    pub(crate) fn apply_to_part(&self, text: &str, cut: Cut) -> String {
        let mut hidden: Vec<Range<usize>> = Vec::new();
        for value in lock(&self.values).iter() {
            hidden.extend(occurrences(text, value));
            let mut inside = (1..value.len()).filter(|index| value.is_char_boundary(*index));
            if cut.start {
                let rest = inside.clone().find(|index| text.starts_with(&value[*index..]));
                hidden.extend(rest.map(|index| 0..value.len() - index));
            }
            if cut.end {
                let start = inside.rfind(|index| text.ends_with(&value[..*index]));
                hidden.extend(start.map(|index| text.len() - index..text.len()));
            }
        }
        replace(text, hidden)
    }
}

/// Every occurrence of a value, also those that overlap.
fn occurrences<'t>(text: &'t str, value: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
    let step = value.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text.get(from..)?.find(value)?;
        from = start + step;
        Some(start..start + value.len())
    })
}

/// The text with `***` in place of these parts. Parts that overlap are one: no rest of the longer one is left over.
fn replace(text: &str, mut parts: Vec<Range<usize>>) -> String {
    parts.sort_unstable_by_key(|part| (part.start, part.end));
    let mut replaced = String::with_capacity(text.len());
    let mut end = 0;
    for part in parts {
        if part.start >= end {
            replaced.push_str(&text[end..part.start]);
            replaced.push_str("***");
        }
        end = end.max(part.end);
    }
    replaced.push_str(&text[end..]);
    replaced
}

fn lock(names: &Names) -> MutexGuard<'_, BTreeSet<String>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Mask of {} values", lock(&self.values).len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_their_lines_and_their_base64_forms_are_hidden() {
        let mask = Mask::default();
        for value in ["hunter2", "hunter2-longer", "abc", "line1-x\nline2-y\n"] {
            mask.hide(value.as_bytes());
        }
        assert_eq!(mask.apply("a hunter2-longer b hunter2 abc line2-y"), "a *** b *** abc ***");
        assert_eq!(mask.apply("aHVudGVyMg=="), "***==");
        assert_eq!(format!("{mask:?}"), "Mask of 7 values");
    }

    fn mask(values: &[&str]) -> Mask {
        let mask = Mask::default();
        for value in values {
            mask.hide(value.as_bytes());
        }
        mask
    }

    #[test]
    fn values_that_overlap_leave_nothing_of_each_other() {
        let mask = mask(&["abcdef", "defghi", "ababab"]);
        assert_eq!(mask.apply("<abcdefghi>"), "<***>");
        assert_eq!(mask.apply("<abababab>"), "<***>", "a value may overlap itself");
        assert_eq!(mask.apply("abcdefabcdef"), "******");
    }

    #[test]
    fn a_cut_leaves_no_part_of_a_value_wherever_it_is() {
        let value = "pässwörd-€";
        let mask = mask(&[value]);
        let text = format!("one {value} two");
        let (start, end) = ("one ".len(), "one ".len() + value.len());
        for cut in start..=end {
            let (before, after) = text.as_bytes().split_at(cut);
            let before = mask.apply_to_bytes(before, Cut::END);
            let after = mask.apply_to_bytes(after, Cut { start: true, end: false });
            let expected = match cut {
                _ if cut == start => ("one ".to_owned(), "*** two".to_owned()),
                _ if cut > end - "€".len() && cut < end => ("one ***".to_owned(), " two".to_owned()),
                _ if cut < end => ("one ***".to_owned(), "*** two".to_owned()),
                _ => ("one ***".to_owned(), " two".to_owned()),
            };
            assert_eq!((before, after), expected, "cut at {cut}");
        }
        assert_eq!(mask.apply_to_bytes(b"p", Cut::NOWHERE), "p", "a text that is whole is no rest of a value");
    }

    #[test]
    fn bytes_that_are_no_text_are_marked_and_half_characters_at_a_cut_are_dropped() {
        let mask = Mask::default();
        let euro = "€".as_bytes();
        assert_eq!(mask.apply_to_bytes(&euro[..2], Cut::END), "");
        assert_eq!(mask.apply_to_bytes(&euro[..2], Cut::NOWHERE), "\u{fffd}");
        assert_eq!(mask.apply_to_bytes(&euro[1..], Cut { start: true, end: false }), "");
        assert_eq!(mask.apply_to_bytes(b"\xff\xff", Cut::END), "\u{fffd}\u{fffd}");
        assert_eq!(mask.apply_to_bytes(&[b"\xff a ", &euro[..1]].concat(), Cut::END), "\u{fffd} a ");
    }
}
