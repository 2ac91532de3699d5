//! `--set` and its kin: `a.b[0]=1,c={x,y}` (helm v3.17 `pkg/strvals`).

use super::{Values, with_floats};
use serde_json::Value;

/// The largest index of a list.
const MOST_INDEX: i64 = 65_536;
/// Names within names.
const MOST_DEPTH: usize = 30;

/// An assignment as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// `--set-json`
    Json(String),
    /// `--set`
    Typed(String),
    /// `--set-string`
    Text(String),
    /// `--set-file`, with the texts of the files that it names, in order.
    Files(String, Vec<(String, String)>),
    /// `--set-literal`
    Literal(String),
}

/// An assignment that cannot be parsed, in Helm's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AssignmentError(String);

impl Assignment {
    /// Helm applies all of one kind before those of the next.
    pub(crate) fn order(&self) -> u8 {
        match self {
            Self::Json(_) => 0,
            Self::Typed(_) => 1,
            Self::Text(_) => 2,
            Self::Files(..) => 3,
            Self::Literal(_) => 4,
        }
    }

    pub(crate) fn apply(&self, values: &mut Values) -> Result<(), AssignmentError> {
        let run = |text: &str, mode: Mode<'_>, values: &mut Values| {
            let mut parser = Parser { rest: text.chars().collect(), at: 0, mode };
            parser.parse(values)
        };
        let wrap = |flag: &str, error: String| AssignmentError(format!("failed parsing {flag} data: {error}"));
        match self {
            Self::Json(text) => run(text, Mode::Json, values)
                .map_err(|_| AssignmentError(format!("failed parsing --set-json data {text}"))),
            Self::Typed(text) => run(text, Mode::Typed, values).map_err(|error| wrap("--set", error)),
            Self::Text(text) => run(text, Mode::Text, values).map_err(|error| wrap("--set-string", error)),
            Self::Files(text, files) => {
                run(text, Mode::Files(files), values).map_err(|error| wrap("--set-file", error))
            }
            Self::Literal(text) => run(text, Mode::Literal, values).map_err(|error| wrap("--set-literal", error)),
        }
    }

    /// The files that a `--set-file` names.
    pub fn files_of(text: &str) -> Vec<String> {
        let mut parser = Parser { rest: text.chars().collect(), at: 0, mode: Mode::Text };
        let mut values = Values::new();
        if parser.parse(&mut values).is_err() {
            return Vec::new();
        }
        let mut names = Vec::new();
        let mut queue: Vec<&Value> = values.values().collect();
        while let Some(value) = queue.pop() {
            match value {
                Value::String(name) => names.push(name.clone()),
                Value::Array(items) => queue.extend(items),
                Value::Object(entries) => queue.extend(entries.values()),
                _ => {}
            }
        }
        names
    }
}

/// How what follows `=` is read.
#[derive(Clone, Copy)]
enum Mode<'a> {
    Json,
    Typed,
    Text,
    Files(&'a [(String, String)]),
    Literal,
}

struct Parser<'a> {
    rest: Vec<char>,
    at: usize,
    mode: Mode<'a>,
}

/// How a step ended: with more to read, or at the end.
type Step = Result<bool, String>;

/// Go's panic where a value is of another type.
fn conversion(value: &Value, wanted: &str) -> String {
    let kind = match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    format!("interface conversion: interface {{}} is {kind}, not {wanted}")
}

