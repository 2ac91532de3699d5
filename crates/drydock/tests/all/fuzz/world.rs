//! A cluster that is asked all kinds of things, and the laws of its answers.

use crate::fuzz::request::Asked;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use jobwright_drydock::{Body, Drydock};
use serde_json::{Value, json};
use std::cell::Cell;
use std::sync::{LazyLock, Once};
use std::time::Duration;
use tower::Service;

/// How long an answer or the next line of a stream may take, in the time of the cluster.
const PATIENCE: Duration = Duration::from_mins(1);
/// How many pieces of a stream are looked at.
const PIECES: usize = 8;

/// What a real server answers with 500, too, besides what it says of patches. It gives no reason then.
const UNFORESEEN: &[&str] = &[
    "resourceVersion should not be set on objects to be created",
    "resourceVersion: Invalid value: ",
    "This pod has more than one PodDisruptionBudget",
];

/// Whether every request is shown before it is sent.
#[expect(clippy::disallowed_methods, reason = "whoever runs the test says what to show")]
static TRACES: LazyLock<bool> = LazyLock::new(|| std::env::var_os("FUZZ_TRACE").is_some());

thread_local! {
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

/// Counts panics of this thread, also those that a runtime catches.
pub fn panics() -> usize {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let known = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |information| {
            PANICS.with(|panics| panics.set(panics.get() + 1));
            known(information);
        }));
    });
    PANICS.with(Cell::get)
}

pub struct World {
    pub drydock: Drydock,
    /// Tokens to go on with lists.
    pub tokens: Vec<String>,
    /// Where objects are, or were.
    pub places: Vec<String>,
    asked: Vec<String>,
}

/// Who reads of a failure wants to ask the same again.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in self.asked.iter().rev().take(12).rev() {
                eprintln!("asked: {line}");
            }
        }
    }
}

#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub content_type: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_default().to_owned()
    }
}

impl World {
    pub fn new() -> Self {
        Self::of(Drydock::builder().nodes(2).build())
    }

    pub fn of(drydock: Drydock) -> Self {
        Self { drydock, tokens: Vec::new(), places: Vec::new(), asked: Vec::new() }
    }

    /// Puts a bit of everything into the cluster.
    pub async fn furnish(&mut self) {
        for line in include_str!("furniture.txt").lines() {
            let (uri, body) = line.split_once(' ').unwrap();
            let made = self.post(uri, &serde_json::from_str(body).unwrap()).await;
            assert_eq!(made.code, 201, "{line}: {}", made.message());
        }
        tokio::time::sleep(Duration::from_secs(7)).await;
        for uri in ["/api/v1/namespaces/default/pods", "/apis/apps/v1/namespaces/default/replicasets"] {
            let list = self.get(uri).await.json();
            let names =
                list["items"].as_array().into_iter().flatten().filter_map(|pod| pod["metadata"]["name"].as_str());
            self.places.extend(names.map(|name| format!("{uri}/{name}")));
        }
    }

    pub fn note(&mut self, what: String) {
        // What hangs or ends the process leaves no other trace.
        if *TRACES {
            eprintln!("asking: {what}");
        }
        self.asked.push(what);
    }

    /// Asks, and holds the answer against the laws.
    pub async fn ask(&mut self, asked: &Asked) -> Option<Answer> {
        self.note(asked.to_string());
        let request = http::Request::builder()
            .method(asked.method.as_str())
            .uri(asked.uri.as_str())
            .header("content-type", asked.content_type.as_str())
            .header("accept", asked.accept.as_str())
            .body(Full::new(Bytes::from(asked.body.clone())))
            .ok()?;
        let answer = send(&self.drydock, request).await;
        obey(asked, &answer);
        if answer.code == 201
            && let Some(name) = answer.json()["metadata"]["name"].as_str()
        {
            let collection = asked.uri.split('?').next().unwrap_or_default();
            self.places.push(format!("{collection}/{name}"));
        }
        if let Some(token) = answer.json()["metadata"]["continue"].as_str().filter(|_| self.tokens.len() < 20) {
            self.tokens.push(token.to_owned());
        }
        Some(answer)
    }

    pub async fn get(&mut self, uri: &str) -> Answer {
        let asked = Asked { method: "GET".to_owned(), uri: uri.to_owned(), ..Asked::default() };
        self.ask(&asked).await.unwrap()
    }

