//! Executes templates, as Go's `text/template` does (go1.24 `exec.go`).

mod call;
mod evaluate;

use crate::environment::Environment;
use crate::error::{ExecError, Frame};
use crate::format;
use crate::heap::Heap;
use crate::host::Host;
use crate::program::{Scope, Template};
use crate::reads::Reads;
use crate::tree::{Branch, File, Kind, NodeId, Symbol};
use crate::value::{ListType, Operand, Value};
use regex::bytes::Regex;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// How deep `{{template}}` goes. Go stops at 100,000, where endless recursion ends as well, with the same message.
const TEMPLATE_DEPTH: usize = 10_000;

/// The result of a step; errors are boxed, as they are rare and large.
pub(crate) type Executed<T> = Result<T, Box<ExecError>>;

/// What executes templates: the values, and what all templates of a render share.
pub(crate) struct Machine<'e> {
    pub(crate) heap: Heap,
    pub(crate) environment: &'e Environment<'e>,
    /// The templates that can be named; within `tpl`, those of its text, too.
    pub(crate) scope: Rc<Scope>,
    /// What has been printed of what is being executed.
    pub(crate) output: Vec<u8>,
    /// How often each name is being included.
    pub(crate) included: BTreeMap<String, usize>,
    /// How deep `tpl` is nested.
    pub(crate) tpl_depth: usize,
    /// The texts that `tpl` has parsed.
    pub(crate) parsed: BTreeMap<Vec<u8>, Arc<File>>,
    /// Regular expressions, or why they are none.
    pub(crate) regexes: BTreeMap<String, Result<Regex, String>>,
    pub(crate) reads: Reads,
    /// The file that is rendered, for what is drawn at random.
    pub(crate) file: String,
    /// How often something has been drawn at random in this file.
    pub(crate) draws: u64,
    steps: u64,
}

/// A template that is being executed.
pub(crate) struct State<'f> {
    name: &'f str,
    file: &'f File,
    /// The node that an error would be reported at.
    at: NodeId,
    depth: usize,
    variables: Vec<(Symbol, Operand)>,
}

/// How the execution of a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

impl State<'_> {
    pub(crate) fn frame(&self) -> Frame {
        let (location, context) = self.file.context(self.at);
        Frame { template: self.name.to_owned(), location, context }
    }

    fn error(&self, message: impl AsRef<str>) -> Box<ExecError> {
        ExecError::at(self.frame(), message.as_ref())
    }
}

impl<'e> Machine<'e> {
    pub(crate) fn new(heap: Heap, environment: &'e Environment<'e>, scope: Rc<Scope>) -> Self {
        Self {
            heap,
            environment,
            scope,
            output: Vec::new(),
            included: BTreeMap::new(),
            tpl_depth: 0,
            parsed: BTreeMap::new(),
            regexes: BTreeMap::new(),
            reads: Reads::default(),
            file: String::new(),
            draws: 0,
            steps: 0,
        }
    }

    /// Executes a template and returns what it prints.
    pub(crate) fn render(&mut self, template: &Template, dot: Operand, depth: usize) -> Executed<Vec<u8>> {
        let before = std::mem::take(&mut self.output);
        let done = self.execute(template, dot, depth);
        let printed = std::mem::replace(&mut self.output, before);
        done.map(|()| printed)
    }

    fn execute(&mut self, template: &Template, dot: Operand, depth: usize) -> Executed<()> {
        let mut state = State {
            name: &template.name,
            file: &template.file,
            at: template.root,
            depth,
            variables: vec![(Symbol(0), dot)],
        };
        stacker::maybe_grow(256 * 1024, 4 * 1024 * 1024, || self.walk(&mut state, dot, template.root)).map(|_| ())
    }

