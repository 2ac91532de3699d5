//! The schema of a plan, for editors.

use anyhow::Result;

/// The schema as a file.
pub(super) fn schema() -> Result<String> {
    Ok(serde_json::to_string_pretty(&jobwright_release::plan_schema())? + "\n")
}
