//! A watch that goes on: it starts again where it was when the API ends it, and from a new list when it cannot.

use super::{Board, Seen};
use crate::error::Error;
use crate::kubectl::Kubectl;
use crate::object::{List, Object};
use serde::Deserialize;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Something that happened to objects of one kind.
#[derive(Debug)]
pub(super) enum Change {
    /// An object is there, like this.
    Is(Object),
    /// An object is gone; it was like this.
    Gone(Object),
    /// These are all objects that are there.
    All(Vec<Object>),
}

#[derive(Debug, Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

/// A running watch; dropping it ends it.
#[derive(Debug)]
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    child: Arc<Mutex<Option<Child>>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread of a watch works with.
struct Follower {
    kubectl: Kubectl,
    path: String,
    board: Arc<Board>,
    apply: fn(&mut Seen, Change),
    stop: Arc<AtomicBool>,
    child: Arc<Mutex<Option<Child>>>,
}

impl Watch {
    /// Lists once, then watches in the background.
    pub(super) fn start(
        kubectl: Kubectl,
        path: String,
        board: Arc<Board>,
        apply: fn(&mut Seen, Change),
    ) -> Result<Self, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let child = Arc::new(Mutex::new(None));
        let follower = Follower { kubectl, path, board, apply, stop: stop.clone(), child: child.clone() };
        let version = follower.list()?;
        let thread = Some(std::thread::spawn(move || follower.follow(version)));
        Ok(Self { stop, child, thread })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(child) = self.child.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            // It may have ended by itself.
            let _ = child.kill();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Follower {
    fn follow(self, mut version: String) {
        loop {
            let listen = self.listen(&mut version);
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            if listen.is_err() {
                std::thread::sleep(Duration::from_millis(200));
                if let Ok(listed) = self.list() {
                    version = listed;
                }
            }
        }
    }

    /// Tells the board of all objects there are, and says how far that reaches.
    fn list(&self) -> Result<String, Error> {
        let list: List = self.kubectl.raw(&self.path)?;
        self.board.update(|seen| (self.apply)(seen, Change::All(list.items)));
        Ok(list.metadata.resource_version)
    }

    /// Tells the board of every event until the watch ends; an error means that it cannot go on from where it was.
    fn listen(&self, version: &mut String) -> Result<(), ()> {
        let path = format!("{}?watch=true&allowWatchBookmarks=true&resourceVersion={version}", self.path);
        let mut child = self.kubectl.watch(&path).map_err(|_| ())?;
        let Some(output) = child.stdout.take() else { return Err(()) };
        *self.lock_child() = Some(child);
        // Whoever stops the watch before this point found no child to end.
        let events =
            if self.stop.load(Ordering::SeqCst) { Ok(false) } else { self.tell(BufReader::new(output), version) };
        let child = self.lock_child().take();
        if let Some(mut child) = child {
            let _ = child.kill();
            let _ = child.wait();
        }
        // A watch that ends without a word was not accepted.
        if events? { Ok(()) } else { Err(()) }
    }

    /// Whether there was any event.
    fn tell(&self, output: BufReader<impl std::io::Read>, version: &mut String) -> Result<bool, ()> {
        let mut any = false;
        for line in output.lines() {
            let Ok(line) = line else { break };
            let Ok(Event { kind, object }) = serde_json::from_str(&line) else { return Err(()) };
            let Ok(object) = serde_json::from_value::<Object>(object) else { return Err(()) };
            version.clone_from(&object.metadata.resource_version);
            any = true;
            match kind.as_str() {
                "ADDED" | "MODIFIED" => self.board.update(|seen| (self.apply)(seen, Change::Is(object))),
                "DELETED" => self.board.update(|seen| (self.apply)(seen, Change::Gone(object))),
                "BOOKMARK" => {}
                _ => return Err(()),
            }
        }
        Ok(any)
    }

    fn lock_child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
