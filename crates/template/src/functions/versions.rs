//! Semantic versions.

use super::{Function, function, string};
use crate::host::Host;
use crate::semver::{Constraint, Version};
use crate::value::{Type, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    function("semver", &[Type::Text], |machine, arguments| {
        let version = Version::parse(&string(machine, arguments, 0))?;
        Ok(machine.heap.host(Host::Semver(Box::new(version))))
    }),
    function("semverCompare", &[Type::Text, Type::Text], |machine, arguments| {
        let constraint = Constraint::parse(&string(machine, arguments, 0))?;
        let version = Version::parse(&string(machine, arguments, 1))?;
        Ok(Value::Bool(constraint.takes(&version)))
    }),
];
