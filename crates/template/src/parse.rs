//! From tokens to trees, as Go's `text/template/parse` does it (go1.24 `parse.go`), with its error messages.

use crate::lex::{Keyword, Kind as Token, Lexer, Token as Lexeme};
use crate::number::Number;
use crate::quote::{quote, unquote, unquote_character};
use crate::tree::{Branch, File, Kind, Node, NodeId, Pipe, Symbol};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What depends on the version of Go that a Helm was built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// `{{else with}}`, since Go 1.23.
    pub(crate) else_with: bool,
}

/// Parentheses and blocks within each other.
const DEPTH: usize = 500;

/// A template that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("template: {name}:{line}: {message}")]
pub struct ParseError {
    /// The name of the template.
    pub name: String,
    /// The line, from 1 on.
    pub line: usize,
    /// What is wrong, in Go's words.
    pub message: String,
}

impl ParseError {
    /// What Helm 3 prints: the place, and what follows the last colon.
    pub fn helm_message(&self) -> String {
        let last = self.message.rsplit(": ").next().unwrap_or_default();
        format!("parse error at ({}:{}): {last}", self.name, self.line)
    }
}

/// Reads a template and what it defines.
pub(crate) fn parse(
    name: &str,
    text: &[u8],
    dialect: Dialect,
    has_function: &dyn Fn(&str) -> bool,
) -> Result<File, ParseError> {
    let file = File {
        name: Arc::from(name),
        text: text.to_vec(),
        nodes: Vec::new(),
        symbols: vec!["$".into()],
        templates: BTreeMap::new(),
    };
    let mut parser = Parser {
        lexer: Lexer::new(text),
        text,
        file,
        dialect,
        has_function,
        pending: Vec::new(),
        line: 0,
        action_line: 0,
        depth: 0,
        scope: Scope::default(),
    };
    match parser.file() {
        Ok(()) => Ok(parser.file),
        Err(message) => Err(ParseError { name: name.to_owned(), line: parser.line, message }),
    }
}

/// An error message, at the line of the last token.
type Parsed<T> = Result<T, String>;

/// What belongs to one template of a file.
struct Scope {
    variables: Vec<Symbol>,
    ranges: usize,
}

impl Default for Scope {
    fn default() -> Self {
        Self { variables: vec![Symbol(0)], ranges: 0 }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    text: &'a [u8],
    file: File,
    dialect: Dialect,
    has_function: &'a dyn Fn(&str) -> bool,
    /// Tokens that were read and given back, the next one last.
    pending: Vec<Lexeme>,
    /// The line of the last token.
    line: usize,
    /// The line on which the action began that is being read, 0 if none is.
    action_line: usize,
    depth: usize,
    scope: Scope,
}

/// What a list of nodes ends with.
enum Item {
    Node(NodeId),
    End,
    Else(u32),
}

impl Item {
    fn show(&self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            _ => "{{else}}",
        }
    }
}

