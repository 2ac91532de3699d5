//! Cargo, from a program that Cargo may have started itself.

use std::path::Path;
use std::process::Command;

/// The sources that this was built from.
pub fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Cargo at the top of the workspace, as if somebody had typed it. What Cargo tells the programs it runs about their own
/// package would make it build some packages anew, and all that stand on them.
pub fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(workspace());
    for (name, _) in std::env::vars_os() {
        let known = name.to_string_lossy();
        if known.starts_with("CARGO_PKG_") || known.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}
