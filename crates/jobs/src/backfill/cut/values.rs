//! The values of Secrets, found wherever they stand: as they are, in base64, percent-encoded, or escaped once more.
//!
//! The values themselves are not kept. Of each form there are its first eight bytes and a hash of its first 64, so that a text
//! is searched in one pass, and memory grows by a few words a form.

use super::text::{self, Manner};
use super::words::{Meaning, last_word, meaning};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::ops::Range;

/// What is shorter is in too many texts.
pub(crate) const SHORTEST: usize = 8;
/// How many bytes decide whether a place is looked at, and how many places are passed over if not.
const PART: usize = 4;
const STEP: usize = SHORTEST - PART + 1;
/// How much of a form is compared.
const SPAN: usize = 64;
/// How many forms are kept: about 64 MiB.
const MOST: usize = 2_000_000;
/// A longer value is searched for as it is, and not in other forms.
const LONGEST: usize = 64 * 1024;

/// What stays as it is in an address.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Last words of keys whose values are public: what is at these places in a Secret is no secret.
const PUBLIC: &[&str] = &[
    "ca",
    "cert",
    "certificate",
    "crt",
    "database",
    "db",
    "dbname",
    "domain",
    "email",
    "endpoint",
    "env",
    "environment",
    "host",
    "hostname",
    "issuer",
    "level",
    "login",
    "mode",
    "name",
    "namespace",
    "port",
    "protocol",
    "pub",
    "region",
    "scheme",
    "server",
    "type",
    "user",
    "username",
    "version",
    "zone",
];

/// Values that are in every cluster, and in no one's way.
const WORDS: &[&str] = &[
    "administrator",
    "application",
    "authorization",
    "basic-auth",
    "certificate",
    "cluster.local",
    "configmap",
    "container",
    "containers",
    "credentials",
    "database",
    "deployment",
    "development",
    "disabled",
    "elasticsearch",
    "filesystem",
    "internal",
    "kube-public",
    "kube-system",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.io",
    "localhost",
    "metadata",
    "namespace",
    "namespaces",
    "password",
    "postgres",
    "postgresql",
    "production",
    "prometheus",
    "provider",
    "rabbitmq",
    "registry",
    "required",
    "resource",
    "resources",
    "serviceaccount",
    "standard",
    "svc.cluster.local",
    "template",
    "undefined",
    "username",
    "verify-full",
    "wordpress",
];

/// A form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    prefix: u64,
    /// How much of it is hashed, and the hash.
    span: u32,
    hash: u64,
    length: u32,
}

/// The values of Secrets.
#[derive(Debug, Default)]
pub(crate) struct Values {
    /// In order.
    forms: Vec<Form>,
    /// The prefixes that there are, and their parts: most places of a text are not looked at any further.
    prefixes: Filter,
    parts: Filter,
}

/// Collects values.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    forms: Vec<Form>,
    /// Whether there are more than are kept.
    pub(crate) is_full: bool,
}

impl Collector {
    /// Adds a value of a Secret, if it is one that nobody may see.
    pub(crate) fn add(&mut self, key: &str, value: &[u8]) {
        let Ok(text) = std::str::from_utf8(value) else {
            // What is no text appears as base64 only.
            return self.add_encoded(value);
        };
        let text = text.trim();
        let is_public =
            PUBLIC.contains(&last_word(key.as_bytes()).as_str()) && meaning(key.as_bytes()) == Meaning::Plain;
        if !is_public && !is_common(text) {
            self.add_forms(text);
        }
        // What is secret inside of it: a password in an address or in a file.
        for part in text::secrets(text, Manner::Text) {
            let part = text[part].trim();
            if !is_common(part) {
                self.add_forms(part);
            }
        }
        self.add_key(text);
    }

