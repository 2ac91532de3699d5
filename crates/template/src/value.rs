//! What templates compute with: Go's values, as far as a template can tell them apart.

use std::fmt;

/// A text on the heap: bytes, usually UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    pub(crate) start: u32,
    pub(crate) length: u32,
}

impl Text {
    /// A part of a text.
    pub(crate) fn slice(self, start: usize, end: usize) -> Self {
        let end = end.min(self.length as usize);
        let start = start.min(end);
        Self { start: self.start + start as u32, length: (end - start) as u32 }
    }

    pub(crate) fn len(self) -> usize {
        self.length as usize
    }
}

/// A list on the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListId(pub(crate) u32);

/// A map on the heap, shared by all who have its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MapId(pub(crate) u32);

/// Something on the heap that has fields or methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub(crate) u32);

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Nothing: what an interface holds that holds nothing.
    Nil,
    /// Yes or no.
    Bool(bool),
    /// `int`: a number written in a template, or a length.
    Int(i64),
    /// `int64`: what arithmetic yields, and `--set`.
    Int64(i64),
    /// `uint64`
    Uint64(u64),
    /// `uint8`: a byte of a text.
    Byte(u8),
    /// `float64`: a number from YAML or JSON.
    Float(f64),
    /// `string`
    Text(Text),
    /// A slice.
    List(ListId),
    /// A map.
    Map(MapId),
    /// Something with fields or methods.
    Host(HostId),
}

/// The Go type of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// `[]interface {}`
    Any,
    /// `[]string`
    Texts,
    /// `[]int`
    Ints,
    /// `[]uint8`
    Bytes,
    /// `[][]interface {}`
    Lists,
    /// `[]map[string]interface {}`
    Maps,
    /// Any other, by its name.
    Named(&'static str),
}

impl ListType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "[]interface {}",
            Self::Texts => "[]string",
            Self::Ints => "[]int",
            Self::Bytes => "[]uint8",
            Self::Lists => "[][]interface {}",
            Self::Maps => "[]map[string]interface {}",
            Self::Named(name) => name,
        }
    }
}

/// The Go type of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// `map[string]interface {}`
    Any,
    /// `map[string]string`
    Texts,
    /// `chartutil.Values`, or what it is called in another Helm.
    Values(&'static str),
    /// `engine.files`: files by their paths.
    Files(&'static str),
}

impl MapType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "map[string]interface {}",
            Self::Texts => "map[string]string",
            Self::Values(name) | Self::Files(name) => name,
        }
    }

    /// Whether its values are interfaces, so that fields of what is missing are errors.
    pub(crate) fn holds_interfaces(self) -> bool {
        matches!(self, Self::Any | Self::Values(_))
    }
}

/// A value as the evaluator has it in hand.
///
/// What was taken from a map or a list of interfaces is an interface still, which error messages and fields of nothing
/// depend on. Nothing that is no interface is Go's invalid value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Operand {
    pub(crate) value: Value,
    pub(crate) is_interface: bool,
}

impl Operand {
    /// Nothing at all.
    pub(crate) const INVALID: Self = Self { value: Value::Nil, is_interface: false };

    pub(crate) fn new(value: Value) -> Self {
        Self { value, is_interface: false }
    }

    pub(crate) fn interface(value: Value) -> Self {
        Self { value, is_interface: true }
    }

    /// What a pipeline passes on: the value within an interface.
    pub(crate) fn concrete(self) -> Self {
        Self::new(self.value)
    }

    pub(crate) fn is_invalid(self) -> bool {
        self.value == Value::Nil && !self.is_interface
    }
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// `interface {}`
    Any,
    /// `reflect.Value`: what Go's own functions take.
    Reflect,
    Bool,
    Int,
    Uint32,
    Float,
    Text,
    /// `map[string]interface {}`
    Map,
    /// `[]interface {}`
    List,
    Time,
    Duration,
    Semver,
    Certificate,
}

impl Type {
    pub(crate) fn can_be_nil(self) -> bool {
        matches!(self, Self::Any | Self::Reflect | Self::Map | Self::List | Self::Semver)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Any => "interface {}",
            Self::Reflect => "reflect.Value",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint32 => "uint32",
            Self::Float => "float64",
            Self::Text => "string",
            Self::Map => "map[string]interface {}",
            Self::List => "[]interface {}",
            Self::Time => "time.Time",
            Self::Duration => "time.Duration",
            Self::Semver => "*semver.Version",
            Self::Certificate => "sprig.certificate",
        })
    }
}
