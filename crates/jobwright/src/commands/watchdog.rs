//! The watchdog of a command: this very binary, started again by itself. It is no command of the command line.

use jobwright_engine::Watchdog;
use jobwright_jobs::process;
use std::path::PathBuf;
use std::process::ExitCode;

/// The only argument of a watchdog.
pub(crate) const WATCH_GROUP: &str = "__watch-group";

/// Is a watchdog until the process that started it is gone, or ends it.
pub(crate) fn run() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let watched = runtime.and_then(|runtime| runtime.block_on(process::watch_group(std::io::stdin())));
    if watched.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How this binary starts its watchdogs; none if it cannot find itself.
pub(super) fn find() -> Option<Watchdog> {
    // A link that leads here even if the file was replaced meanwhile.
    let own = PathBuf::from("/proc/self/exe");
    let program = if own.exists() { own } else { std::env::current_exe().ok()? };
    Some(Watchdog { program, arguments: vec![WATCH_GROUP.to_owned()] })
}
