//! What was told in confidence is not shown, in whatever form it comes back: as it was sent, or encoded on the way.

use crate::backfill::cut::sensitive::REMOVED;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use http::HeaderValue;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// What is shorter is in every text.
const SHORTEST: usize = 4;

/// A text without the secrets of headers that were sent.
pub(super) fn hide(text: &str, secrets: &[HeaderValue]) -> String {
    hide_all(text, secrets.iter().flat_map(parts))
}

/// A text without these secrets.
pub(crate) fn hide_all(text: &str, secrets: impl IntoIterator<Item = String>) -> String {
    let mut forms: Vec<String> = secrets.into_iter().flat_map(|secret| forms(&secret)).collect();
    forms.retain(|form| form.len() >= SHORTEST);
    // The longest one first: a shorter one may be a part of it.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.iter().fold(text.to_owned(), |text, form| text.replace(form.as_str(), REMOVED))
}

/// The words of a header but for its scheme, and what `Basic` has in them.
fn parts(secret: &HeaderValue) -> Vec<String> {
    let text = String::from_utf8_lossy(secret.as_bytes()).into_owned();
    let is_scheme = |word: &&str| matches!(word.to_ascii_lowercase().as_str(), "bearer" | "basic" | "token");
    let words = text.split_whitespace().filter(|word| word.len() >= SHORTEST && !is_scheme(word));
    let mut parts: Vec<String> = words.map(str::to_owned).collect();
    for word in parts.clone() {
        let Some(plain) = STANDARD.decode(&word).ok().and_then(|plain| String::from_utf8(plain).ok()) else { continue };
        parts.extend(plain.split_once(':').map(|(_, password)| password.to_owned()));
    }
    parts
}

/// How a secret may be written.
fn forms(secret: &str) -> Vec<String> {
    let hex = secret.bytes().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let quoted = serde_json::to_string(secret).unwrap_or_default();
    let mut forms = vec![
        secret.to_owned(),
        quoted.trim_matches('"').to_owned(),
        utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
        hex.to_uppercase(),
        hex,
    ];
    // In a longer text it may begin at any of the three bytes that make four letters. The letters at its ends are made
    // of its neighbours, too.
    for before in 0..3 {
        let encoded = STANDARD_NO_PAD.encode([&vec![0; before], secret.as_bytes()].concat());
        let first = [0, 2, 3][before];
        let last = encoded.len() - usize::from(!(before + secret.len()).is_multiple_of(3));
        let Some(own) = encoded.get(first..last) else { continue };
        forms.extend([own.to_owned(), own.replace('+', "-").replace('/', "_")]);
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;

    #[test]
    fn secrets_are_hidden_in_every_form() {
        let secrets = [HeaderValue::from_static("Bearer s3cret>token?")];
        for told in [
            "no s3cret>token? here".to_owned(),
            "no czNjcmV0PnRva2VuPw== here".to_owned(),
            format!("{{\"header\":\"{}\"}}", STANDARD.encode("Bearer s3cret>token?")),
            format!("jwt {}", URL_SAFE_NO_PAD.encode("{\"token\":\"s3cret>token?\"}")),
            "s3cret%3Etoken%3F".to_owned(),
            "7333637265743e746f6b656e3f".to_owned(),
            "7333637265743E746F6B656E3F".to_owned(),
        ] {
            let hidden = hide(&told, &secrets);
            assert!(hidden.contains(REMOVED), "{told}: {hidden}");
            assert!(!hidden.contains("s3cret") && !hidden.contains("2VuP"), "{told}: {hidden}");
        }
        let basic = [HeaderValue::from_static("Basic dXNlcjpodW50ZXIyMjI=")];
        assert_eq!(hide("user with hunter222 is unknown", &basic), "user with (removed) is unknown");
        assert_eq!(hide("the token is wrong", &secrets), "the token is wrong");
    }

    proptest! {
        #[test]
        fn no_part_of_a_secret_comes_back_in_base64(
            before in "[ -~]{0,12}", secret in "[!-~]{9,40}", after in "[ -~]{0,12}",
        ) {
            let value = HeaderValue::from_str(&format!("Bearer {secret}")).unwrap();
            let told = STANDARD.encode(format!("{before}{secret}{after}"));
            let hidden = hide(&told, &[value]);
            prop_assert!(hidden.contains(REMOVED), "{}", hidden);
            prop_assert!(hidden.len() <= REMOVED.len() + 4 * (before.len() + after.len()) / 3 + 8, "{}", hidden);
        }
    }
}
