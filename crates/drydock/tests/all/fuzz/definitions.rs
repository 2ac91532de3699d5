//! CustomResourceDefinitions with arbitrary schemas and rules, and objects of the kinds they define.

use crate::fuzz::tape::Tape;
use crate::fuzz::value::{arbitrary, mutate};
use crate::fuzz::vocabulary::{integer, scalar, text};
use serde_json::{Map, Value, json};

/// Where the kind of [`definition`] is served, if it is taken.
pub const PLURAL: &str = "gadgets";
pub const GROUP: &str = "shop.example";
pub const VERSIONS: &[&str] = &["v1", "v2beta1"];

const FIELDS: &[&str] = &["spec", "status", "replicas", "items", "name", "size", "metadata", "kind", "x", "y"];

#[rustfmt::skip]
const RULES: &[&str] = &[
    "true", "self == oldSelf", "self.size > 0", "has(self.x)", "self.items.all(i, i.size() > 0)",
    "self.x.matches('^(a+)+$')", "[1,2,3].all(a, [1,2,3].all(b, [1,2,3].all(c, a + b + c > 0)))", "1 / 0 == 1",
    "self", "", "(", "size(self) < 10", "self.replicas % 0 == 1", "9223372036854775807 + 1 > 0",
    "-9223372036854775808 / -1 > 0", "self.name.substring(5, 1) == ''",
    "timestamp(self.x) > timestamp('9999-12-31T23:59:59Z')", "duration('99999999999h') > duration('1s')",
    "quantity('1Gi').isInteger()", "self.items[99] == 1", "self.metadata.name.startsWith('a')", "oldSelf.hasValue()",
    "self.map(k, self[k]) == []", "url(self.x).getHost() == 'a'", "self.items.sum() > 1", "self.x.format([1]) == ''",
    "'%s %d'.format(['a', 1]) == 'a 1'", "ip('10.0.0.1').family() == 4", "isSorted(self.items)",
    "self.name.split('').size() > 0", "self.name.replace('', 'x', -5) == ''", "self.name.charAt(99) == ''",
    "self.name.lastIndexOf('', -1) == 0", "int(self.x) > 0", "uint(-1) == 1u", "double('NaN') < 1.0",
    "bytes(self.x) == b''", "dyn(self).y.z.w", "optional.of(1).orValue(2) == 1",
];

/// A definition, right in the main.
pub fn definition(tape: &mut Tape) -> Value {
    let versions: Vec<Value> = VERSIONS[..=tape.below(2)]
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let mut version = json!({"name": name, "served": !tape.once_in(8), "storage": index == 0,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema(tape, 4), "status": schema(tape, 2)}}}});
            if tape.once_in(2) {
                version["subresources"] = json!({"status": {}, "scale": {"specReplicasPath": path(tape), "statusReplicasPath": path(tape),
                    "labelSelectorPath": path(tape)}});
            }
            if tape.once_in(2) {
                let kind = *tape.choose(&["integer", "string", "date", "number", "boolean", "x"]);
                version["additionalPrinterColumns"] = json!([{"name": text(tape), "type": kind, "jsonPath": path(tape)}]);
            }
            if tape.once_in(3) {
                version["selectableFields"] = json!([{"jsonPath": path(tape)}]);
            }
            version
        })
        .collect();
    let mut definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.{GROUP}")},
        "spec": {"group": GROUP, "scope": if tape.once_in(4) { "Cluster" } else { "Namespaced" },
            "names": {"plural": PLURAL, "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList", "shortNames": ["gg"]},
            "versions": versions}});
    if tape.once_in(3) {
        mutate(tape, &mut definition);
    }
    definition
}

fn path(tape: &mut Tape) -> String {
    #[rustfmt::skip]
    const PATHS: &[&str] = &[
        ".spec.replicas", ".status.replicas", ".status.selector", ".spec.x", ".metadata.creationTimestamp",
        ".spec.items[0].name", ".spec.items[*].x", ".spec['x']", "", ".", "..", ".spec.items[-1]",
        ".spec.items[?(@.x==1)]", ".spec.items[9999999999999999999]", "[[[",
    ];
    (*tape.choose(PATHS)).to_owned()
}

/// A schema, right in the main.
fn schema(tape: &mut Tape, depth: usize) -> Value {
    let mut schema = match tape.below(if depth == 0 { 5 } else { 9 }) {
        0 => json!({"type": "string"}),
        1 => json!({"type": "integer"}),
        2 => json!({"type": "boolean"}),
        3 => json!({"x-kubernetes-int-or-string": true}),
        4 => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        5 => json!({"type": "array", "items": schema(tape, depth - 1)}),
        6 => json!({"type": "object", "additionalProperties": schema(tape, depth - 1)}),
        _ => {
            let fields: Map<String, Value> =
                (0..tape.below(4)).map(|_| ((*tape.choose(FIELDS)).to_owned(), schema(tape, depth - 1))).collect();
            json!({"type": "object", "properties": fields})
        }
    };
    for _ in 0..tape.below(3) {
        let (name, value) = word(tape, depth);
        schema[name] = value;
    }
    schema
}

/// Something that a schema says besides its type.
fn word(tape: &mut Tape, depth: usize) -> (&'static str, Value) {
    match tape.below(16) {
        0 => ("default", arbitrary(tape, 2)),
        1 => ("nullable", json!(true)),
        2 => ("enum", json!([scalar(tape), scalar(tape)])),
        3 => ("pattern", json!(text(tape))),
        4 => ("minimum", json!(integer(tape))),
        5 => ("maxItems", json!(integer(tape))),
        6 => ("maxLength", json!(integer(tape))),
        7 => ("required", json!([tape.choose(FIELDS)])),
        8 => ("x-kubernetes-list-type", json!(tape.choose(&["set", "map", "atomic", "x"]))),
        9 => ("x-kubernetes-list-map-keys", json!([tape.choose(FIELDS)])),
        10 => ("format", json!(tape.choose(&["date-time", "int32", "byte", "uuid", "ipv4", "x", "duration"]))),
        11 => ("multipleOf", json!(integer(tape))),
        12 => ("x-kubernetes-embedded-resource", json!(true)),
        13 if depth > 0 => (*tape.choose(&["allOf", "anyOf", "oneOf"]), json!([schema(tape, depth - 1)])),
        14 if depth > 0 => ("not", schema(tape, depth - 1)),
        _ => {
            let mut rule = json!({"rule": tape.choose(RULES)});
            if tape.once_in(3) {
                rule["messageExpression"] = json!(tape.choose(RULES));
                rule["reason"] = json!("FieldValueForbidden");
                rule["fieldPath"] = json!(path(tape));
                rule["optionalOldSelf"] = json!(true);
            }
            ("x-kubernetes-validations", json!([rule]))
        }
    }
}

/// An object of the defined kind.
pub fn gadget(tape: &mut Tape) -> Value {
    let version = tape.choose(VERSIONS);
    let mut spec = Map::new();
    for name in FIELDS {
        if tape.once_in(3) {
            spec.insert((*name).to_owned(), arbitrary(tape, 3));
        }
    }
    let mut gadget = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Gadget",
        "metadata": {"name": tape.choose(crate::fuzz::vocabulary::NAMES)}, "spec": spec});
    mutate(tape, &mut gadget);
    gadget
}
