//! From template text to tokens, as Go's `text/template/parse` cuts it (go1.24 `lex.go`).

use crate::quote::is_printable;
use crate::utf8::{decode, is_alphanumeric};
use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Error,
    Bool,
    /// Any printable ASCII character that has no meaning of its own.
    Character,
    CharacterConstant,
    Complex,
    Assign,
    Declare,
    End,
    Field,
    Identifier,
    LeftDelimiter,
    LeftParenthesis,
    Number,
    Pipe,
    RawString,
    RightDelimiter,
    RightParenthesis,
    Space,
    String,
    Text,
    Variable,
    Dot,
    Nil,
    Keyword(Keyword),
}

/// The words that control what is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

impl Keyword {
    fn from_word(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"block" => Self::Block,
            b"break" => Self::Break,
            b"continue" => Self::Continue,
            b"define" => Self::Define,
            b"else" => Self::Else,
            b"end" => Self::End,
            b"if" => Self::If,
            b"range" => Self::Range,
            b"template" => Self::Template,
            b"with" => Self::With,
            _ => return None,
        })
    }
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Where it is in the text.
    pub(crate) span: Range<usize>,
    /// The line on which it starts, from 1 on.
    pub(crate) line: usize,
    /// What is wrong, for [`Kind::Error`].
    pub(crate) message: String,
}

/// Cuts a template's text into tokens.
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    position: usize,
    start: usize,
    line: usize,
    start_line: usize,
    parentheses: usize,
    inside_action: bool,
    failed: bool,
}

