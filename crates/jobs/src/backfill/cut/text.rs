//! What is secret inside of a text: a line of a shell, properties, YAML or JSON, as far as names in it announce it.

use super::sensitive::{self, REMOVED};
use super::words::{Meaning, may_announce, meaning};
use std::ops::Range;

/// How a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// As any text: a name has to be clear.
    Text,
    /// As an argument or a line of a shell: a name may also be that of a variable.
    Shell,
}

/// The longest name, and the deepest indentation, that is looked at.
const LONGEST: usize = 160;
/// What comes before the body of a private key, and before its end.
const PEM: (&str, &str, &str) = ("-----BEGIN ", "PRIVATE KEY-----", "-----END ");
/// Names of parameters of an address that are secret there and nowhere else.
const SIGNATURES: &[&str] = &["code", "sig", "signature", "x-amz-signature", "x-goog-signature"];
/// Names of members that name what a value is for, and names of such values.
const NAMES: &[&str] = &["header", "key", "name", "parameter"];
const VALUES: &[&str] = &["default", "value"];

/// Whether a text may hold something secret, as it is written in JSON.
pub(super) fn may_hold_secret(raw: &[u8]) -> bool {
    let has_mark = memchr::memchr3(b'=', b':', b'-', raw).is_some() || memchr::memchr2(b'<', b' ', raw).is_some();
    // Parameters of an address, or letters that are escaped.
    has_mark && (may_announce(raw) || memchr::memchr2(b'?', b'&', raw).is_some())
        || memchr::memchr(b'\\', raw).is_some_and(|at| memchr::memmem::find(&raw[at..], b"\\u").is_some())
}

