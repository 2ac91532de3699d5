//! What the rules of a schema cost on a value, at most. A real server counts while it evaluates and stops when a budget
//! is used up (apiserver v0.34 `apis/cel/config.go`); the evaluator here cannot be stopped, so it is estimated before.

use kube_cel::CompiledSchema;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

/// What all rules may cost together.
const BUDGET: f64 = 10_000_000.0;
/// What it costs to make a part of a text or list.
const MADE: f64 = 0.1;
/// What it costs to look at one. Most comparisons end early.
const SEEN: f64 = 0.001;

/// The place at which the budget runs out, if it does.
pub(super) fn find_overrun(rules: &CompiledSchema, value: &Value, old: Option<&Value>) -> Option<String> {
    let mut purse = Purse { left: BUDGET, breadth_of_old: old.map_or(0.0, breadth) };
    purse.spend(rules, value, "")
}

struct Purse {
    left: f64,
    breadth_of_old: f64,
}

impl Purse {
    fn spend(&mut self, rules: &CompiledSchema, value: &Value, path: &str) -> Option<String> {
        if !rules.validations.is_empty() {
            let breadth = breadth(value).max(self.breadth_of_old);
            for rule in rules.validations.iter().flatten() {
                let programs = std::iter::once(&rule.program).chain(&rule.message_program);
                self.left -=
                    programs.map(|program| Scope::new(breadth).estimate(program.expression()).cost).sum::<f64>();
            }
            if self.left < 0.0 {
                return Some(path.to_owned());
            }
        }
        let branches = rules.all_of.iter().chain(&rules.one_of).chain(&rules.any_of);
        for branch in branches {
            if let Some(place) = self.spend(branch, value, path) {
                return Some(place);
            }
        }
        match value {
            Value::Object(fields) => fields.iter().find_map(|(name, value)| {
                let below = rules.properties.get(name).or(rules.additional_properties.as_deref())?;
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                self.spend(below, value, &path)
            }),
            Value::Array(items) => {
                let below = rules.items.as_deref()?;
                items.iter().enumerate().find_map(|(index, item)| self.spend(below, item, &format!("{path}[{index}]")))
            }
            _ => None,
        }
    }
}

/// The length of the longest text, list or map in a value.
#[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
fn breadth(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.len() as f64,
        Value::Array(items) => items.iter().map(breadth).fold(items.len() as f64, f64::max),
        Value::Object(fields) => fields.values().map(breadth).fold(fields.len() as f64, f64::max),
        _ => 1.0,
    }
}

/// What an expression costs, and the [`breadth`] of what it gives.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    cost: f64,
    breadth: f64,
}

impl Estimate {
    fn of_breadth(breadth: f64) -> Self {
        Self { cost: 1.0, breadth }
    }

    /// What it takes to have several things, each in its turn.
    fn together(parts: impl Iterator<Item = Self>) -> Self {
        parts.fold(Self::default(), |all, part| Self {
            cost: all.cost + part.cost,
            breadth: all.breadth.max(part.breadth),
        })
    }
}

/// How broad variables are.
struct Scope<'e> {
    variables: Vec<(&'e str, f64)>,
    /// How broad `self` and `oldSelf` are.
    given: f64,
}

impl<'e> Scope<'e> {
    fn new(given: f64) -> Self {
        Self { variables: Vec::new(), given }
    }