const LEFT: &[u8] = b"{{";
const RIGHT: &[u8] = b"}}";

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            position: 0,
            start: 0,
            line: 1,
            start_line: 1,
            parentheses: 0,
            inside_action: false,
            failed: false,
        }
    }

    /// The next token. After an error, and at the end, there is nothing but the end.
    pub(crate) fn next_token(&mut self) -> Token {
        if self.failed {
            return self.token(Kind::End);
        }
        if self.inside_action { self.inside_action() } else { self.text() }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.position..]
    }

    fn peek(&self) -> Option<char> {
        decode(self.rest()).map(|(character, _)| character)
    }

    fn advance(&mut self) -> Option<char> {
        let (character, width) = decode(self.rest())?;
        self.position += width;
        if character == '\n' {
            self.line += 1;
        }
        Some(character)
    }

    fn accept(&mut self, valid: &str) -> bool {
        let accepted = self.peek().is_some_and(|next| valid.contains(next));
        if accepted {
            self.advance();
        }
        accepted
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    /// The token from the start to here.
    fn token(&mut self, kind: Kind) -> Token {
        let token = Token { kind, span: self.start..self.position, line: self.start_line, message: String::new() };
        self.start = self.position;
        self.start_line = self.line;
        token
    }

    /// Skips what has been passed without counting lines on the way.
    fn ignore(&mut self) {
        self.line += count_lines(&self.text[self.start..self.position]);
        self.start = self.position;
        self.start_line = self.line;
    }

    fn fail(&mut self, message: impl Into<String>) -> Token {
        self.failed = true;
        let span = self.start..self.position;
        self.start = self.text.len();
        self.position = self.text.len();
        Token { kind: Kind::Error, span, line: self.start_line, message: message.into() }
    }

    fn text(&mut self) -> Token {
        loop {
            let Some(offset) = find(self.rest(), LEFT) else {
                self.position = self.text.len();
                if self.position > self.start {
                    self.line += count_lines(&self.text[self.start..self.position]);
                    return self.token(Kind::Text);
                }
                return self.token(Kind::End);
            };
            if offset > 0 {
                self.position += offset;
                let end = self.position;
                if has_left_trim(&self.text[end + LEFT.len()..]) {
                    let kept = self.text[self.start..end].trim_ascii_end_go();
                    self.position = self.start + kept;
                }
                self.line += count_lines(&self.text[self.start..self.position]);
                let token = self.token(Kind::Text);
                self.position = end;
                self.ignore();
                if !token.span.is_empty() {
                    return token;
                }
            }
            self.position += LEFT.len();
            let trim = if has_left_trim(self.rest()) { 2 } else { 0 };
            if self.text[self.position + trim..].starts_with(b"/*") {
                self.position += trim;
                self.ignore();
                match self.comment() {
                    Ok(()) => continue,
                    Err(message) => return self.fail(message),
                }
            }
            let token = self.token(Kind::LeftDelimiter);
            self.inside_action = true;
            self.position += trim;
            self.ignore();
            self.parentheses = 0;
            return token;
        }
    }

    fn comment(&mut self) -> Result<(), &'static str> {
        self.position += 2;
        let end = find(self.rest(), b"*/").ok_or("unclosed comment")?;
        self.position += end + 2;
        let trims = self.right_delimiter().ok_or("comment ends before closing delimiter")?;
        self.line += count_lines(&self.text[self.start..self.position]);
        self.token(Kind::Text);
        self.position += RIGHT.len();
        if trims {
            self.position += 2;
            self.position += leading_space(self.rest());
        }
        self.ignore();
        Ok(())
    }

    /// Whether an action ends here, and if so, whether it trims the space that follows.
    fn right_delimiter(&self) -> Option<bool> {
        let rest = self.rest();
        if has_right_trim(rest) && rest[2..].starts_with(RIGHT) {
            return Some(true);
        }
        rest.starts_with(RIGHT).then_some(false)
    }

    fn end_of_action(&mut self, trims: bool) -> Token {
        if trims {
            self.position += 2;
            self.ignore();
        }
        self.position += RIGHT.len();
        let token = self.token(Kind::RightDelimiter);
        if trims {
            self.position += leading_space(self.rest());
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    fn inside_action(&mut self) -> Token {
        if let Some(trims) = self.right_delimiter() {
            if self.parentheses == 0 {
                return self.end_of_action(trims);
            }
            return self.fail("unclosed left paren");
        }
        let Some(next) = self.peek() else { return self.fail("unclosed action") };
        match next {
            '+' | '-' | '0'..='9' => return self.number(),
            '.' if self.rest().get(1).is_some_and(u8::is_ascii_digit) => return self.number(),
            // At the very end of the text a dot starts a number, which is none.
            '.' if self.rest().len() == 1 => return self.number(),
            ' ' | '\t' | '\r' | '\n' => return self.space(),
            _ if is_alphanumeric(next) => return self.identifier(),
            _ => {}
        }
        self.advance();
        match next {
            '=' => self.token(Kind::Assign),
            ':' => {
                if self.advance() == Some('=') {
                    self.token(Kind::Declare)
                } else {
                    self.fail("expected :=")
                }
            }
            '|' => self.token(Kind::Pipe),
            '"' => self.quoted('"', Kind::String, "unterminated quoted string"),
            '\'' => self.quoted('\'', Kind::CharacterConstant, "unterminated character constant"),
            '`' => self.raw_string(),
            '$' => self.name(Kind::Variable),
            '.' => self.name(Kind::Field),
            '(' => {
                self.parentheses += 1;
                self.token(Kind::LeftParenthesis)
            }
            ')' => match self.parentheses.checked_sub(1) {
                Some(left) => {
                    self.parentheses = left;
                    self.token(Kind::RightParenthesis)
                }
                None => self.fail("unexpected right paren"),
            },
            _ if next.is_ascii_graphic() => self.token(Kind::Character),
            _ => self.fail(format!("unrecognized character in action: {}", unicode(next))),
        }
    }

    fn space(&mut self) -> Token {
        let mut count = 0;
        while self.peek().is_some_and(is_space) {
            self.advance();
            count += 1;
        }
        // The last space may belong to a trim marker.
        let last = &self.text[self.position - 1..];
        if has_right_trim(last) && last[2..].starts_with(RIGHT) {
            self.position -= 1;
            if last[0] == b'\n' {
                self.line -= 1;
            }
            if count == 1 {
                return self.end_of_action(true);
            }
        }
        self.token(Kind::Space)
    }

    fn identifier(&mut self) -> Token {
        self.alphanumeric_run();
        if !self.at_terminator() {
            return self.bad_character();
        }
        let word = &self.text[self.start..self.position];
        let kind = match Keyword::from_word(word) {
            Some(keyword) => Kind::Keyword(keyword),
            None if word == b"nil" => Kind::Nil,
            None if word == b"true" || word == b"false" => Kind::Bool,
            None => Kind::Identifier,
        };
        self.token(kind)
    }

    /// A field or a variable, after its first character.
    fn name(&mut self, kind: Kind) -> Token {
        if self.at_terminator() {
            return self.token(if kind == Kind::Variable { kind } else { Kind::Dot });
        }
        self.alphanumeric_run();
        if self.at_terminator() { self.token(kind) } else { self.bad_character() }
    }

    fn alphanumeric_run(&mut self) {
        while self.peek().is_some_and(is_alphanumeric) {
            self.advance();
        }
    }

    fn bad_character(&mut self) -> Token {
        let message = format!("bad character {}", self.peek().map_or_else(|| "U+FFFFFFFFFFFFFFFF".to_owned(), unicode));
        self.fail(message)
    }

    fn at_terminator(&self) -> bool {
        self.peek().is_none_or(|next| is_space(next) || ".,|:)(".contains(next)) || self.rest().starts_with(RIGHT)
    }

    fn quoted(&mut self, quote: char, kind: Kind, message: &str) -> Token {
        loop {
            match self.advance() {
                Some('\\') if self.peek().is_some_and(|next| next != '\n') => {
                    self.advance();
                }
                None | Some('\n' | '\\') => return self.fail(message),
                Some(next) if next == quote => return self.token(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_string(&mut self) -> Token {
        loop {
            match self.advance() {
                None => return self.fail("unterminated raw quoted string"),
                Some('`') => return self.token(Kind::RawString),
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) -> Token {
        if !self.scan_number() {
            return self.bad_number();
        }
        if self.peek().is_some_and(|next| next == '+' || next == '-') {
            if !self.scan_number() || self.text[self.position - 1] != b'i' {
                return self.bad_number();
            }
            return self.token(Kind::Complex);
        }
        self.token(Kind::Number)
    }

    fn bad_number(&mut self) -> Token {
        let text = crate::quote::quote(&self.text[self.start..self.position], false);
        self.fail(format!("bad number syntax: {text}"))
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = match digits.len() {
            11 => "eE",
            23 => "pP",
            _ => "",
        };
        if self.accept(exponent) {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.advance();
            return false;
        }
        true
    }
}

/// What is left of a text without the space at its end.
trait TrimEnd {
    fn trim_ascii_end_go(&self) -> usize;
}

impl TrimEnd for [u8] {
    fn trim_ascii_end_go(&self) -> usize {
        self.iter().rposition(|byte| !b" \t\r\n".contains(byte)).map_or(0, |last| last + 1)
    }
}

fn leading_space(text: &[u8]) -> usize {
    text.iter().position(|byte| !b" \t\r\n".contains(byte)).unwrap_or(text.len())
}

fn has_left_trim(text: &[u8]) -> bool {
    matches!(text, [b'-', space, ..] if is_space(char::from(*space)))
}

fn has_right_trim(text: &[u8]) -> bool {
    matches!(text, [space, b'-', ..] if is_space(char::from(*space)))
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

/// A character as Go's `%#U` shows it.
fn unicode(character: char) -> String {
    let code = u32::from(character);
    if is_printable(character) { format!("U+{code:04X} '{character}'") } else { format!("U+{code:04X}") }
}

pub(crate) fn count_lines(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// Where a text starts within another.
pub(crate) fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    if wanted.is_empty() {
        return Some(0);
    }
    let mut from = 0;
    while let Some(offset) = text.get(from..)?.iter().position(|byte| *byte == wanted[0]) {
        if text[from + offset..].starts_with(wanted) {
            return Some(from + offset);
        }
        from += offset + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(text: &str) -> Vec<(Kind, String)> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut found = Vec::new();
        loop {
            let token = lexer.next_token();
            match token.kind {
                Kind::End => return found,
                Kind::Error => found.push((token.kind, token.message)),
                kind => found.push((kind, text[token.span].to_owned())),
            }
        }
    }

    #[test]
    fn space_separates_arguments_and_belongs_to_trim_markers() {
        let expected = [
            (Kind::Text, "a"),
            (Kind::LeftDelimiter, "{{"),
            (Kind::Space, " "),
            (Kind::Variable, "$x"),
            (Kind::Space, " "),
            (Kind::Field, ".y"),
            (Kind::Field, ".z"),
            (Kind::RightDelimiter, "}}"),
            (Kind::Text, "b"),
        ];
        let expected: Vec<_> = expected.into_iter().map(|(kind, text)| (kind, text.to_owned())).collect();
        assert_eq!(tokens("a \n{{-  $x .y.z -}}\t b"), expected);
    }

    #[test]
    fn what_is_wrong_is_said_in_the_words_of_go() {
        for (text, message) in [
            ("{{", "unclosed action"),
            ("{{ \"a", "unterminated quoted string"),
            ("{{ `a", "unterminated raw quoted string"),
            ("{{ 'a", "unterminated character constant"),
            ("{{ (1 }}", "unclosed left paren"),
            ("{{ ) }}", "unexpected right paren"),
            ("{{ 12ab }}", "bad number syntax: \"12a\""),
            ("{{ .a? }}", "bad character U+003F '?'"),
            ("{{ a := 1 }}{{ a : 1}}", "expected :="),
            ("{{ \u{7} }}", "unrecognized character in action: U+0007"),
            ("{{/* a", "unclosed comment"),
            ("{{/* a */ }}", "comment ends before closing delimiter"),
        ] {
            let found = tokens(text);
            let (kind, last) = found.last().expect("an error");
            assert_eq!((*kind, last.as_str()), (Kind::Error, message), "{text}");
        }
    }

    #[test]
    fn lines_are_counted_through_trimmed_space_and_comments() {
        let mut lexer = Lexer::new(b"a\n\n{{- /* b\n */ -}}\n\nc\n{{ d }}");
        let mut lines = Vec::new();
        loop {
            let token = lexer.next_token();
            if token.kind == Kind::End {
                break;
            }
            lines.push(token.line);
        }
        assert_eq!(lines, [1, 6, 7, 7, 7, 7, 7]);
    }

    proptest! {
        #[test]
        fn tokens_stay_within_the_text_and_end(text in proptest::collection::vec(
            prop_oneof![Just("{{".to_owned()), Just("}}".to_owned()), Just("- ".to_owned()), Just(" -".to_owned()),
                        Just("/*".to_owned()), Just("*/".to_owned()), "[ -~\n\u{e9}\u{0}]{0,4}"], 0..12)) {
            let text = text.concat();
            let mut lexer = Lexer::new(text.as_bytes());
            let mut end = 0;
            for _ in 0..=text.len() + 1 {
                let token = lexer.next_token();
                prop_assert!(token.span.end <= text.len());
                if token.kind == Kind::End {
                    return Ok(());
                }
                prop_assert!(token.span.start >= end, "{token:?}");
                end = token.span.end;
            }
            prop_assert!(false, "the lexer does not end");
        }
    }
}
