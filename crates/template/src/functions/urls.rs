//! URLs, as `net/url` cuts them and puts them together.

use super::{Function, Returned, function, map, string};
use crate::error::Failure;
use crate::execute::Machine;
use crate::value::{MapId, MapType, Operand, Type, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    function("urlParse", &[Type::Text], parse),
    function("urlJoin", &[Type::Map], join),
    // Helm looks up no names unless it is told to.
    function("getHostByName", &[Type::Text], |machine, _| Ok(machine.heap.string(""))),
];

/// The parts of a URL, decoded where Go decodes them.
#[derive(Debug, Default, PartialEq)]
struct Url {
    scheme: String,
    opaque: String,
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    host: String,
    path: Vec<u8>,
    query: String,
    fragment: Vec<u8>,
}

fn parse(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let text = string(machine, arguments, 0);
    let url = Url::parse(&text).map_err(|error| {
        let quoted = crate::quote::quote(text.as_bytes(), false);
        format!("unable to parse url: parse {quoted}: {error}")
    })?;
    let user = url.user.as_ref().map(show_user).unwrap_or_default();
    let hostname = hostname(&url.host).to_owned();
    let map = machine.heap.map(MapType::Any);
    for (key, part) in [
        ("scheme", url.scheme.as_bytes()),
        ("host", url.host.as_bytes()),
        ("hostname", hostname.as_bytes()),
        ("path", &url.path),
        ("query", url.query.as_bytes()),
        ("opaque", url.opaque.as_bytes()),
        ("fragment", &url.fragment),
        ("userinfo", user.as_bytes()),
    ] {
        let part = machine.heap.string(part);
        machine.heap.set(map, key, part);
    }
    Ok(Value::Map(map))
}

fn join(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let parts = map(arguments, 0)?;
    let part = |key| part(machine, parts, key);
    let user = part("userinfo")?;
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?.into_bytes(),
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?.into_bytes(),
        user: None,
    };
    if !user.is_empty() {
        let text = format!("proto://{user}@host");
        let parsed = Url::parse(&text).map_err(|error| {
            let quoted = crate::quote::quote(text.as_bytes(), false);
            format!("unable to parse userinfo in dict: parse {quoted}: {error}")
        })?;
        url.user = parsed.user;
    }
    Ok(machine.heap.string(url.show()))
}

fn part(machine: &Machine<'_>, parts: MapId, key: &str) -> Result<String, Failure> {
    match machine.heap.get(parts, key.as_bytes()) {
        None => Ok(String::new()),
        Some(Value::Text(text)) => Ok(machine.heap.str(text)),
        Some(Value::Nil) => Err(super::NIL_POINTER.into()),
        Some(other) => {
            Err(format!("unable to parse {key} key, must be of type string, but {} found", machine.heap.kind(other))
                .into())
        }
    }
}

/// Which characters stay as they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Path,
    Host,
    User,
    Fragment,
}

fn stays(byte: u8, mode: Mode) -> bool {
    match byte {
        b'-' | b'_' | b'.' | b'~' => true,
        _ if byte.is_ascii_alphanumeric() => true,
        b'!' | b'\'' | b'(' | b')' | b'*' => matches!(mode, Mode::Host | Mode::Fragment),
        b'[' | b']' | b'<' | b'>' | b'"' => mode == Mode::Host,
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match mode {
            Mode::Path => byte != b'?',
            Mode::User => !matches!(byte, b'@' | b'/' | b'?' | b':'),
            Mode::Host => !matches!(byte, b'/' | b'?' | b'@'),
            Mode::Fragment => true,
        },
        _ => false,
    }
}

fn escape(text: &[u8], mode: Mode) -> String {
    let mut output = String::with_capacity(text.len());
    for byte in text {
        if stays(*byte, mode) {
            output.push(char::from(*byte));
        } else {
            output.push_str(&format!("%{byte:02X}"));
        }
    }
    output
}

fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut output = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let code = text.get(at + 1..at + 3).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let code = code.and_then(|code| u8::from_str_radix(code, 16).ok()).ok_or_else(|| {
                let end = (at + 3).min(bytes.len());
                format!("invalid URL escape {}", crate::quote::quote(&bytes[at..end], false))
            })?;
            output.push(code);
            at += 3;
        } else {
            output.push(bytes[at]);
            at += 1;
        }
    }
    Ok(output)
}

fn show_user((name, password): &(Vec<u8>, Option<Vec<u8>>)) -> String {
    let mut output = escape(name, Mode::User);
    if let Some(password) = password {
        output.push(':');
        output.push_str(&escape(password, Mode::User));
    }
    output
}

