//! What is known to be secret, in one place. docs/backfill.md tells it to people.

use std::borrow::Cow;

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

/// Fields whose texts are secret wherever they are, without dashes, underscores and dots, in lower case.
const FIELDS: &[&str] = &[
    "accesskey",
    "accesstoken",
    "accountkey",
    "apikey",
    "apitoken",
    "authtoken",
    "bearertoken",
    "clientsecret",
    "connectionstring",
    "encryptionkey",
    "passphrase",
    "passwd",
    "password",
    "presharedkey",
    "privatekey",
    "refreshtoken",
    "sastoken",
    "secretaccesskey",
    "secretkey",
    "sharedkey",
    "signingkey",
    "token",
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

/// Whether the text of a field is never sent.
pub(super) fn is_secret_field(key: &[u8]) -> bool {
    // Most keys are not looked at any further.
    if key.len() < 5 || key.len() > 24 || !matches!(key[key.len() - 1] | 0x20, b'd' | b'e' | b'g' | b'n' | b't' | b'y')
    {
        return false;
    }
    let name = plain(key);
    FIELDS.binary_search_by(|field| field.as_bytes().cmp(&name)).is_ok()
}

/// Whether the value of a variable of this name is never sent.
pub(super) fn is_secret_variable(name: &str, value: &str) -> bool {
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

/// A text without the passwords of the addresses in it; none if there are none.
pub(super) fn without_passwords(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(found) = rest.find("://") {
        let (before, after) = rest.split_at(found + 3);
        out.push_str(before);
        rest = after;
        if let Some(secret) = find_user(after, before.trim_end_matches("://")) {
            out.push_str(&after[..secret.start]);
            out.push_str(REMOVED);
            rest = &after[secret.end..];
        }
    }
    out.push_str(rest);
    (out != text).then_some(out)
}

/// Where the secret part of an address is, which begins behind its scheme.
fn find_user(after: &str, before: &str) -> Option<std::ops::Range<usize>> {
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

/// A line of a shell, or an argument, without the values of secret names: `--password=x`, `TOKEN=x`.
pub(super) fn without_assignments(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(found) = rest.find('=') {
        let (before, after) = rest.split_at(found + 1);
        out.push_str(before);
        rest = after;
        let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
        let name = &before[..found];
        let name = &name[name.rfind(|character| !is_part(character)).map_or(0, |at| at + last_width(name, at))..];
        let value = &after[..end_of_word(after)];
        if !name.is_empty() && !value.is_empty() && is_secret_variable(name, value) {
            out.push_str(REMOVED);
            rest = &after[value.len()..];
        }
    }
    out.push_str(rest);
    (out != text).then_some(out)
}

fn last_width(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(1, char::len_utf8)
}

/// Where a word of a shell ends, with its quotes.
fn end_of_word(text: &str) -> usize {
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match (character, quote) {
            _ if escaped => escaped = false,
            ('\\', _) => escaped = true,
            (_, Some(open)) if character == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(character),
            (_, None) if character.is_whitespace() || matches!(character, ';' | '&' | '|') => return at,
            _ => {}
        }
    }
    text.len()
}

/// The name of an argument whose value is the next one: `--password`.
pub(super) fn announces_secret(argument: &str) -> bool {
    let name = argument.trim_start_matches('-');
    argument.starts_with('-') && !name.contains(['=', ' ']) && is_secret_variable(name, "")
}

/// A text as JSON.
pub(super) fn quoted(text: &str) -> Cow<'static, [u8]> {
    Cow::Owned(serde_json::to_vec(text).unwrap_or_else(|_| b"\"\"".to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_in_order() {
        assert!(FIELDS.is_sorted());
        assert!(
            FIELDS.iter().all(|field| is_secret_field(field.as_bytes())),
            "the quick look lets all of them through"
        );
        assert!(ANNOTATIONS.iter().all(|key| is_secret_annotation(key)));
    }

    #[test]
    fn fields_are_known_in_every_spelling() {
        for field in
            ["password", "Password", "client_secret", "clientSecret", "secret-access-key", "api.token", "TOKEN"]
        {
            assert!(is_secret_field(field.as_bytes()), "{field}");
        }
        for field in ["secret", "key", "name", "passwordSecretRef", "tokenPath", "image", "secretName", ""] {
            assert!(!is_secret_field(field.as_bytes()), "{field}");
        }
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
            assert_eq!(without_passwords(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn values_of_secret_arguments_go() {
        for (text, expected) in [
            ("--password=p4ss", Some("--password=(removed)")),
            ("export TOKEN='a b' && run --level=3", Some("export TOKEN=(removed) && run --level=3")),
            ("é API_KEY=x;ls", Some("é API_KEY=(removed);ls")),
            ("--tls-private-key-file=/etc/tls.key", None),
            ("--level=3", None),
            ("--password=", None),
            ("=x", None),
            ("a b c", None),
        ] {
            assert_eq!(without_assignments(text).as_deref(), expected, "{text}");
        }
        assert!(announces_secret("--password") && announces_secret("-token"));
        assert!(!announces_secret("password") && !announces_secret("--level") && !announces_secret("--token=x"));
    }
}
