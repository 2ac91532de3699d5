//! What Helm adds to Sprig.

use super::encoding::read_json;
use super::{Function, Returned, bytes, function, string, text, value};
use crate::environment::Helm;
use crate::error::{ExecError, Failure};
use crate::execute::Machine;
use crate::json::Numbers;
use crate::program::{ROOT, Scope, Template, parse_as, strip_no_value};
use crate::value::{MapType, Operand, Type, Value};
use crate::{toml, yaml};
use jobwright_yaml::emit::Flavor;
use std::rc::Rc;
use std::sync::Arc;

const ANY: &[Type] = &[Type::Any];
const TEXT: &[Type] = &[Type::Text];

/// How often a name may be included within itself.
const INCLUDES: usize = 1000;

pub(super) const FUNCTIONS: &[Function] = &[
    function("include", &[Type::Text, Type::Any], include).transparent(),
    function("tpl", &[Type::Text, Type::Any], tpl).transparent(),
    function("required", &[Type::Text, Type::Any], |machine, arguments| {
        let value = value(arguments, 1);
        let is_missing = match value {
            Value::Nil => true,
            Value::Text(text) => text.len() == 0,
            _ => false,
        };
        if is_missing { Err(Failure::Refused(string(machine, arguments, 0))) } else { Ok(value) }
    })
    .transparent(),
    function("fail", TEXT, |machine, arguments| Err(Failure::Refused(string(machine, arguments, 0)))),
    function("lookup", &[Type::Text, Type::Text, Type::Text, Type::Text], |machine, arguments| {
        machine.reads.looked_up = true;
        let [version, kind, namespace, name] = [0, 1, 2, 3].map(|index| string(machine, arguments, index));
        let found = machine.environment.lookup.lookup(&version, &kind, &namespace, &name);
        match found {
            Some(object) => Ok(machine.heap.import(&object, Numbers::Integers)),
            None => Ok(Value::Map(machine.heap.map(MapType::Any))),
        }
    }),
    function("toYaml", ANY, |machine, arguments| quietly(machine, arguments, Flavor::V2)),
    function("toYamlPretty", ANY, |machine, arguments| quietly(machine, arguments, Flavor::V3))
        .since(Helm::new(3, 17, 0)),
    function("mustToYaml", ANY, |machine, arguments| {
        let printed = yaml::write(&machine.heap, value(arguments, 0), Flavor::V2)?;
        Ok(machine.heap.string(printed.strip_suffix('\n').unwrap_or(&printed)))
    })
    .since(Helm::new(4, 0, 0)),
    function("fromYaml", TEXT, |machine, arguments| {
        let text = bytes(&machine.heap, arguments, 0).to_vec();
        match yaml::read(&text) {
            Ok(serde_json::Value::Null) => Ok(Value::Map(machine.heap.map(MapType::Any))),
            Ok(json @ serde_json::Value::Object(_)) => Ok(machine.heap.import(&json, Numbers::Floats)),
            Ok(other) => error_map(
                machine,
                &format!(
                    "error unmarshaling JSON: while decoding JSON: {}",
                    mismatch(&other, "map[string]interface {}")
                ),
            ),
            Err(error) => error_map(machine, &error),
        }
    }),
    function("fromYamlArray", TEXT, |machine, arguments| {
        let text = bytes(&machine.heap, arguments, 0).to_vec();
        let read = match yaml::read(&text) {
            Ok(json @ serde_json::Value::Array(_)) => Ok(json),
            Ok(serde_json::Value::Null) => Ok(serde_json::Value::Array(Vec::new())),
            Ok(other) => {
                Err(format!("error unmarshaling JSON: while decoding JSON: {}", mismatch(&other, "[]interface {}")))
            }
            Err(error) => Err(error),
        };
        array(machine, read)
    }),
    function("toJson", ANY, |machine, arguments| {
        let style = crate::json::Style { escapes_html: true, is_pretty: false };
        match crate::json::write(&machine.heap, value(arguments, 0), style) {
            Ok(text) => Ok(machine.heap.string(text)),
            Err(Failure::Message(_)) => Ok(machine.heap.string("")),
            Err(failure) => Err(failure),
        }
    }),
    function("fromJson", TEXT, |machine, arguments| {
        let text = bytes(&machine.heap, arguments, 0).to_vec();
        match read_json(&text) {
            Ok(json @ serde_json::Value::Object(_)) => Ok(machine.heap.import(&json, Numbers::Floats)),
            Ok(serde_json::Value::Null) => Ok(machine.heap.nil_map()),
            Ok(other) => error_map(machine, &mismatch(&other, "map[string]interface {}")),
            Err(error) => error_map(machine, &error),
        }
    }),
    function("fromJsonArray", TEXT, |machine, arguments| {
        let text = bytes(&machine.heap, arguments, 0).to_vec();
        let read = match read_json(&text) {
            Ok(json @ serde_json::Value::Array(_)) => Ok(json),
            Ok(serde_json::Value::Null) => return Ok(machine.heap.nil_list(crate::value::ListType::Any)),
            Ok(other) => Err(mismatch(&other, "[]interface {}")),
            Err(error) => Err(error),
        };
        array(machine, read)
    }),
    function("toToml", ANY, |machine, arguments| {
        let written = match toml::write(&machine.heap, value(arguments, 0)) {
            Ok(text) | Err(Failure::Message(text)) => text,
            Err(failure) => return Err(failure),
        };
        Ok(machine.heap.string(written))
    }),
    function("mustToToml", ANY, |machine, arguments| {
        let written = toml::write(&machine.heap, value(arguments, 0))?;
        Ok(machine.heap.string(written))
    })
    .since(Helm::new(4, 2, 0)),
    function("fromToml", TEXT, |machine, arguments| {
        let text = string(machine, arguments, 0);
        match toml::read(&mut machine.heap, &text) {
            Ok(map) => Ok(map),
            Err(error) => error_map(machine, &error),
        }
    }),
];

