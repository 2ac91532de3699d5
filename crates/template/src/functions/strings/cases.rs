//! Words in `snake_case`, `kebab-case` and `PascalCase`, as xstrings v1.5 cuts them.

use super::{lower, upper};

fn is_connector(character: char) -> bool {
    matches!(character, '-' | '_') || character.is_whitespace()
}

fn is_punctuation(character: char) -> bool {
    match character {
        '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~' => false,
        _ if character.is_ascii() => character.is_ascii_punctuation(),
        '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}' => true,
        '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' => {
            !matches!(character, '\u{2044}' | '\u{2052}')
        }
        _ => false,
    }
}

/// goutils' `SwapCase`: a small letter at the start of a word becomes a capital one, too.
pub(super) fn swap(text: &str) -> String {
    let swap = |character: char| {
        if character.is_uppercase() {
            lower(character)
        } else if character.is_lowercase() {
            upper(character)
        } else {
            character
        }
    };
    text.chars().map(swap).collect()
}

/// `ToPascalCase`
pub(super) fn pascal(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text.chars();
    let mut current = None;
    let mut first_is_upper = false;
    for character in rest.by_ref() {
        if !is_connector(character) {
            first_is_upper = character.is_uppercase();
            current = Some(upper(character));
            break;
        }
        output.push(character);
    }
    let Some(mut current) = current else {
        // Of connectors alone, the last one is written twice.
        output.extend(text.chars().next_back());
        return output;
    };
    for next in rest {
        let previous = current;
        current = next;
        if is_connector(current) && is_connector(previous) {
            output.push(previous);
            continue;
        }
        if is_connector(previous) {
            first_is_upper = current.is_uppercase();
            current = upper(current);
        } else {
            if first_is_upper {
                if current.is_uppercase() {
                    current = lower(current);
                } else {
                    first_is_upper = false;
                }
            }
            output.push(previous);
        }
    }
    output.push(current);
    output
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    None,
    Number,
    Upper,
    Alphabetic,
    Connector,
    Punctuation,
    Other,
}

fn is_alphabetic(character: char) -> bool {
    // Letters without case are words of another kind.
    character.is_alphabetic() && (character.is_uppercase() || character.is_lowercase() || !character.is_numeric())
}

/// The first word of a text, and what is left.
fn next_word(text: &str) -> (Word, &str, &str) {
    let Some(first) = text.chars().next() else { return (Word::None, "", "") };
    let run = |is_part: &dyn Fn(char) -> bool| text.find(|character| !is_part(character)).unwrap_or(text.len());
    let after_first = first.len_utf8();
    let run_after = |is_part: &dyn Fn(char) -> bool| {
        text[after_first..].find(|character| !is_part(character)).map_or(text.len(), |at| at + after_first)
    };
    let small = |character: char| is_alphabetic(character) && !character.is_uppercase();
    let (word, end) = if is_connector(first) {
        (Word::Connector, run(&is_connector))
    } else if is_punctuation(first) {
        (Word::Punctuation, run(&is_punctuation))
    } else if first.is_uppercase() {
        match text[after_first..].chars().next() {
            Some(next) if next.is_uppercase() => {
                let end = run(&char::is_uppercase);
                let follows = text[end..].chars().next();
                let last = text[..end].chars().next_back().map_or(0, char::len_utf8);
                // The last capital begins the next word.
                (Word::Upper, if follows.is_some_and(is_alphabetic) { end - last } else { end })
            }
            Some(next) if is_alphabetic(next) => (Word::Upper, run_after(&small)),
            _ => (Word::Upper, after_first),
        }
    } else if is_alphabetic(first) {
        (Word::Alphabetic, run_after(&small))
    } else if first.is_numeric() {
        (Word::Number, run(&char::is_numeric))
    } else {
        let other = |character: char| {
            !is_connector(character)
                && !is_alphabetic(character)
                && !character.is_numeric()
                && !is_punctuation(character)
        };
        (Word::Other, run_after(&other))
    };
    (word, &text[..end], &text[end..])
}

fn push_word(output: &mut String, word: Word, text: &str, connector: char) {
    if !matches!(word, Word::Upper | Word::Connector) {
        return output.push_str(text);
    }
    output.extend(text.chars().map(|character| if is_connector(character) { connector } else { lower(character) }));
}

/// `ToSnakeCase` and `ToKebabCase`
pub(super) fn connected(text: &str, connector: char) -> String {
    let mut output = String::with_capacity(text.len() + 4);
    let (mut word, mut current, mut rest) = next_word(text);
    let separates = |word: Word| !matches!(word, Word::None | Word::Connector | Word::Punctuation);
    while !rest.is_empty() {
        if word != Word::Connector {
            push_word(&mut output, word, current, connector);
        }
        let (previous, last) = (word, current);
        (word, current, rest) = next_word(rest);
        match previous {
            Word::Number => {
                while matches!(word, Word::Alphabetic | Word::Number) {
                    push_word(&mut output, word, current, connector);
                    (word, current, rest) = next_word(rest);
                }
                if separates(word) {
                    output.push(connector);
                }
            }
            Word::Connector => push_word(&mut output, previous, last, connector),
            Word::Punctuation => {}
            _ if word != Word::Number => {
                if !matches!(word, Word::Connector | Word::Punctuation) {
                    output.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = current;
                (word, current, rest) = next_word(rest);
                if word != Word::Alphabetic {
                    push_word(&mut output, Word::Number, number, connector);
                    if !matches!(word, Word::Connector | Word::Punctuation) {
                        output.push(connector);
                    }
                    continue;
                }
                output.push(connector);
                push_word(&mut output, Word::Number, number, connector);
                while matches!(word, Word::Alphabetic | Word::Number) {
                    push_word(&mut output, word, current, connector);
                    (word, current, rest) = next_word(rest);
                }
                if separates(word) {
                    output.push(connector);
                }
            }
        }
    }
    push_word(&mut output, word, current, connector);
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_as_xstrings_cuts_them() {
        for (text, snake) in [
            ("FirstName", "first_name"),
            ("HTTPServer", "http_server"),
            ("NoHTTPS", "no_https"),
            ("_HTTP_server", "_http_server"),
            ("hello world", "hello_world"),
            ("http2xx", "http_2xx"),
            ("HTTP20xOK", "http_20x_ok"),
            ("--", "__"),
        ] {
            assert_eq!(connected(text, '_'), snake, "{text}");
        }
    }
}