impl Parser<'_> {
    fn next(&mut self) -> Lexeme {
        if let Some(token) = self.pending.pop() {
            return token;
        }
        let token = self.lexer.next_token();
        self.line = token.line;
        token
    }

    fn back(&mut self, token: Lexeme) {
        self.pending.push(token);
    }

    fn peek(&mut self) -> &Lexeme {
        if self.pending.is_empty() {
            let token = self.next();
            self.pending.push(token);
        }
        &self.pending[self.pending.len() - 1]
    }

    fn next_non_space(&mut self) -> Lexeme {
        loop {
            let token = self.next();
            if token.kind != Token::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> &Lexeme {
        let token = self.next_non_space();
        self.back(token);
        self.peek()
    }

    fn text_of(&self, token: &Lexeme) -> &str {
        std::str::from_utf8(&self.text[token.span.clone()]).unwrap_or_default()
    }

    fn unexpected<T>(&self, token: &Lexeme, context: &str) -> Parsed<T> {
        if token.kind == Token::Error {
            let mut extra = String::new();
            if self.action_line != 0 && self.action_line != token.line {
                extra = format!(" in action started at {}:{}", self.file.name, self.action_line);
                if token.message.ends_with(" action") {
                    extra = extra[" in action".len()..].to_owned();
                }
            }
            return Err(format!("{}{extra}", token.message));
        }
        Err(format!("unexpected {} in {context}", self.show(token)))
    }

    fn show(&self, token: &Lexeme) -> String {
        let text = &self.text[token.span.clone()];
        match token.kind {
            Token::End => "EOF".to_owned(),
            Token::Error => token.message.clone(),
            Token::Keyword(_) | Token::Dot | Token::Nil => format!("<{}>", String::from_utf8_lossy(text)),
            _ if text.len() > 10 => {
                let end = crate::utf8::characters(text).nth(10).map_or(text.len(), |(offset, ..)| offset);
                format!("{}...", quote(&text[..end], false))
            }
            _ => quote(text, false),
        }
    }

    fn expect(&mut self, kind: Token, context: &str) -> Parsed<Lexeme> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { self.unexpected(&token, context) }
    }

    fn add(&mut self, position: usize, kind: Kind) -> NodeId {
        let id = NodeId(self.file.nodes.len() as u32);
        self.file.nodes.push(Node { position: position as u32, kind });
        id
    }

    /// Runs a step one level deeper.
    fn deeper<T>(&mut self, step: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            return Err("max expression depth exceeded".to_owned());
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    fn file(&mut self) -> Parsed<()> {
        let start = self.peek().span.start;
        let mut nodes = Vec::new();
        loop {
            let token = self.next();
            match token.kind {
                Token::End => break,
                Token::LeftDelimiter => {
                    let word = self.next_non_space();
                    if word.kind == Token::Keyword(Keyword::Define) {
                        self.definition()?;
                        continue;
                    }
                    self.back(word);
                    self.back(token);
                }
                _ => self.back(token),
            }
            match self.text_or_action()? {
                Item::Node(node) => nodes.push(node),
                end => return Err(format!("unexpected {}", end.show())),
            }
        }
        let root = self.add(start, Kind::List(nodes));
        let name = self.file.name.to_string();
        self.define(name, root)
    }

    /// Enters a template under its name. Of two templates of one name in a file, one has to be empty.
    fn define(&mut self, name: String, root: NodeId) -> Parsed<()> {
        let old = self.file.templates.get(name.as_str());
        if old.is_none_or(|old| self.file.is_empty(*old)) {
            self.file.templates.insert(name.into(), root);
        } else if !self.file.is_empty(root) {
            return Err(format!("template: multiple definition of template {}", quote(name.as_bytes(), false)));
        }
        Ok(())
    }

    fn definition(&mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let action_line = std::mem::take(&mut self.action_line);
        let scope = std::mem::take(&mut self.scope);
        let token = self.next_non_space();
        if !matches!(token.kind, Token::String | Token::RawString) {
            return self.unexpected(&token, CONTEXT);
        }
        let name = self.string(&token)?;
        self.expect(Token::RightDelimiter, CONTEXT)?;
        let (root, end) = self.item_list()?;
        if !matches!(end, Item::End) {
            return Err(format!("unexpected {} in {CONTEXT}", end.show()));
        }
        self.define(String::from_utf8_lossy(&name).into_owned(), root)?;
        self.scope = scope;
        self.action_line = action_line;
        Ok(())
    }

    fn string(&self, token: &Lexeme) -> Parsed<Vec<u8>> {
        unquote(&self.text[token.span.clone()]).ok_or_else(|| "invalid syntax".to_owned())
    }

    fn item_list(&mut self) -> Parsed<(NodeId, Item)> {
        self.deeper(|parser| {
            let start = parser.peek_non_space().span.start;
            let mut nodes = Vec::new();
            while parser.peek_non_space().kind != Token::End {
                match parser.text_or_action()? {
                    Item::Node(node) => nodes.push(node),
                    end => return Ok((parser.add(start, Kind::List(nodes)), end)),
                }
            }
            Err("unexpected EOF".to_owned())
        })
    }

    fn text_or_action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        match token.kind {
            Token::Text => Ok(Item::Node(self.add(token.span.start, Kind::Text(token.span)))),
            Token::LeftDelimiter => {
                self.action_line = token.line;
                let item = self.action()?;
                self.action_line = 0;
                Ok(item)
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        let start = token.span.start;
        let node = match token.kind {
            Token::Keyword(Keyword::Block) => self.block()?,
            Token::Keyword(Keyword::Break) => self.jump(start, "{{break}}", Kind::Break)?,
            Token::Keyword(Keyword::Continue) => self.jump(start, "{{continue}}", Kind::Continue)?,
            Token::Keyword(Keyword::Else) => return self.otherwise(),
            Token::Keyword(Keyword::End) => {
                self.expect(Token::RightDelimiter, "end")?;
                return Ok(Item::End);
            }
            Token::Keyword(Keyword::If) => self.control(Keyword::If)?,
            Token::Keyword(Keyword::Range) => self.control(Keyword::Range)?,
            Token::Keyword(Keyword::With) => self.control(Keyword::With)?,
            Token::Keyword(Keyword::Template) => self.template()?,
            _ => {
                self.back(token);
                let start = self.peek().span.start;
                let pipe = self.pipeline("command", Token::RightDelimiter)?;
                self.add(start, Kind::Action(pipe))
            }
        };
        Ok(Item::Node(node))
    }

    fn jump(&mut self, start: usize, word: &str, kind: Kind) -> Parsed<NodeId> {
        let token = self.next_non_space();
        if token.kind != Token::RightDelimiter {
            return self.unexpected(&token, word);
        }
        if self.scope.ranges == 0 {
            return Err(format!("{word} outside {{{{range}}}}"));
        }
        Ok(self.add(start, kind))
    }

    fn otherwise(&mut self) -> Parsed<Item> {
        let with = self.dialect.else_with;
        let peeked = self.peek_non_space();
        let position = peeked.span.start as u32;
        match peeked.kind {
            Token::Keyword(Keyword::If) => Ok(Item::Else(position)),
            Token::Keyword(Keyword::With) if with => Ok(Item::Else(position)),
            _ => {
                let token = self.expect(Token::RightDelimiter, "else")?;
                Ok(Item::Else(token.span.start as u32))
            }
        }
    }

    fn control(&mut self, word: Keyword) -> Parsed<NodeId> {
        let context = match word {
            Keyword::If => "if",
            Keyword::With => "with",
            _ => "range",
        };
        let variables = self.scope.variables.len();
        let pipe = self.pipeline(context, Token::RightDelimiter)?;
        let position = self.file.nodes[pipe.0 as usize].position as usize;
        let ranges = usize::from(word == Keyword::Range);
        self.scope.ranges += ranges;
        let (list, end) = self.item_list()?;
        self.scope.ranges -= ranges;
        let otherwise = match end {
            Item::Else(at) => {
                let next = self.peek().kind;
                let chains = matches!(word, Keyword::If | Keyword::With) && next == Token::Keyword(word);
                if chains {
                    self.next();
                    let inner = self.deeper(|parser| parser.control(word))?;
                    Some(self.add(at as usize, Kind::List(vec![inner])))
                } else {
                    let (list, end) = self.item_list()?;
                    if !matches!(end, Item::End) {
                        return Err(format!("expected end; found {}", end.show()));
                    }
                    Some(list)
                }
            }
            _ => None,
        };
        self.scope.variables.truncate(variables);
        let branch = Branch { pipe, list, otherwise };
        let kind = match word {
            Keyword::If => Kind::If(branch),
            Keyword::With => Kind::With(branch),
            _ => Kind::Range(branch),
        };
        Ok(self.add(position, kind))
    }

    fn template_name(&self, token: &Lexeme, context: &str) -> Parsed<String> {
        match token.kind {
            Token::String | Token::RawString => Ok(String::from_utf8_lossy(&self.string(token)?).into_owned()),
            _ => self.unexpected(token, context),
        }
    }

    fn template(&mut self) -> Parsed<NodeId> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let next = self.next_non_space();
        let pipe = if next.kind == Token::RightDelimiter {
            None
        } else {
            self.back(next);
            Some(self.pipeline(CONTEXT, Token::RightDelimiter)?)
        };
        Ok(self.add(token.span.start, Kind::Template(name.into(), pipe)))
    }

    fn block(&mut self) -> Parsed<NodeId> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Token::RightDelimiter)?;
        let line = self.line;
        let action_line = std::mem::take(&mut self.action_line);
        let scope = std::mem::take(&mut self.scope);
        let (root, end) = self.item_list()?;
        if !matches!(end, Item::End) {
            // Go reports the line of the action, because the block has tokens of its own.
            self.line = line;
            return Err(format!("unexpected {} in {CONTEXT}", end.show()));
        }
        self.define(name.clone(), root)?;
        self.scope = scope;
        self.action_line = action_line;
        Ok(self.add(token.span.start, Kind::Template(name.into(), Some(pipe))))
    }

    fn pipeline(&mut self, context: &str, end: Token) -> Parsed<NodeId> {
        let position = self.peek_non_space().span.start;
        let mut pipe = Pipe::default();
        self.declarations(context, &mut pipe)?;
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => break,
                Token::Bool
                | Token::CharacterConstant
                | Token::Complex
                | Token::Dot
                | Token::Field
                | Token::Identifier
                | Token::Number
                | Token::Nil
                | Token::RawString
                | Token::String
                | Token::Variable
                | Token::LeftParenthesis => {
                    self.back(token);
                    let command = self.command()?;
                    pipe.commands.push(command);
                }
                _ => return self.unexpected(&token, context),
            }
        }
        self.check(&pipe, context)?;
        Ok(self.add(position, Kind::Pipe(pipe)))
    }

    fn declarations(&mut self, context: &str, pipe: &mut Pipe) -> Parsed<()> {
        while self.peek_non_space().kind == Token::Variable {
            let variable = self.next();
            let after = self.peek().clone();
            let next = self.peek_non_space().clone();
            let is_comma = next.kind == Token::Character && self.text_of(&next) == ",";
            match next.kind {
                Token::Assign | Token::Declare => {
                    pipe.is_assignment = next.kind == Token::Assign;
                    self.next_non_space();
                    self.declare(&variable, pipe);
                    return Ok(());
                }
                _ if is_comma => {
                    self.next_non_space();
                    self.declare(&variable, pipe);
                    if context != "range" || pipe.variables.len() >= 2 {
                        return Err(format!("too many declarations in {context}"));
                    }
                    match self.peek_non_space().kind {
                        Token::Variable | Token::RightDelimiter | Token::RightParenthesis => {}
                        _ => return Err("range can only initialize variables".to_owned()),
                    }
                }
                _ => {
                    if after.kind == Token::Space {
                        self.back(after);
                    }
                    self.back(variable);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn declare(&mut self, token: &Lexeme, pipe: &mut Pipe) {
        let name = self.text_of(token).to_owned();
        let symbol = self.symbol(&name);
        pipe.variables.push(symbol);
        self.scope.variables.push(symbol);
    }

    fn symbol(&mut self, name: &str) -> Symbol {
        let known = self.file.symbols.iter().position(|known| **known == *name);
        let index = known.unwrap_or_else(|| {
            self.file.symbols.push(name.into());
            self.file.symbols.len() - 1
        });
        Symbol(index as u32)
    }

    fn check(&self, pipe: &Pipe, context: &str) -> Parsed<()> {
        if pipe.commands.is_empty() {
            return Err(format!("missing value for {context}"));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            let Kind::Command(arguments) = self.file.node(*command) else { continue };
            let first = arguments.first().map(|first| self.file.node(*first));
            if matches!(first, Some(Kind::Bool(_) | Kind::Dot | Kind::Nil | Kind::Number(_) | Kind::String(..))) {
                return Err(format!("non executable command in pipeline stage {}", index + 1));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Parsed<NodeId> {
        let position = self.peek_non_space().span.start;
        let mut arguments = Vec::new();
        loop {
            self.peek_non_space();
            if let Some(operand) = self.operand()? {
                arguments.push(operand);
            }
            let token = self.next();
            match token.kind {
                Token::Space => continue,
                Token::RightDelimiter | Token::RightParenthesis => self.back(token),
                Token::Pipe => {}
                _ => return self.unexpected(&token, "operand"),
            }
            break;
        }
        if arguments.is_empty() {
            return Err("empty command".to_owned());
        }
        Ok(self.add(position, Kind::Command(arguments)))
    }

    fn operand(&mut self) -> Parsed<Option<NodeId>> {
        let Some(node) = self.term()? else { return Ok(None) };
        if self.peek().kind != Token::Field {
            return Ok(Some(node));
        }
        let position = self.peek().span.start;
        let mut names: Vec<Box<str>> = Vec::new();
        while self.peek().kind == Token::Field {
            let token = self.next();
            names.push(self.text_of(&token)[1..].into());
        }
        let mut text = String::new();
        let chained = match &mut self.file.nodes[node.0 as usize] {
            Node { position: at, kind: Kind::Field(fields) | Kind::Variable(_, fields) } => {
                fields.append(&mut names);
                *at = position as u32;
                return Ok(Some(node));
            }
            Node { kind: Kind::Bool(_) | Kind::String(..) | Kind::Number(_) | Kind::Nil | Kind::Dot, .. } => {
                self.file.show(node, &mut text);
                return Err(format!("unexpected . after term {}", quote(text.as_bytes(), false)));
            }
            _ => Kind::Chain(node, names),
        };
        Ok(Some(self.add(position, chained)))
    }

    fn term(&mut self) -> Parsed<Option<NodeId>> {
        let token = self.next_non_space();
        let start = token.span.start;
        let kind = match token.kind {
            Token::Identifier => {
                let name = self.text_of(&token);
                if !(self.has_function)(name) {
                    return Err(format!("function {} not defined", quote(name.as_bytes(), false)));
                }
                Kind::Identifier(name.into())
            }
            Token::Dot => Kind::Dot,
            Token::Nil => Kind::Nil,
            Token::Variable => {
                let name = self.text_of(&token).to_owned();
                let symbol = self.symbol(&name);
                if !self.scope.variables.contains(&symbol) {
                    return Err(format!("undefined variable {}", quote(name.as_bytes(), false)));
                }
                Kind::Variable(symbol, Vec::new())
            }
            Token::Field => Kind::Field(vec![self.text_of(&token)[1..].into()]),
            Token::Bool => Kind::Bool(self.text_of(&token) == "true"),
            Token::CharacterConstant => {
                let code = unquote_character(&self.text[token.span.clone()])?;
                Kind::Number(Number::from_character(self.text_of(&token), code))
            }
            Token::Complex | Token::Number => Kind::Number(Number::parse(self.text_of(&token))?),
            Token::LeftParenthesis => {
                return self
                    .deeper(|parser| parser.pipeline("parenthesized pipeline", Token::RightParenthesis))
                    .map(Some);
            }
            Token::String | Token::RawString => {
                let text = self.string(&token)?;
                let written = String::from_utf8_lossy(&self.text[token.span.clone()]).into_owned();
                Kind::String(written.into(), text)
            }
            _ => {
                self.back(token);
                return Ok(None);
            }
        };
        Ok(Some(self.add(start, kind)))
    }
}

#[cfg(test)]
mod tests;