    pub async fn post(&mut self, uri: &str, body: &Value) -> Answer {
        let asked = Asked {
            method: "POST".to_owned(),
            uri: uri.to_owned(),
            content_type: "application/json".to_owned(),
            body: body.to_string().into_bytes(),
            ..Asked::default()
        };
        self.ask(&asked).await.unwrap()
    }

    /// A cluster that has been asked all that still does its work, for somebody who comes new.
    pub async fn goes_on(&mut self) {
        tokio::time::sleep(Duration::from_secs(5)).await;
        for name in ["newcomer", "after"] {
            let made = self.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await;
            assert_eq!(made.code, 201, "{}", made.message());
        }
        let settings = json!({"metadata": {"name": "x"}, "data": {"k": "v"}});
        let made = self.post("/api/v1/namespaces/newcomer/configmaps", &settings).await;
        assert_eq!(made.code, 201, "{}", made.message());
        tokio::time::sleep(Duration::from_secs(5)).await;
        let account = self.get("/api/v1/namespaces/newcomer/serviceaccounts/default").await;
        assert_eq!(account.code, 200, "the controllers do not go on: {}", account.message());
    }
}

/// What a path leads to.
pub async fn get(drydock: &Drydock, path: &str) -> Value {
    let request = http::Request::get(path).body(Full::<Bytes>::default()).unwrap();
    send(drydock, request).await.json()
}

async fn send(drydock: &Drydock, request: http::Request<Full<Bytes>>) -> Answer {
    let answer = tokio::time::timeout(PATIENCE, drydock.clone().call(request)).await.expect("no answer comes");
    let (parts, body) = answer.unwrap().into_parts();
    let content_type = parts.headers.get("content-type").map(|value| value.to_str().unwrap().to_owned());
    Answer { code: parts.status.as_u16(), content_type: content_type.unwrap_or_default(), body: read(body).await }
}

/// A whole body, or the beginning of a stream.
async fn read(mut body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..PIECES {
        match tokio::time::timeout(PATIENCE, body.frame()).await {
            Ok(Some(frame)) => bytes.extend(frame.unwrap().into_data().unwrap()),
            Ok(None) | Err(_) => break,
        }
    }
    bytes
}

fn obey(asked: &Asked, answer: &Answer) {
    let text = String::from_utf8_lossy(&answer.body);
    if answer.code == 500 {
        let status = answer.json();
        let is_known = UNFORESEEN.iter().any(|known| answer.message().starts_with(known));
        let is_real = status.get("reason").is_none() && (is_known || asked.method == "PATCH");
        assert!(is_real, "an internal error: {text}\n{asked}");
    }
    if answer.code >= 400 {
        if answer.content_type.starts_with("text/plain") {
            assert_eq!((answer.code, &*text), (404, "404 page not found\n"), "{asked}");
            return;
        }
        let status = answer.json();
        assert_eq!(status["kind"], "Status", "{asked}: {text}");
        assert_eq!(status["apiVersion"], "v1", "{asked}: {text}");
        assert_eq!(status["status"], "Failure", "{asked}: {text}");
        assert_eq!(status["code"], answer.code, "{asked}: {text}");
        assert!(status["message"].as_str().is_some_and(|message| !message.is_empty()), "{asked}: {text}");
        return;
    }
    assert!((200..300).contains(&answer.code), "{asked}: {} {text}", answer.code);
    if !answer.content_type.starts_with("application/json") {
        return;
    }
    for line in serde_json::Deserializer::from_slice(&answer.body).into_iter::<Value>() {
        let line = line.unwrap_or_else(|error| panic!("{asked}: {error}: {text}"));
        match line.get("type").and_then(Value::as_str).filter(|_| line.get("object").is_some_and(Value::is_object)) {
            Some("ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR") => check(asked, &line["object"]),
            _ => check(asked, &line),
        }
    }
}

fn check(asked: &Asked, object: &Value) {
    assert!(object.is_object(), "{asked}: {object}");
    if object["kind"] == "Table" {
        let columns = object["columnDefinitions"].as_array().unwrap_or_else(|| panic!("{asked}: {object}")).len();
        for row in object["rows"].as_array().into_iter().flatten() {
            assert_eq!(row["cells"].as_array().unwrap().len(), columns, "{asked}: {row}");
        }
    }
}
