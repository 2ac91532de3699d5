//! Archives of charts: `.tgz`, within Helm's limits.

use super::{LoadError, MOST_BYTES, MOST_BYTES_OF_FILE, MOST_FILES, PackageFile, without_mark};
use flate2::read::MultiGzDecoder;
use std::io::Read as _;

/// How many times larger than packed an archive may be, beyond its first mebibytes.
const MOST_RATIO: u64 = 200;

/// Reads the files of an archive, their paths without the directory of the chart.
pub(super) fn read(name: &str, data: &[u8]) -> Result<Vec<PackageFile>, LoadError> {
    let invalid = |message: String| LoadError::Invalid(message);
    if !data.starts_with(b"\x1f\x8b\x08") {
        let is_yaml = super::has_extension(name, "yml") || super::has_extension(name, "yaml");
        return Err(invalid(if is_yaml {
            format!("file '{name}' seems to be a YAML file, but expected a gzipped archive")
        } else {
            format!("file '{name}' does not appear to be a gzipped archive")
        }));
    }
    let most = MOST_BYTES.min((data.len() as u64).saturating_mul(MOST_RATIO).max(8 << 20));
    let broken = |error: std::io::Error| invalid(format!("the archive '{name}' is broken: {error}"));
    let too_large = || invalid(format!("decompressed chart is larger than the maximum file size {MOST_BYTES}"));
    // Headers and padding come on top of the files.
    let unpacked = MultiGzDecoder::new(data).take(most.saturating_mul(2));
    let mut archive = tar::Archive::new(unpacked);
    let mut files: Vec<PackageFile> = Vec::new();
    let mut left = most;
    for entry in archive.entries().map_err(broken)? {
        let entry = entry.map_err(broken)?;
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() || kind.is_pax_local_extensions() {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let name = inner_path(&path).map_err(invalid)?;
        let size = entry.size();
        if size > left {
            return Err(too_large());
        }
        if size > MOST_BYTES_OF_FILE {
            return Err(invalid(format!(
                "decompressed chart file {path:?} is larger than the maximum file size {MOST_BYTES_OF_FILE}"
            )));
        }
        let mut content = Vec::new();
        entry.take(left).read_to_end(&mut content).map_err(broken)?;
        left = left.saturating_sub(content.len() as u64);
        if (content.len() as u64) < size || left == 0 {
            return Err(too_large());
        }
        files.push(PackageFile { name, data: without_mark(&content).to_vec() });
        if files.len() > MOST_FILES {
            return Err(invalid(format!("the chart has more than {MOST_FILES} files")));
        }
    }
    if files.is_empty() {
        return Err(invalid("no files in chart archive".to_owned()));
    }
    Ok(files)
}

/// A path within the chart's directory, which comes first in archives.
fn inner_path(path: &str) -> Result<String, String> {
    let delimiter = if path.contains('\\') { '\\' } else { '/' };
    let (first, rest) = path.split_once(delimiter).unwrap_or((path, ""));
    let rest = rest.replace(delimiter, "/");
    if rest.starts_with('/') {
        return Err("chart illegally contains absolute paths".to_owned());
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return Err("chart illegally references parent directory".to_owned()),
            ".." => {}
            _ => parts.push(part),
        }
    }
    let clean = parts.join("/");
    if first == "Chart.yaml" {
        return Err("chart yaml not in base directory".to_owned());
    }
    if clean.is_empty() {
        return Err(format!("chart illegally contains content outside the base directory: {path:?}"));
    }
    let is_drive = matches!(clean.as_bytes(), [letter, b':', b'/', ..] if letter.is_ascii_alphabetic());
    if is_drive {
        return Err("chart contains illegally named files".to_owned());
    }
    Ok(clean)
}
