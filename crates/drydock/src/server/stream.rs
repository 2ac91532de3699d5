//! Response bodies: whole, or a watch or a log that goes on.

use super::Drydock;
use crate::answers::encode::Form;
use crate::verbs::logs::LogPlan;
use crate::verbs::watch::{WatchEvent, WatchPlan};
use bytes::Bytes;
use http_body::Frame;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// How often a watch tells how far it has come.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// How long a watch goes on when the client does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(45);

/// The body of an answer.
#[derive(Debug)]
pub struct Body(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Watch(Box<Watch>),
    Log(Box<Log>),
}

impl fmt::Debug for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Whole(_) => "Whole",
            Self::Watch(_) => "Watch",
            Self::Log(_) => "Log",
        })
    }
}

struct Log {
    drydock: Drydock,
    plan: LogPlan,
    over: bool,
}

struct Watch {
    drydock: Drydock,
    plan: WatchPlan,
    form: Form,
    end: Pin<Box<Sleep>>,
    bookmark: Pin<Box<Sleep>>,
    over: bool,
}

impl Body {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self(Kind::Whole(Some(bytes)))
    }

    pub(super) fn log(drydock: Drydock, plan: LogPlan) -> Self {
        Self(Kind::Log(Box::new(Log { drydock, plan, over: false })))
    }

    pub(super) fn watch(drydock: Drydock, plan: WatchPlan, form: Form) -> Self {
        let clock = drydock.shared.clock;
        let timeout = plan.timeout_seconds.filter(|seconds| *seconds > 0).map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        let sleep = |duration| Box::pin(tokio::time::sleep_until(clock.after(duration)));
        Self(Kind::Watch(Box::new(Watch {
            end: sleep(timeout),
            bookmark: sleep(BOOKMARK_EVERY),
            drydock,
            plan,
            form,
            over: false,
        })))
    }
}

impl Watch {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.over {
            return Poll::Ready(None);
        }
        let mut cluster = self.drydock.lock();
        let mut events = cluster.follow(&mut self.plan);
        if self.end.as_mut().poll(context).is_ready() {
            self.over = true;
            if self.plan.bookmarks {
                events.push(cluster.bookmark(&mut self.plan));
            }
        } else if self.bookmark.as_mut().poll(context).is_ready() {
            self.bookmark.as_mut().reset(self.drydock.shared.clock.after(BOOKMARK_EVERY));
            // The timer must be asked again to be heard.
            let _ = self.bookmark.as_mut().poll(context);
            if self.plan.bookmarks {
                events.push(cluster.bookmark(&mut self.plan));
            }
        }
        self.over |= matches!(events.last(), Some(WatchEvent::Failed(_)));
        if events.is_empty() {
            if self.over {
                return Poll::Ready(None);
            }
            cluster.store.wake_on_write(&self.plan.kind.storage, context.waker());
            return Poll::Pending;
        }
        let now = cluster.now;
        drop(cluster);
        let mut lines = Vec::new();
        for event in &events {
            lines.extend(self.form.write_event(&self.plan.kind, event, now));
        }
        Poll::Ready(Some(lines.into()))
    }
}

impl Log {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.over {
            return Poll::Ready(None);
        }
        let mut cluster = self.drydock.lock();
        let told = cluster.read_log(&mut self.plan);
        self.over = told.over;
        if !told.text.is_empty() {
            return Poll::Ready(Some(told.text.into()));
        }
        if told.over {
            return Poll::Ready(None);
        }
        cluster.logs.wake_on_line(context.waker());
        Poll::Pending
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take()),
            Kind::Watch(watch) => watch.poll(context),
            Kind::Log(log) => log.poll(context),
        };
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Whole(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Watch(_) | Kind::Log(_) => http_body::SizeHint::default(),
        }
    }
}
