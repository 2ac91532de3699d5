//! What the API server refuses in the metadata of every object, and how names, labels, selectors and other texts
//! must look (apimachinery v0.34 `api/validation` and `util/validation`).

mod at;
pub(crate) mod diff;
pub(crate) mod format;
pub(crate) mod ip;
pub(crate) mod metadata;
mod printed;
pub(crate) mod selector;

pub(crate) use at::{At, Errors, IMMUTABLE};
pub(crate) use metadata::{
    all_invalid, annotations, labels, metadata, metadata_update, names, standard_finalizer, standard_finalizers,
};
pub(crate) use printed::{pretty, printed, printed_list};
