//! How addresses and ranges of them must look: older fields take leading zeros, addresses mapped into IPv6 and ranges
//! with bits beyond their prefix; newer ones (`strict_…`) only the usual form.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address, where numbers of four parts may have leading zeros.
pub(crate) fn parse(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse().ok().map(unmapped);
    }
    let parts: Vec<u8> = text.split('.').map(parse_octet).collect::<Option<_>>()?;
    <[u8; 4]>::try_from(parts).ok().map(|octets| IpAddr::V4(Ipv4Addr::from(octets)))
}

fn unmapped(address: Ipv6Addr) -> IpAddr {
    address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4)
}

fn parse_octet(text: &str) -> Option<u8> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

pub(crate) fn address(text: &str) -> Vec<String> {
    match parse(text) {
        Some(_) => Vec::new(),
        None => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
    }
}

pub(crate) fn strict_address(text: &str) -> Vec<String> {
    let Some(parsed) = parse(text) else {
        return address(text);
    };
    if parsed.is_ipv4() && text.contains(':') {
        return vec!["must not be an IPv4-mapped IPv6 address".to_owned()];
    }
    if text.parse::<IpAddr>().is_err() {
        return vec!["must not have leading 0s".to_owned()];
    }
    canonical(text, &parsed.to_string())
}

/// The address and the length of the prefix.
pub(crate) fn parse_range(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let highest = if address.contains(':') { 128 } else { 32 };
    let length = parse_octet(length).filter(|length| *length <= highest)?;
    Some((parse(address)?, length))
}

pub(crate) fn range(text: &str) -> Vec<String> {
    match parse_range(text) {
        Some(_) => Vec::new(),
        None => vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()],
    }
}

pub(crate) fn strict_range(text: &str) -> Vec<String> {
    let Some(((parsed, length), (shown, prefix))) = parse_range(text).zip(text.split_once('/')) else {
        return range(text);
    };
    if shown.parse::<IpAddr>().is_err() || (prefix.len() > 1 && prefix.starts_with('0')) {
        return vec!["must not have leading 0s in IP or prefix length".to_owned()];
    }
    if parsed.is_ipv4() && shown.contains(':') {
        return vec!["must not have an IPv4-mapped IPv6 address".to_owned()];
    }
    let bits = match parsed {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    if bits.checked_shl(u32::from(length)).is_some_and(|rest| rest != 0) {
        return vec!["must not have bits set beyond the prefix length".to_owned()];
    }
    canonical(text, &format!("{parsed}/{length}"))
}

fn canonical(text: &str, expected: &str) -> Vec<String> {
    if text == expected { Vec::new() } else { vec![format!("must be in canonical form ({expected:?})")] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_fields_take_what_people_write() {
        assert!(parse("010.0.0.1").is_some());
        assert!(parse("::ffff:1.2.3.4").is_some_and(|address| address.is_ipv4()));
        for wrong in ["", "1.2.3", "1.2.3.256", "1.2.3.+4", ":::", "1.2.3.4.5"] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
        assert_eq!(parse_range("10.0.0.0/8").map(|(_, length)| length), Some(8));
        assert!(parse_range("10.0.0.0/33").is_none());
    }

    #[test]
    fn newer_fields_take_one_form() {
        for (text, expected) in [
            ("10.0.0.1", ""),
            ("fd00::1", ""),
            ("x", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
            ("010.0.0.1", "must not have leading 0s"),
            ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
            ("FD00:0::1", "must be in canonical form (\"fd00::1\")"),
        ] {
            assert_eq!(strict_address(text).concat(), expected, "{text}");
        }
        for (text, expected) in [
            ("10.0.0.0/8", ""),
            ("1.2.3.4/32", ""),
            ("fd00::/64", ""),
            ("::1/128", ""),
            ("x", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
            ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
            ("::ffff:1.2.3.0/120", "must not have an IPv4-mapped IPv6 address"),
            ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
            ("FD00::/64", "must be in canonical form (\"fd00::/64\")"),
        ] {
            assert_eq!(strict_range(text).concat(), expected, "{text}");
        }
    }
}
