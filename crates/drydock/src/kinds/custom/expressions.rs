//! The rules of a schema, `x-kubernetes-validations`: which are too much to be read, and what they say of an object.

use super::cost;
use crate::field::{FieldError, Path};
use kube_cel::{CompiledSchema, ValidationError, ValidationErrors, Validator, compile_schema};
use serde_json::{Value, json};

/// How deep an expression may be nested. The parser reads no deeper, and says so by a panic.
const MOST_LEVELS: usize = 90;
/// How many steps an expression may have. Each takes stack.
const MOST_STEPS: usize = 1_500;
/// What is read and evaluated on the stack of the caller. In a debug build, a step takes up to 70 KiB of it.
const FEW_STEPS: usize = 12;
/// Enough for the most steps.
const STACK: usize = 256 << 20;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The rules of a schema, read.
pub(super) struct Expressions {
    compiled: CompiledSchema,
    /// None of them takes much stack.
    are_small: bool,
}

impl Expressions {
    pub(super) fn new(schema: &Value) -> Self {
        let are_small = all_are_small(schema);
        let compiled = with_stack(are_small, || compile_schema(schema)).unwrap_or_else(|| compile_schema(&json!({})));
        Self { compiled, are_small }
    }

    /// What the rules say against an object.
    pub(super) fn check(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        if let Some(place) = with_stack(self.are_small, || cost::find_overrun(&self.compiled, value, old)).flatten() {
            let path = if place.is_empty() { Path::root() } else { Path::new(&place) };
            return vec![FieldError::invalid(&path, shown(value, &place), OUT_OF_BUDGET)];
        }
        let Some(checked) =
            with_stack(self.are_small, || Validator::new().validate_compiled(&self.compiled, value, old))
        else {
            return vec![FieldError::invalid(
                &Path::root(),
                json!("object"),
                "rule evaluation error: out of resources",
            )];
        };
        let failed = checked.err().map(ValidationErrors::into_vec).unwrap_or_default();
        failed.into_iter().map(|error| field_error(value, error)).collect()
    }
}

fn field_error(value: &Value, error: ValidationError) -> FieldError {
    let path = if error.field_path.is_empty() { Path::root() } else { Path::new(&error.field_path) };
    match error.reason.as_deref() {
        Some("FieldValueRequired") => FieldError::required(&path, error.message),
        Some("FieldValueForbidden") => FieldError::forbidden(&path, error.message),
        Some("FieldValueDuplicate") => FieldError::duplicate(&path, shown(value, &error.field_path)),
        _ => FieldError::invalid(&path, shown(value, &error.field_path), error.message),
    }
}

/// The value that a rule was about, as the server shows it: scalars as they are, others by their type.
fn shown(value: &Value, path: &str) -> Value {
    let found = path.split('.').try_fold(value, |value, field| value.get(field));
    match found {
        Some(Value::Array(_)) => json!("array"),
        Some(scalar @ (Value::String(_) | Value::Number(_) | Value::Bool(_))) => scalar.clone(),
        _ => json!("object"),
    }
}

/// Does something that takes a lot of stack on a stack of its own. None if there is none to be had.
fn with_stack<T: Send>(is_small: bool, work: impl FnOnce() -> T + Send) -> Option<T> {
    if is_small {
        return Some(work());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok()?;
        thread.join().ok()
    })
}

fn all_are_small(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().all(|(name, below)| match below {
            Value::String(text) if matches!(name.as_str(), "rule" | "messageExpression") => {
                Extent::of(text).steps <= FEW_STEPS
            }
            below => all_are_small(below),
        }),
        Value::Array(items) => items.iter().all(all_are_small),
        _ => true,
    }
}

/// Why an expression is not even read, in the words of the real parser.
pub(crate) fn refuse_expression(text: &str) -> Option<String> {
    let extent = Extent::of(text);
    let is_too_much = extent.levels > MOST_LEVELS || extent.steps > MOST_STEPS;
    is_too_much.then(|| "compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: 250".to_owned())
}

/// How large the tree of an expression gets.
struct Extent {
    /// Brackets and conditions inside each other.
    levels: usize,
    /// Operators, brackets and fields, wherever they are.
    steps: usize,
}

impl Extent {
    fn of(text: &str) -> Self {
        let (mut deepest, mut level, mut conditions, mut steps) = (0, 0_usize, 0, 0);
        let mut quote = None;
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match (quote, character) {
                (Some(_), '\\') => {
                    characters.next();
                }
                (Some(open), _) if character == open => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(character),
                (None, '(' | '[' | '{') => {
                    level += 1;
                    steps += 1;
                    deepest = deepest.max(level);
                }
                (None, ')' | ']' | '}') => level = level.saturating_sub(1),
                (None, '?') => {
                    conditions += 1;
                    steps += 1;
                }
                // `&&` and `||` are balanced and `!` and `-` folded, but for those the parser has other words.
                (None, '.' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=') => steps += 1,
                (None, 'i') if characters.as_str().starts_with("n ") => steps += 1,
                (None, _) => {}
            }
        }
        Self { levels: deepest + conditions, steps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_out_of_measure_is_refused() {
        let alternatives = vec!["self.kind == 'x'"; 400].join(" || ");
        for rule in
            ["self.x == oldSelf.x", "'((((((' + \"\\\"[[[\" != ''", "has(self.a) ? self.a > 1 : true", &alternatives]
        {
            assert_eq!(refuse_expression(rule), None, "{rule}");
        }
        let nested = format!("{}1{}", "(".repeat(91), ")".repeat(91));
        for rule in [nested, "true ? true : ".repeat(91), " + 1".repeat(1_501), ".a".repeat(1_501)] {
            assert!(refuse_expression(&rule).is_some(), "{rule}");
        }
    }

    #[test]
    fn the_largest_expressions_are_evaluated() {
        let nested = format!("{}true{}", "(".repeat(90), ")".repeat(90));
        for rule in
            [format!("1{} == 1500", " + 1".repeat(1_498)), nested, format!("{}true", "true ? true : ".repeat(90))]
        {
            assert_eq!(refuse_expression(&rule), None);
            let schema = json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
            let errors = Expressions::new(&schema).check(&json!("x"), None);
            assert_eq!(errors.len(), usize::from(rule.ends_with("1500")), "{errors:?}");
        }
    }
}