    /// Counts a step, and stops where there were too many, or where too much was stored.
    pub(crate) fn step(&mut self, state: &State<'_>) -> Executed<()> {
        self.steps += 1;
        let limits = &self.environment.limits;
        let exceeded = if self.steps > limits.steps {
            format!("the templates take more than {} steps", limits.steps)
        } else if self.output.len() > limits.output {
            format!("a template prints more than {} bytes", limits.output)
        } else if self.heap.is_exhausted() {
            format!("the values of the templates take more than {} bytes", self.heap.limit())
        } else {
            return Ok(());
        };
        Err(ExecError::limit(state.frame(), exceeded))
    }

    fn walk(&mut self, state: &mut State<'_>, dot: Operand, node: NodeId) -> Executed<Flow> {
        state.at = node;
        self.step(state)?;
        let file = state.file;
        match file.node(node) {
            Kind::List(nodes) => {
                for node in nodes {
                    let flow = self.walk(state, dot, *node)?;
                    if flow != Flow::Next {
                        return Ok(flow);
                    }
                }
            }
            Kind::Text(span) => self.output.extend_from_slice(&file.text[span.clone()]),
            Kind::Action(pipe) => {
                let value = self.pipeline(state, dot, *pipe)?;
                if !matches!(file.node(*pipe), Kind::Pipe(pipe) if !pipe.variables.is_empty()) {
                    state.at = node;
                    self.print(state, value)?;
                }
            }
            Kind::If(branch) => return self.walk_branch(state, dot, branch, false),
            Kind::With(branch) => return self.walk_branch(state, dot, branch, true),
            Kind::Range(branch) => return self.walk_range(state, dot, branch, node),
            Kind::Break => return Ok(Flow::Break),
            Kind::Continue => return Ok(Flow::Continue),
            Kind::Template(name, pipe) => self.walk_template(state, dot, name, *pipe)?,
            _ => return Err(state.error("unknown node")),
        }
        Ok(Flow::Next)
    }

    fn walk_branch(&mut self, state: &mut State<'_>, dot: Operand, branch: &Branch, is_with: bool) -> Executed<Flow> {
        let mark = state.variables.len();
        let value = self.pipeline(state, dot, branch.pipe)?;
        let flow = if self.is_true(value.value) {
            self.walk(state, if is_with { value } else { dot }, branch.list)
        } else if let Some(otherwise) = branch.otherwise {
            self.walk(state, dot, otherwise)
        } else {
            Ok(Flow::Next)
        };
        state.variables.truncate(mark);
        flow
    }

    /// Whether a value counts as true, which is read of it.
    pub(crate) fn is_true(&mut self, value: Value) -> bool {
        if let Value::Map(map) = value {
            self.reads.emptiness(&self.heap, map);
        }
        match value {
            Value::Nil => false,
            Value::Bool(value) => value,
            Value::Int(number) | Value::Int64(number) => number != 0,
            Value::Uint64(number) => number != 0,
            Value::Byte(number) => number != 0,
            Value::Float(number) => number != 0.0,
            Value::Text(text) => text.len() > 0,
            Value::List(list) => !self.heap.get_list(list).items.is_empty(),
            Value::Map(map) => !self.heap.get_map(map).entries.is_empty(),
            Value::Host(host) => !matches!(self.heap.get_host(host), Host::Duration(0)),
        }
    }

