//! Asks the cluster for a page of a list, again and again if need be.

use super::kind::{Kind, encode};
use super::page::Page;
use super::patience::{Patience, read_retry_after};
use super::summary::Problem;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use jobwright_engine::{Answer, Clock, Refusal, classify};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use kube::core::response::reason;
use std::time::Duration;

/// A page that is larger than this is asked for again with fewer objects.
const LARGEST_PAGE: usize = 16 * 1024 * 1024;
/// The most that is read of an answer that is no page.
const LARGEST_STATUS: usize = 64 * 1024;
/// How long a server may say nothing in the middle of an answer.
const SILENCE: Duration = Duration::from_mins(1);
/// How long a whole answer may take, however steadily it trickles.
const ANSWER: Duration = Duration::from_mins(5);

/// What whole objects are asked for with, and what their metadata alone is: servers that cannot do that send all.
const WHOLE: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Which objects of a kind are wanted, as the server can tell.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Selection {
    /// A label selector; everything if empty.
    pub labels: String,
    /// A field selector; everything if empty.
    pub fields: String,
    /// Only the metadata of objects.
    pub metadata_only: bool,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// Where the objects are listed.
    pub(crate) path: String,
    /// How many objects it may have.
    pub(crate) limit: usize,
    /// Where the list goes on; none at its beginning.
    pub(crate) token: Option<String>,
    /// The moment that the beginning has to show; any if none.
    pub(crate) version: Option<String>,
}

/// What came of asking.
#[derive(Debug)]
pub(crate) enum Fetched {
    Page(Page),
    /// The snapshot of the list has expired, and what the server answered. With a token it continues with a later one.
    Expired(Option<String>, Problem),
    /// Fewer objects have to be asked for.
    TooLarge,
}

/// Asks for pages.
#[derive(Clone)]
pub(crate) struct Lister {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) selection: Selection,
    pub(crate) patience: Patience,
}

/// What one call came to.
enum Reply {
    Fetched(Fetched),
    /// It may do better, perhaps after this time.
    Passing(Problem, Option<Duration>),
    /// It will not.
    Refused(Problem),
}

impl Query {
    /// The beginning of a list.
    pub(crate) fn start(kind: &Kind, namespace: Option<&str>, limit: usize) -> Self {
        Self { path: kind.path(namespace), limit, token: None, version: None }
    }

    fn address(&self, selection: &Selection) -> String {
        let mut address = format!("{}?limit={}", self.path, self.limit);
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                address.push_str(&format!("&{name}={}", encode(value)));
            }
        };
        add("labelSelector", &selection.labels);
        add("fieldSelector", &selection.fields);
        match (&self.token, &self.version) {
            (Some(token), _) => add("continue", token),
            (None, Some(version)) => {
                add("resourceVersion", version);
                add("resourceVersionMatch", "Exact");
            }
            (None, None) => {}
        }
        address
    }
}

impl Lister {
    /// Asks for a page until there is an answer. `room` is memory to read it into; `retry` hears of every new try.
    pub(crate) async fn fetch(
        &self,
        query: &Query,
        mut room: Vec<u8>,
        retry: &(dyn Fn(&Problem, Duration) + Send + Sync),
    ) -> Result<Fetched, Problem> {
        let mut trying = self.patience.begin(&self.clock);
        loop {
            let asked = tokio::time::timeout(ANSWER, self.ask(query, &mut room)).await;
            match asked.unwrap_or_else(|_| Reply::Passing(Problem::of("the answer does not end"), None)) {
                Reply::Fetched(fetched) => return Ok(fetched),
                Reply::Refused(problem) => return Err(problem),
                Reply::Passing(problem, asked) => match trying.pause(asked) {
                    Some(pause) => {
                        retry(&problem, pause);
                        tokio::time::sleep(pause).await;
                    }
                    None => return Err(problem),
                },
            }
        }
    }

    async fn ask(&self, query: &Query, room: &mut Vec<u8>) -> Reply {
        let accept = if self.selection.metadata_only { METADATA } else { WHOLE };
        let request = Request::builder().method(Method::GET).uri(query.address(&self.selection));
        let request = match request.header(header::ACCEPT, accept).body(Body::empty()) {
            Ok(request) => request,
            Err(error) => return Reply::Refused(Problem::of(error.to_string())),
        };
        let sent = tokio::time::timeout(SILENCE, self.client.send(request)).await;
        let response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return refused(error),
            Err(_) => return Reply::Passing(Problem::of("the server does not answer"), None),
        };
        let (parts, body) = response.into_parts();
        let most = if parts.status == StatusCode::OK { LARGEST_PAGE } else { LARGEST_STATUS };
        room.clear();
        match read(body, room, most).await {
            Ok(Whole::Yes) if parts.status == StatusCode::OK => match Page::read(std::mem::take(room)) {
                Ok(page) => Reply::Fetched(Fetched::Page(page)),
                Err(error) => Reply::Passing(Problem::of(format!("the answer is no list: {error}")), None),
            },
            Ok(Whole::No) if parts.status == StatusCode::OK && query.limit > 1 => Reply::Fetched(Fetched::TooLarge),
            Ok(Whole::No) if parts.status == StatusCode::OK => {
                let message =
                    format!("one page is larger than {LARGEST_PAGE} bytes, and the server gives no smaller one");
                Reply::Refused(Problem::of(message))
            }
            Ok(_) => judge(query, parts.status, room, read_retry_after(&parts.headers, self.clock.now())),
            Err(message) => Reply::Passing(Problem::of(message), None),
        }
    }
}

