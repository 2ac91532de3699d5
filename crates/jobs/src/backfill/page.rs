//! A page of a list as it came: where its objects are, and where the list goes on.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::Range;

/// A page of a list. Its objects are parts of the text.
#[derive(Debug)]
pub(crate) struct Page {
    text: Vec<u8>,
    items: Vec<Range<usize>>,
    /// Where the list goes on; none at its end.
    pub(crate) token: Option<String>,
    /// The moment that it shows.
    pub(crate) version: Option<String>,
    /// How many objects come after this page, if the server says it.
    pub(crate) remaining: Option<u64>,
}

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(default)]
    metadata: Metadata,
    /// Go writes no list as `null`.
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    resource_version: Option<String>,
    #[serde(default, rename = "continue")]
    token: Option<String>,
    #[serde(default)]
    remaining_item_count: Option<u64>,
}

impl Page {
    /// Reads a page. What is cut off is no page.
    pub(crate) fn read(text: Vec<u8>) -> Result<Self, serde_json::Error> {
        let Written { metadata, items } = serde_json::from_slice(&text)?;
        let start = text.as_ptr() as usize;
        let place = |item: &&RawValue| {
            let from = item.get().as_ptr() as usize - start;
            from..from + item.get().len()
        };
        let items = items.unwrap_or_default().iter().map(place).collect();
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(Self {
            items,
            token: filled(metadata.token),
            version: filled(metadata.resource_version),
            remaining: metadata.remaining_item_count,
            text,
        })
    }

    /// The objects, in order.
    pub(crate) fn items(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.items.iter().map(|place| &self.text[place.clone()])
    }

    /// How large it is.
    pub(crate) fn size(&self) -> usize {
        self.text.len()
    }

    /// The room that it took, to be used again.
    pub(crate) fn into_room(self) -> Vec<u8> {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Page {
        Page::read(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn objects_are_parts_of_the_text() {
        let page = read(
            r#"{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"abc","remainingItemCount":3},
            "items":[{"a":[1,"]"]}, {} ]}"#,
        );
        let items: Vec<&[u8]> = page.items().collect();
        assert_eq!(items, [&br#"{"a":[1,"]"]}"#[..], b"{}"]);
        assert_eq!((page.token.as_deref(), page.version.as_deref(), page.remaining), (Some("abc"), Some("7"), Some(3)));
    }

    #[test]
    fn the_last_page_goes_on_nowhere() {
        for text in [r#"{"metadata":{"continue":""},"items":null}"#, r#"{"items":[]}"#, "{}"] {
            let page = read(text);
            assert_eq!((page.token.as_deref(), page.items().len()), (None, 0), "{text}");
        }
    }

    #[test]
    fn half_a_page_is_none() {
        let text = br#"{"metadata":{},"items":[{"a":1},{"b":2}]}"#;
        for end in 0..text.len() {
            assert!(Page::read(text[..end].to_vec()).is_err(), "{end}");
        }
        assert!(Page::read(b"\xff".to_vec()).is_err());
    }
}
