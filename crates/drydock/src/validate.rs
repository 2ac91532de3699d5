use crate::{field::FieldError, kinds::rules::NameRule, object::Object};
pub(crate) fn qualified_name(_: &str) -> Vec<String> {
    Vec::new()
}
pub(crate) fn label_value(_: &str) -> Vec<String> {
    Vec::new()
}
pub(crate) fn metadata(_: &Object, _: NameRule, _: bool) -> Vec<FieldError> {
    Vec::new()
}
pub(crate) fn metadata_update(_: &Object, _: &Object) -> Vec<FieldError> {
    Vec::new()
}
