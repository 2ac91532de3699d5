//! Schemas: what fields an object has, of which type, and how patches merge them.
//!
//! Built-in kinds and custom resources have the same form here, so that decoding, patches and server-side
//! apply are written once. A schema is an arena of nodes; a [`View`] points at one node of it.

pub(crate) mod decode;
pub(crate) mod definitions;
pub(crate) mod facts;
pub(crate) mod syntax;

use facts::Merge;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// The schema of one kind in one version.
#[derive(Debug)]
pub(crate) struct Schema {
    nodes: Vec<Node>,
    root: NodeId,
    /// Decoded by Go types: a value of another type is refused while reading, and what is empty is dropped.
    pub(crate) typed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) shape: Shape,
    /// What is filled in where the value is absent (custom resources only).
    pub(crate) default: Option<Value>,
    /// Null is a value (custom resources only).
    pub(crate) nullable: bool,
}

/// What a value looks like.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Anything.
    Any,
    Text,
    Flag,
    Integer(Width),
    Number,
    /// Base64.
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    List {
        items: NodeId,
        keys: ListKeys,
    },
    Map {
        values: NodeId,
        atomic: bool,
    },
    Struct(Struct),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Int32,
    Int64,
}

/// How server-side apply tells the items of a list apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListKeys {
    /// Not at all: the list is one value.
    Atomic,
    /// By their values.
    Values,
    /// By these fields, each with what it is when absent.
    Fields(Vec<(String, Option<Value>)>),
}

#[derive(Debug)]
pub(crate) struct Struct {
    /// The name of the definition, for built-in types: `io.k8s.api.batch.v1.JobSpec`.
    pub(crate) definition: Option<String>,
    pub(crate) fields: BTreeMap<String, Field>,
    /// The names of those that are written even when empty.
    pub(crate) kept: Vec<String>,
    /// Owned as a whole by server-side apply.
    pub(crate) atomic: bool,
    /// Fields that the schema does not know are kept.
    pub(crate) open: bool,
    /// A whole object with `apiVersion`, `kind` and `metadata` (custom resources only).
    pub(crate) embedded: bool,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) node: NodeId,
    /// Zero is a value and is kept.
    pub(crate) pointer: bool,
    /// Written even when empty.
    pub(crate) keep_empty: bool,
    pub(crate) merge: Merge,
}

impl Schema {
    /// The schema of a built-in type, by the name of its definition.
    pub(crate) fn built_in(definition: &str) -> Self {
        let mut import = Import::new(definitions::all());
        let root = import.definition(definition);
        Self { nodes: import.nodes, root, typed: true }
    }

    /// The schema of a custom resource: what its definition says of everything but the object's envelope.
    pub(crate) fn custom(schema: &Value) -> Self {
        let mut import = Import::new(definitions::all());
        let root = import.value(schema);
        import.add_envelope(root);
        Self { nodes: import.nodes, root, typed: false }
    }

    pub(crate) fn root(&self) -> View<'_> {
        View { schema: self, id: self.root }
    }
}

/// A node of a schema.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    schema: &'a Schema,
    id: NodeId,
}

impl<'a> View<'a> {
    pub(crate) fn node(self) -> &'a Node {
        &self.schema.nodes[self.id.0 as usize]
    }

    pub(crate) fn shape(self) -> &'a Shape {
        &self.node().shape
    }

    pub(crate) fn go_to(self, id: NodeId) -> Self {
        Self { schema: self.schema, id }
    }

    pub(crate) fn is_typed(self) -> bool {
        self.schema.typed
    }

    /// The entry of this name in a struct or map.
    pub(crate) fn entry(self, name: &str) -> Option<Self> {
        match self.shape() {
            Shape::Struct(Struct { fields, .. }) => fields.get(name).map(|field| self.go_to(field.node)),
            Shape::Map { values, .. } => Some(self.go_to(*values)),
            _ => None,
        }
    }

    /// The items of a list.
    pub(crate) fn items(self) -> Option<Self> {
        match self.shape() {
            Shape::List { items, .. } => Some(self.go_to(*items)),
            _ => None,
        }
    }

    /// The field of this name in a struct.
    pub(crate) fn field(self, name: &str) -> Option<&'a Field> {
        match self.shape() {
            Shape::Struct(Struct { fields, .. }) => fields.get(name),
            _ => None,
        }
    }
}