/// A text without these parts; none if there are none.
pub(super) fn remove(text: &str, mut parts: Vec<Range<usize>>) -> Option<String> {
    // What was only compared at its beginning may be thought to end within a character.
    let ceil = |at: usize| (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let floor = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    for part in &mut parts {
        *part = floor(part.start)..ceil(part.end);
    }
    parts.retain(|part| !part.is_empty() && &text[part.clone()] != REMOVED);
    if parts.is_empty() {
        return None;
    }
    parts.sort_by_key(|part| (part.start, part.end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut parts = parts.into_iter().peekable();
    while let Some(mut part) = parts.next() {
        // What overlaps goes together.
        while let Some(next) = parts.next_if(|next| next.start < part.end) {
            part.end = part.end.max(next.end);
        }
        out.push_str(&text[at..part.start]);
        out.push_str(REMOVED);
        at = part.end;
    }
    out.push_str(&text[at..]);
    Some(out)
}

/// Where a text is secret.
pub(super) fn secrets(text: &str, manner: Manner) -> Vec<Range<usize>> {
    let mut found = sensitive::passwords(text);
    named(text, manner, &mut found);
    flagged(text, manner, &mut found);
    bearers(text, &mut found);
    elements(text, &mut found);
    private_keys(text, &mut found);
    found
}

fn private_keys(text: &str, found: &mut Vec<Range<usize>>) {
    let (begin, head, end) = PEM;
    let mut at = 0;
    while let Some(start) = text[at..].find(begin).map(|start| at + start + begin.len()) {
        at = start;
        let line = &text[start..text[start..].char_indices().nth(60).map_or(text.len(), |(width, _)| start + width)];
        let Some(body) = line.find(head).map(|place| start + place + head.len()) else { continue };
        at = text[body..].find(end).map_or(text.len(), |place| body + place);
        found.push(body..at);
    }
}

/// What is behind the name of a scheme: `Bearer x`.
fn bearers(text: &str, found: &mut Vec<Range<usize>>) {
    for scheme in ["Bearer ", "bearer ", "Basic ", "basic "] {
        for (start, _) in text.match_indices(scheme) {
            let start = start + scheme.len();
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
            let end = start + text.as_bytes()[start..].iter().take_while(|byte| is_part(byte)).count();
            // A word of a sentence has no digits.
            if end - start >= 8 && text[start..end].contains(|character: char| character.is_ascii_digit()) {
                found.push(start..end);
            }
        }
    }
}

/// Elements of XML: `<password>x</password>`.
fn elements(text: &str, found: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while let Some(start) = text[at..].find('<').map(|place| at + place + 1) {
        at = start;
        let name = text.as_bytes()[start..].iter().take(LONGEST).take_while(|byte| is_part(**byte)).count();
        let Some(open) = text[start + name..].find('>').map(|place| start + name + place + 1) else { return };
        if name > 0 && meaning(&text.as_bytes()[start..start + name]) != Meaning::Plain {
            let end = text[open..].find('<').map_or(text.len(), |place| open + place);
            found.push(open..end);
            at = end;
        }
    }
}

/// Values of secret names: `name=value`, `name: value`, `"name": "value"`.
fn named(text: &str, manner: Manner, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    // Whether `name: …` has said that the `value: …` after it is secret.
    let mut pair = 0_u8;
    while let Some(separator) = memchr::memchr2(b'=', b':', &bytes[at..]).map(|place| at + place) {
        at = separator + 1;
        let Some(name) = Name::before(bytes, separator) else { continue };
        if bytes[separator] == b':' && !name.is_key(bytes, separator) {
            continue;
        }
        let word = &bytes[name.range.clone()];
        let told = meaning(word);
        let Some(value) = value_after(bytes, separator, &name, told) else {
            // What is inside of it has names of its own, or is the value.
            pair = if told == Meaning::Plain { pair } else { 3 };
            continue;
        };
        pair = pair.saturating_sub(1);
        if is(NAMES, word) && names_secret(&text[value.clone()]) {
            pair = 3;
            continue;
        }
        if pair > 0 && is(VALUES, word) || name.is_secret(bytes, separator, &text[value.clone()], manner) {
            at = value.end.max(at);
            found.push(value);
        }
    }
}

/// Whether a name that stands beside a value tells that it is secret.
fn names_secret(name: &str) -> bool {
    let is_variable = sensitive::is_variable(name.as_bytes()) && sensitive::is_secret_variable(name, "");
    is_variable || meaning(name.as_bytes()) != Meaning::Plain
}

fn is(table: &[&str], word: &[u8]) -> bool {
    table.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word))
}

/// A name in front of a separator.
struct Name {
    range: Range<usize>,
    /// The quote around it.
    quote: Option<Quote>,
    /// The quote that stands before it and is still open.
    open: Option<Quote>,
}

/// A quote, and how many backslashes are before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quote {
    mark: u8,
    escapes: usize,
}

impl Quote {
    /// The quote that ends here.
    fn before(bytes: &[u8], end: usize) -> Option<Self> {
        let mark = *end.checked_sub(1).and_then(|at| bytes.get(at))?;
        let escapes = bytes[..end - 1].iter().rev().take(LONGEST).take_while(|byte| **byte == b'\\').count();
        matches!(mark, b'"' | b'\'').then_some(Self { mark, escapes })
    }

    /// The quote that begins here.
    fn at(bytes: &[u8], start: usize) -> Option<Self> {
        let escapes = bytes[start..].iter().take(LONGEST).take_while(|byte| **byte == b'\\').count();
        let mark = *bytes.get(start + escapes)?;
        matches!(mark, b'"' | b'\'').then_some(Self { mark, escapes })
    }

    fn width(self) -> usize {
        self.escapes + 1
    }

