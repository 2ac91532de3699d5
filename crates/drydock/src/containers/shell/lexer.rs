//! Shell text to tokens.

use super::{Part, Word, parse};

/// A token of the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// `;`, `&`, `&&`, `||`, `|`, `(`, `)`, `;;` or a line end.
    Operator(&'static str),
    /// `>`, `2>`, `<` and the like; what it names follows as a word.
    Redirect {
        /// It is where the standard output goes, and what follows is a file.
        output: bool,
        /// Behind what is there: `>>`.
        append: bool,
    },
}

/// The operators, longest first.
const OPERATORS: &[&str] = &["&&", "||", ";;", ";", "&", "|", "(", ")", "\n"];

/// Cuts a text into tokens. `None`: a quote or bracket is not closed, or it is too deep.
pub(super) fn tokens(text: &str, depth: usize) -> Option<Vec<Token>> {
    let mut lexer = Lexer { rest: text, depth };
    let mut tokens = Vec::new();
    while lexer.skip_blanks() {
        tokens.push(lexer.next()?);
    }
    Some(tokens)
}

struct Lexer<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Lexer<'a> {
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Goes on to the next token. Says whether there is one.
    fn skip_blanks(&mut self) -> bool {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\r']);
            if let Some(rest) = self.rest.strip_prefix("\\\n") {
                self.rest = rest;
            } else if self.rest.starts_with('#') {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.take(end);
            } else {
                return !self.rest.is_empty();
            }
        }
    }

    fn next(&mut self) -> Option<Token> {
        if let Some((length, output)) = redirect(self.rest) {
            let append = self.take(length).ends_with(">>");
            return Some(Token::Redirect { output, append });
        }
        if let Some(operator) = OPERATORS.iter().find(|operator| self.rest.starts_with(**operator)) {
            self.take(operator.len());
            return Some(Token::Operator(operator));
        }
        self.word().map(Token::Word)
    }

    fn word(&mut self) -> Option<Word> {
        let mut word = Word::default();
        let mut text = String::new();
        while let Some(character) = self.rest.chars().next() {
            match character {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    word.quoted = true;
                    self.take(1);
                    let end = self.rest.find('\'')?;
                    text.push_str(self.take(end));
                    self.take(1);
                }
                '"' => {
                    word.quoted = true;
                    self.take(1);
                    self.double_quoted(&mut word, &mut text)?;
                }
                '\\' => {
                    self.take(1);
                    let next = self.rest.chars().next().map_or(0, char::len_utf8);
                    text.push_str(self.take(next));
                }
                '$' | '`' => self.expansion(&mut word, &mut text)?,
                other => {
                    text.push(other);
                    self.take(other.len_utf8());
                }
            }
        }
        flush(&mut word, &mut text);
        Some(word)
    }

    fn double_quoted(&mut self, word: &mut Word, text: &mut String) -> Option<()> {
        loop {
            match self.rest.chars().next()? {
                '"' => {
                    self.take(1);
                    return Some(());
                }
                '\\' => {
                    self.take(1);
                    let next = self.rest.chars().next()?;
                    if !"\"\\$`\n".contains(next) {
                        text.push('\\');
                    }
                    if next != '\n' {
                        text.push(next);
                    }
                    self.take(next.len_utf8());
                }
                '$' | '`' => self.expansion(word, text)?,
                other => {
                    text.push(other);
                    self.take(other.len_utf8());
                }
            }
        }
    }

    fn expansion(&mut self, word: &mut Word, text: &mut String) -> Option<()> {
        if self.rest.starts_with("$((") {
            let end = self.rest.find("))")?;
            let inside = self.rest[3..end].to_owned();
            self.take(end + 2);
            flush(word, text);
            word.parts.push(Part::Arithmetic(inside));
        } else if self.rest.starts_with("$(") || self.rest.starts_with('`') {
            let (inside, length) = if self.rest.starts_with('`') {
                let end = self.rest[1..].find('`')?;
                (&self.rest[1..=end], end + 2)
            } else {
                let end = closing(&self.rest[2..])?;
                (&self.rest[2..2 + end], end + 3)
            };
            let command = parse(inside, self.depth + 1)?;
            self.take(length);
            flush(word, text);
            word.parts.push(Part::Substitution(Box::new(command)));
        } else if self.rest.starts_with("${") {
            let end = self.rest.find('}')?;
            let inside = &self.rest[2..end];
            let (name, default) = match inside.find(":-").or_else(|| inside.find('-')) {
                Some(at) => (&inside[..at], Some(inside[at..].trim_start_matches([':', '-']).to_owned())),
                None => (inside, None),
            };
            let part = Part::Variable { name: name.to_owned(), default };
            self.take(end + 1);
            flush(word, text);
            word.parts.push(part);
        } else {
            let after = &self.rest[1..];
            let special =
                after.starts_with(['?', '$', '#', '@', '*', '!', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
            let length = if special {
                1
            } else {
                after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len())
            };
            let name = after[..length].to_owned();
            self.take(1 + length);
            if name.is_empty() {
                text.push('$');
            } else {
                flush(word, text);
                word.parts.push(Part::Variable { name, default: None });
            }
        }
        Some(())
    }
}

fn flush(word: &mut Word, text: &mut String) {
    if !text.is_empty() {
        word.parts.push(Part::Text(std::mem::take(text)));
    }
}

/// The length of a redirection operator with its descriptor (`2>`, `>>`, `<`, `&>`), and whether it is about the output.
fn redirect(text: &str) -> Option<(usize, bool)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (descriptor, after) = text.split_at(digits);
    let both = after.strip_prefix('&').filter(|rest| digits == 0 && rest.starts_with('>'));
    let after = both.unwrap_or(after);
    let operator = [">>", ">&", "<<", "<", ">"].into_iter().find(|operator| after.starts_with(*operator))?;
    let output = matches!(operator, ">" | ">>") && matches!(descriptor, "" | "1");
    Some((text.len() - after.len() + operator.len(), output))
}

/// Where the bracket of `$(` closes, past nested ones and quotes.
fn closing(text: &str) -> Option<usize> {
    let (mut level, mut quote) = (0usize, None);
    for (index, character) in text.char_indices() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '(') => level += 1,
            (None, ')') if level == 0 => return Some(index),
            (None, ')') => level -= 1,
            _ => {}
        }
    }
    None
}