    /// The body of a private key, which may stand elsewhere without its lines.
    fn add_key(&mut self, text: &str) {
        if !text.contains("PRIVATE KEY-----") {
            return;
        }
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("-----") && !line.contains(':'));
        let body: String = lines.collect();
        self.add_form(body.as_bytes());
    }

    fn add_forms(&mut self, text: &str) {
        self.add_form(text.as_bytes());
        if text.len() > LONGEST {
            return;
        }
        self.add_encoded(text.as_bytes());
        for set in [NON_ALPHANUMERIC, UNRESERVED] {
            let encoded = utf8_percent_encode(text, set).to_string();
            if encoded != text {
                self.add_form(in_small_letters(&encoded).as_bytes());
                self.add_form(encoded.as_bytes());
            }
        }
        let mut quoted = text.to_owned();
        for _ in 0..2 {
            quoted = quote(&quoted);
            self.add_form(quoted.as_bytes());
        }
    }

    /// In a longer text it may begin at any of the three bytes that make four letters. The letters at its ends are made of
    /// its neighbours, too.
    fn add_encoded(&mut self, value: &[u8]) {
        if value.len() < SHORTEST || value.len() > LONGEST {
            return;
        }
        for before in 0..3_usize {
            let encoded = STANDARD_NO_PAD.encode([&vec![0; before], value].concat());
            let first = [0, 2, 3][before];
            let last = encoded.len() - usize::from(!(before + value.len()).is_multiple_of(3));
            let Some(own) = encoded.get(first..last) else { continue };
            self.add_form(own.as_bytes());
            if own.contains(['+', '/']) {
                self.add_form(own.replace('+', "-").replace('/', "_").as_bytes());
            }
        }
    }

    fn add_form(&mut self, form: &[u8]) {
        let (Some(prefix), Ok(length)) = (prefix_at(form, 0), u32::try_from(form.len())) else { return };
        if self.forms.len() >= MOST {
            self.is_full = true;
            return;
        }
        let span = form.len().min(SPAN);
        let hash = form[SHORTEST..span].iter().fold(prefix, |hash, byte| mix(hash, *byte));
        self.forms.push(Form { prefix, span: u32::try_from(span).unwrap_or_default(), hash, length });
    }

    /// What texts are searched with.
    pub(crate) fn finish(mut self) -> Values {
        self.forms.sort_unstable();
        self.forms.dedup();
        self.forms.shrink_to_fit();
        let mut values = Values {
            prefixes: Filter::new(self.forms.len()),
            parts: Filter::new(self.forms.len() * STEP),
            forms: self.forms,
        };
        for form in &values.forms {
            values.prefixes.add(form.prefix);
            let bytes = form.prefix.to_le_bytes();
            bytes.windows(PART).for_each(|part| values.parts.add(part_at(part, 0)));
        }
        values
    }
}

impl Values {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Whether one of them is in a text.
    pub(crate) fn are_in(&self, text: &[u8]) -> bool {
        self.next_in(text, 0).is_some()
    }

    /// Where they are in a text.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(range) = self.next_in(text, at) {
            at = range.end;
            found.push(range);
        }
        found
    }

    fn next_in(&self, text: &[u8], from: usize) -> Option<Range<usize>> {
        if self.forms.is_empty() {
            return None;
        }
        let mut at = from;
        while let Some(prefix) = prefix_at(text, at) {
            // If no prefix has these last bytes anywhere, none begins here, nor at any of the next places.
            if !self.parts.may_have(part_at(text, at + SHORTEST - PART)) {
                at += STEP;
                continue;
            }
            if self.prefixes.may_have(prefix)
                && let Some(length) = self.longest_at(prefix, &text[at..])
            {
                return Some(at..(at + length).min(text.len()));
            }
            at += 1;
        }
        None
    }

    /// How long the longest one is that begins here.
    fn longest_at(&self, prefix: u64, text: &[u8]) -> Option<usize> {
        let first = self.forms.partition_point(|form| form.prefix < prefix);
        let mut forms = &self.forms[first..];
        let (mut hash, mut at, mut longest) = (prefix, SHORTEST, None);
        while let Some(form) = forms.first().filter(|form| form.prefix == prefix) {
            // Those of one span are beside each other.
            let span = form.span as usize;
            let same = forms.partition_point(|other| (other.prefix, other.span) == (prefix, form.span));
            let Some(more) = text.get(at..span) else { break };
            hash = more.iter().fold(hash, |hash, byte| mix(hash, *byte));
            at = span;
            let equal = forms[..same].partition_point(|other| other.hash < hash);
            let lengths =
                forms[equal..same].iter().take_while(|other| other.hash == hash).map(|other| other.length as usize);
            longest = lengths.max().max(longest);
            forms = &forms[same..];
        }
        longest
    }
}

/// A set that may seem to have more than was added.
#[derive(Debug, Default)]
struct Filter {
    words: Vec<u64>,
    /// How many bits of a hash choose one of theirs.
    bits: u32,
}

impl Filter {
    fn new(members: usize) -> Self {
        let bits = (members * 32).next_power_of_two().ilog2().clamp(12, 24);
        Self { words: vec![0; 1 << (bits - 6)], bits }
    }

    fn add(&mut self, member: u64) {
        let (word, bit) = self.place(member);
        self.words[word] |= bit;
    }

    fn may_have(&self, member: u64) -> bool {
        let (word, bit) = self.place(member);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    fn place(&self, member: u64) -> (usize, u64) {
        let hash = member.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.bits);
        (usize::try_from(hash >> 6).unwrap_or_default(), 1 << (hash & 63))
    }
}

