use crate::arguments;
use crate::failure::Failure;
pub(super) fn run(_: &arguments::Demo) -> Result<(), Failure> {
    Ok(())
}
