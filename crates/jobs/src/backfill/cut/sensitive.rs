//! What is known to be secret, in one place. docs/backfill.md tells it to people.

use super::words::{Meaning, meaning};
use std::borrow::Cow;
use std::ops::Range;

/// What stands where something was taken out.
pub(crate) const REMOVED: &str = "(removed)";

/// Annotations that hold whole objects as they were applied, Secrets included, or tokens.
const ANNOTATIONS: &[&[u8]] = &[
    b"kubectl.kubernetes.io/last-applied-configuration",
    b"banzaicloud.com/last-applied",
    b"kapp.k14s.io/original",
    b"kopf.zalando.org/last-handled-configuration",
    b"objectset.rio.cattle.io/applied",
    b"openshift.io/token-secret.value",
];

/// Words in the name of a variable that make its value secret.
const WORDS: &[&str] = &[
    "authorization",
    "basicauth",
    "connectionstring",
    "credential",
    "dsn",
    "key",
    "passphrase",
    "passwd",
    "password",
    "private",
    "pwd",
    "secret",
    "token",
];

/// Ends of names of variables that say where a secret is.
const PLACES: &[&str] = &["dir", "directory", "file", "path"];

/// Whether an annotation is never sent.
pub(super) fn is_secret_annotation(key: &[u8]) -> bool {
    // The shortest of them is longer than most keys.
    key.len() > 20 && ANNOTATIONS.contains(&key)
}

/// Whether the value of a label or an annotation is never sent. What a tool writes in front of a name is not part of it,
/// unless that is no domain: `checksum/secret`.
pub(super) fn is_secret_mark(key: &[u8]) -> bool {
    let name = match memchr::memrchr(b'/', key) {
        Some(slash) if key[..slash].contains(&b'.') => &key[slash + 1..],
        _ => key,
    };
    meaning(name) != Meaning::Plain
}

/// Whether the value of a variable of this name is never sent.
pub(crate) fn is_secret_variable(name: &str, value: &str) -> bool {
    let name = plain(name.as_bytes());
    let ends = |ends: &&str| name.ends_with(ends.as_bytes());
    let is_place = value.starts_with('/') && PLACES.iter().any(ends);
    !is_place && WORDS.iter().any(|word| memchr::memmem::find(&name, word.as_bytes()).is_some())
}

/// Whether a key has the form of a variable: `DB_PASSWORD`.
pub(super) fn is_variable(key: &[u8]) -> bool {
    key.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
}

/// Letters and digits of a name, in lower case.
fn plain(name: &[u8]) -> Vec<u8> {
    let kept = name.iter().filter(|byte| !matches!(byte, b'-' | b'_' | b'.'));
    kept.map(u8::to_ascii_lowercase).collect()
}

/// Whether a text may hold an address, as it is written.
pub(super) fn may_hold_address(raw: &[u8]) -> bool {
    memchr::memmem::find(raw, b"://").is_some()
        || memchr::memchr(b'\\', raw).is_some_and(|at| {
            // Slashes and colons may be escaped, though nobody does.
            memchr::memmem::find(&raw[at..], b"\\/").is_some() || memchr::memmem::find(&raw[at..], b"\\u00").is_some()
        })
}

/// Where the passwords of the addresses in a text are.
pub(super) fn passwords(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(colon) = text[at..].find("://") {
        let start = at + colon + 3;
        let before = &text[at..start - 3];
        at = start;
        if let Some(secret) = find_user(&text[start..], before) {
            at = start + secret.end;
            found.push(start + secret.start..at);
        }
    }
    found
}

/// Where the secret part of an address is, which begins behind its scheme.
fn find_user(after: &str, before: &str) -> Option<Range<usize>> {
    let ends = |character: char| character.is_whitespace() || matches!(character, '"' | '\'' | '<' | '>' | '`');
    let address = &after[..after.find(ends).unwrap_or(after.len())];
    let authority = &address[..address.find(['/', '?', '#']).unwrap_or(address.len())];
    let end = if let Some(end) = authority.rfind('@') {
        end
    } else {
        // A password with a slash in it, which somebody forgot to escape: else a port would stand there.
        let (_, port) = authority.split_once(':')?;
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
        address.rfind('@').filter(|_| !is_port && !authority.contains(['[', '$', '{']))?
    };
    let user = &address[..end];
    match user.find(':') {
        Some(colon) if colon + 1 < end => Some(colon + 1..end),
        // A token instead of a user; `git@` in front of a host is none.
        None if before.ends_with("http") || before.ends_with("https") => (!user.is_empty()).then_some(0..end),
        _ => None,
    }
}

/// A text as JSON.
pub(super) fn quoted(text: &str) -> Cow<'static, [u8]> {
    Cow::Owned(serde_json::to_vec(text).unwrap_or_else(|_| b"\"\"".to_vec()))
}

#[cfg(test)]
mod tests {
    use super::super::text::remove;
    use super::*;

    #[test]
    fn every_annotation_of_the_table_is_known() {
        assert!(ANNOTATIONS.iter().all(|key| is_secret_annotation(key)));
    }

    #[test]
    fn variables_are_known_by_a_word_in_their_name() {
        for name in ["DB_PASSWORD", "apiKey", "GITHUBTOKEN", "AWS_SECRET_ACCESS_KEY", "MYSQL_PWD", "GOOGLE_CREDENTIALS"]
        {
            assert!(is_secret_variable(name, "x"), "{name}");
        }
        for name in ["LOG_LEVEL", "HOME", "DATABASE_HOST", "PASS", "AUTHOR"] {
            assert!(!is_secret_variable(name, "x"), "{name}");
        }
        assert!(!is_secret_variable("TLS_KEY_FILE", "/etc/tls/tls.key"));
        assert!(is_secret_variable("TLS_KEY_FILE", "MIIEvQ"), "this is no place");
    }

    #[test]
    fn passwords_leave_addresses() {
        for (text, expected) in [
            ("postgres://shop:p4ss@db:5432/shop", Some("postgres://shop:(removed)@db:5432/shop")),
            ("a postgres://u:p@h, and amqp://x:y:z@h/", Some("a postgres://u:(removed)@h, and amqp://x:(removed)@h/")),
            ("redis://:p4ss@cache", Some("redis://:(removed)@cache")),
            ("https://ghp_token@github.com/a/b", Some("https://(removed)@github.com/a/b")),
            ("mysql://u:pa/ss@h/db", Some("mysql://u:(removed)@h/db")),
            ("ssh://git@host/x", None),
            ("https://host:8080/path?mail=a@b.c", None),
            ("https://host/a@b", None),
            ("http://[::1]:80/a@b", None),
            ("https://u:@host", None),
            ("://", None),
            ("no address", None),
        ] {
            assert_eq!(remove(text, passwords(text)).as_deref(), expected, "{text}");
        }
    }
}
