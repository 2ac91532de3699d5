//! Values as text, as go-yaml prints them: Helm's `toYaml` (through `sigs.k8s.io/yaml`, which is go-yaml v2) and
//! `toYamlPretty` (go-yaml v3).
//!
//! Keys are in go-yaml's order (`a2` before `a10`), text that would be read as something else is in double quotes, text
//! that cannot stand alone in single quotes, text of several lines is a block.

mod order;
mod scalar;

use serde_json::Value;
use std::borrow::Cow;

/// What is printed.
#[derive(Clone, Debug, PartialEq)]
pub enum Data<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A whole number beyond what is signed.
    Unsigned(u64),
    /// Any other number, printed as Go's `%g`.
    Float(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// Bytes that are no text, printed as `!!binary`.
    Bytes(Cow<'a, [u8]>),
    /// Values in order.
    List(Vec<Data<'a>>),
    /// Values by key, in any order.
    Map(Vec<(Cow<'a, str>, Data<'a>)>),
}

/// Whose output it is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// go-yaml v2: lists in maps are not indented, and long lines are folded at 80 columns.
    V2,
    /// go-yaml v3 with an indent of 2: lists in maps are indented, and no line is folded.
    V3,
}

/// Prints a value, with a line break at the end.
pub fn emit(data: &Data<'_>, flavor: Flavor) -> String {
    let mut emitter =
        Emitter { flavor, output: String::new(), column: 0, indent: -1, whitespace: true, indention: true };
    emitter.node(data, Context::default());
    emitter.write_indent_at(0);
    emitter.output
}

/// Prints JSON as `sigs.k8s.io/yaml` does: whole numbers have no exponent.
pub fn emit_json(json: &Value) -> String {
    emit(&Data::from(json), Flavor::V2)
}

impl<'a> From<&'a Value> for Data<'a> {
    fn from(json: &'a Value) -> Self {
        match json {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(number), ..) => Self::Integer(number),
                (_, Some(number), _) => Self::Unsigned(number),
                (.., float) => Self::from_json_float(float.unwrap_or_default()),
            },
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(entries) => {
                Self::Map(entries.iter().map(|(key, item)| (Cow::Borrowed(key.as_str()), Self::from(item))).collect())
            }
        }
    }
}

impl Data<'_> {
    /// A float on its way through JSON: what is whole and not huge is written without a point, and read as an integer.
    pub fn from_json_float(number: f64) -> Self {
        let size = number.abs();
        if number.fract() != 0.0 || size >= 1e21 || !number.is_finite() {
            return Self::Float(number);
        }
        let text = format!("{number}");
        match (text.parse::<i64>(), text.parse::<u64>()) {
            (Ok(number), _) => Self::Integer(number),
            (_, Ok(number)) => Self::Unsigned(number),
            _ => Self::Float(number),
        }
    }
}

/// Where a node stands.
#[derive(Clone, Copy, Default)]
struct Context {
    is_item: bool,
    is_in_map: bool,
    is_simple_key: bool,
}

struct Emitter {
    flavor: Flavor,
    output: String,
    column: usize,
    indent: i32,
    /// Whether the last thing written was space.
    whitespace: bool,
    /// Whether the line has nothing but indentation and `-`, `?` and `:` so far.
    indention: bool,
}

const INDENT: i32 = 2;

impl Emitter {
    fn put(&mut self, character: char) {
        self.output.push(character);
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.output.push('\n');
        self.column = 0;
    }

    fn write_indent(&mut self) {
        self.write_indent_at(usize::try_from(self.indent).unwrap_or(0));
    }

    fn write_indent_at(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, text: &str, needs_whitespace: bool, is_indention: bool) {
        if needs_whitespace && !self.whitespace {
            self.put(' ');
        }
        for character in text.chars() {
            self.put(character);
        }
        self.whitespace = false;
        self.indention = self.indention && is_indention;
    }

    /// The indentation one level deeper.
    fn deeper(&self, is_flow: bool, is_indentless: bool, context: Context) -> i32 {
        match self.flavor {
            _ if self.indent < 0 => i32::from(is_flow) * INDENT,
            _ if is_indentless => self.indent,
            Flavor::V3 if !context.is_item => INDENT * ((self.indent + INDENT) / INDENT),
            Flavor::V2 | Flavor::V3 => self.indent + INDENT,
        }
    }

    fn node(&mut self, data: &Data<'_>, context: Context) {
        let outer = self.indent;
        match data {
            Data::List(items) if items.is_empty() => self.indicator("[]", true, false),
            Data::Map(entries) if entries.is_empty() => self.indicator("{}", true, false),
            Data::List(items) => {
                let is_indentless = self.flavor == Flavor::V2 && context.is_in_map && !self.indention;
                self.indent = self.deeper(false, is_indentless, context);
                for item in items {
                    self.write_indent();
                    self.indicator("-", true, true);
                    self.node(item, Context { is_item: true, ..Context::default() });
                }
            }
            Data::Map(entries) => {
                self.indent = self.deeper(false, false, context);
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_by(|(one, _), (other, _)| order::compare(one, other));
                for (key, item) in entries {
                    self.write_indent();
                    self.entry(key, item);
                }
            }
            _ => {
                self.indent = self.deeper(true, false, context);
                self.scalar(data, context);
            }
        }
        self.indent = outer;
    }

    fn entry(&mut self, key: &str, item: &Data<'_>) {
        let in_map = Context { is_in_map: true, ..Context::default() };
        let key_data = Data::Text(Cow::Borrowed(key));
        if key.len() <= 128 && !key.contains(scalar::is_break) {
            self.node(&key_data, Context { is_simple_key: true, ..in_map });
            self.indicator(":", false, false);
        } else {
            self.indicator("?", true, true);
            self.node(&key_data, in_map);
            self.write_indent();
            self.indicator(":", true, true);
        }
        self.node(item, in_map);
    }
}

#[cfg(test)]
mod tests;
