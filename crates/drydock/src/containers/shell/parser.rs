//! Tokens to commands.

use super::lexer::{Token, tokens};
use super::{Command, Output, Word};

/// How deep commands may nest.
const DEPTH_LIMIT: usize = 40;

/// Reads a shell text. `None`: this is not shell that is understood here.
pub(crate) fn parse(text: &str, depth: usize) -> Option<Command> {
    if depth > DEPTH_LIMIT {
        return None;
    }
    let mut parser = Parser { tokens: tokens(text, depth)?, position: 0, depth };
    let command = parser.list(&[])?;
    (parser.position == parser.tokens.len()).then_some(command)
}

struct Parser {
    tokens: Vec<Token>,
    position: usize,
    depth: usize,
}

/// Words that end a list of commands.
const ENDS: &[&str] = &["then", "else", "elif", "fi", "do", "done", "}", "esac"];

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.position)
    }

    fn is_operator(&self, operators: &[&str]) -> bool {
        matches!(self.peek(), Some(Token::Operator(operator)) if operators.contains(operator))
    }

    fn take_operator(&mut self, operators: &[&str]) -> bool {
        let found = self.is_operator(operators);
        self.position += usize::from(found);
        found
    }

    /// The reserved word at this place, if it is one.
    fn reserved(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Word(word)) if !word.quoted => word.literal(),
            _ => None,
        }
    }

    fn take_reserved(&mut self, name: &str) -> bool {
        let found = self.reserved() == Some(name);
        self.position += usize::from(found);
        found
    }

    fn skip_lines(&mut self) {
        while self.take_operator(&["\n", ";"]) {}
    }

    /// Commands up to the end, a closing bracket or a word in `ends`.
    fn list(&mut self, ends: &[&str]) -> Option<Command> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return None;
        }
        let mut commands = Vec::new();
        loop {
            self.skip_lines();
            let closes = self.peek().is_none()
                || self.is_operator(&[")", ";;"])
                || self.reserved().is_some_and(|word| ends.contains(&word));
            if closes {
                break;
            }
            if self.reserved().is_some_and(|word| ENDS.contains(&word)) {
                return None;
            }
            let command = self.and_or()?;
            if self.take_operator(&["&"]) {
                commands.push(Command::Background(Box::new(command)));
            } else {
                commands.push(command);
                if !self.is_operator(&[";", "\n", ")", ";;"]) && self.peek().is_some() {
                    return None;
                }
            }
        }
        self.depth -= 1;
        Some(match commands.len() {
            1 => commands.remove(0),
            _ => Command::Sequence(commands),
        })
    }

    fn and_or(&mut self) -> Option<Command> {
        let mut command = self.pipe()?;
        loop {
            if self.take_operator(&["&&"]) {
                self.skip_lines();
                command = Command::And(Box::new(command), Box::new(self.pipe()?));
            } else if self.take_operator(&["||"]) {
                self.skip_lines();
                command = Command::Or(Box::new(command), Box::new(self.pipe()?));
            } else {
                return Some(command);
            }
        }
    }

    fn pipe(&mut self) -> Option<Command> {
        if self.take_reserved("!") {
            return Some(Command::Not(Box::new(self.pipe()?)));
        }
        let mut commands = vec![self.command()?];
        while self.take_operator(&["|"]) {
            self.skip_lines();
            commands.push(self.command()?);
        }
        Some(if commands.len() == 1 { commands.remove(0) } else { Command::Pipe(commands) })
    }

    fn command(&mut self) -> Option<Command> {
        if self.take_operator(&["("]) {
            let inside = self.list(&[])?;
            if !self.take_operator(&[")"]) {
                return None;
            }
            return self.redirected(Command::Subshell(Box::new(inside)));
        }
        let compound = match self.reserved() {
            Some("if") => self.conditional(),
            Some("while") => self.repeat(false),
            Some("until") => self.repeat(true),
            Some("for") => self.each(),
            Some("{") => self.group(),
            Some("case" | "function") => return None,
            _ => return self.simple(),
        };
        self.redirected(compound?)
    }

    /// Redirections after a compound command say where its output goes, which changes nothing here.
    fn redirected(&mut self, command: Command) -> Option<Command> {
        while matches!(self.peek(), Some(Token::Redirect { .. })) {
            self.position += 2;
        }
        (self.position <= self.tokens.len()).then_some(command)
    }

    fn group(&mut self) -> Option<Command> {
        self.position += 1;
        let inside = self.list(&["}"])?;
        self.take_reserved("}").then_some(inside)
    }

    fn conditional(&mut self) -> Option<Command> {
        self.position += 1;
        let condition = Box::new(self.list(&["then"])?);
        if !self.take_reserved("then") {
            return None;
        }
        let then = Box::new(self.list(&["else", "elif", "fi"])?);
        let otherwise = match self.reserved() {
            Some("elif") => Some(Box::new(self.conditional()?)),
            Some("else") => {
                self.position += 1;
                let otherwise = self.list(&["fi"])?;
                if !self.take_reserved("fi") {
                    return None;
                }
                Some(Box::new(otherwise))
            }
            _ => {
                if !self.take_reserved("fi") {
                    return None;
                }
                None
            }
        };
        Some(Command::If { condition, then, otherwise })
    }

    fn repeat(&mut self, until: bool) -> Option<Command> {
        self.position += 1;
        let condition = Box::new(self.list(&["do"])?);
        let body = Box::new(self.body()?);
        Some(Command::Loop { condition, until, body })
    }

    fn each(&mut self) -> Option<Command> {
        self.position += 1;
        let variable = self.reserved()?.to_owned();
        self.position += 1;
        let mut words = Vec::new();
        if self.take_reserved("in") {
            while let Some(Token::Word(word)) = self.peek() {
                words.push(word.clone());
                self.position += 1;
            }
        }
        self.skip_lines();
        let body = Box::new(self.body()?);
        Some(Command::For { variable, words, body })
    }

    fn body(&mut self) -> Option<Command> {
        if !self.take_reserved("do") {
            return None;
        }
        let body = self.list(&["done"])?;
        self.take_reserved("done").then_some(body)
    }

    fn simple(&mut self) -> Option<Command> {
        let (mut assignments, mut words, mut file) = (Vec::new(), Vec::new(), None);
        loop {
            match self.peek() {
                Some(Token::Word(word)) => {
                    match assignment(word).filter(|_| words.is_empty()) {
                        Some(assignment) => assignments.push(assignment),
                        None => words.push(word.clone()),
                    }
                    self.position += 1;
                }
                Some(Token::Redirect { output, append }) => {
                    let (output, append) = (*output, *append);
                    self.position += 1;
                    let Some(Token::Word(word)) = self.peek() else { return None };
                    if output {
                        file = Some(Output { file: word.clone(), append });
                    }
                    self.position += 1;
                }
                // A function definition.
                Some(Token::Operator("(")) => return None,
                _ => break,
            }
        }
        (!words.is_empty() || !assignments.is_empty()).then_some(Command::Simple { assignments, words, output: file })
    }
}