    /// Where the text ends that it opens: at the next one like it.
    fn end(self, bytes: &[u8], start: usize) -> usize {
        let mut at = start;
        while let Some(place) = memchr::memchr(self.mark, &bytes[at..]).map(|place| at + place) {
            let escapes = bytes[start..place].iter().rev().take_while(|byte| **byte == b'\\').count();
            if escapes <= self.escapes {
                return place - escapes;
            }
            at = place + 1;
        }
        bytes.len()
    }
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/')
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Goes back over what fits, but not far.
fn back(bytes: &[u8], end: usize, fits: fn(u8) -> bool) -> usize {
    end - bytes[..end].iter().rev().take(LONGEST).take_while(|byte| fits(**byte)).count()
}

impl Name {
    fn before(bytes: &[u8], separator: usize) -> Option<Self> {
        let end = back(bytes, separator, is_blank);
        let quote = Quote::before(bytes, end);
        let end = end - quote.map_or(0, Quote::width);
        let start = back(bytes, end, is_part);
        if start == end {
            return None;
        }
        let before = Quote::before(bytes, start);
        // A quote that only closes belongs to something else.
        if quote.is_some() && before != quote {
            return None;
        }
        Some(Self { range: start..end, quote, open: before.filter(|_| quote.is_none()) })
    }

    /// Whether it is the key of a line or of a map, and no word of a sentence or part of an address.
    fn is_key(&self, bytes: &[u8], separator: usize) -> bool {
        let next = bytes.get(separator + 1);
        if self.quote.is_some() {
            return next.is_none_or(|next| {
                is_blank(*next) || matches!(next, b'"' | b'\'' | b'\\' | b'\n' | b'[' | b'{' | b'-' | b'0'..=b'9')
            });
        }
        if next.is_some_and(|next| !is_blank(*next) && !matches!(next, b'\n' | b'\r')) {
            return false;
        }
        let before = back(bytes, self.range.start, is_blank);
        match before.checked_sub(1).map(|at| bytes[at]) {
            None | Some(b'\n' | b'\r' | b'{' | b'[' | b',' | b'"' | b'\'') => true,
            // An item of a list.
            Some(b'-') => {
                matches!(back(bytes, before - 1, is_blank).checked_sub(1).map(|at| bytes[at]), None | Some(b'\n'))
            }
            _ => false,
        }
    }

    fn is_secret(&self, bytes: &[u8], separator: usize, value: &str, manner: Manner) -> bool {
        let word = &bytes[self.range.clone()];
        if meaning(word) != Meaning::Plain {
            return true;
        }
        if bytes[separator] != b'=' {
            return false;
        }
        let before = self.range.start.checked_sub(1).map(|at| bytes[at]);
        if matches!(before, Some(b'?' | b'&')) {
            return is(SIGNATURES, word);
        }
        let name = String::from_utf8_lossy(word);
        (manner == Manner::Shell || sensitive::is_variable(word)) && sensitive::is_secret_variable(&name, value)
    }
}

/// Where the value is that comes after a separator; none if there is none.
fn value_after(bytes: &[u8], separator: usize, name: &Name, told: Meaning) -> Option<Range<usize>> {
    let rest = |at: usize| bytes.get(at..).unwrap_or_default();
    let start = separator + 1 + rest(separator + 1).iter().take_while(|byte| is_blank(**byte)).count();
    let line_end = |at: usize| memchr::memchr(b'\n', rest(at)).map_or(bytes.len(), |place| at + place);
    let trimmed = |range: Range<usize>| {
        let blank = bytes[range.clone()].iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
        range.start..range.end - blank
    };
    let is_assignment = bytes[separator] == b'=';
    if let (b':', Some(b'{' | b'[')) = (bytes[separator], bytes.get(start)) {
        // All of several secrets, and of one whatever it has names for.
        let is_list = bytes[start] == b'[';
        return (told == Meaning::Secrets || told == Meaning::Secret && is_list)
            .then(|| start..end_of_brackets(bytes, start));
    }
    let value = if let (Some(open), true) = (name.open, is_assignment || !rest(start).starts_with(b"\"")) {
        // The whole of it is quoted: "--password=a b", 'Authorization: Bearer x'.
        start..open.end(bytes, start)
    } else if is_assignment && start == separator + 1 && name.quote.is_none() {
        start..start + end_of_word(rest(start))
    } else if let Some(quote) = Quote::at(bytes, start) {
        let start = start + quote.width();
        start..quote.end(bytes, start)
    } else if is_assignment {
        trimmed(start..line_end(start))
    } else if name.quote.is_some() || is_in_flow(bytes, name) {
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b'\n');
        trimmed(start..rest(start).iter().position(ends).map_or(bytes.len(), |place| start + place))
    } else {
        let first = trimmed(start..line_end(start));
        let is_list = first.is_empty() && told != Meaning::Secrets;
        let end = end_of_block(bytes, line_end(start), name.range.start, is_list);
        if first.is_empty() && end > first.end {
            let skipped = rest(first.end).iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            trimmed((first.end + skipped).min(end)..end)
        } else {
            trimmed(first.start..end.max(first.end))
        }
    };
    (!value.is_empty()).then_some(value)
}

