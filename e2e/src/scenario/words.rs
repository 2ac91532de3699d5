//! Command lines as words, with quotes as in a shell and nothing else of one.

/// Splits at white space; single and double quotes keep it. An open quote is an error.
pub(crate) fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some(inner) if inner == character => break,
                        Some(inner) => word.push(inner),
                        None => return Err("a quote is not closed"),
                    }
                }
            }
            _ if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_white_space_and_vanish() {
        let words = split(r#"patch job x -p '{"a": "b c"}' "" end"#).unwrap();
        assert_eq!(words, ["patch", "job", "x", "-p", r#"{"a": "b c"}"#, "", "end"]);
    }

    #[test]
    fn an_open_quote_is_refused() {
        assert!(split("say 'hello").is_err());
    }
}
