//! How names and other texts must look. Each function gives the server's words about what is wrong, nothing for a
//! text that is right.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_WORDS: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// The longest name that is a subdomain.
pub(crate) const SUBDOMAIN_LENGTH: usize = 253;
const LABEL_LENGTH: usize = 63;

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

pub(crate) fn out_of_range(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// What is wrong, with examples and the regular expression that was not met.
pub(crate) fn mismatch(words: &str, expression: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{words} (regex used for validation is '{expression}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{expression}')", examples.join(" or "))
}

/// A word of these characters that neither starts nor ends with a mark.
fn is_word(text: &str, inner: fn(u8) -> bool, outer: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    ends.is_some_and(|(first, last)| outer(*first) && outer(*last)) && bytes.iter().all(|byte| inner(*byte))
}

fn is_lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_lower_digit_or_dash(byte: u8) -> bool {
    is_lower_or_digit(byte) || byte == b'-'
}

fn is_label(text: &str) -> bool {
    is_word(text, is_lower_digit_or_dash, is_lower_or_digit)
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_qualified_part(text: &str) -> bool {
    is_word(
        text,
        |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
        |byte| byte.is_ascii_alphanumeric(),
    )
}

/// Lower-case words with dots and dashes.
pub(crate) fn dns_subdomain(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH {
        messages.push(too_long(SUBDOMAIN_LENGTH));
    }
    if !is_subdomain(text) {
        messages.push(mismatch(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            &format!("{LABEL}(\\.{LABEL})*"),
            &["example.com"],
        ));
    }
    messages
}

/// As a subdomain, with underscores.
pub(crate) fn dns_subdomain_with_underscores(text: &str) -> Vec<String> {
    const PART: &str = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
    let mut messages = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH {
        messages.push(too_long(SUBDOMAIN_LENGTH));
    }
    let is_part = |part: &str| {
        is_word(
            part.strip_prefix('_').unwrap_or(part),
            |byte| is_lower_digit_or_dash(byte) || byte == b'_',
            is_lower_or_digit,
        )
    };
    if !text.split('.').all(is_part) {
        messages.push(mismatch(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
            &format!("{PART}(\\.{PART})*"),
            &["example.com"],
        ));
    }
    messages
}

/// `*.` before a subdomain.
pub(crate) fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH {
        messages.push(too_long(SUBDOMAIN_LENGTH));
    }
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        messages.push(mismatch(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!("\\*\\.{LABEL}(\\.{LABEL})*"),
            &["*.example.com"],
        ));
    }
    messages
}

