//! What was measured where: the kind of machine and the versions, and nothing that would name it.

use super::Bench;
use super::program::Peer;
use std::process::Command;
use std::time::Duration;

pub(super) fn describe(bench: &Bench) -> String {
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "a processor of an unknown kind".to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field("/proc/meminfo", "MemTotal").and_then(|text| text.strip_suffix(" kB")?.parse::<u64>().ok());
    let memory =
        memory.map_or_else(String::new, |kilobytes| format!(", {} GB of memory", kilobytes.div_ceil(1_000_000)));
    let idle =
        idle().map_or_else(String::new, |share| format!(", {:.0} % idle before the first measurement", share * 100.0));
    let peer = match &bench.peer {
        Peer::There(_) => format!("kube-fake-client {}", peer_version(bench).unwrap_or_default()),
        Peer::Missing(why) => format!("kube-fake-client was not measured: {why}"),
    };
    let counter = said("valgrind", &["--version"]).map_or_else(
        || "instructions were not counted: valgrind is not installed".to_owned(),
        |version| format!("instructions counted by {} (callgrind)", version.replace("valgrind-", "valgrind ")),
    );
    let compiler = said("rustc", &["--version"]).unwrap_or_default();
    let compiler = compiler.split(" (").next().unwrap_or_default();
    format!(
        "- Machine: {processor}, {cores} cores{memory}, {} {}{idle}.\n- Versions: drydock {}, {compiler}, {peer}.\n- Counter: {counter}.\n",
        std::env::consts::OS,
        std::env::consts::ARCH,
        env!("CARGO_PKG_VERSION"),
    )
}

/// Whether two pages are of the same machine: figures of different ones do not go together.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let machine = |page: &str| {
        let line = page.lines().find(|line| line.starts_with("- Machine: "))?;
        Some(line.rsplit_once(", ").map_or(line, |(machine, _)| machine).to_owned())
    };
    machine(one) == machine(other)
}

/// Which share of their time the processors have nothing to do: what else runs makes times longer.
fn idle() -> Option<f64> {
    let (idle, all) = processor_time()?;
    std::thread::sleep(Duration::from_secs(2));
    let (later_idle, later_all) = processor_time()?;
    (later_all > all).then(|| (later_idle - idle) / (later_all - all))
}

/// The time that processors had nothing to do, and all their time.
fn processor_time() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let fields = text.lines().next()?.split_whitespace().skip(1);
    let times = fields.map(str::parse).collect::<Result<Vec<f64>, _>>().ok()?;
    // The fourth is idle, the fifth waits for a disk.
    Some((times.get(3)? + times.get(4)?, times.iter().sum()))
}

/// A field of a file of the kernel's.
fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The first line that a command says.
fn said(command: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(command).args(arguments).output().ok()?;
    String::from_utf8(output.stdout).ok()?.lines().next().map(str::to_owned)
}

fn peer_version(bench: &Bench) -> Option<String> {
    let lock = std::fs::read_to_string(bench.root.join("bench/peer/Cargo.lock")).ok()?;
    let (_, package) = lock.split_once("name = \"kube-fake-client\"\nversion = \"")?;
    Some(package.split('"').next()?.to_owned())
}
