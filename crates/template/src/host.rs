//! Values with fields and methods: what Helm hands to templates besides maps, and what some functions return.

use crate::semver::Version;
use crate::time::Time;
use crate::value::Value;

/// A value with fields or methods.
#[derive(Clone, Debug)]
pub(crate) enum Host {
    Struct(Struct),
    /// `time.Time`
    Time(Time),
    /// `time.Duration`, in nanoseconds.
    Duration(i64),
    /// `*semver.Version`
    Semver(Box<Version>),
}

/// A Go struct.
#[derive(Clone, Debug)]
pub struct Struct {
    /// Its type, such as `chartutil.KubeVersion`.
    pub type_name: &'static str,
    /// Whether it is handed over by pointer.
    pub is_pointer: bool,
    /// Its fields, in order.
    pub fields: Vec<Field>,
    /// What its `String` method returns, if its pointer has one.
    pub string: Option<Value>,
}

/// A field of a [`Struct`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in Go.
    pub name: &'static str,
    /// Its name in JSON; empty if it is not written.
    pub json: &'static str,
    /// Whether JSON leaves it out when it is empty.
    pub omit_empty: bool,
    /// Its value.
    pub value: Value,
    /// Whether its Go type is an interface.
    pub is_interface: bool,
}

impl Struct {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Host {
    /// The name of its Go type.
    pub(crate) fn type_name(&self) -> String {
        match self {
            Self::Struct(structure) if structure.is_pointer => format!("*{}", structure.type_name),
            Self::Struct(structure) => structure.type_name.to_owned(),
            Self::Time(_) => "time.Time".to_owned(),
            Self::Duration(_) => "time.Duration".to_owned(),
            Self::Semver(_) => "*semver.Version".to_owned(),
        }
    }

    /// The name of its kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Struct(Struct { is_pointer: true, .. }) | Self::Semver(_) => "ptr",
            Self::Struct(_) | Self::Time(_) => "struct",
            Self::Duration(_) => "int64",
        }
    }

    /// What its `String` method returns, where its type, and not only the pointer to it, has one.
    pub(crate) fn string(&self) -> Option<String> {
        match self {
            Self::Struct(_) => None,
            Self::Time(time) => Some(time.to_string()),
            Self::Duration(nanoseconds) => Some(crate::time::duration(*nanoseconds)),
            Self::Semver(version) => Some(version.to_string()),
        }
    }
}
