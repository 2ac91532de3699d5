//! What happens, while it happens: lines for a log, or a tree at the foot of a terminal.

mod scene;
mod terminal;

use jobwright_engine::{Clock, Event};
pub(crate) use scene::SPINNER;
use scene::Scene;
use std::thread::JoinHandle;
use std::time::Duration;
pub(crate) use terminal::Terminal;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::error::TryRecvError;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loudness {
    Quiet,
    Usual,
    Verbose,
}

/// How often the terminal is drawn.
pub(crate) const FRAME: Duration = Duration::from_millis(80);

/// Follows events until there are no more, in a thread of its own: what is drawn does not wait for what is done.
pub(crate) fn follow(
    mut events: UnboundedReceiver<Event>,
    clock: Clock,
    loudness: Loudness,
    is_watched: bool,
) -> JoinHandle<()> {
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || {
        // The clock of a cluster in memory is that of its runtime.
        let _entered = runtime.enter();
        let mut scene = Scene::new(loudness, is_watched, clock.now());
        let mut terminal = Terminal::new(is_watched && loudness != Loudness::Quiet);
        loop {
            let is_over = loop {
                match events.try_recv() {
                    Ok(event) => terminal.print(&scene.take(&event, clock.now())),
                    Err(TryRecvError::Empty) => break false,
                    Err(TryRecvError::Disconnected) => break true,
                }
            };
            if is_over {
                terminal.clear();
                return;
            }
            terminal.draw(|width, height, tick| scene.frame(clock.now(), width, height, tick));
            std::thread::sleep(FRAME);
        }
    })
}
