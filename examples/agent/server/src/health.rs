//! What is told in plain HTTP to probes and to whoever gathers metrics.

use crate::serve::State;
use hyper::{Response, StatusCode};
use std::sync::atomic::Ordering::Relaxed;

pub(crate) fn answer(path: &str, state: &State) -> Response<String> {
    let (status, text) = match path {
        "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
        "/readyz" if state.is_draining() => (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned()),
        "/readyz" if !state.may_serve() => (StatusCode::SERVICE_UNAVAILABLE, "no certificate yet\n".to_owned()),
        "/readyz" => (StatusCode::OK, "ok\n".to_owned()),
        "/metrics" => (StatusCode::OK, metrics(state)),
        _ => (StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n".to_owned()),
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response
}

fn metrics(state: &State) -> String {
    let mut text = String::from("# TYPE agent_admissions counter\n");
    for (allowed, count) in [("true", &state.allowed), ("false", &state.refused)] {
        text.push_str(&format!("agent_admissions_total{{allowed=\"{allowed}\"}} {}\n", count.load(Relaxed)));
    }
    text.push_str("# TYPE agent_certificate_loads counter\n");
    text.push_str(&format!("agent_certificate_loads_total {}\n", state.pair.loads()));
    if let Some(not_after) = state.pair.not_after() {
        text.push_str("# TYPE agent_certificate_not_after_seconds gauge\n");
        text.push_str(&format!("agent_certificate_not_after_seconds {not_after}\n"));
    }
    text + "# EOF\n"
}
