//! What a process has used so far: time on a processor and memory.

use serde_json::json;
use std::fmt;
use std::future::Future;

/// What something took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Nanoseconds on a processor.
    pub(crate) nanoseconds: u64,
    /// By how many bytes the process grew.
    pub(crate) bytes: u64,
}

/// As one line of JSON.
impl fmt::Display for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", json!({"nanoseconds": self.nanoseconds, "bytes": self.bytes}))
    }
}

impl Usage {
    /// What some work takes.
    pub(crate) async fn of<E>(work: impl Future<Output = Result<(), E>>) -> Result<Self, E> {
        let before = Self::now();
        work.await?;
        let after = Self::now();
        Ok(Self {
            nanoseconds: after.nanoseconds.saturating_sub(before.nanoseconds),
            bytes: after.bytes.saturating_sub(before.bytes),
        })
    }

    /// What this process has used, as far as the kernel tells.
    fn now() -> Self {
        let schedule = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        let nanoseconds = schedule.split_whitespace().next().and_then(|number| number.parse().ok());
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Self { nanoseconds: nanoseconds.unwrap_or_default(), bytes: kilobytes.unwrap_or_default() * 1024 }
    }
}
