//! Parsed templates.

use crate::number::Number;
use crate::quote::quote;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A node of a [`File`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

/// The name of a variable of a [`File`]. That of `$` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol(pub(crate) u32);

/// A file of templates: what it is executed as, and what it defines.
#[derive(Debug)]
pub(crate) struct File {
    /// Its name, as errors show it.
    pub(crate) name: Arc<str>,
    pub(crate) text: Vec<u8>,
    pub(crate) nodes: Vec<Node>,
    /// The names of variables, with their `$`.
    pub(crate) symbols: Vec<Box<str>>,
    /// What it defines, itself among it.
    pub(crate) templates: BTreeMap<Box<str>, NodeId>,
}

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    /// Where Go says that it is, which is not always where it starts.
    pub(crate) position: u32,
    pub(crate) kind: Kind,
}

/// What a node is.
#[derive(Debug)]
pub(crate) enum Kind {
    List(Vec<NodeId>),
    Text(Range<usize>),
    Action(NodeId),
    Pipe(Pipe),
    Command(Vec<NodeId>),
    /// The name of a function.
    Identifier(Box<str>),
    Variable(Symbol, Vec<Box<str>>),
    Field(Vec<Box<str>>),
    Chain(NodeId, Vec<Box<str>>),
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    /// As it is written, and what it stands for.
    String(Box<str>, Vec<u8>),
    If(Branch),
    With(Branch),
    Range(Branch),
    Break,
    Continue,
    Template(Box<str>, Option<NodeId>),
}

/// A pipeline.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    pub(crate) is_assignment: bool,
    pub(crate) variables: Vec<Symbol>,
    pub(crate) commands: Vec<NodeId>,
}

/// What is executed depending on a pipeline.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pipe: NodeId,
    pub(crate) list: NodeId,
    pub(crate) otherwise: Option<NodeId>,
}

impl File {
    pub(crate) fn node(&self, id: NodeId) -> &Kind {
        &self.nodes[id.0 as usize].kind
    }

    /// Where a node is, and its text, as Go's errors show them.
    pub(crate) fn context(&self, id: NodeId) -> (String, String) {
        let position = self.nodes[id.0 as usize].position as usize;
        let before = &self.text[..position.min(self.text.len())];
        let line = 1 + crate::lex::count_lines(before);
        let column = before.iter().rposition(|byte| *byte == b'\n').map_or(position, |end| position - end - 1);
        let mut text = String::new();
        self.show(id, &mut text);
        (format!("{}:{line}:{column}", self.name), text)
    }

    /// Whether executing a node prints nothing, whatever the values are.
    pub(crate) fn is_empty(&self, id: NodeId) -> bool {
        match self.node(id) {
            Kind::List(nodes) => nodes.iter().all(|node| self.is_empty(*node)),
            Kind::Text(span) => String::from_utf8_lossy(&self.text[span.clone()]).trim().is_empty(),
            _ => false,
        }
    }

    /// Prints a node as Go's `String` does.
    pub(crate) fn show(&self, id: NodeId, output: &mut String) {
        let fields = |names: &[Box<str>], output: &mut String| {
            for name in names {
                output.push('.');
                output.push_str(name);
            }
        };
        match self.node(id) {
            Kind::List(nodes) => nodes.iter().for_each(|node| self.show(*node, output)),
            Kind::Text(span) => output.push_str(&String::from_utf8_lossy(&self.text[span.clone()])),
            Kind::Action(pipe) => {
                output.push_str("{{");
                self.show(*pipe, output);
                output.push_str("}}");
            }
            Kind::Pipe(pipe) => {
                for (index, variable) in pipe.variables.iter().enumerate() {
                    output.push_str(if index > 0 { ", " } else { "" });
                    output.push_str(&self.symbols[variable.0 as usize]);
                }
                if !pipe.variables.is_empty() {
                    output.push_str(if pipe.is_assignment { " = " } else { " := " });
                }
                for (index, command) in pipe.commands.iter().enumerate() {
                    output.push_str(if index > 0 { " | " } else { "" });
                    self.show(*command, output);
                }
            }
            Kind::Command(arguments) => {
                for (index, argument) in arguments.iter().enumerate() {
                    output.push_str(if index > 0 { " " } else { "" });
                    self.show_in_parentheses(*argument, output);
                }
            }
            Kind::Identifier(name) => output.push_str(name),
            Kind::Variable(symbol, names) => {
                output.push_str(&self.symbols[symbol.0 as usize]);
                fields(names, output);
            }
            Kind::Field(names) => fields(names, output),
            Kind::Chain(node, names) => {
                self.show_in_parentheses(*node, output);
                fields(names, output);
            }
            Kind::Dot => output.push('.'),
            Kind::Nil => output.push_str("nil"),
            Kind::Bool(value) => output.push_str(if *value { "true" } else { "false" }),
            Kind::Number(number) => output.push_str(&number.text),
            Kind::String(quoted, _) => output.push_str(quoted),
            Kind::If(branch) => self.show_branch("if", branch, output),
            Kind::With(branch) => self.show_branch("with", branch, output),
            Kind::Range(branch) => self.show_branch("range", branch, output),
            Kind::Break => output.push_str("{{break}}"),
            Kind::Continue => output.push_str("{{continue}}"),
            Kind::Template(name, pipe) => {
                output.push_str("{{template ");
                output.push_str(&quote(name.as_bytes(), false));
                if let Some(pipe) = pipe {
                    output.push(' ');
                    self.show(*pipe, output);
                }
                output.push_str("}}");
            }
        }
    }

    fn show_in_parentheses(&self, id: NodeId, output: &mut String) {
        if matches!(self.node(id), Kind::Pipe(_)) {
            output.push('(');
            self.show(id, output);
            output.push(')');
        } else {
            self.show(id, output);
        }
    }

    fn show_branch(&self, word: &str, branch: &Branch, output: &mut String) {
        output.push_str("{{");
        output.push_str(word);
        output.push(' ');
        self.show(branch.pipe, output);
        output.push_str("}}");
        self.show(branch.list, output);
        if let Some(otherwise) = branch.otherwise {
            output.push_str("{{else}}");
            self.show(otherwise, output);
        }
        output.push_str("{{end}}");
    }
}
