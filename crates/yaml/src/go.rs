//! Errors in the words of go-yaml.

use crate::Error;

/// The commonest errors of YAML in the words of go-yaml, with the line where it says one.
pub(crate) fn describe(error: &Error, text: &str) -> String {
    let line = crate::position(text, error.offset).line;
    let newlines = text.matches('\n').count();
    let at_line = |line: usize, message: &str| {
        if line == 0 { message.to_owned() } else { format!("line {line}: {message}") }
    };
    // Lines count from 0 there. Scanners report the next one, but for the first, which they do not mention.
    let scanner = |message: &str| at_line(if line > 1 { line } else { 0 }, message);
    let parser = |message: &str| at_line(line - 1, message);
    let message = error.message.as_str();
    let contains = |part: &str| message.contains(part);
    match () {
        () if message.starts_with("unclosed bracket") => {
            let last = text.trim_end().chars().next_back().unwrap_or_default();
            let end = newlines + usize::from(!text.ends_with('\n'));
            let closing = if contains("'['") { ']' } else { '}' };
            let expected = if matches!(last, '[' | '{' | ',') {
                "did not find expected node content".to_owned()
            } else {
                format!("did not find expected ',' or '{closing}'")
            };
            at_line(end, &expected)
        }
        () if contains("mapping values are not allowed") => scanner("mapping values are not allowed in this context"),
        () if contains("did not find expected key") => parser("did not find expected key"),
        () if contains("did not find expected '-' indicator") => parser("did not find expected '-' indicator"),
        () if contains("unexpected character") => scanner("found character that cannot start any token"),
        () if contains("could not find expected directive name") => scanner("could not find expected directive name"),
        () if contains("unclosed quote") => {
            at_line(if newlines > 0 { newlines + 1 } else { 0 }, "found unexpected end of stream")
        }
        () if contains("unknown anchor") => {
            let name = text.get(error.offset..).unwrap_or_default().trim_start_matches('*');
            let end =
                name.find(|character: char| !character.is_ascii_alphanumeric() && !matches!(character, '-' | '_'));
            format!("unknown anchor '{}' referenced", &name[..end.unwrap_or(name.len())])
        }
        () => at_line(line, message),
    }
}