/// The host without its port and brackets.
fn hostname(host: &str) -> &str {
    let without_port = match host.rfind(':') {
        Some(colon) if host[colon + 1..].bytes().all(|byte| byte.is_ascii_digit()) && !host[colon..].contains(']') => {
            &host[..colon]
        }
        _ => host,
    };
    without_port.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(without_port)
}

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        let (text, fragment) = text.split_once('#').map_or((text, None), |(text, fragment)| (text, Some(fragment)));
        let mut url = Self::parse_without_fragment(text)?;
        if let Some(fragment) = fragment {
            url.fragment = unescape(fragment)?;
        }
        Ok(url)
    }

    fn parse_without_fragment(text: &str) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            url.path = b"*".to_vec();
            return Ok(url);
        }
        let (scheme, rest) = scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        query.clone_into(&mut url.query);
        let mut rest = rest;
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            let segment = rest.split('/').next().unwrap_or_default();
            if segment.contains(':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        if (!url.scheme.is_empty() || !rest.starts_with("///")) && rest.starts_with("//") {
            let end = rest[2..].find('/').map_or(rest.len(), |at| at + 2);
            url.authority(&rest[2..end])?;
            rest = &rest[end..];
        }
        url.path = unescape(rest)?;
        Ok(url)
    }

    fn authority(&mut self, authority: &str) -> Result<(), String> {
        let host = match authority.rfind('@') {
            None => authority,
            Some(at) => {
                let user = &authority[..at];
                let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
                if !user.bytes().all(is_fine) {
                    return Err("net/url: invalid userinfo".to_owned());
                }
                self.user = Some(match user.split_once(':') {
                    None => (unescape(user)?, None),
                    Some((name, password)) => (unescape(name)?, Some(unescape(password)?)),
                });
                &authority[at + 1..]
            }
        };
        if let Some(end) = host.strip_prefix('[').map(|_| host.rfind(']')) {
            let end = end.ok_or("missing ']' in host")?;
            check_port(&host[end + 1..])?;
        } else if let Some(colon) = host.rfind(':') {
            check_port(&host[colon..])?;
        }
        if let Some(bad) = host.chars().find(|character| matches!(character, ' ' | '\\' | '^' | '`' | '{' | '|' | '}'))
        {
            return Err(format!(
                "invalid character {} in host name",
                crate::quote::quote(bad.to_string().as_bytes(), false)
            ));
        }
        self.host = String::from_utf8_lossy(&unescape(host)?).into_owned();
        Ok(())
    }

    fn show(&self) -> String {
        let mut output = String::new();
        if !self.scheme.is_empty() {
            output.push_str(&self.scheme);
            output.push(':');
        }
        if self.opaque.is_empty() {
            if !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some() {
                if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
                    output.push_str("//");
                }
                if let Some(user) = &self.user {
                    output.push_str(&show_user(user));
                    output.push('@');
                }
                output.push_str(&escape(self.host.as_bytes(), Mode::Host));
            }
            let path = if self.path == b"*" { "*".to_owned() } else { escape(&self.path, Mode::Path) };
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                output.push('/');
            }
            if output.is_empty() && path.split('/').next().is_some_and(|segment| segment.contains(':')) {
                output.push_str("./");
            }
            output.push_str(&path);
        } else {
            output.push_str(&self.opaque);
        }
        if !self.query.is_empty() {
            output.push('?');
            output.push_str(&self.query);
        }
        if !self.fragment.is_empty() {
            output.push('#');
            output.push_str(&escape(&self.fragment, Mode::Fragment));
        }
        output
    }
}

fn check_port(text: &str) -> Result<(), String> {
    let is_port =
        text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    if is_port {
        Ok(())
    } else {
        Err(format!("invalid port {} after host", crate::quote::quote(text.as_bytes(), false)))
    }
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' => return Ok(("", text)),
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_cut_and_put_together_again() {
        for text in [
            "http://u:p@h:1/p?q=1",
            "https://[::1]:80/a%20b#c",
            "mailto:a@b.c",
            "/a/b",
            "//host/path",
            "a/b?x=y",
            "file:///etc/passwd",
        ] {
            let url = Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(url.show(), text);
        }
        assert_eq!(hostname("[::1]:80"), "::1");
        assert_eq!(hostname("h:1"), "h");
        for (text, message) in [
            (":a", "missing protocol scheme"),
            ("a:b:c/d%zz", ""),
            ("http://h:x/", "invalid port \":x\" after host"),
            ("http://h/%zz", "invalid URL escape \"%zz\""),
            ("1:2", "first path segment in URL cannot contain colon"),
        ] {
            assert_eq!(Url::parse(text).err().unwrap_or_default(), message, "{text}");
        }
    }
}
