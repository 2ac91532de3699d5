//! What a cluster makes up, replaced by a word: names, times, addresses.

use regex::Regex;
use std::sync::LazyLock;

/// Patterns in the order in which they are replaced.
static MASKS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
        (r#"("?resourceVersion"?: )"\d+""#, "${1}\"REVISION\""),
        (r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "ADDRESS"),
        (r"containerd://[0-9a-f]+", "CONTAINER"),
        // What the API and the controllers add to names. A hash is a number of up to ten digits in other letters.
        (r"-[bcdfghjklmnpqrstvwxz2456789]{6,10}\b", "-HASH"),
        (r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-RANDOM"),
        (r"\.[0-9a-f]{16}\b", ".EVENT"),
        (r"(^|\s)(\d+[dhms]){1,2}(\s|$)", "${1}AGE${3}"),
        (r"(\(x\d+ )?over (\d+[dhms])+\)", "${1}over AGE)"),
        (r"<(invalid|unknown)>( ago)?", "AGE${2}"),
        // Columns are as wide as what is in them.
        (r"(\S) {2,}", "${1}  "),
        (r" +\n", "\n"),
    ]
    .into_iter()
    .filter_map(|(pattern, word)| Some((Regex::new(&format!("(?m){pattern}")).ok()?, word)))
    .collect()
});

/// Replaces all of it.
pub(super) fn mask(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, word) in MASKS.iter() {
        text = pattern.replace_all(&text, *word).into_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_made_up_is_replaced() {
        assert_eq!(
            mask("api-6c84fb5d99-xkl2p   1/1   Running   0   2m3s\n"),
            "api-HASH-RANDOM  1/1  Running  0  AGE\n"
        );
        assert_eq!(mask("creationTimestamp: \"2026-01-01T00:00:00Z\""), "creationTimestamp: \"TIME\"");
        assert_eq!(
            mask("  resourceVersion: \"12\"\n  replicas: 12"),
            "  resourceVersion: \"REVISION\"\n  replicas: 12"
        );
        assert_eq!(mask("web-64d4b76 web-64d4b"), "web-HASH web-RANDOM");
        assert_eq!(mask("a-migrate-1"), "a-migrate-1");
    }
}
