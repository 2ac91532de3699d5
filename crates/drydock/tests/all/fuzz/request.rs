//! Arbitrary requests: where to, how, and with what.

use crate::fuzz::tape::Tape;
use crate::fuzz::value::{arbitrary, mutate};
use crate::fuzz::vocabulary::{NAMES, NAMESPACES, integer, text};
use crate::fuzz::{definitions, patches, typed};
use jobwright_drydock::Kind;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::fmt;

#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub method: String,
    pub uri: String,
    pub content_type: String,
    pub accept: String,
    pub body: Vec<u8>,
}

/// As one would note it down to ask it again.
impl fmt::Display for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, uri, content_type, accept, body } = self;
        let shown = String::from_utf8_lossy(&body[..body.len().min(4_000)]);
        write!(formatter, "{method} {uri} [{content_type}] [{accept}] {shown}")
    }
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Where a kind is served.
pub fn collection(kind: &Kind, namespace: &str) -> String {
    let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    if kind.namespaced {
        format!("{root}/{}/namespaces/{namespace}/{}", kind.version, kind.plural)
    } else {
        format!("{root}/{}/{}", kind.version, kind.plural)
    }
}

pub fn gadgets(tape: &mut Tape, namespace: &str) -> String {
    let version = *tape.choose(definitions::VERSIONS);
    let place = if tape.once_in(4) { String::new() } else { format!("namespaces/{namespace}/") };
    format!("/apis/{}/{version}/{place}{}", definitions::GROUP, definitions::PLURAL)
}

/// A path: of a kind, of an object, or of nothing at all.
pub fn path(tape: &mut Tape) -> String {
    #[rustfmt::skip]
    const DOCUMENTS: &[&str] = &[
        "/", "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "/healthz", "/livez/ping",
        "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/batch/v1",
        "/openapi/v3/apis/shop.example/v1", "/openapi/v3/apis/nobody/v1", "/metrics", "/api/v1/watch/pods",
        "/api/v1/watch/namespaces/default/pods/a", "/api/v1/namespaces/default/pods/a/log/x",
        "/api/v1/namespaces//pods", "/apis/apps/v1/namespaces/default", "//api//v1//pods",
        "/api/v1/componentstatuses", "/apis/shop.example/v1/gadgets",
    ];
    let namespace = *tape.choose(NAMESPACES);
    let path = match tape.below(8) {
        0 => return (*tape.choose(DOCUMENTS)).to_owned(),
        1 => return format!("/{}/{}/{}", escape(&text(tape)), escape(&text(tape)), escape(&text(tape))),
        2 => gadgets(tape, namespace),
        _ => collection(typed::kind(tape), namespace),
    };
    let below = match tape.below(4) {
        0 => String::new(),
        1 => format!("/{}", tape.choose(NAMES)),
        2 => format!("/{}/{}", tape.choose(NAMES), subresource(tape)),
        _ => format!("/{}", escape(&text(tape))),
    };
    path + &below
}

pub fn subresource(tape: &mut Tape) -> &'static str {
    #[rustfmt::skip]
    const ALL: &[&str] = &[
        "status", "scale", "log", "binding", "eviction", "ephemeralcontainers", "resize", "finalize", "token", "approval",
        "exec", "x",
    ];
    let chosen: &'static &'static str = tape.choose(ALL);
    if tape.once_in(2) { chosen } else { "status" }
}

/// Parameters of a query, with the question mark.
pub fn query(tape: &mut Tape, tokens: &[String]) -> String {
    let mut query = String::new();
    for _ in 0..tape.below(4) {
        let (name, value) = parameter(tape, tokens);
        query.push(if query.is_empty() { '?' } else { '&' });
        query.push_str(&format!("{name}={}", escape(&value)));
    }
    if tape.once_in(30) { "?&&=&%zz=%ff&watch&".to_owned() } else { query }
}

fn parameter(tape: &mut Tape, tokens: &[String]) -> (&'static str, String) {
    #[rustfmt::skip]
    const LABELS: &[&str] = &[
        "a=b", "a!=b", "a", "!a", "a in (b,c)", "a notin ()", "a in (", ",,,", "a==", "=", "a in (b", "x/y in (z),q",
        "a>5", "a<b", "!", "in in (in)", "é=ü", "kubernetes.io/metadata.name=default",
    ];
    #[rustfmt::skip]
    const FIELDS: &[&str] = &[
        "metadata.name=a", "metadata.namespace!=default", "status.phase=Running", "spec.nodeName=drydock", "x=y",
        "=", "metadata.name", "a==b,c!=d", "\\", "metadata.name=a\\,b", "involvedObject.kind=Pod", "type=Opaque",
        ".spec.x=1", "status.successful=1", "reason=x,,",
    ];
    let flag = |tape: &mut Tape| (*tape.choose(&["true", "false", "1", "0", "", "TRUE", "x"])).to_owned();
    match tape.below(22) {
        0 => ("labelSelector", if tape.once_in(3) { text(tape) } else { (*tape.choose(LABELS)).to_owned() }),
        1 => ("fieldSelector", if tape.once_in(3) { text(tape) } else { (*tape.choose(FIELDS)).to_owned() }),
        2 => ("limit", if tape.once_in(3) { text(tape) } else { integer(tape).to_string() }),
        3 if !tokens.is_empty() => ("continue", tape.choose(tokens).clone()),
        3 => ("continue", text(tape)),
        4 | 5 => ("resourceVersion", if tape.once_in(3) { text(tape) } else { integer(tape).to_string() }),
        6 => ("resourceVersionMatch", (*tape.choose(&["Exact", "NotOlderThan", "", "x"])).to_owned()),
        7 => ("watch", flag(tape)),
        8 => ("timeoutSeconds", if tape.once_in(3) { text(tape) } else { integer(tape).to_string() }),
        9 => ("allowWatchBookmarks", flag(tape)),
        10 => ("sendInitialEvents", flag(tape)),
        11 => ("fieldManager", if tape.once_in(2) { "me".to_owned() } else { text(tape) }),
        12 => ("fieldValidation", (*tape.choose(&["Strict", "Warn", "Ignore", "x"])).to_owned()),
        13 => ("dryRun", (*tape.choose(&["All", "", "x"])).to_owned()),
        14 => ("propagationPolicy", (*tape.choose(&["Foreground", "Background", "Orphan", "x"])).to_owned()),
        15 => ("gracePeriodSeconds", integer(tape).to_string()),
        16 => ("force", flag(tape)),
        17 => ("includeObject", (*tape.choose(&["None", "Metadata", "Object", "x"])).to_owned()),
        18 => ("follow", flag(tape)),
        19 => ("tailLines", integer(tape).to_string()),
        20 => ("sinceSeconds", integer(tape).to_string()),
        _ => (
            *tape.choose(&[
                "limitBytes",
                "container",
                "previous",
                "timestamps",
                "sinceTime",
                "orphanDependents",
                "pretty",
            ]),
            text(tape),
        ),
    }
}

