//! `watch`: the changes of many objects, from a moment on.

use super::get::parse_version;
use super::list::Filter;
use crate::cluster::{Answer, Cluster, Reply};
use crate::kinds::Kind;
use crate::object::Object;
use crate::options::ListOptions;
use crate::request::Request;
use crate::status::Status;
use crate::store::{Change, Event};
use std::collections::VecDeque;
use std::sync::Arc;

/// A watch: what it follows, and how far it has come.
#[derive(Debug)]
pub(crate) struct WatchPlan {
    pub(crate) kind: Arc<Kind>,
    filter: Filter,
    /// Everything up to this revision has been told.
    position: u64,
    /// What is there at the start, to be told first.
    initial: VecDeque<Arc<Object>>,
    /// The end of what is there at the start is told by a bookmark.
    initial_end: bool,
    pub(crate) bookmarks: bool,
    pub(crate) timeout_seconds: Option<u64>,
}

/// What a watch tells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WatchEvent {
    Added(Arc<Object>),
    Modified(Arc<Object>),
    Deleted(Arc<Object>),
    /// How far the watch has come.
    Bookmark {
        revision: u64,
        initial_end: bool,
    },
    /// The watch cannot go on.
    Failed(Status),
}

impl Cluster {
    pub(crate) fn watch(&mut self, request: &Request) -> Result<Reply, Status> {
        let options = ListOptions::read(&request.query, true)?;
        let filter = Filter::new(request, &options)?;
        let kind = &request.target.kind;
        let current = self.store.revision();
        let asked = parse_version(&options.resource_version).map_err(|why| Status::new(500, "", why))?;
        // Without a version a watch starts with what is there; with one, it replays what came after it.
        let with_initial = options.send_initial_events.unwrap_or(asked == 0);
        if !with_initial && asked > 0 && self.store.since(&kind.storage, asked).is_none() {
            return Err(Status::too_old(asked, self.store.oldest(&kind.storage)));
        }
        let initial = if with_initial {
            let objects = self.store.list(&kind.storage, filter.namespace.as_deref()).map(|object| kind.served(object));
            objects.filter(|object| filter.matches(object)).collect()
        } else {
            VecDeque::new()
        };
        let plan = WatchPlan {
            kind: Arc::clone(kind),
            filter,
            position: if with_initial || asked == 0 { current } else { asked },
            initial,
            initial_end: options.send_initial_events == Some(true) && options.bookmarks,
            bookmarks: options.bookmarks,
            timeout_seconds: options.timeout_seconds,
        };
        Ok(Reply { answer: Answer::Watch(plan), warnings: Vec::new() })
    }

    /// What a watch has to tell now. Empty: nothing until the next write.
    pub(crate) fn follow(&self, plan: &mut WatchPlan) -> Vec<WatchEvent> {
        let mut events: Vec<WatchEvent> = plan.initial.drain(..).map(WatchEvent::Added).collect();
        if std::mem::take(&mut plan.initial_end) {
            events.push(WatchEvent::Bookmark { revision: plan.position, initial_end: true });
        }
        match self.store.since(&plan.kind.storage, plan.position) {
            None => {
                let oldest = self.store.oldest(&plan.kind.storage);
                events.push(WatchEvent::Failed(Status::too_old(plan.position, oldest)));
            }
            Some(changes) => {
                for change in changes {
                    events.extend(plan.filter.tell(&plan.kind, change));
                    plan.position = change.revision;
                }
            }
        }
        events
    }

    /// A bookmark of how far a watch has come: everything up to now.
    pub(crate) fn bookmark(&self, plan: &mut WatchPlan) -> WatchEvent {
        plan.position = plan.position.max(self.store.revision());
        WatchEvent::Bookmark { revision: plan.position, initial_end: false }
    }
}

impl Filter {
    /// What a write means to somebody who sees only what the filter lets through.
    fn tell(&self, kind: &Kind, event: &Event) -> Option<WatchEvent> {
        let seen = |object: &Arc<Object>| {
            let object = kind.served(object);
            self.matches(&object).then_some(object)
        };
        match &event.change {
            Change::Added(object) => seen(object).map(WatchEvent::Added),
            Change::Deleted { last, .. } => seen(last).map(WatchEvent::Deleted),
            Change::Modified { before, after } => match (seen(before), seen(after)) {
                (None, Some(after)) => Some(WatchEvent::Added(after)),
                (Some(_), Some(after)) => Some(WatchEvent::Modified(after)),
                // It has left the selection: shown as it was last seen, at the version in which it left.
                (Some(before), None) => {
                    let mut last = Object::clone(&before);
                    last.set(&["metadata", "resourceVersion"], event.revision.to_string());
                    Some(WatchEvent::Deleted(Arc::new(last)))
                }
                (None, None) => None,
            },
        }
    }
}
