//! The names of time zones.

/// Whether the IANA database has a time zone of this name. Case counts.
pub fn is_zone(name: &str) -> bool {
    let (area, name) = name.split_once('/').unwrap_or(("-", name));
    let mut lines = include_str!("zones.txt").lines().filter(|line| !line.starts_with('#'));
    lines.any(|line| {
        line.split_once(' ').is_some_and(|(of, names)| of == area && names.split(' ').any(|known| known == name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_those_of_the_database() {
        for zone in ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Etc/GMT+5"] {
            assert!(is_zone(zone), "{zone}");
        }
        for zone in ["Mars/Base", "europe/berlin", "../etc", "a//b", ""] {
            assert!(!is_zone(zone), "{zone}");
        }
    }
}