pub fn accept(tape: &mut Tape) -> String {
    const FORMS: &[&str] = &[
        "application/json",
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ];
    const OTHERS: &[&str] = &[
        "",
        "*/*",
        "application/vnd.kubernetes.protobuf",
        "application/yaml",
        "text/html",
        ";;;,=,",
        "application/json;as=Table;v=v9;g=x",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    ];
    (*if tape.once_in(10) { tape.choose(OTHERS) } else { tape.choose(FORMS) }).to_owned()
}

/// A body, as text of a type.
pub fn write(tape: &mut Tape, value: &Value) -> (String, Vec<u8>) {
    let json = value.to_string().into_bytes();
    match tape.below(16) {
        0..12 => ("application/json".to_owned(), json),
        12 => ("application/yaml".to_owned(), json),
        13 => ("application/json".to_owned(), broken(tape, json)),
        14 => ("application/vnd.kubernetes.protobuf".to_owned(), protobuf(tape)),
        _ => (
            (*tape.choose(&["text/plain", "application/x-www-form-urlencoded", "application/yaml; charset=x", ";"]))
                .to_owned(),
            json,
        ),
    }
}

/// A text in which some bytes are others, or missing.
fn broken(tape: &mut Tape, mut text: Vec<u8>) -> Vec<u8> {
    for _ in 0..=tape.below(3) {
        if text.is_empty() {
            break;
        }
        let at = (tape.below(1 << 16) * 31 + tape.below(31)) % text.len();
        match tape.below(3) {
            0 => text[at] = tape.bytes(1).first().copied().unwrap_or(b'"'),
            1 => text.truncate(at),
            _ => text.insert(at, *tape.choose(b"{}[]\",:\\\0\xff-e9")),
        }
    }
    text
}

/// Something that begins as protobuf does, with lengths that may be wrong.
fn protobuf(tape: &mut Tape) -> Vec<u8> {
    let mut body = b"k8s\0".to_vec();
    let mut message = vec![0x0a, 0x09, 0x0a, 0x02, b'v', b'1', 0x12, 0x03, b'P', b'o', b'd', 0x12];
    let mut raw = Vec::new();
    for _ in 0..tape.below(12) {
        raw.push(u8::try_from(tape.below(6) * 8 + *tape.choose(&[2, 0, 1, 5, 3, 7])).unwrap_or_default());
        let below = tape.bytes(9);
        raw.push(u8::try_from(if tape.once_in(6) { 200 } else { below.len() }).unwrap_or_default());
        raw.extend(below);
    }
    message.push(u8::try_from(raw.len().min(127)).unwrap_or_default());
    message.extend(raw);
    body.extend(message);
    body
}

/// A request that may have no sense at all.
pub fn anything(tape: &mut Tape, tokens: &[String]) -> Asked {
    const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW"];
    let value = match tape.below(4) {
        0 => typed::kind(tape).pipe(|kind| typed::object(tape, kind)),
        1 => definitions::gadget(tape),
        2 => {
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": text(tape)}, "gracePeriodSeconds": integer(tape)})
        }
        _ => arbitrary(tape, 4),
    };
    let (mut content_type, mut body) = write(tape, &value);
    if tape.once_in(5) {
        body = tape.bytes(60);
    }
    let method = (*tape.choose(METHODS)).to_owned();
    if method == "PATCH" && !tape.once_in(6) {
        (*tape.choose(patches::TYPES)).clone_into(&mut content_type);
    }
    Asked { method, uri: path(tape) + &query(tape, tokens), content_type, accept: accept(tape), body }
}

/// What some subresources want to be sent.
pub fn question(tape: &mut Tape, subresource: &str, object: &Value) -> Value {
    let mut sent = match subresource {
        "binding" => {
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": object["metadata"], "target": {"kind": "Node", "name": "drydock"}})
        }
        "eviction" => {
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": object["metadata"]["name"]},
            "deleteOptions": {"gracePeriodSeconds": integer(tape)}})
        }
        "token" => json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"audiences": ["x"], "expirationSeconds": integer(tape)}}),
        "scale" => {
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": object["metadata"]["name"],
            "namespace": object["metadata"]["namespace"]}, "spec": {"replicas": tape.below(5)}})
        }
        _ => object.clone(),
    };
    mutate(tape, &mut sent);
    sent
}

pub trait Pipe: Sized {
    fn pipe<T>(self, with: impl FnOnce(Self) -> T) -> T {
        with(self)
    }
}
impl<T> Pipe for T {}
