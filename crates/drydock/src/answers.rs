//! What clients get to see: objects as they asked for them, and documents about the server.

mod columns;
pub(crate) mod discovery;
pub(crate) mod encode;
pub(crate) mod health;
pub(crate) mod openapi;
pub(crate) mod table;
