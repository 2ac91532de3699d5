//! What is left in a process group, as `/proc` tells it.

use rustix::process::Pid;

/// Whether anything in a group runs that is none of these. The leader is this process, or a child of it that has not been
/// reaped.
///
/// None where that cannot be known: without a `/proc`, or with that of another PID namespace.
pub(super) fn has_others(group: Pid, known: &[Pid]) -> Option<bool> {
    let group = group.as_raw_nonzero().get();
    let known: Vec<i32> = known.iter().map(|id| id.as_raw_nonzero().get()).collect();
    let leader = Stat::read(&group.to_string())?;
    let own = rustix::process::getpid().as_raw_nonzero().get();
    if leader.group != group || (leader.parent != own && group != own) {
        return None;
    }
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let ids = processes.filter_map(|entry| entry.file_name().into_string().ok()?.parse::<i32>().ok());
    let mut others = ids.filter(|id| !known.contains(id)).filter_map(|id| Stat::read(&id.to_string()));
    Some(others.any(|stat| stat.group == group && stat.runs))
}

/// What `/proc/ID/stat` says, see proc_pid_stat(5).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// Whether it is more than an entry that has not been reaped.
    runs: bool,
    parent: i32,
    group: i32,
}

impl Stat {
    fn read(id: &str) -> Option<Self> {
        Self::parse(&String::from_utf8_lossy(&std::fs::read(format!("/proc/{id}/stat")).ok()?))
    }

    fn parse(text: &str) -> Option<Self> {
        // The name in parentheses may itself hold parentheses and blanks.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let runs = !matches!(fields.next()?, "Z" | "X" | "x");
        Some(Self { runs, parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_program_may_hold_anything() {
        let parsed = |text: &str| Stat::parse(text);
        assert_eq!(parsed("7 (a) b) (c) S 1 5 5 0 -1"), Some(Stat { runs: true, parent: 1, group: 5 }));
        assert_eq!(parsed("7 (x) Z 2 6 6"), Some(Stat { runs: false, parent: 2, group: 6 }));
        assert_eq!(parsed("7 (x) Z"), None);
        assert_eq!(parsed(""), None);
    }

    #[test]
    fn a_group_of_another_process_is_not_judged() {
        let parent = rustix::process::getppid().unwrap();
        assert_eq!(has_others(parent, &[parent]), None, "its leader is not a child of this process");
    }
}
