//! Label and field selectors: read as the API server reads them (apimachinery v0.34 `labels`, `fields`).

mod field;
mod label;

pub(crate) use field::FieldSelector;
pub(crate) use label::LabelSelector;