impl Parser<'_> {
    fn parse(&mut self, values: &mut Values) -> Result<(), String> {
        while self.key(values, 0)? {}
        Ok(())
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.get(self.at).copied();
        self.at += usize::from(next.is_some());
        next
    }

    /// Reads to one of these characters; `None` if the text ends before. In literals, nothing is escaped.
    fn until(&mut self, stop: &str) -> (String, Option<char>) {
        let mut text = String::new();
        while let Some(next) = self.next() {
            match next {
                _ if stop.contains(next) => return (text, Some(next)),
                '\\' if !matches!(self.mode, Mode::Literal) => match self.next() {
                    Some(escaped) => text.push(escaped),
                    None => break,
                },
                _ => text.push(next),
            }
        }
        (text, None)
    }

    /// Reads a key and what is assigned to it; returns whether there may be more.
    fn key(&mut self, values: &mut Values, depth: usize) -> Step {
        let stop = if matches!(self.mode, Mode::Literal) { "=[." } else { "=[,." };
        let (key, last) = self.until(stop);
        match last {
            None if key.is_empty() => Ok(false),
            None => Err(format!("key {key:?} has no value")),
            Some('[') => {
                let index = self.index()?;
                let list = match values.get(&key) {
                    None => Vec::new(),
                    Some(Value::Array(list)) => list.clone(),
                    Some(other) => {
                        return Err(format!("unable to parse key: {}", conversion(other, "[]interface {}")));
                    }
                };
                let (list, more) = self.item(list, index, depth)?;
                set(values, key, Value::Array(list));
                Ok(more)
            }
            Some('=') => {
                let (value, more) = self.value()?;
                set(values, key, value);
                Ok(more)
            }
            Some(',') => {
                set(values, key.clone(), Value::String(String::new()));
                Err(format!("key {key:?} has no value (cannot end with ,)"))
            }
            Some(_) => {
                if depth + 1 > MOST_DEPTH {
                    return Err(format!(
                        "value name nested level is greater than maximum supported nested level of {MOST_DEPTH}"
                    ));
                }
                let mut inner = match values.get(&key) {
                    None => Values::new(),
                    Some(Value::Object(inner)) => inner.clone(),
                    Some(other) => {
                        let message = conversion(other, "map[string]interface {}");
                        return Err(format!("unable to parse key: {message}"));
                    }
                };
                let more = self.key(&mut inner, depth + 1)?;
                if more && inner.is_empty() {
                    return Err(format!("key map {key:?} has no value"));
                }
                if !inner.is_empty() {
                    set(values, key, Value::Object(inner));
                }
                Ok(more)
            }
        }
    }

    fn index(&mut self) -> Result<i64, String> {
        let (text, last) = self.until("]");
        if last.is_none() {
            return Err("error parsing index: EOF".to_owned());
        }
        text.parse().map_err(|_| format!("error parsing index: strconv.Atoi: parsing {text:?}: invalid syntax"))
    }

    /// What follows an index.
    fn item(&mut self, list: Vec<Value>, index: i64, depth: usize) -> Result<(Vec<Value>, bool), String> {
        if index < 0 {
            return Err(format!("negative {index} index not allowed"));
        }
        let (text, last) = self.until("[.=");
        if !text.is_empty() {
            return Err(format!("unexpected data at end of array index: {text:?}"));
        }
        let present = usize::try_from(index).ok().and_then(|index| list.get(index));
        match last {
            None => Ok((list, false)),
            Some('=') => {
                let (value, more) = self.value()?;
                Ok((set_index(list, index, value)?, more))
            }
            Some('[') => {
                let next = self.index()?;
                let inner = match present {
                    None | Some(Value::Null) => Vec::new(),
                    Some(Value::Array(inner)) => inner.clone(),
                    Some(other) => return Err(format!("unable to parse key: {}", conversion(other, "[]interface {}"))),
                };
                let (inner, more) = self.item(inner, next, depth)?;
                Ok((set_index(list, index, Value::Array(inner))?, more))
            }
            Some(_) => {
                let mut inner = match present {
                    Some(Value::Object(inner)) => inner.clone(),
                    _ => Values::new(),
                };
                let more = self.key(&mut inner, depth)?;
                Ok((set_index(list, index, Value::Object(inner))?, more))
            }
        }
    }

    /// What follows `=`, and whether there may be more.
    fn value(&mut self) -> Result<(Value, bool), String> {
        match self.mode {
            Mode::Json => self.json(),
            Mode::Literal => {
                let text = self.rest[self.at..].iter().collect();
                self.at = self.rest.len();
                Ok((Value::String(text), false))
            }
            _ if self.at >= self.rest.len() => Ok((Value::String(String::new()), false)),
            _ if self.rest[self.at] == '{' => {
                self.at += 1;
                self.list().map(|list| (Value::Array(list), true))
            }
            _ => {
                let (text, last) = self.until(",");
                Ok((self.typed(text)?, last.is_some()))
            }
        }
    }

    fn list(&mut self) -> Result<Vec<Value>, String> {
        let mut list = Vec::new();
        loop {
            let (text, last) = self.until(",}");
            match last {
                None => return Err("list must terminate with '}'".to_owned()),
                Some(',') => list.push(self.typed(text)?),
                Some(_) => {
                    if self.rest.get(self.at) == Some(&',') {
                        self.at += 1;
                    }
                    list.push(self.typed(text)?);
                    return Ok(list);
                }
            }
        }
    }

    fn json(&mut self) -> Result<(Value, bool), String> {
        if self.is_empty_value() {
            return Ok((Value::Null, true));
        }
        let text: String = self.rest[self.at..].iter().collect();
        let mut reader = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let value = reader.next().and_then(Result::ok).ok_or("the JSON is invalid")?;
        self.at += text[..reader.byte_offset()].chars().count();
        self.is_empty_value();
        Ok((with_floats(value), true))
    }

    /// Skips space, and the comma after it.
    fn is_empty_value(&mut self) -> bool {
        while let Some(next) = self.next() {
            if next == ',' {
                return true;
            }
            if !next.is_whitespace() {
                self.at -= 1;
                return false;
            }
        }
        true
    }

    fn typed(&self, text: String) -> Result<Value, String> {
        match self.mode {
            Mode::Typed => Ok(typed(text)),
            Mode::Files(files) => {
                let found = files.iter().find(|(name, _)| *name == text);
                let (_, content) = found.ok_or_else(|| format!("open {text}: no such file or directory"))?;
                Ok(Value::String(content.clone()))
            }
            Mode::Text | Mode::Json | Mode::Literal => Ok(Value::String(text)),
        }
    }
}