/// What an answer means that is no page.
fn judge(query: &Query, code: StatusCode, body: &[u8], asked: Option<Duration>) -> Reply {
    let mut status: Status = serde_json::from_slice(body).unwrap_or_default();
    status.code = code.as_u16();
    let message = match status.message.as_str() {
        "" => format!("the server answered {code}"),
        message => message.to_owned(),
    };
    let problem = Problem { status: Some(code.as_u16()), message };
    if code == StatusCode::GONE || matches!(status.reason.as_str(), reason::EXPIRED | reason::GONE) {
        let token = status.metadata.and_then(|metadata| metadata.continue_).filter(|token| !token.is_empty());
        return Reply::Fetched(Fetched::Expired(token, problem));
    }
    // A token that the server does not know any more, or never did.
    if code == StatusCode::BAD_REQUEST && query.token.is_some() {
        return Reply::Fetched(Fetched::Expired(None, problem));
    }
    match classify(&kube::Error::Api(status.boxed())) {
        Answer::TryAgain(after) => Reply::Passing(problem, asked.or(after)),
        _ => Reply::Refused(problem),
    }
}

fn refused(error: kube::Error) -> Reply {
    let problem = |error| Problem::of(Refusal::from(error).to_string());
    match classify(&error) {
        Answer::TryAgain(after) => Reply::Passing(problem(error), after),
        _ => Reply::Refused(problem(error)),
    }
}

enum Whole {
    Yes,
    No,
}

/// Reads a body, up to a bound.
async fn read(mut body: Body, room: &mut Vec<u8>, most: usize) -> Result<Whole, String> {
    loop {
        let frame = tokio::time::timeout(SILENCE, body.frame()).await;
        match frame.map_err(|_| "the answer stopped in the middle".to_owned())? {
            None => return Ok(Whole::Yes),
            Some(Err(error)) => return Err(format!("the answer broke off: {}", Refusal::from(error))),
            Some(Ok(frame)) => {
                let Ok(data) = frame.into_data() else { continue };
                if room.len() + data.len() > most {
                    return Ok(Whole::No);
                }
                room.extend_from_slice(&data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(token: Option<&str>, version: Option<&str>) -> Query {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Query { path: "/api/v1/pods".to_owned(), limit: 500, token: owned(token), version: owned(version) }
    }

    #[test]
    fn a_page_is_asked_for_by_where_it_begins() {
        let none = Selection::default();
        assert_eq!(query(None, None).address(&none), "/api/v1/pods?limit=500");
        assert_eq!(query(Some("a=="), Some("7")).address(&none), "/api/v1/pods?limit=500&continue=a%3D%3D");
        let chosen = Selection { labels: "app in (a,b)".to_owned(), fields: "spec.nodeName=n".to_owned(), ..none };
        assert_eq!(
            query(None, Some("7")).address(&chosen),
            "/api/v1/pods?limit=500&labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=spec.nodeName%3Dn&resourceVersion=7&resourceVersionMatch=Exact"
        );
    }

    #[test]
    fn answers_are_told_apart() {
        let judged = |code: u16, token: Option<&str>, body: &str| match judge(
            &query(token, None),
            StatusCode::from_u16(code).unwrap(),
            body.as_bytes(),
            None,
        ) {
            Reply::Fetched(Fetched::Expired(token, _)) => format!("expired {token:?}"),
            Reply::Fetched(_) => "fetched".to_owned(),
            Reply::Passing(problem, _) => format!("passing {problem}"),
            Reply::Refused(problem) => format!("refused {problem}"),
        };
        let gone = r#"{"kind":"Status","code":410,"metadata":{"continue":"next"},"message":"old"}"#;
        assert_eq!(judged(410, Some("t"), gone), "expired Some(\"next\")");
        assert_eq!(judged(410, Some("t"), r#"{"metadata":{}}"#), "expired None");
        assert_eq!(judged(400, Some("t"), "{}"), "expired None");
        assert_eq!(judged(400, None, "{}"), "refused 400: the server answered 400 Bad Request");
        assert_eq!(judged(403, None, r#"{"message":"no"}"#), "refused 403: no");
        assert_eq!(judged(429, None, "{}"), "passing 429: the server answered 429 Too Many Requests");
        assert_eq!(judged(503, None, "<html>"), "passing 503: the server answered 503 Service Unavailable");
    }
}
