//! `/version`, `/healthz` and the like.

use serde_json::{Value, json};

/// The Kubernetes version that this API is like.
pub(crate) const VERSION: &str = "v1.34.10";

/// What the server says of its version.
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "34", "emulationMajor": "1", "emulationMinor": "34",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "33",
        "gitVersion": VERSION, "gitCommit": "drydock", "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "linux/amd64",
    })
}