/// `NAME=value`.
fn assignment(word: &Word) -> Option<(String, Word)> {
    use super::Part;
    let Some(Part::Text(first)) = word.parts.first() else { return None };
    let (name, value) = first.split_once('=')?;
    let valid = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !valid {
        return None;
    }
    let mut rest = Word { parts: word.parts[1..].to_vec(), quoted: word.quoted };
    if !value.is_empty() {
        rest.parts.insert(0, Part::Text(value.to_owned()));
    }
    Some((name.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_charts_write_is_understood() {
        for text in [
            "echo hi",
            "echo bad; exit 1",
            "sleep 8 && touch /tmp/ready; while true; do sleep 1; done",
            "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done",
            "until nc -z db 5432; do echo waiting; sleep 2; done",
            "if [ -e /tmp/x ]; then echo yes; elif test -z \"$A\"; then echo no; else false; fi",
            "for i in 1 2 3; do echo $i; done",
            "A=1 B=\"x $A\" run --now > /dev/null 2>&1 | tee log",
            "set -e\n# a comment\n./migrate.sh \\\n  --all\n",
            "( cd /tmp && ls ) || exit 3",
            "echo $(date +%s) `hostname` ${HOME:-/root} $((1+2))",
            "exec sleep 100",
            "! false",
            "a &",
        ] {
            assert!(parse(text, 0).is_some(), "{text}");
        }
    }

    #[test]
    fn what_is_not_shell_is_not_guessed_at() {
        for text in
            ["echo 'open", "if true; then", "case x in a) ;; esac", "while true; done", "f() { echo; }", ")", "fi"]
        {
            assert!(parse(text, 0).is_none(), "{text}");
        }
    }

    #[test]
    fn operators_bind_as_in_a_shell() {
        let Some(Command::Or(first, _)) = parse("a && b || c", 0) else { panic!("an or") };
        assert!(matches!(*first, Command::And(..)));
        let Some(Command::Sequence(commands)) = parse("a; b & c", 0) else { panic!("a sequence") };
        assert!(matches!(commands[1], Command::Background(_)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_not(text in ".{0,60}") {
            let _ = parse(&text, 0);
        }

        #[test]
        fn any_heap_of_tokens_is_read_or_not(words in proptest::collection::vec(proptest::sample::select(
            vec!["if", "then", "fi", "while", "do", "done", "(", ")", "{", "}", ";", "&&", "|", "$(", "'", "\"", "a", "for", "in", "\n", ">"]), 0..30)) {
            let _ = parse(&words.join(" "), 0);
        }
    }
}
