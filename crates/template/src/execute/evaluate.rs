//! Pipelines, commands, fields and arguments.

use super::{Executed, Machine, State};
use crate::host::Host;
use crate::methods;
use crate::number::Ideal;
use crate::tree::{Kind, NodeId};
use crate::value::{ListType, MapType, Operand, Type, Value};

impl Machine<'_> {
    pub(super) fn pipeline(&mut self, state: &mut State<'_>, dot: Operand, node: NodeId) -> Executed<Operand> {
        state.at = node;
        let file = state.file;
        let Kind::Pipe(pipe) = file.node(node) else { return Err(state.error("unknown node")) };
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(state, dot, *command, value)?.concrete());
        }
        let value = value.unwrap_or(Operand::INVALID);
        for variable in &pipe.variables {
            if pipe.is_assignment {
                Self::assign(state, *variable, value)?;
            } else {
                state.variables.push((*variable, value));
            }
        }
        Ok(value)
    }

    fn command(
        &mut self,
        state: &mut State<'_>,
        dot: Operand,
        node: NodeId,
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let file = state.file;
        let Kind::Command(arguments) = file.node(node) else { return Err(state.error("unknown node")) };
        let first = arguments[0];
        match file.node(first) {
            Kind::Field(names) => {
                state.at = first;
                return self.fields(state, dot, dot, first, names, Some(arguments), last);
            }
            Kind::Chain(inner, names) => {
                state.at = first;
                if matches!(file.node(*inner), Kind::Nil) {
                    return Err(state.error(format!("indirection through explicit nil in {}", show(state, first))));
                }
                let receiver = self.untyped_argument(state, dot, *inner)?;
                return self.fields(state, dot, receiver, first, names, Some(arguments), last);
            }
            Kind::Identifier(name) => {
                state.at = first;
                return self.function(state, dot, name, node, Some(arguments), last);
            }
            Kind::Pipe(_) => {
                not_a_function(state, arguments, last)?;
                return self.pipeline(state, dot, first);
            }
            Kind::Variable(..) => return self.variable(state, dot, first, Some(arguments), last),
            _ => {}
        }
        state.at = first;
        not_a_function(state, arguments, last)?;
        match file.node(first) {
            Kind::Bool(value) => Ok(Operand::new(Value::Bool(*value))),
            Kind::Dot => Ok(dot),
            Kind::Nil => Err(state.error("nil is not a command")),
            Kind::Number(_) | Kind::String(..) => self.constant(state, first),
            _ => Err(state.error(format!("can't evaluate command {}", show(state, first)))),
        }
    }

    /// A number or a text where no type is asked for.
    fn constant(&mut self, state: &mut State<'_>, node: NodeId) -> Executed<Operand> {
        state.at = node;
        let value = match state.file.node(node) {
            Kind::Number(number) => match number.ideal() {
                Ideal::Int(number) => Value::Int(number),
                Ideal::Float(number) => Value::Float(number),
                Ideal::Overflow => return Err(state.error(format!("{} overflows int", number.text))),
            },
            Kind::String(_, text) => self.heap.string(text),
            _ => return Err(state.error("unknown node")),
        };
        Ok(Operand::new(value))
    }

    fn variable(
        &mut self,
        state: &mut State<'_>,
        dot: Operand,
        node: NodeId,
        arguments: Option<&[NodeId]>,
        last: Option<Operand>,
    ) -> Executed<Operand> {
        state.at = node;
        let file = state.file;
        let Kind::Variable(symbol, names) = file.node(node) else { return Err(state.error("unknown node")) };
        let found = state.variables.iter().rev().find(|(known, _)| known == symbol).map(|(_, value)| *value);
        let Some(value) = found else {
            return Err(state.error(format!("undefined variable: {}", file.symbols[symbol.0 as usize])));
        };
        if names.is_empty() {
            not_a_function(state, arguments.unwrap_or_default(), last)?;
            return Ok(value);
        }
        self.fields(state, dot, value, node, names, arguments, last)
    }

    #[expect(clippy::too_many_arguments, reason = "it is Go's evalFieldChain")]
    fn fields(
        &mut self,
        state: &mut State<'_>,
        dot: Operand,
        receiver: Operand,
        node: NodeId,
        names: &[Box<str>],
        arguments: Option<&[NodeId]>,
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let Some((final_name, names)) = names.split_last() else { return Ok(receiver) };
        let mut receiver = receiver;
        for name in names {
            receiver = self.field(state, dot, receiver, node, name, None, None)?;
        }
        self.field(state, dot, receiver, node, final_name, arguments, last)
    }

    #[expect(clippy::too_many_arguments, reason = "it is Go's evalField")]
    fn field(
        &mut self,
        state: &mut State<'_>,
        dot: Operand,
        receiver: Operand,
        node: NodeId,
        name: &str,
        arguments: Option<&[NodeId]>,
        last: Option<Operand>,
    ) -> Executed<Operand> {
        if receiver.is_invalid() {
            return Ok(Operand::INVALID);
        }
        let type_of = |machine: &Self| {
            if receiver.is_interface { "interface {}".to_owned() } else { machine.heap.type_name(receiver.value) }
        };
        if receiver.value == Value::Nil {
            return Err(state.error(format!("nil pointer evaluating {}.{name}", type_of(self))));
        }
        if let Some(method) = methods::find(&self.heap, receiver.value, name) {
            return self.method(state, dot, receiver.value, method, node, arguments, last);
        }
        let has_arguments = arguments.is_some_and(|arguments| arguments.len() > 1) || last.is_some();
        match receiver.value {
            Value::Map(map) => {
                if has_arguments {
                    return Err(state.error(format!("{name} is not a method but has arguments")));
                }
                let found = self.heap.get(map, name.as_bytes());
                self.reads.lookup(&self.heap, map, name.as_bytes(), found);
                let kind = self.heap.get_map(map).kind;
                Ok(found.map_or_else(
                    || self.zero_of(kind),
                    |value| Operand { value, is_interface: kind.holds_interfaces() },
                ))
            }
            Value::Host(id) => match self.heap.get_host(id) {
                Host::Struct(structure) if let Some(field) = structure.field(name) => {
                    let operand = Operand { value: field.value, is_interface: field.is_interface };
                    if has_arguments {
                        return Err(state.error(format!("{name} has arguments but cannot be invoked as function")));
                    }
                    Ok(operand)
                }
                _ => Err(state.error(format!("can't evaluate field {name} in type {}", type_of(self)))),
            },
            _ => Err(state.error(format!("can't evaluate field {name} in type {}", type_of(self)))),
        }
    }

    /// What a map has where it has nothing, with Helm's `missingkey=zero`.
    pub(crate) fn zero_of(&mut self, kind: MapType) -> Operand {
        match kind {
            MapType::Any | MapType::Values(_) => Operand::interface(Value::Nil),
            MapType::Texts => Operand::new(self.heap.string("")),
            MapType::Files(_) => Operand::new(self.heap.nil_list(ListType::Bytes)),
        }
    }

    fn untyped_argument(&mut self, state: &mut State<'_>, dot: Operand, node: NodeId) -> Executed<Operand> {
        self.argument(state, dot, None, node)
    }

    /// An argument, of a type if one is asked for.
    pub(super) fn argument(
        &mut self,
        state: &mut State<'_>,
        dot: Operand,
        wanted: Option<Type>,
        node: NodeId,
    ) -> Executed<Operand> {
        state.at = node;
        let file = state.file;
        let value = match file.node(node) {
            Kind::Dot => dot,
            Kind::Nil => {
                return match wanted {
                    Some(wanted) if wanted.can_be_nil() => Ok(self.nil_of(wanted)),
                    Some(wanted) => Err(state.error(format!("cannot assign nil to {wanted}"))),
                    None => Ok(Operand::INVALID),
                };
            }
            Kind::Field(names) => self.fields(state, dot, dot, node, names, Some(&[node]), None)?,
            Kind::Variable(..) => self.variable(state, dot, node, None, None)?,
            Kind::Pipe(_) => self.pipeline(state, dot, node)?,
            Kind::Identifier(name) => self.function(state, dot, name, node, None, None)?,
            Kind::Chain(inner, names) => {
                state.at = node;
                if matches!(file.node(*inner), Kind::Nil) {
                    return Err(state.error(format!("indirection through explicit nil in {}", show(state, node))));
                }
                let receiver = self.untyped_argument(state, dot, *inner)?;
                self.fields(state, dot, receiver, node, names, None, None)?
            }
            _ => return self.constant_argument(state, wanted.unwrap_or(Type::Any), node),
        };
        match wanted {
            Some(wanted) => self.validate(state, value, wanted),
            None => Ok(value),
        }
    }

    fn constant_argument(&mut self, state: &mut State<'_>, wanted: Type, node: NodeId) -> Executed<Operand> {
        let file = state.file;
        let found = |state: &State<'_>, expected: &str| {
            state.error(format!("expected {expected}; found {}", show(state, node)))
        };
        let value = match (wanted, file.node(node)) {
            (Type::Any | Type::Reflect, Kind::Bool(value)) => Value::Bool(*value),
            (Type::Any | Type::Reflect, _) => return self.constant(state, node),
            (Type::Bool, Kind::Bool(value)) => Value::Bool(*value),
            (Type::Bool, _) => return Err(found(state, "bool")),
            (Type::Float, Kind::Number(number)) if let Some(float) = number.float => Value::Float(float),
            (Type::Float, _) => return Err(found(state, "float")),
            (Type::Int, Kind::Number(number)) if let Some(integer) = number.integer => Value::Int(integer),
            (Type::Duration, Kind::Number(number)) if let Some(integer) = number.integer => Value::Int64(integer),
            (Type::Int | Type::Duration, _) => return Err(found(state, "integer")),
            (Type::Uint32, Kind::Number(number)) if let Some(number) = number.unsigned => {
                Value::Uint64(number & 0xffff_ffff)
            }
            (Type::Uint32, _) => return Err(found(state, "unsigned integer")),
            (Type::Text, Kind::String(_, text)) => self.heap.string(text),
            (Type::Text, _) => return Err(found(state, "string")),
            _ => return Err(state.error(format!("can't handle {} for arg of type {wanted}", show(state, node)))),
        };
        Ok(Operand::new(value))
    }

    /// The nil value of a type that has one.
    fn nil_of(&mut self, wanted: Type) -> Operand {
        match wanted {
            Type::Map => Operand::new(self.heap.nil_map()),
            Type::List => Operand::new(self.heap.nil_list(ListType::Any)),
            Type::Any => Operand::interface(Value::Nil),
            _ => Operand::INVALID,
        }
    }

    /// A value as one of a type, or the error that it is of another one.
    pub(super) fn validate(&mut self, state: &State<'_>, value: Operand, wanted: Type) -> Executed<Operand> {
        if value.is_invalid() {
            if wanted.can_be_nil() {
                return Ok(self.nil_of(wanted));
            }
            return Err(state.error(format!("invalid value; expected {wanted}")));
        }
        let fits = match (wanted, value.value) {
            (Type::Any | Type::Reflect, _)
            | (Type::Bool, Value::Bool(_))
            | (Type::Int, Value::Int(_))
            | (Type::Float, Value::Float(_))
            | (Type::Text, Value::Text(_)) => true,
            (Type::Map, Value::Map(map)) => matches!(self.heap.get_map(map).kind, MapType::Any | MapType::Values(_)),
            (Type::List, Value::List(list)) => self.heap.get_list(list).kind == ListType::Any,
            (wanted, Value::Host(host)) => match (wanted, self.heap.get_host(host)) {
                (Type::Time, Host::Time(_)) | (Type::Duration, Host::Duration(_)) | (Type::Semver, Host::Semver(_)) => {
                    true
                }
                (Type::Certificate, Host::Struct(structure)) => structure.type_name == "sprig.certificate",
                _ => false,
            },
            _ => false,
        };
        if fits {
            return Ok(if wanted == Type::Reflect {
                value
            } else {
                Operand { is_interface: wanted == Type::Any, ..value }
            });
        }
        let got = if value.value == Value::Nil { "interface {}".to_owned() } else { self.heap.type_name(value.value) };
        Err(state.error(format!("wrong type for value; expected {wanted}; got {got}")))
    }
}

fn not_a_function(state: &State<'_>, arguments: &[NodeId], last: Option<Operand>) -> Executed<()> {
    if arguments.len() > 1 || last.is_some() {
        let first = arguments.first().map(|first| show(state, *first)).unwrap_or_default();
        return Err(state.error(format!("can't give argument to non-function {first}")));
    }
    Ok(())
}

pub(super) fn show(state: &State<'_>, node: NodeId) -> String {
    let mut text = String::new();
    state.file.show(node, &mut text);
    text
}
