//! Kinds that a CustomResourceDefinition defines.

use crate::schema::Schema;

/// What a CustomResourceDefinition says of one version of its kind.
pub(crate) struct CustomKind {
    pub(crate) schema: Schema,
}