/// A percent-encoded text with `%2f` instead of `%2F`.
fn in_small_letters(encoded: &str) -> String {
    let mut left = 0;
    let write = |character: char| {
        left = if character == '%' { 3 } else { i32::max(left - 1, 0) };
        if left > 0 { character.to_ascii_lowercase() } else { character }
    };
    encoded.chars().map(write).collect()
}

/// A text as it stands between quotes in JSON.
fn quote(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

fn prefix_at(text: &[u8], at: usize) -> Option<u64> {
    let bytes = text.get(at..at + SHORTEST)?;
    bytes.try_into().map(u64::from_le_bytes).ok()
}

/// A few bytes; zero at the end of a text.
fn part_at(text: &[u8], at: usize) -> u64 {
    let bytes = text.get(at..at + PART).and_then(|bytes| bytes.try_into().ok());
    u64::from(bytes.map_or(0, u32::from_le_bytes))
}

fn mix(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
}

/// Whether a value is none that anybody could keep secret: too short, known to everybody, or a certificate.
fn is_common(text: &str) -> bool {
    let is_uniform = text.bytes().skip(1).all(|byte| Some(byte) == text.bytes().next());
    let is_public = text.starts_with("-----BEGIN ") && !text.contains("PRIVATE KEY-----");
    text.len() < SHORTEST || is_uniform || is_public || WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;

    fn values(known: &[(&str, &str)]) -> Values {
        let mut collector = Collector::default();
        for (key, value) in known {
            collector.add(key, value.as_bytes());
        }
        collector.finish()
    }

    #[test]
    fn values_are_found_in_every_form() {
        let secret = "hunter-two>?é\"x";
        let values = values(&[("foo", secret)]);
        for text in [
            format!("say {secret} here"),
            STANDARD.encode(secret),
            STANDARD.encode(format!("user:{secret}")),
            STANDARD.encode(format!("me:{secret}!")),
            URL_SAFE.encode(format!("u:{secret}")),
            format!("https://h/?x={}&y", utf8_percent_encode(secret, NON_ALPHANUMERIC)),
            serde_json::to_string(&serde_json::json!({"a": secret})).unwrap(),
        ] {
            let found = values.find(text.as_bytes());
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].len() + 3 >= secret.len(), "{text}: {found:?}");
        }
        assert!(!values.are_in(b"hunter-two and others") && !values.are_in(b""));
    }

    #[test]
    fn secrets_inside_of_values_are_values_too() {
        let config = "host: db\npassword: first-one\nurl: amqp://u:second-one@h/\n";
        let values = values(&[("config.yaml", config)]);
        assert!(values.are_in(b"x first-one y") && values.are_in(b"second-one") && !values.are_in(b"host: db"));
    }

    #[test]
    fn public_values_and_common_words_are_no_secrets() {
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUYmFzZTY0\n-----END CERTIFICATE-----\n";
        for (key, value) in [
            ("tls.crt", certificate),
            ("any", certificate),
            ("DB_HOST", "database.example"),
            ("username", "shop-owner"),
            ("namespace", "kube-system-two"),
            ("any", "postgresql"),
            ("any", "short"),
            ("any", "--------"),
        ] {
            assert!(values(&[(key, value)]).is_empty(), "{key}: {value}");
        }
        assert!(!values(&[("user-password", "shop-owner")]).is_empty());
    }

    #[test]
    fn private_keys_are_found_without_their_lines() {
        let key = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2\nOF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r\n-----END PRIVATE KEY-----\n";
        let values = values(&[("tls.key", key)]);
        assert!(values.are_in(key.replace('\n', "").as_bytes()));
        let body: String = key.lines().filter(|line| !line.starts_with('-')).collect();
        assert!(values.are_in(body.as_bytes()));
    }

    proptest! {
        #[test]
        fn every_value_is_found_wherever_it_stands(
            known in prop::collection::vec("[!-~]{8,100}", 1..40),
            which in any::<prop::sample::Index>(), before in ".{0,20}", after in ".{0,20}",
        ) {
            let chosen = which.get(&known).clone();
            prop_assume!(!is_common(&chosen));
            let pairs: Vec<(&str, &str)> = known.iter().map(|value| ("any", value.as_str())).collect();
            let values = values(&pairs);
            let text = format!("{before}{chosen}{after}");
            let left = text::remove(&text, values.find(text.as_bytes())).unwrap();
            prop_assert!(!left.contains(&chosen), "{}", left);
        }
    }
}