/// Reads OpenAPI into nodes.
struct Import<'a> {
    definitions: &'a Map<String, Value>,
    nodes: Vec<Node>,
    known: HashMap<&'a str, NodeId>,
}

impl<'a> Import<'a> {
    fn new(definitions: &'a Map<String, Value>) -> Self {
        Self { definitions, nodes: Vec::new(), known: HashMap::new() }
    }

    fn add(&mut self, shape: Shape) -> NodeId {
        self.nodes.push(Node { shape, default: None, nullable: false });
        let index = self.nodes.len() - 1;
        NodeId(u32::try_from(index).unwrap_or(u32::MAX))
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    /// A definition, once; types that contain themselves find the node that is being made.
    fn definition(&mut self, name: &str) -> NodeId {
        let Some((name, value)) = self.definitions.get_key_value(name) else { return self.add(Shape::Any) };
        if let Some(id) = self.known.get(name.as_str()) {
            return *id;
        }
        let id = self.add(Shape::Any);
        self.known.insert(name, id);
        let short = definitions::short_name(name);
        let shape = match short {
            "api.resource.Quantity" => Shape::Quantity,
            "util.intstr.IntOrString" => Shape::IntOrString,
            "meta.v1.Time" => Shape::Time,
            "meta.v1.MicroTime" => Shape::MicroTime,
            "meta.v1.FieldsV1"
            | "pkg.runtime.RawExtension"
            | "apiextensions.v1.JSON"
            | "apiextensions.v1.JSONSchemaPropsOrArray"
            | "apiextensions.v1.JSONSchemaPropsOrBool"
            | "apiextensions.v1.JSONSchemaPropsOrStringArray" => Shape::Any,
            _ => self.shape(value, Some(name)),
        };
        self.node_mut(id).shape = shape;
        id
    }

    fn value(&mut self, schema: &Value) -> NodeId {
        let wrapped = schema.get("allOf").and_then(|parts| parts.get(0)).and_then(|part| part.get("$ref"));
        if let Some(reference) = schema.get("$ref").or(wrapped).and_then(Value::as_str) {
            let name = reference.strip_prefix(definitions::REFERENCE_PREFIX).unwrap_or(reference);
            return self.definition(name);
        }
        let shape = self.shape(schema, None);
        let id = self.add(shape);
        let node = self.node_mut(id);
        node.default = schema.get("default").cloned();
        node.nullable = flag(schema, "nullable");
        id
    }

    fn shape(&mut self, schema: &Value, definition: Option<&str>) -> Shape {
        if flag(schema, "x-kubernetes-int-or-string") {
            return Shape::IntOrString;
        }
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
            "string" if format == "byte" && definition.is_none() => Shape::Bytes,
            "string" => Shape::Text,
            "boolean" => Shape::Flag,
            "integer" if format == "int32" => Shape::Integer(Width::Int32),
            "integer" => Shape::Integer(Width::Int64),
            "number" => Shape::Number,
            "array" => self.list(schema),
            "object" => self.object(schema, definition),
            _ if schema.get("properties").is_some() => self.object(schema, definition),
            _ => Shape::Any,
        }
    }