/// Whether a name is in braces: `{password: x}`.
fn is_in_flow(bytes: &[u8], name: &Name) -> bool {
    let before = back(bytes, name.range.start, is_blank);
    matches!(before.checked_sub(1).map(|at| bytes[at]), Some(b'{' | b'[' | b','))
}

/// Where the brackets close that open here.
fn end_of_brackets(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' | b'\'' => {
                let escapes = bytes[start..at].iter().rev().take_while(|byte| **byte == b'\\').count();
                at = Quote { mark: *byte, escapes }.end(bytes, at + 1) + escapes;
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// Where the lines end that belong to a key: those that are indented deeper, and items of a list.
fn end_of_block(bytes: &[u8], line_end: usize, key: usize, is_list: bool) -> usize {
    let start_of_line = memchr::memrchr(b'\n', &bytes[..key]).map_or(0, |place| place + 1);
    let indent = key - start_of_line;
    let mut end = line_end;
    let mut at = line_end;
    while at < bytes.len() {
        let line = at + 1;
        let next =
            memchr::memchr(b'\n', bytes.get(line..).unwrap_or_default()).map_or(bytes.len(), |place| line + place);
        let blank = bytes[line.min(next)..next].iter().take_while(|byte| is_blank(**byte)).count();
        let text = &bytes[(line + blank).min(next)..next];
        let is_item = text.starts_with(b"- ");
        let belongs = if is_list { is_item && blank >= indent } else { blank > indent || is_item && blank == indent };
        if !text.is_empty() {
            // What is a map is looked at by its own names.
            if !belongs || is_list && text.contains(&b':') {
                break;
            }
            end = next;
        }
        at = next;
    }
    end
}

/// Where a word of a shell ends, with its quotes.
fn end_of_word(bytes: &[u8]) -> usize {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, byte) in bytes.iter().enumerate() {
        match (byte, quote) {
            _ if is_escaped => is_escaped = false,
            (b'\\', _) => is_escaped = true,
            (_, Some(open)) if *byte == open => quote = None,
            (_, Some(_)) => {}
            (b'"' | b'\'', None) => quote = Some(*byte),
            (b';' | b'&' | b'|' | b'<' | b'>' | b'`', None) => return at,
            (byte, None) if byte.is_ascii_whitespace() => return at,
            _ => {}
        }
    }
    bytes.len()
}

/// Values that follow a flag: `--password x`, also as items of a list.
fn flagged(text: &str, manner: Manner, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(dash) = memchr::memchr(b'-', &bytes[at..]).map(|place| at + place) {
        at = dash + 1;
        let before = dash.checked_sub(1).map(|at| bytes[at]);
        if before.is_some_and(|before| !before.is_ascii_whitespace() && !matches!(before, b'"' | b'\'' | b'[' | b',')) {
            continue;
        }
        let length = bytes[dash..].iter().take_while(|byte| is_part(**byte)).count();
        let name = &bytes[dash..dash + length];
        at = dash + length.max(1);
        let is_flag = name.iter().any(u8::is_ascii_alphabetic);
        let Some(announced) =
            std::str::from_utf8(name).ok().filter(|_| is_flag).and_then(|name| announcement(name, manner))
        else {
            continue;
        };
        if let Some(value) = value_behind(bytes, at)
            && is_announced(announced, name, &text[value.clone()])
        {
            // A value that looks like a flag may be one.
            at = if bytes[value.start] == b'-' { value.start } else { value.end };
            found.push(value);
        }
    }
}

/// How clearly an argument says that the next one is secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announcement {
    /// `--password`: whatever comes next is its value.
    Clear,
    /// `--key-id`: a flag that comes next is no value.
    Vague,
}