fn typed(text: String) -> Value {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    match () {
        () if is("true") => Value::Bool(true),
        () if is("false") => Value::Bool(false),
        () if is("null") => Value::Null,
        () if text == "0" => Value::from(0_i64),
        () if text.starts_with('0') => Value::String(text),
        () => match text.parse::<i64>() {
            Ok(number) => Value::from(number),
            Err(_) => Value::String(text),
        },
    }
}

fn set(values: &mut Values, key: String, value: Value) {
    if !key.is_empty() {
        values.insert(key, value);
    }
}

fn set_index(mut list: Vec<Value>, index: i64, value: Value) -> Result<Vec<Value>, String> {
    if index > MOST_INDEX {
        return Err(format!("index of {index} is greater than maximum supported index of {MOST_INDEX}"));
    }
    let index = usize::try_from(index).map_err(|_| format!("negative {index} index not allowed"))?;
    if list.len() <= index {
        list.resize(index + 1, Value::Null);
    }
    list[index] = value;
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn set_all(assignments: &[Assignment]) -> Result<Value, String> {
        let mut values = Values::new();
        for assignment in assignments {
            assignment.apply(&mut values).map_err(|error| error.to_string())?;
        }
        Ok(Value::Object(values))
    }

    #[test]
    fn assignments_are_read_as_in_helm() {
        for (text, expected) in [
            (
                "a=1,b=x,c=true,d=null,e=0,f=007,g=1.5",
                json!({"a": 1, "b": "x", "c": true, "d": null, "e": 0, "f": "007", "g": "1.5"}),
            ),
            ("a.b.c=1,a.b.d=2", json!({"a": {"b": {"c": 1, "d": 2}}})),
            ("a={x,1,true},b={}", json!({"a": ["x", 1, true], "b": [""]})),
            ("a[0]=1,a[2].b=2,a[3][1]=x", json!({"a": [1, null, {"b": 2}, [null, "x"]]})),
            (r"a\.b=1,c=x\,y", json!({"a.b": 1, "c": "x,y"})),
            ("a=", json!({"a": ""})),
            ("a=,b=2", json!({"a": "", "b": 2})),
            ("a=x=y", json!({"a": "x=y"})),
        ] {
            assert_eq!(set_all(&[Assignment::Typed(text.to_owned())]), Ok(expected), "{text}");
        }
        let text = |text: &str| Assignment::Text(text.to_owned());
        assert_eq!(set_all(&[text("a=1,b=true")]), Ok(json!({"a": "1", "b": "true"})));
        let literal = Assignment::Literal("a.b=x,y=[1]\\".to_owned());
        assert_eq!(set_all(&[literal]), Ok(json!({"a": {"b": "x,y=[1]\\"}})));
        let given = Assignment::Json(r#"a={"b":[1,null]},c=,d=2"#.to_owned());
        assert_eq!(set_all(&[given]), Ok(json!({"a": {"b": [1.0, null]}, "c": null, "d": 2.0})));
        let files = Assignment::Files("a=x.txt".to_owned(), vec![("x.txt".to_owned(), "text\n".to_owned())]);
        assert_eq!(set_all(&[files]), Ok(json!({"a": "text\n"})));
    }

    #[test]
    fn what_is_wrong_is_said_in_the_words_of_helm() {
        for (text, message) in [
            ("a", "key \"a\" has no value"),
            ("a,b=1", "key \"a\" has no value (cannot end with ,)"),
            ("a={1", "list must terminate with '}'"),
            ("a[x]=1", "error parsing index: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("a[-1]=1", "negative -1 index not allowed"),
            ("a[70000]=1", "index of 70000 is greater than maximum supported index of 65536"),
            (
                "a=1,a.b=2",
                "unable to parse key: interface conversion: interface {} is int64, not map[string]interface {}",
            ),
        ] {
            let found = set_all(&[Assignment::Typed(text.to_owned())]);
            assert_eq!(found, Err(format!("failed parsing --set data: {message}")), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_assignment_panics(text in "[a-c\\[\\]{}=,.\\\\0-9\": -]{0,24}") {
            for assignment in [
                Assignment::Typed(text.clone()), Assignment::Text(text.clone()), Assignment::Json(text.clone()),
                Assignment::Literal(text.clone()), Assignment::Files(text.clone(), Vec::new()),
            ] {
                let _ = set_all(&[assignment]);
            }
            Assignment::files_of(&text);
        }
    }
}
