//! Image references, as far as the default pull policy needs them (distribution/reference).

/// Whether an image moves under its name: its tag is `latest`, written or meant. What is no reference does not.
pub(super) fn is_latest(image: &str) -> bool {
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) if is_digest(digest) => (rest, true),
        Some(_) => return false,
        None => (image, false),
    };
    let last = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match rest[last..].find(':') {
        Some(colon) => (&rest[..last + colon], Some(&rest[last + colon + 1..])),
        None => (rest, None),
    };
    is_name(name) && tag.is_none_or(is_tag) && (tag == Some("latest") || (tag.is_none() && !digest))
}

fn is_name(name: &str) -> bool {
    let is_identifier =
        name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if is_identifier || name.len() > 255 {
        return false;
    }
    let path = match name.split_once('/') {
        Some((domain, path)) if looks_like_a_domain(domain) => {
            if !is_domain(domain) {
                return false;
            }
            path
        }
        _ => name,
    };
    path.split('/').all(is_path_component)
}

fn looks_like_a_domain(text: &str) -> bool {
    text.contains(['.', ':']) || text == "localhost" || text.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn is_domain(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).is_some_and(|address| {
        !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':')
    });
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_address || host.split('.').all(is_part)) && port.is_none_or(is_port)
}

/// Words of lower-case letters and digits, with one dot, one or two underscores or any dashes between them.
fn is_path_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    if !ends.is_some_and(|(first, last)| is_word(*first) && is_word(*last)) {
        return false;
    }
    let mut separators = text.split(|character: char| character.is_ascii_lowercase() || character.is_ascii_digit());
    separators.all(|between| matches!(between, "" | "." | "_" | "__") || between.bytes().all(|byte| byte == b'-'))
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, hex)| {
        let length = match algorithm {
            "sha256" => 64,
            "sha384" => 96,
            "sha512" => 128,
            _ => return false,
        };
        hex.len() == length && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_latest_moves() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (image, expected) in [
            ("busybox", true),
            ("busybox:latest", true),
            ("busybox:1", false),
            ("localhost:5000/a/b", true),
            ("localhost:5000/a/b:2", false),
            ("registry.k8s.io/pause", true),
            ("Registry/pause", true),
            ("[::1]:80/a", true),
            (&format!("busybox@{digest}"), false),
            (&format!("busybox:latest@{digest}"), true),
            ("", false),
            ("Busybox", false),
            ("a b", false),
            (" busybox", false),
            ("a..b", false),
            ("a__b/c---d.e", true),
            ("a___b", false),
            ("a:", false),
            (&"a".repeat(64), false),
            ("busybox@sha256:short", false),
            ("é", false),
        ] {
            assert_eq!(is_latest(image), expected, "{image}");
        }
    }
}
