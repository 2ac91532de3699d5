//! From an HTTP request to its response.

use super::{BODY_LIMIT, Body, Drydock};
use crate::access::{Attributes, User, rbac};
use crate::answers::encode::Form;
use crate::answers::{discovery, health, openapi};
use crate::cluster::{Answer, Cluster, Reply};
use crate::options::Query;
use crate::request::{self, Request, Route, Verb};
use crate::status::Status;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::Value;

/// What becomes a response.
enum Outcome {
    Value(u16, Value),
    /// JSON.
    Written(u16, Vec<u8>),
    Text(u16, String),
    Bytes(&'static str, Vec<u8>),
    Watch(crate::verbs::watch::WatchPlan, Form),
    Log(crate::verbs::logs::LogPlan),
}

impl Drydock {
    pub(super) fn respond(&self, parts: &Parts, body: Result<Bytes, Status>) -> Response<Body> {
        let mut warnings = Vec::new();
        match self.answer(parts, body, &mut warnings) {
            Ok(outcome) => self.write(outcome, &warnings),
            Err(status) => refuse(&status),
        }
    }

    /// Why a body could not be read whole.
    pub(super) fn refuse_body(error: &(dyn std::error::Error + 'static)) -> Status {
        if error.is::<http_body_util::LengthLimitError>() {
            Status::too_large_body(BODY_LIMIT)
        } else {
            Status::bad_request(format!("unable to read the request body: {error}"))
        }
    }

    fn answer(
        &self,
        parts: &Parts,
        body: Result<Bytes, Status>,
        warnings: &mut Vec<String>,
    ) -> Result<Outcome, Status> {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let mut cluster = self.lock();
        let user = self.authenticate(&cluster, &parts.headers)?;
        let accept = text(&parts.headers, &header::ACCEPT);
        match request::route(&cluster.kinds, &parts.method, parts.uri.path(), &query)? {
            Route::Document(path) => self.document(&cluster, &user, parts, &path, accept),
            Route::Resource(verb, target) => {
                let form = Form::of(accept, query.text("includeObject"))?;
                // Who only reads is not asked for a body, and may have sent any.
                let body = if verb.writes() { body? } else { Bytes::new() };
                let request = Request {
                    verb,
                    target,
                    query,
                    body: request::Body {
                        content_type: text(&parts.headers, &header::CONTENT_TYPE).to_owned(),
                        bytes: body,
                    },
                    user_agent: text(&parts.headers, &header::USER_AGENT).to_owned(),
                    user,
                };
                let due = cluster.next_due();
                let reply = cluster.execute(&request);
                if cluster.next_due() != due {
                    self.shared.changed.notify_one();
                }
                let Reply { answer, warnings: noted } = reply?;
                *warnings = noted;
                let now = cluster.now;
                Ok(match answer {
                    Answer::Object { code, kind, object } => {
                        Outcome::Written(code, form.write_object(&kind, &object, now))
                    }
                    Answer::Other { code: 204, .. } => Outcome::Text(204, String::new()),
                    Answer::Other { code, value } => Outcome::Value(code, value),
                    Answer::List(list) => Outcome::Written(200, form.write_list(&list, now)),
                    Answer::Watch(plan) => Outcome::Watch(plan, form),
                    Answer::Log(plan) => Outcome::Log(plan),
                })
            }
        }
    }

    fn authenticate(&self, cluster: &Cluster, headers: &HeaderMap) -> Result<User, Status> {
        let token = text(headers, &header::AUTHORIZATION).strip_prefix("Bearer ");
        let known = token.and_then(|token| cluster.tokens.get(token.trim()));
        let user = match known.filter(|token| token.opens_the_api(cluster.now)) {
            Some(token) => token.user.clone(),
            // A token that is no good is no reason to take somebody for the administrator.
            None if known.is_some() => return Err(Status::unauthorized()),
            None if self.shared.requires_token => return Err(Status::unauthorized()),
            None => User::admin(),
        };
        let name = headers.get("impersonate-user").and_then(|name| name.to_str().ok());
        let groups: Vec<&str> =
            headers.get_all("impersonate-group").iter().filter_map(|group| group.to_str().ok()).collect();
        match name {
            None => Ok(user),
            Some(name) => {
                let attributes =
                    Attributes::Resource { verb: "impersonate", group: "", resource: "users", namespace: "", name };
                if !cluster.rbac || rbac::allows(&cluster.store, &user, &attributes).is_some() {
                    return Ok(User::impersonated(name, &groups));
                }
                let why = attributes.refusal(&user);
                Err(Status::new(403, "Forbidden", format!("users {name:?} is forbidden: {why}")))
            }
        }
    }

    fn document(
        &self,
        cluster: &Cluster,
        user: &User,
        parts: &Parts,
        path: &[String],
        accept: &str,
    ) -> Result<Outcome, Status> {
        if cluster.rbac {
            let attributes = Attributes::Path { verb: Verb::Get.name(), path: parts.uri.path() };
            rbac::allows(&cluster.store, user, &attributes)
                .ok_or_else(|| Status::forbidden_path(&attributes.refusal(user)))?;
        }
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let kinds = &cluster.kinds;
        let value = match words.as_slice() {
            ["version"] => Some(health::version()),
            ["healthz" | "livez" | "readyz", ..] => return Ok(Outcome::Text(200, "ok".to_owned())),
            ["api"] => Some(match wants_aggregated(accept) {
                Some(beta) => discovery::aggregated(kinds, true, beta),
                None => discovery::core_versions(&self.address()),
            }),
            ["apis"] => Some(match wants_aggregated(accept) {
                Some(beta) => discovery::aggregated(kinds, false, beta),
                None => discovery::groups(kinds),
            }),
            ["api", version] => discovery::resources(kinds, "", version),
            ["apis", group] => discovery::group(kinds, group),
            ["apis", group, version] => discovery::resources(kinds, group, version),
            ["openapi", "v2"]
                if accept.contains(openapi::binary::ASKED) || accept.contains(openapi::binary::MEDIA_TYPE) =>
            {
                return Ok(Outcome::Bytes(
                    openapi::binary::MEDIA_TYPE,
                    openapi::binary::document(&openapi::version_2(kinds)),
                ));
            }
            ["openapi", "v2"] => Some(openapi::version_2(kinds)),
            ["openapi", "v3"] => Some(openapi::index(kinds)),
            ["openapi", "v3", "api", version] => openapi::version_3(kinds, "", version),
            ["openapi", "v3", "apis", group, version] => openapi::version_3(kinds, group, version),
            _ => None,
        };
        value.map(|value| Outcome::Value(200, value)).ok_or_else(Status::unknown_path)
    }

    fn write(&self, outcome: Outcome, warnings: &[String]) -> Response<Body> {
        let mut response = match outcome {
            Outcome::Value(code, value) => {
                let aggregated = value.get("kind").is_some_and(|kind| kind == "APIGroupDiscoveryList");
                let mut response = json(code, &value);
                if aggregated {
                    let version =
                        value["apiVersion"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
                    let media = format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
                    set(response.headers_mut(), header::CONTENT_TYPE, &media);
                }
                response
            }
            Outcome::Written(code, json) => respond_with_json(code, json),
            Outcome::Text(code, text) => plain(code, text),
            Outcome::Bytes(media, bytes) => respond_with(200, media, bytes.into()),
            Outcome::Watch(plan, form) => {
                let mut response = Response::new(Body::watch(self.clone(), plan, form));
                set(response.headers_mut(), header::CONTENT_TYPE, "application/json");
                response
            }
            Outcome::Log(plan) => {
                let mut response = Response::new(Body::log(self.clone(), plan));
                set(response.headers_mut(), header::CONTENT_TYPE, "text/plain");
                response
            }
        };
        for warning in warnings {
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
                response.headers_mut().append(header::WARNING, value);
            }
        }
        response
    }
}

/// Whether the client asks for all of discovery at once, and in the older form.
fn wants_aggregated(accept: &str) -> Option<bool> {
    accept
        .split(',')
        .filter(|part| part.contains("as=APIGroupDiscoveryList"))
        .find_map(|part| if part.contains("v=v2beta1") { Some(true) } else { part.contains("v=v2").then_some(false) })
}

fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn set(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn respond_with(code: u16, content_type: &str, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::whole(bytes));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set(response.headers_mut(), header::CONTENT_TYPE, content_type);
    set(response.headers_mut(), header::CACHE_CONTROL, "no-cache, private");
    response
}

fn json(code: u16, value: &impl serde::Serialize) -> Response<Body> {
    respond_with_json(code, serde_json::to_vec(value).unwrap_or_default())
}

fn respond_with_json(code: u16, mut json: Vec<u8>) -> Response<Body> {
    json.push(b'\n');
    respond_with(code, "application/json", json.into())
}

fn plain(code: u16, text: String) -> Response<Body> {
    respond_with(code, "text/plain; charset=utf-8", text.into())
}

fn refuse(status: &Status) -> Response<Body> {
    if status.plain {
        return plain(status.code, status.message.clone());
    }
    let mut response = json(status.code, status);
    if let Some(seconds) = status.retry_after_seconds() {
        set(response.headers_mut(), header::RETRY_AFTER, &seconds.to_string());
    }
    response
}
