//! Results of tests for whoever makes a page of them: one line of JSON for each case, in a file that several processes and
//! threads may write to.

use crate::error::Error;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// The environment variable that names the file.
pub const FILE: &str = "JOBWRIGHT_RESULTS";

/// Adds a line.
pub fn add(file: &Path, line: &Value) -> Result<(), Error> {
    let doing = || format!("write `{}`", file.display());
    let mut open = OpenOptions::new().create(true).append(true).open(file).map_err(Error::io(doing()))?;
    // In one piece, so that lines of others come before or after it.
    open.write_all(format!("{line}\n").as_bytes()).map_err(Error::io(doing()))
}

/// Reads all lines; none, if nothing was played.
pub fn read(file: &Path) -> Result<Vec<Value>, Error> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(file).map_err(Error::io(format!("read `{}`", file.display())))?;
    let parse = |line| serde_json::from_str(line).map_err(Error::json(format!("a line of `{}`", file.display())));
    text.lines().map(parse).collect()
}
