//! What Helm always says, and what says nothing: left out, so that what is left is worth comparing.

/// Lines at the head of the report on a release, by what they start with.
const REPORT: [&str; 11] = [
    "NAME: ",
    "LAST DEPLOYED: ",
    "NAMESPACE: ",
    "STATUS: ",
    "REVISION: ",
    "DESCRIPTION: ",
    "TEST SUITE: ",
    "TEST SUITE:",
    "Last Started: ",
    "Last Completed: ",
    "Phase: ",
];

/// Lines that say that all went well, by what they start with.
const SUCCESS: [&str; 5] = [
    "Release \"r\" has been upgraded. Happy Helming!",
    "Release \"r\" does not exist. Installing it now.",
    "Rollback was a success! Happy Helming!",
    "release \"r\" uninstalled",
    "These resources were deleted",
];

/// The standard output without the report on the release and the usual words of success.
pub(super) fn without_usual_lines(stdout: &str) -> String {
    let usual = |line: &&str| {
        let starts = |start: &&str| line.trim_start().starts_with(*start);
        !REPORT.iter().chain(&SUCCESS).any(starts)
    };
    stdout.lines().filter(usual).collect::<Vec<_>>().join("\n")
}

/// Whether a line of a log (without its time) only repeats the error that follows, or comes from a watch that ends.
pub(super) fn is_noise(line: &str) -> bool {
    let repeats = ["level=WARN msg=\"upgrade failed\" ", "level=WARN msg=\"Rollback \\\"r\\\" failed: "];
    let ends = ["watch ended with error", "err=\"context canceled\""];
    repeats.iter().any(|start| line.starts_with(start)) || ends.iter().any(|words| line.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unusual_stays() {
        let stdout = "NAME: r\nSTATUS: deployed\nTEST SUITE: None\nHOOKS:\n---\nNAMES: x\n";
        assert_eq!(without_usual_lines(stdout), "HOOKS:\n---\nNAMES: x");
        assert_eq!(without_usual_lines("release \"r\" uninstalled\n"), "");
    }

    #[test]
    fn repeated_errors_are_noise() {
        assert!(is_noise("level=WARN msg=\"upgrade failed\" name=r error=\"x\""));
        assert!(is_noise("level=WARN msg=\"Rollback \\\"r\\\" failed: x\""));
        assert!(!is_noise("level=WARN msg=\"skipping delete\""));
    }
}
