//! Whether a helm that an earlier deploy has started still runs on this machine.

use std::path::Path;

/// Where processes can be seen: the boot and the PID namespace of a host. Two containers of the same host name are two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// None where there is no `/proc`.
    pub(crate) id: Option<String>,
}

/// Whether a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Running {
    Yes,
    No,
    /// There is no `/proc`.
    Unknown,
}

impl Machine {
    /// This machine.
    pub(crate) fn here() -> Self {
        Self::at(Path::new("/proc"))
    }

    fn at(proc: &Path) -> Self {
        let boot = std::fs::read_to_string(proc.join("sys/kernel/random/boot_id")).ok();
        let namespace = std::fs::read_link(proc.join("self/ns/pid")).ok();
        let id = boot.zip(namespace).map(|(boot, namespace)| format!("{} {}", boot.trim(), namespace.display()));
        Self { id }
    }
}

impl Running {
    /// Whether a process runs whose arguments contain all of these words.
    pub(crate) fn of(words: &[&str]) -> Self {
        Self::at(Path::new("/proc"), words)
    }

    fn at(proc: &Path, words: &[&str]) -> Self {
        // Without an entry for this process, what is there is not the list of processes.
        if !proc.join("self/cmdline").exists() {
            return Self::Unknown;
        }
        let Ok(processes) = std::fs::read_dir(proc) else { return Self::Unknown };
        let has_all = |arguments: Vec<u8>| {
            let arguments: Vec<&[u8]> = arguments.split(|byte| *byte == 0).collect();
            words.iter().all(|word| arguments.contains(&word.as_bytes()))
        };
        let mut arguments =
            processes.flatten().filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        if arguments.any(has_all) { Self::Yes } else { Self::No }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_proc_it_is_unknown_whether_a_process_runs() {
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(Running::at(empty.path(), &["helm"]), Running::Unknown);
        assert_eq!(Running::at(Path::new("/nowhere"), &["helm"]), Running::Unknown);
        assert_eq!(Machine::at(Path::new("/nowhere")).id, None);
    }

    #[test]
    fn a_process_is_found_by_its_arguments() {
        let proc = tempfile::tempdir().unwrap();
        for (id, words) in [("self", "test\0"), ("7", "/usr/bin/helm\0upgrade\0--install\0api\0--namespace\0shop\0")] {
            std::fs::create_dir_all(proc.path().join(id)).unwrap();
            std::fs::write(proc.path().join(id).join("cmdline"), words).unwrap();
        }
        assert_eq!(Running::at(proc.path(), &["upgrade", "api", "shop"]), Running::Yes);
        assert_eq!(Running::at(proc.path(), &["upgrade", "ap", "shop"]), Running::No);
    }
}
