//! A Kubernetes API server in memory.

mod access;
mod admission;
mod answers;
mod body;
mod bootstrap;
mod clock;
mod cluster;
mod containers;
mod faults;
mod field;
#[cfg(feature = "http")]
mod http;
mod kinds;
mod life;
mod object;
mod options;
mod patch;
mod protobuf;
mod quantity;
mod request;
mod schema;
mod selector;
mod server;
mod status;
mod store;
#[cfg(test)]
mod testing;
mod validate;
mod verbs;

pub use access::User;
pub use clock::Clock;
pub use containers::script::{Behaviour, Match, Script, ScriptError};
pub use containers::witness::Started;
pub use faults::{Call, Fault, Faults, Faulty, FaultyBody, Rule, When};
#[cfg(feature = "http")]
pub use http::{Http, ServeError, Serving};
pub use kinds::{Kind, built_in as kinds};
pub use object::Object;
pub use request::Verb;
pub use server::{Body, Builder, Drydock};
pub use status::Status;
