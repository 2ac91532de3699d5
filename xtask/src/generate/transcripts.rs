//! The page on kubectl: which transcripts there are, and how many commands each has.

use anyhow::{Context as _, Result};
use jobwright_e2e::transcript::Transcript;
use std::fmt::Write as _;
use std::path::Path;

pub(super) fn page() -> Result<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/transcripts/kubectl");
    let files = std::fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut paths = files.map(|file| Ok(file?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    let mut rows = String::new();
    let mut total = 0;
    for path in &paths {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let transcript = Transcript::parse(&text);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let about = transcript.about.trim().trim_start_matches("# ");
        total += transcript.exchanges.len();
        // Writing to a String cannot fail.
        let _ = writeln!(
            rows,
            "| [`{name}`](../../e2e/transcripts/kubectl/{name}) | {about} | {} |",
            transcript.exchanges.len()
        );
    }
    Ok(format!(
        "# kubectl on drydock\n\n\
         Generated from the transcripts by `cargo xtask generate`.\n\n\
         {total} commands of kubectl 1.34.10 with the answers of a real Kubernetes 1.34.10, recorded there. Each is played on\n\
         drydock in every check, and has to be answered to the letter, but for what a cluster makes up: names, times,\n\
         addresses. `cargo test -p jobwright-e2e --test kubectl` plays them; with `JOBWRIGHT_TARGET` on a cluster.\n\n\
         | transcript | about | commands |\n|---|---|---|\n{rows}"
    ))
}
