//! A Kubernetes API server in memory.

mod clock;
mod field;
mod kinds;
mod object;
mod quantity;
mod schema;
mod status;
mod validate;

pub use kinds::Kind;
pub use object::Object;
pub use status::Status;
