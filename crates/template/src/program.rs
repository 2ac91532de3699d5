//! Templates that are parsed once and rendered often.

use crate::environment::{Environment, Helm};
use crate::error::ExecError;
use crate::execute::Machine;
use crate::functions;
use crate::heap::Heap;
use crate::parse::{Dialect, ParseError, parse};
use crate::reads::FileReads;
use crate::tree::{File, NodeId};
use crate::value::{Operand, Value};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// What Helm calls the template that all others belong to.
pub(crate) const ROOT: &str = "gotpl";

/// A template, and what it is part of.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) name: Arc<str>,
    pub(crate) file: Arc<File>,
    pub(crate) root: NodeId,
}

/// Templates by their names; those of the enclosing scope are seen through.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    parent: Option<Rc<Scope>>,
    templates: BTreeMap<Box<str>, Template>,
}

impl Scope {
    pub(crate) fn within(parent: Rc<Self>) -> Self {
        Self { parent: Some(parent), templates: BTreeMap::new() }
    }

    pub(crate) fn find(&self, name: &str) -> Option<Template> {
        let mut scope = self;
        loop {
            if let Some(template) = scope.templates.get(name) {
                return Some(template.clone());
            }
            scope = scope.parent.as_deref()?;
        }
    }

    /// Adds what a file defines. What is empty replaces nothing.
    pub(crate) fn add(&mut self, file: &Arc<File>) {
        for (name, root) in &file.templates {
            if file.is_empty(*root) && self.find(name).is_some() {
                continue;
            }
            let template = Template { name: Arc::from(&**name), file: Arc::clone(file), root: *root };
            self.templates.insert(name.clone(), template);
        }
    }
}

/// Templates that are parsed.
#[derive(Clone, Debug)]
pub struct Program {
    helm: Helm,
    templates: BTreeMap<Box<str>, Template>,
    /// The names of the files, in the order in which they are executed.
    order: Vec<String>,
}

/// Parses one text as this Helm does.
pub(crate) fn parse_as(helm: Helm, name: &str, text: &[u8]) -> Result<Arc<File>, ParseError> {
    let dialect = Dialect { else_with: helm.has_else_with() };
    parse(name, text, dialect, &|name| functions::find(name, helm).is_some()).map(Arc::new)
}

impl Program {
    /// Parses files in Helm's order: deep paths first, and later names first.
    pub fn parse<'t>(helm: Helm, sources: impl IntoIterator<Item = (&'t str, &'t [u8])>) -> Result<Self, ParseError> {
        let mut sources: Vec<(&str, &[u8])> = sources.into_iter().collect();
        let depth = |name: &str| name.matches('/').count();
        sources.sort_by(|(one, _), (other, _)| depth(other).cmp(&depth(one)).then_with(|| other.cmp(one)));
        let mut scope = Scope::default();
        let mut order = Vec::new();
        for (name, text) in sources {
            scope.add(&parse_as(helm, name, text)?);
            order.push(name.to_owned());
        }
        Ok(Self { helm, templates: scope.templates, order })
    }

    /// The names of the files, in the order in which they are executed.
    pub fn order(&self) -> &[String] {
        &self.order
    }

    /// The version of Helm that they were parsed for.
    pub fn helm(&self) -> Helm {
        self.helm
    }
}

/// A render that goes on: each file sees what those before it changed in shared maps.
pub struct Render<'e> {
    machine: Machine<'e>,
}

impl<'e> Render<'e> {
    /// Begins a render of a program with values.
    pub fn new(program: &Program, mut heap: Heap, environment: &'e Environment<'e>) -> Self {
        heap.freeze();
        let scope = Rc::new(Scope { parent: None, templates: program.templates.clone() });
        Self { machine: Machine::new(heap, environment, scope) }
    }

    /// The values.
    pub fn heap(&self) -> &Heap {
        &self.machine.heap
    }

    /// Changes values between files, which does not count as a change by a file.
    pub fn prepare(&mut self, change: impl FnOnce(&mut Heap)) {
        let before = self.machine.heap.base_changed;
        change(&mut self.machine.heap);
        self.machine.heap.base_changed = before;
    }

    /// Executes a file and returns what it prints, with `<no value>` left out as Helm does.
    pub fn file(&mut self, name: &str, dot: Value) -> Result<Vec<u8>, Box<ExecError>> {
        let Some(template) = self.machine.scope.find(name) else {
            let name = crate::quote::quote(name.as_bytes(), false);
            return Err(ExecError::bare(format!("template: no template {name} associated with template {ROOT:?}")));
        };
        name.clone_into(&mut self.machine.file);
        self.machine.draws = 0;
        let printed = self.machine.render(&template, Operand::new(dot), 0)?;
        Ok(strip_no_value(printed))
    }

    /// What has been read since the last call.
    pub fn take_reads(&mut self) -> FileReads {
        self.machine.reads.take(&mut self.machine.heap)
    }
}

/// Leaves out `<no value>`.
pub(crate) fn strip_no_value(text: Vec<u8>) -> Vec<u8> {
    const NO_VALUE: &[u8] = b"<no value>";
    if crate::lex::find(&text, NO_VALUE).is_none() {
        return text;
    }
    let mut output = Vec::with_capacity(text.len());
    let mut rest = text.as_slice();
    while let Some(at) = crate::lex::find(rest, NO_VALUE) {
        output.extend_from_slice(&rest[..at]);
        rest = &rest[at + NO_VALUE.len()..];
    }
    output.extend_from_slice(rest);
    output
}