/// Whether an argument says that the next one is secret.
pub(super) fn announcement(flag: &str, manner: Manner) -> Option<Announcement> {
    if !flag.starts_with('-') || flag.contains(['=', ' ', '\n']) {
        None
    } else if meaning(flag.as_bytes()) != Meaning::Plain {
        Some(Announcement::Clear)
    } else {
        (manner == Manner::Shell && sensitive::is_secret_variable(flag, "")).then_some(Announcement::Vague)
    }
}

/// Whether a value that comes after such an argument is secret.
pub(super) fn is_announced(announcement: Announcement, flag: &[u8], value: &str) -> bool {
    announcement == Announcement::Clear
        || !value.starts_with('-') && sensitive::is_secret_variable(&String::from_utf8_lossy(flag), value)
}

/// Where the next word is: behind blanks, or the next item of a list.
fn value_behind(bytes: &[u8], end: usize) -> Option<Range<usize>> {
    let rest = |at: usize| bytes.get(at..).unwrap_or_default();
    let quote = Quote::at(bytes, end);
    let mut at = end + quote.map_or(0, Quote::width);
    let gap = rest(at).iter().take(LONGEST).take_while(|byte| byte.is_ascii_whitespace() || **byte == b',').count();
    if gap == 0 {
        return None;
    }
    at += gap;
    // The dash of an item.
    if bytes[at - gap..at].contains(&b'\n') && rest(at).starts_with(b"- ") {
        at += 2;
    }
    let value = match Quote::at(bytes, at) {
        Some(quote) => at + quote.width()..quote.end(bytes, at + quote.width()),
        None => at..at + end_of_word(rest(at)),
    };
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn without_secrets(text: &str, manner: Manner) -> Option<String> {
        remove(text, secrets(text, manner))
    }

    fn cleaned(text: &str, manner: Manner) -> String {
        without_secrets(text, manner).unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn values_of_secret_names_go_in_every_notation() {
        for (text, expected) in [
            ("--password=p4ss", "--password=(removed)"),
            ("export TOKEN='a b' && run --level=3", "export TOKEN=(removed) && run --level=3"),
            ("é API_KEY=x;ls", "é API_KEY=(removed);ls"),
            (
                "-Dlevel=3 -Djavax.net.ssl.keyStorePassword=p4ss -Xmx1g",
                "-Dlevel=3 -Djavax.net.ssl.keyStorePassword=(removed) -Xmx1g",
            ),
            ("https://h/in?token=t0k&page=3", "https://h/in?token=(removed)&page=3"),
            ("https://h/in?sv=1&sig=a%2Fb", "https://h/in?sv=1&sig=(removed)"),
            ("Server=db;Password=p4ss;Pool=3", "Server=db;Password=(removed);Pool=3"),
            ("db.user=u\ndb.password = p 4 ss\nlevel = 3", "db.user=u\ndb.password = (removed)\nlevel = 3"),
            ("user: u\npassword: p4ss\nlevel: 3\n", "user: u\npassword: (removed)\nlevel: 3\n"),
            ("a:\n  password: |\n    one\n    two\n  level: 3", "a:\n  password: (removed)\n  level: 3"),
            ("apiKeys:\n- one\n- two\nlevel: 3", "apiKeys:\n(removed)\nlevel: 3"),
            ("{\"password\":\"p4\\\"ss\",\"level\":3}", "{\"password\":\"(removed)\",\"level\":3}"),
            ("{\"password\": 1234, \"level\": 3}", "{\"password\": (removed), \"level\": 3}"),
            (
                "\"{\\\"token\\\":\\\"t0k\\\",\\\"level\\\":3}\"",
                "\"{\\\"token\\\":\\\"(removed)\\\",\\\"level\\\":3}\"",
            ),
            ("{password: p4ss, level: 3}", "{password: (removed), level: 3}"),
            ("curl -H 'Authorization: Bearer t0k' https://h", "curl -H 'Authorization: (removed)' https://h"),
            (
                "- name: DB_PASSWORD\n  value: p4ss\n- name: LEVEL\n  value: 3",
                "- name: DB_PASSWORD\n  value: (removed)\n- name: LEVEL\n  value: 3",
            ),
            ("[{\"name\":\"token\",\"value\":\"t0k\"}]", "[{\"name\":\"token\",\"value\":\"(removed)\"}]"),
            ("passwords:\n  alice: one\n  bob: two\nlevel: 3", "passwords:\n  (removed)\nlevel: 3"),
            (
                "{\"credentials\": {\"alice\": \"o}ne\", \"bob\": [\"two\"]}, \"level\": 3}",
                "{\"credentials\": (removed), \"level\": 3}",
            ),
            ("password:\n  value: p4ss\nlevel: 3", "password:\n  value: (removed)\nlevel: 3"),
            (
                "proxy_set_header Authorization \"Bearer t0ken-seven\";",
                "proxy_set_header Authorization \"Bearer (removed)\";",
            ),
            (
                "<db><password>p4ss</password><level>3</level></db>",
                "<db><password>(removed)</password><level>3</level></db>",
            ),
            ("run --token t0k --level 3", "run --token (removed) --level 3"),
            ("[\"--token\", \"t0k\", \"--level\"]", "[\"--token\", \"(removed)\", \"--level\"]"),
            ("args:\n- --token\n- t0k\n- --level", "args:\n- --token\n- (removed)\n- --level"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----",
                "-----BEGIN RSA PRIVATE KEY-----(removed)-----END RSA PRIVATE KEY-----",
            ),
        ] {
            assert_eq!(cleaned(text, Manner::Text), expected, "{text}");
        }
        assert_eq!(cleaned("X_KEY=x", Manner::Shell), "X_KEY=(removed)");
        assert_eq!(cleaned("x --sort-key x", Manner::Shell), "x --sort-key (removed)");
    }

    #[test]
    fn ordinary_texts_stay() {
        for text in [
            "--tls-private-key-file=/etc/tls.key",
            "--level=3",
            "--password=",
            "=x",
            "a b c",
            "sort-key=x",
            "the token: it is gone",
            "image: shop/token-service:1",
            "secretName: db\ntokenReviewURL: https://h\npasswordPolicy: strong",
            "secretKeyRef: {name: db, key: password}",
            "https://host:8080/token/path?page=3",
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            "imagePullSecrets:\n- name: registry\n",
            "an invalid Bearer authentication of a < b",
            "auth:\n  level: 3\n",
        ] {
            assert_eq!(without_secrets(text, Manner::Text), None, "{text}");
        }
        assert_eq!(without_secrets("--token-file /etc/token --key-id --level", Manner::Shell), None);
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in r#"[-a-c=:"'\\ \n{}\[\],|é]{0,60}"#, name in "password|--token|apiKeys|name|value") {
            for text in [format!("{text}{name}{text}"), text] {
                for manner in [Manner::Text, Manner::Shell] {
                    let once = cleaned(&text, manner);
                    prop_assert!(once.len() <= text.len() + 9 * text.len());
                }
            }
        }
    }
}
