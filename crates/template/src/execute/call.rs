//! Calls of functions and methods.

use super::{Executed, Machine, State};
use crate::error::ExecError;
use crate::functions::{self, Run};
use crate::methods::Method;
use crate::tree::NodeId;
use crate::value::{Operand, Type, Value};

/// What a function or a method takes.
struct Signature<'a> {
    name: &'a str,
    parameters: &'a [Type],
    is_variadic: bool,
}

impl Signature<'_> {
    fn type_of(&self, index: usize) -> Type {
        let last = self.parameters.len().saturating_sub(1);
        self.parameters.get(index.min(last)).copied().unwrap_or(Type::Any)
    }
}

impl Machine<'_> {
    pub(super) fn function(
        &mut self,
        state: &mut State<'_>,
        dot: Operand,
        name: &str,
        node: NodeId,
        arguments: Option<&[NodeId]>,
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let Some(function) = functions::find(name, self.environment.helm) else {
            let name = crate::quote::quote(name.as_bytes(), false);
            return Err(state.error(format!("{name} is not a defined function")));
        };
        let signature = Signature { name, parameters: function.parameters, is_variadic: function.is_variadic };
        let arguments = arguments.and_then(|arguments| arguments.get(1..)).unwrap_or_default();
        Self::check_count(state, &signature, arguments.len(), last)?;
        if matches!(function.run, Run::And | Run::Or) {
            return self.logic(state, dot, arguments, last, matches!(function.run, Run::Or));
        }
        let values = self.arguments(state, dot, &signature, arguments, last)?;
        if !function.is_transparent {
            for value in &values {
                self.reads.everything(&self.heap, value.value);
            }
        }
        self.step(state)?;
        let result = match function.run {
            Run::Plain(run) => run(self, &values),
            Run::Call => match arguments.first() {
                None => Err("call of nil".into()),
                Some(first) => {
                    let shown = super::evaluate::show(state, *first);
                    match values.first().map(|value| value.value) {
                        None | Some(Value::Nil) => Err("call of nil".into()),
                        Some(value) => {
                            Err(format!("non-function {shown} of type {}", self.heap.type_name(value)).into())
                        }
                    }
                }
            },
            Run::And | Run::Or => Ok(Value::Nil),
        };
        match result {
            Ok(value) => Ok(Operand::new(value)),
            Err(failure) => {
                state.at = node;
                Err(ExecError::of_call(state.frame(), name, failure))
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "it is Go's evalCall")]
    pub(super) fn method(
        &mut self,
        state: &mut State<'_>,
        dot: Operand,
        receiver: Value,
        method: &'static Method,
        node: NodeId,
        arguments: Option<&[NodeId]>,
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let signature = Signature { name: method.name, parameters: method.parameters, is_variadic: false };
        let arguments = arguments.and_then(|arguments| arguments.get(1..)).unwrap_or_default();
        Self::check_count(state, &signature, arguments.len(), last)?;
        let mut values = self.arguments(state, dot, &signature, arguments, last)?;
        self.step(state)?;
        self.reads.everything(&self.heap, receiver);
        values.insert(0, Operand::new(receiver));
        match (method.run)(self, &values) {
            Ok(value) => Ok(Operand::new(value)),
            Err(failure) => {
                state.at = node;
                Err(ExecError::of_call(state.frame(), method.name, failure))
            }
        }
    }

    fn check_count(
        state: &State<'_>,
        signature: &Signature<'_>,
        written: usize,
        last: Option<Operand>,
    ) -> Executed<()> {
        let count = written + usize::from(last.is_some());
        let wanted = signature.parameters.len();
        let name = signature.name;
        if signature.is_variadic {
            if count < wanted - 1 {
                return Err(
                    state.error(format!("wrong number of args for {name}: want at least {} got {written}", wanted - 1))
                );
            }
        } else if count != wanted {
            return Err(state.error(format!("wrong number of args for {name}: want {wanted} got {count}")));
        }
        Ok(())
    }

    fn arguments(
        &mut self,
        state: &mut State<'_>,
        dot: Operand,
        signature: &Signature<'_>,
        arguments: &[NodeId],
        last: Option<Operand>,
    ) -> Executed<Vec<Operand>> {
        let mut values = Vec::with_capacity(arguments.len() + 1);
        for (index, argument) in arguments.iter().enumerate() {
            values.push(self.argument(state, dot, Some(signature.type_of(index)), *argument)?);
        }
        if let Some(last) = last {
            let wanted = signature.type_of(values.len());
            values.push(self.validate(state, last, wanted)?);
        }
        Ok(values)
    }

    /// `and` and `or`, which evaluate no more than they have to.
    fn logic(
        &mut self,
        state: &mut State<'_>,
        dot: Operand,
        arguments: &[NodeId],
        last: Option<Operand>,
        is_or: bool,
    ) -> Executed<Operand> {
        let mut value = Operand::INVALID;
        for argument in arguments {
            value = self.argument(state, dot, Some(Type::Reflect), *argument)?;
            if self.is_true(value.value) == is_or {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }
}