    fn walk_range(&mut self, state: &mut State<'_>, dot: Operand, branch: &Branch, node: NodeId) -> Executed<Flow> {
        state.at = node;
        let outer = state.variables.len();
        let value = self.pipeline(state, dot, branch.pipe)?.value;
        let file = state.file;
        let Kind::Pipe(pipe) = file.node(branch.pipe) else { return Err(state.error("unknown node")) };
        let mark = state.variables.len();
        let items: Vec<(Operand, Operand)> = match value {
            Value::Nil => Vec::new(),
            Value::Int(count) | Value::Int64(count) if self.environment.helm.ranges_over_integers() => {
                if pipe.variables.len() > 1 {
                    return Err(state.error(format!("can't use {count} to iterate over more than one variable")));
                }
                let limit = self.environment.limits.steps;
                if count > 0 && count.unsigned_abs() > limit {
                    return Err(ExecError::limit(state.frame(), format!("a range takes more than {limit} steps")));
                }
                let item =
                    |index| if matches!(value, Value::Int64(_)) { Value::Int64(index) } else { Value::Int(index) };
                (0..count).map(|index| (Operand::INVALID, Operand::new(item(index)))).collect()
            }
            Value::List(list) => {
                let list = self.heap.get_list(list);
                let is_interface = list.kind == ListType::Any;
                let pairs = list.items.iter().enumerate();
                pairs
                    .map(|(index, item)| {
                        (Operand::new(Value::Int(index as i64)), Operand { value: *item, is_interface })
                    })
                    .collect()
            }
            Value::Map(map) => {
                self.reads.keys(&self.heap, map);
                let map = self.heap.get_map(map);
                let is_interface = map.kind.holds_interfaces();
                map.entries
                    .iter()
                    .map(|(key, item)| (Operand::new(Value::Text(*key)), Operand { value: *item, is_interface }))
                    .collect()
            }
            _ => {
                let shown = format::sprint(&self.heap, &[value]).unwrap_or_default();
                return Err(state.error(format!("range can't iterate over {}", String::from_utf8_lossy(&shown))));
            }
        };
        let is_empty = items.is_empty();
        for (index, item) in items {
            if let Value::Map(map) = value
                && let Value::Text(key) = index.value
            {
                self.reads.entry(&self.heap, map, key);
            }
            let count = pipe.variables.len();
            if pipe.is_assignment {
                let last = if count > 1 { index } else { item };
                for (variable, value) in pipe.variables.iter().zip([last, item]) {
                    Self::assign(state, *variable, value)?;
                }
            } else if count > 0 {
                state.variables[mark - 1].1 = item;
                if count > 1 {
                    state.variables[mark - 2].1 = index;
                }
            }
            let flow = self.walk(state, item, branch.list)?;
            state.variables.truncate(mark);
            if flow == Flow::Break {
                break;
            }
        }
        let mut flow = Flow::Next;
        if is_empty && let Some(otherwise) = branch.otherwise {
            flow = self.walk(state, dot, otherwise)?;
        }
        state.variables.truncate(outer);
        Ok(flow)
    }

    fn walk_template(&mut self, state: &mut State<'_>, dot: Operand, name: &str, pipe: Option<NodeId>) -> Executed<()> {
        let Some(template) = self.scope.find(name) else {
            let name = crate::quote::quote(name.as_bytes(), false);
            return Err(state.error(format!("template {name} not defined")));
        };
        if state.depth >= TEMPLATE_DEPTH {
            return Err(state.error("exceeded maximum template depth (100000)"));
        }
        let dot = match pipe {
            Some(pipe) => self.pipeline(state, dot, pipe)?,
            None => Operand::INVALID,
        };
        self.execute(&template, dot, state.depth + 1)
    }

    fn print(&mut self, state: &State<'_>, value: Operand) -> Executed<()> {
        match value.value {
            Value::Nil => self.output.extend_from_slice(b"<no value>"),
            Value::Text(text) => self.output.extend_from_slice(self.heap.bytes(text)),
            Value::Host(id)
                if let Host::Struct(structure) = self.heap.get_host(id)
                    && let Some(Value::Text(text)) = structure.string =>
            {
                self.output.extend_from_slice(self.heap.bytes(text));
            }
            value => {
                self.reads.everything(&self.heap, value);
                let printed = format::sprint(&self.heap, &[value]);
                let overflow = |_| ExecError::limit(state.frame(), "a value is too large to be printed".to_owned());
                self.output.extend_from_slice(&printed.map_err(overflow)?);
            }
        }
        Ok(())
    }

    fn assign(state: &mut State<'_>, variable: Symbol, value: Operand) -> Executed<()> {
        let Some((_, slot)) = state.variables.iter_mut().rev().find(|(known, _)| *known == variable) else {
            let name = &state.file.symbols[variable.0 as usize];
            return Err(state.error(format!("undefined variable: {name}")));
        };
        *slot = value;
        Ok(())
    }
}
