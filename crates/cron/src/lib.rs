#![doc = include_str!("../README.md")]

mod missed;
mod next;
mod parse;
mod zones;

pub use missed::{Missed, TooOften};
pub use parse::{ParseError, Schedule};
pub use zones::is_zone;