    fn list(&mut self, schema: &Value) -> Shape {
        let items = match schema.get("items") {
            Some(items) => self.value(items),
            None => self.add(Shape::Any),
        };
        let keys = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => ListKeys::Values,
            Some("map") => {
                let names = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                let names = names.into_iter().flatten().filter_map(Value::as_str);
                ListKeys::Fields(names.map(|name| (name.to_owned(), self.key_default(items, name))).collect())
            }
            _ => ListKeys::Atomic,
        };
        Shape::List { items, keys }
    }

    /// What a key of a list's items is when absent. Of the built-in types only `protocol` has one.
    fn key_default(&self, items: NodeId, key: &str) -> Option<Value> {
        let Shape::Struct(Struct { fields, definition, .. }) = &self.nodes[items.0 as usize].shape else { return None };
        if definition.is_some() {
            return (key == "protocol").then(|| Value::from("TCP"));
        }
        self.nodes[fields.get(key)?.node.0 as usize].default.clone()
    }

    fn object(&mut self, schema: &Value, definition: Option<&str>) -> Shape {
        let properties = schema.get("properties").and_then(Value::as_object);
        let atomic = schema.get("x-kubernetes-map-type").is_some_and(|kind| kind == "atomic");
        match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) if properties.is_none() => {
                return Shape::Map { values: self.value(values), atomic };
            }
            Some(Value::Bool(true)) if properties.is_none() => {
                return Shape::Map { values: self.add(Shape::Any), atomic };
            }
            _ => {}
        }
        let type_facts = definition.and_then(|name| facts::type_named(definitions::short_name(name)));
        let mut fields = BTreeMap::new();
        for (name, property) in properties.into_iter().flatten() {
            let node = self.value(property);
            let facts = type_facts.and_then(|facts| facts.field(name));
            fields.insert(
                name.clone(),
                Field {
                    node,
                    pointer: facts.is_some_and(|facts| facts.pointer),
                    keep_empty: facts.is_some_and(|facts| facts.keep_empty),
                    merge: facts.map(|facts| facts.merge.clone()).unwrap_or_default(),
                },
            );
        }
        Shape::Struct(Struct {
            definition: definition.map(str::to_owned),
            kept: fields.iter().filter(|(_, field)| field.keep_empty).map(|(name, _)| name.clone()).collect(),
            fields,
            atomic,
            open: flag(schema, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(schema, "x-kubernetes-embedded-resource"),
        })
    }

    /// `apiVersion`, `kind` and `metadata`, which a custom resource has whatever its schema says.
    fn add_envelope(&mut self, root: NodeId) {
        if !matches!(self.nodes[root.0 as usize].shape, Shape::Struct(_)) {
            self.node_mut(root).shape = Shape::Struct(Struct {
                definition: None,
                fields: BTreeMap::new(),
                kept: Vec::new(),
                atomic: false,
                open: true,
                embedded: false,
            });
        }
        let text = self.add(Shape::Text);
        let metadata = self.definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        if let Shape::Struct(object) = &mut self.node_mut(root).shape {
            for (name, node) in [("apiVersion", text), ("kind", text), ("metadata", metadata)] {
                let field = Field { node, pointer: false, keep_empty: false, merge: Merge::default() };
                object.fields.insert(name.to_owned(), field);
            }
        }
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at<'a>(schema: &'a Schema, path: &[&str]) -> View<'a> {
        path.iter().fold(schema.root(), |view, name| match *name {
            "[]" => view.items().unwrap(),
            name => view.entry(name).unwrap(),
        })
    }

    #[test]
    fn a_job_is_known_to_its_leaves() {
        let job = Schema::built_in("io.k8s.api.batch.v1.Job");
        assert!(matches!(at(&job, &["spec", "backoffLimit"]).shape(), Shape::Integer(Width::Int32)));
        let containers = at(&job, &["spec", "template", "spec", "containers"]);
        let Shape::List { keys, .. } = containers.shape() else { panic!("a list") };
        assert_eq!(*keys, ListKeys::Fields(vec![("name".to_owned(), None)]));
        let ports = at(&job, &["spec", "template", "spec", "containers", "[]", "ports"]);
        let Shape::List { keys, .. } = ports.shape() else { panic!("a list") };
        let protocol = ("protocol".to_owned(), Some(json!("TCP")));
        assert_eq!(*keys, ListKeys::Fields(vec![("containerPort".to_owned(), None), protocol]));
        let requests = at(&job, &["spec", "template", "spec", "containers", "[]", "resources", "requests", "cpu"]);
        assert!(matches!(requests.shape(), Shape::Quantity));
        assert!(job.root().entry("spec").unwrap().field("backoffLimit").unwrap().pointer);
    }

    #[test]
    fn a_type_that_contains_itself_is_one_node() {
        let definition = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
        let schema = Schema::built_in(definition);
        let properties = at(&schema, &["spec", "versions", "[]", "schema", "openAPIV3Schema"]);
        let nested = properties.entry("properties").unwrap().entry("spec").unwrap();
        assert_eq!(nested.id, properties.id);
    }

    #[test]
    fn a_custom_resource_has_an_envelope() {
        let schema = Schema::custom(&json!({
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}},
        }));
        assert_eq!(at(&schema, &["spec", "size"]).node().default, Some(json!(3)));
        assert!(matches!(at(&schema, &["metadata", "labels", "x"]).shape(), Shape::Text));
        let open = Schema::custom(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
        assert!(matches!(open.root().shape(), Shape::Struct(Struct { open: true, .. })));
    }
}
