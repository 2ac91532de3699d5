//! Programs out of Python wheels.

use super::Effort;
use super::work::Log;
use crate::error::Error;
use std::path::Path;
use std::process::Command;

/// Unpacks a wheel and keeps the program in its `bin`.
pub(super) fn install(
    requirement: &str,
    program: &str,
    work: &Path,
    whole: &Path,
    effort: Effort<'_>,
) -> Result<(), Error> {
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"];
    let target = work.join("wheel");
    let mut command = Command::new("python3");
    command.args(pip).arg(&target).arg(requirement);
    Log::new(work, effort).call(&format!("{requirement}: installing"), &mut command)?;
    let from = target.join("bin").join(program);
    std::fs::rename(&from, whole.join(program)).map_err(Error::io(format!("move `{}`", from.display())))
}