/// One lower-case word with dashes.
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > LABEL_LENGTH {
        messages.push(too_long(LABEL_LENGTH));
    }
    if !is_label(text) {
        messages.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            mismatch(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    messages
}

/// As a label, starting with a letter.
pub(crate) fn dns_1035_label(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > LABEL_LENGTH {
        messages.push(too_long(LABEL_LENGTH));
    }
    if !is_label(text) || text.starts_with(|first: char| first.is_ascii_digit()) {
        messages.push(mismatch(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    messages
}

/// `name` or `domain/name`: keys of labels and annotations, finalizers, resource names.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    const EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];
    let mut messages = Vec::new();
    let mut parts = text.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                messages.push("prefix part must be non-empty".to_owned());
            } else {
                messages.extend(dns_subdomain(prefix).iter().map(|message| format!("prefix part {message}")));
            }
            name
        }
        _ => {
            let words = mismatch(QUALIFIED_WORDS, QUALIFIED, &EXAMPLES);
            return vec![format!(
                "a qualified name {words} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        messages.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH {
        messages.push(format!("name part {}", too_long(LABEL_LENGTH)));
    }
    if !is_qualified_part(name) {
        messages.push(format!("name part {}", mismatch(QUALIFIED_WORDS, QUALIFIED, &EXAMPLES)));
    }
    messages
}

pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > LABEL_LENGTH {
        messages.push(too_long(LABEL_LENGTH));
    }
    if !text.is_empty() && !is_qualified_part(text) {
        messages.push(mismatch(
            &format!("a valid label must be an empty string or {}", QUALIFIED_WORDS.trim_start_matches("must ")),
            &format!("({QUALIFIED})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    messages
}

/// What may be one segment of a path. A prefix may become valid with what follows.
pub(crate) fn path_segment(text: &str, prefix: bool) -> Vec<String> {
    if !prefix && matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"].iter().filter(|mark| text.contains(**mark)).map(|mark| format!("may not contain '{mark}'")).collect()
}

/// The name of an environment variable.
pub(crate) fn environment_name(text: &str) -> Vec<String> {
    if text.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    if text.chars().any(|character| !(' '..='~').contains(&character) || character == '=') {
        return vec![
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        ];
    }
    Vec::new()
}

/// A key of a ConfigMap or Secret.
pub(crate) fn config_key(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH {
        messages.push(too_long(SUBDOMAIN_LENGTH));
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if text.is_empty() || !text.bytes().all(is_allowed) {
        messages.push(mismatch(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match text {
        "." | ".." => messages.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => messages.push("must not start with '..'".to_owned()),
        _ => {}
    }
    messages
}

pub(crate) fn port_number(port: i64) -> Vec<String> {
    if (1..=65535).contains(&port) { Vec::new() } else { vec![out_of_range(1, 65535)] }
}

/// The name of a port, as IANA writes service names.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > 15 {
        messages.push(too_long(15));
    }
    if text.is_empty() || !text.bytes().all(is_lower_digit_or_dash) {
        messages.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        messages.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        messages.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        messages.push("must not begin or end with a hyphen".to_owned());
    }
    messages
}

pub(crate) fn http_header_name(text: &str) -> Vec<String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Vec::new();
    }
    let words = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![mismatch(words, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

pub(crate) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let words = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![mismatch(words, "[0-9]+%", &["1%", "93%"])]
}

/// The id of a user or group.
pub(crate) fn user_or_group(id: i64) -> Vec<String> {
    let highest = i64::from(i32::MAX);
    if (0..=highest).contains(&id) { Vec::new() } else { vec![out_of_range(0, highest)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_the_server_judges_them() {
        let subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        for (text, expected) in
            [("a.b-c", vec![]), ("A", vec![subdomain]), ("a..b", vec![subdomain]), ("", vec![subdomain])]
        {
            assert_eq!(dns_subdomain(text), expected, "{text}");
        }
        assert_eq!(dns_subdomain(&"a".repeat(254)), ["must be no more than 253 characters"]);
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert_eq!(
            dns_label("a-"),
            [
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert_eq!(
            dns_1035_label("1a"),
            [
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert!(dns_subdomain_with_underscores("_tcp.a_b").is_empty());
        assert_eq!(dns_subdomain_with_underscores("__a").len(), 1);
        assert!(wildcard_subdomain("*.a.b").is_empty());
        assert_eq!(path_segment("a/b%", false), ["may not contain '/'", "may not contain '%'"]);
        assert_eq!(path_segment("..", false), ["may not be '..'"]);
        assert!(path_segment("..", true).is_empty());
    }

    #[test]
    fn qualified_names_have_at_most_one_prefix() {
        let name = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        assert!(qualified_name("example.com/My_name.x").is_empty());
        assert_eq!(qualified_name("/x"), ["prefix part must be non-empty"]);
        assert_eq!(qualified_name("y/"), ["name part must be non-empty".to_owned(), format!("name part {name}")]);
        assert_eq!(qualified_name("a b"), [format!("name part {name}")]);
        assert_eq!(
            qualified_name("a/b/c"),
            [format!(
                "a qualified name {name} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )]
        );
        assert_eq!(
            label_value("-x"),
            [
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ]
        );
        assert!(label_value("").is_empty());
    }

    #[test]
    fn ports_and_keys() {
        assert_eq!(port_name("a--b-"), ["must not contain consecutive hyphens", "must not begin or end with a hyphen"]);
        assert_eq!(port_name("80"), ["must contain at least one letter (a-z)"]);
        assert_eq!(port_number(0), ["must be between 1 and 65535, inclusive"]);
        assert_eq!(config_key("..a"), ["must not start with '..'"]);
        assert_eq!(
            config_key("a/b"),
            [
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
            ]
        );
        assert_eq!(
            percent("5"),
            [
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            ]
        );
    }
}