/// Go's message for a document of another kind than is asked for.
fn mismatch(json: &serde_json::Value, wanted: &str) -> String {
    let kind = match json {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "bool",
        serde_json::Value::Number(_) => "number",
        serde_json::Value::String(_) => "string",
        serde_json::Value::Array(_) => "array",
        serde_json::Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {kind} into Go value of type {wanted}")
}

fn error_map(machine: &mut Machine<'_>, error: &str) -> Returned {
    let map = machine.heap.map(MapType::Any);
    let error = machine.heap.string(error);
    machine.heap.set(map, "Error", error);
    Ok(Value::Map(map))
}

fn array(machine: &mut Machine<'_>, read: Result<serde_json::Value, String>) -> Returned {
    match read {
        Ok(json) => Ok(machine.heap.import(&json, Numbers::Floats)),
        Err(error) => {
            let error = machine.heap.string(error);
            Ok(machine.heap.any_list(vec![error]))
        }
    }
}

/// Prints YAML; what cannot be printed is empty.
fn quietly(machine: &mut Machine<'_>, arguments: &[Operand], flavor: Flavor) -> Returned {
    match yaml::write(&machine.heap, value(arguments, 0), flavor) {
        Ok(printed) => Ok(machine.heap.string(printed.strip_suffix('\n').unwrap_or(&printed))),
        Err(Failure::Message(_)) => Ok(machine.heap.string("")),
        Err(failure) => Err(failure),
    }
}

fn include(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let name = string(machine, arguments, 0);
    let depth = machine.included.entry(name.clone()).or_default();
    if *depth > INCLUDES {
        return Err(
            format!("rendering template has a nested reference name: {name}: unable to execute template").into()
        );
    }
    *depth += 1;
    let printed = match machine.scope.find(&name) {
        Some(template) => machine.render(&template, Operand::new(value(arguments, 1)), 0),
        None => {
            let quoted = crate::quote::quote(name.as_bytes(), false);
            Err(ExecError::bare(format!("template: no template {quoted} associated with template {ROOT:?}")))
        }
    };
    if let Some(depth) = machine.included.get_mut(&name) {
        *depth -= 1;
    }
    let printed = printed.map_err(|error| Failure::Nested(String::new(), error))?;
    Ok(machine.heap.string(printed))
}

fn tpl(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    let source = text(arguments, 0);
    let quoted = |machine: &Machine<'_>| crate::quote::quote(machine.heap.bytes(source), false);
    let limit = machine.environment.limits.tpl;
    if machine.tpl_depth >= limit {
        return Err(Failure::Limit(format!("tpl is nested more than {limit} deep")));
    }
    let file = match machine.parsed.get(machine.heap.bytes(source)) {
        Some(file) => Arc::clone(file),
        None => {
            let text = machine.heap.bytes(source).to_vec();
            let file = parse_as(machine.environment.helm, ROOT, &text)
                .map_err(|error| format!("cannot parse template {}: {error}", quoted(machine)))?;
            machine.parsed.insert(text, Arc::clone(&file));
            file
        }
    };
    let mut scope = Scope::within(Rc::clone(&machine.scope));
    scope.add(&file);
    let Some(root) = file.templates.get(ROOT).copied() else { return Ok(machine.heap.string("")) };
    let template = Template { name: Arc::from(ROOT), file, root };
    let outer = std::mem::replace(&mut machine.scope, Rc::new(scope));
    machine.tpl_depth += 1;
    let printed = machine.render(&template, Operand::new(value(arguments, 1)), 0);
    machine.tpl_depth -= 1;
    machine.scope = outer;
    match printed {
        Ok(printed) => Ok(machine.heap.string(strip_no_value(printed))),
        Err(error) => {
            let before = format!("error during tpl function execution for {}: ", quoted(machine));
            Err(Failure::Nested(before, error))
        }
    }
}
