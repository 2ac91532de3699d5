#![doc = include_str!("../README.md")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "numbers are converted and compared as Go does it"
)]
#![allow(
    clippy::unnecessary_wraps,
    clippy::unnecessary_box_returns,
    clippy::single_match_else,
    clippy::struct_excessive_bools,
    reason = "functions of templates share one signature, errors are boxed wherever they are made, flags are Go's"
)]

mod crypto;
mod environment;
mod error;
mod execute;
mod float;
mod format;
mod functions;
mod glob;
mod heap;
mod host;
mod json;
mod lex;
mod methods;
mod number;
mod parse;
mod program;
mod quote;
mod reads;
mod semver;
mod time;
mod toml;
mod tree;
mod utf8;
mod value;
mod yaml;

pub use environment::{Entropy, Environment, Helm, Keys, LIMITS, Limits, Lookup, NoCluster};
pub use error::{Cause, ExecError, Frame};
pub use functions::names as function_names;
pub use heap::Heap;
pub use host::{Field, Struct};
pub use json::Numbers;
pub use parse::ParseError;
pub use program::{Program, Render};
pub use reads::{FileReads, Found, Path};
pub use value::{HostId, ListId, ListType, MapId, MapType, Text, Value};