    #[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
    fn estimate(&mut self, expression: &'e IdedExpr) -> Estimate {
        match &expression.expr {
            Expr::Literal(LiteralValue::String(text)) => Estimate::of_breadth(text.inner().len() as f64),
            Expr::Literal(_) | Expr::Unspecified => Estimate::of_breadth(1.0),
            Expr::Ident(name) => {
                let known = self.variables.iter().rev().find(|(variable, _)| variable == name);
                Estimate::of_breadth(known.map_or(self.given, |(_, breadth)| *breadth))
            }
            Expr::Select(select) => {
                let operand = self.estimate(&select.operand);
                Estimate { cost: operand.cost + 1.0, ..operand }
            }
            Expr::List(list) => {
                let items = Estimate::together(list.elements.iter().map(|item| self.estimate(item)));
                Estimate { cost: items.cost + 1.0, breadth: items.breadth.max(list.elements.len() as f64) }
            }
            Expr::Map(map) => self.estimate_entries(map.entries.iter().map(|entry| &entry.expr)),
            Expr::Struct(object) => self.estimate_entries(object.entries.iter().map(|entry| &entry.expr)),
            Expr::Call(call) => self.estimate_call(call),
            Expr::Comprehension(comprehension) => self.estimate_loop(comprehension),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
    fn estimate_entries(&mut self, entries: impl ExactSizeIterator<Item = &'e EntryExpr>) -> Estimate {
        let length = entries.len() as f64;
        let all = Estimate::together(entries.map(|entry| match entry {
            EntryExpr::MapEntry(entry) => {
                Estimate::together([self.estimate(&entry.key), self.estimate(&entry.value)].into_iter())
            }
            EntryExpr::StructField(field) => self.estimate(&field.value),
        }));
        Estimate { cost: all.cost + 1.0, breadth: all.breadth.max(length) }
    }

    fn estimate_call(&mut self, call: &'e CallExpr) -> Estimate {
        let parts: Vec<Estimate> =
            call.target.as_deref().into_iter().chain(&call.args).map(|part| self.estimate(part)).collect();
        let costs: f64 = parts.iter().map(|part| part.cost).sum();
        let sum: f64 = parts.iter().map(|part| part.breadth).sum();
        let product: f64 = parts.iter().map(|part| part.breadth + 1.0).product();
        let (work, breadth) = match call.func_name.as_str() {
            // What can be longer than all that goes into it.
            "replace" | "join" | "format" => (product * MADE, product),
            // What looks at each item of one list for each of the other.
            "sets.contains" | "sets.equivalent" | "sets.intersects" | "contains" | "intersects" | "equivalent"
            | "distinct" => (product * SEEN, sum),
            "_+_" | "split" | "flatten" => (sum * MADE, sum),
            _ => (sum * SEEN, sum),
        };
        Estimate { cost: costs + 1.0 + work, breadth }
    }

    /// A macro: `all`, `exists`, `map`, `filter`.
    fn estimate_loop(&mut self, comprehension: &'e ComprehensionExpr) -> Estimate {
        let range = self.estimate(&comprehension.iter_range);
        let start = self.estimate(&comprehension.accu_init);
        let outside = self.variables.len();
        self.variables.push((&comprehension.iter_var, range.breadth));
        self.variables.extend(comprehension.iter_var2.as_deref().map(|variable| (variable, range.breadth)));
        // A list is collected with an item for each time around; what is no list is counted or found out.
        let collects = matches!(comprehension.accu_init.expr, Expr::List(_) | Expr::Map(_));
        let collected = if collects { range.breadth.max(start.breadth) } else { start.breadth };
        self.variables.push((&comprehension.accu_var, collected));
        let around = self.estimate(&comprehension.loop_cond).cost;
        let step = self.estimate(&comprehension.loop_step);
        let result = self.estimate(&comprehension.result);
        self.variables.truncate(outside);
        Estimate {
            cost: range.cost + start.cost + (range.breadth + 1.0) * (around + step.cost) + result.cost,
            breadth: step.breadth.max(result.breadth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_cel::compile_schema;
    use serde_json::json;

    fn overrun(rule: &str, list: &Value) -> Option<String> {
        let items = json!({"type": "array", "x-kubernetes-validations": [{"rule": rule}]});
        let schema =
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"items": items}}}});
        find_overrun(&compile_schema(&schema), &json!({"spec": {"items": list}}), None)
    }

    #[test]
    fn what_people_write_is_within_the_budget() {
        let list: Value = (0..500).map(|number| json!({"name": format!("item-{number}")})).collect();
        for rule in [
            "self.all(x, x.name.startsWith('item-') && x.name.size() < 63)",
            "self.all(x, self.exists_one(y, x.name == y.name))",
            "self.map(x, x.name).filter(name, name != '').size() == self.size()",
            "self == oldSelf",
        ] {
            assert_eq!(overrun(rule, &list), None, "{rule}");
        }
    }

    #[test]
    fn what_would_take_forever_is_not() {
        let list: Value = (0..500).map(Value::from).collect();
        let place = Some("spec.items".to_owned());
        assert_eq!(overrun("self.all(x, self.all(y, self.all(z, x + y + z > 0)))", &list), place);
        let doubled = format!("[self]{}.size() > 0", ".map(x, x + x)".repeat(20));
        assert_eq!(overrun(&doubled, &list), place);
        let replaced = format!("'aaaaaaaaaa'{} == ''", ".replace('', 'aaaaaaaaaa')".repeat(10));
        assert_eq!(overrun(&replaced, &list), place);
    }
}
