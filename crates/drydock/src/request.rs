//! From an HTTP request to what is asked: method, path and query to a verb on a resource.

use crate::kinds::{Kind, Kinds};
use crate::options::Query;
use crate::status::Status;
use bytes::Bytes;
use http::Method;
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// What somebody wants done.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) verb: Verb,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) body: Body,
    pub(crate) user_agent: String,
    pub(crate) user: crate::access::User,
}

/// The verbs of the API. Authorisation knows them by these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read many objects.
    List,
    /// Follow the changes of many objects.
    Watch,
    /// Make an object.
    Create,
    /// Replace an object.
    Update,
    /// Change parts of an object.
    Patch,
    /// Delete one object.
    Delete,
    /// Delete many objects.
    DeleteCollection,
}

impl Verb {
    /// The verb as RBAC rules write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether the verb changes anything.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// What the request is about.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) kind: Arc<Kind>,
    /// Absent for cluster-scoped kinds and for all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// What was sent along.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) content_type: String,
    pub(crate) bytes: Bytes,
}

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Route {
    /// Objects.
    Resource(Verb, Target),
    /// A document about the server, by the segments of its path.
    Document(Vec<String>),
}

impl Target {
    /// The namespace as stored: empty for cluster-scoped kinds.
    pub(crate) fn storage_namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn object_name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

/// Finds out what a request is about.
pub(crate) fn route(kinds: &Kinds, method: &Method, path: &str, query: &Query) -> Result<Route, Status> {
    let segments: Vec<String> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
        .collect();
    let words: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (group, version, rest) = match words.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        _ => return Ok(Route::Document(segments)),
    };
    if kinds.in_version(group, version).next().is_none() {
        return Err(Status::unknown_path());
    }
    let (target, legacy_watch) = target(kinds, group, version, rest)?;
    let verb = verb(method, &target, query.flag("watch").unwrap_or_default() || legacy_watch)?;
    Ok(Route::Resource(verb, target))
}

fn target(kinds: &Kinds, group: &str, version: &str, rest: &[&str]) -> Result<(Target, bool), Status> {
    let (rest, legacy_watch) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (rest, true),
        rest => (rest, false),
    };
    // `/namespaces/NAME/status` is about the namespace, `/namespaces/NAME/pods` about what is in it.
    let in_namespace = matches!(rest, ["namespaces", _, below, ..] if !matches!(*below, "status" | "finalize"));
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..] if in_namespace => (Some(*namespace), rest),
        rest => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, None, None),
        [plural, name] => (*plural, Some(*name), None),
        [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
        _ => return Err(Status::unknown_resource()),
    };
    let kind = kinds.by_resource(group, version, plural).ok_or_else(Status::unknown_resource)?;
    if subresource.is_some_and(|subresource| !kind.has(subresource)) || (namespace.is_some() && !kind.namespaced) {
        return Err(Status::unknown_resource());
    }
    if kind.namespaced && namespace.is_none() && name.is_some() {
        return Err(Status::unknown_resource());
    }
    let target = Target {
        kind: Arc::clone(kind),
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        subresource: subresource.map(str::to_owned),
    };
    Ok((target, legacy_watch))
}

fn verb(method: &Method, target: &Target, watch: bool) -> Result<Verb, Status> {
    let one = target.name.is_some();
    // In all namespaces at once one can only read and delete.
    let somewhere = !target.kind.namespaced || target.namespace.is_some();
    let verb = match *method {
        Method::GET | Method::HEAD if watch => Verb::Watch,
        Method::GET | Method::HEAD if one => Verb::Get,
        Method::GET | Method::HEAD => Verb::List,
        Method::POST if somewhere && (!one || target.subresource.is_some()) => Verb::Create,
        Method::PUT if one => Verb::Update,
        Method::PATCH if one => Verb::Patch,
        Method::DELETE if one && target.subresource.is_none() => Verb::Delete,
        Method::DELETE if !one && somewhere => Verb::DeleteCollection,
        _ => return Err(Status::unknown_method()),
    };
    if target.kind.allows(verb, target.subresource.as_deref()) { Ok(verb) } else { Err(Status::unknown_method()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: &str, path: &str) -> Result<(Verb, String), u16> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let method = method.parse().unwrap();
        match route(&Kinds::default(), &method, path, &Query::parse(query)) {
            Ok(Route::Resource(verb, target)) => {
                let mut text = target.kind.group_resource();
                for part in [target.namespace, target.name, target.subresource].into_iter().flatten() {
                    text = format!("{text} {part}");
                }
                Ok((verb, text))
            }
            Ok(Route::Document(segments)) => Ok((Verb::Get, segments.join("/"))),
            Err(status) => Err(status.code),
        }
    }

    #[test]
    fn paths_lead_to_resources() {
        for (method, path, verb, target) in [
            ("GET", "/api/v1/pods", Verb::List, "pods"),
            ("GET", "/api/v1/namespaces/a/pods?watch=1", Verb::Watch, "pods a"),
            ("GET", "/api/v1/watch/namespaces/a/pods", Verb::Watch, "pods a"),
            ("GET", "/api/v1/namespaces/a", Verb::Get, "namespaces a"),
            ("PUT", "/api/v1/namespaces/a/finalize", Verb::Update, "namespaces a finalize"),
            ("GET", "/api/v1/namespaces/a/status", Verb::Get, "namespaces a status"),
            ("POST", "/apis/batch/v1/namespaces/a/jobs", Verb::Create, "jobs.batch a"),
            ("PATCH", "/apis/batch/v1/namespaces/a/jobs/x/status", Verb::Patch, "jobs.batch a x status"),
            ("DELETE", "/apis/batch/v1/namespaces/a/jobs", Verb::DeleteCollection, "jobs.batch a"),
            ("POST", "/api/v1/namespaces/a/pods/x/eviction", Verb::Create, "pods a x eviction"),
            ("GET", "/api/v1", Verb::Get, "api/v1"),
            ("GET", "/openapi/v3/apis/batch/v1", Verb::Get, "openapi/v3/apis/batch/v1"),
        ] {
            assert_eq!(ask(method, path), Ok((verb, target.to_owned())), "{method} {path}");
        }
    }

    #[test]
    fn wrong_paths_and_methods_are_refused() {
        for (method, path, code) in [
            ("GET", "/apis/batch/v1/foos", 404),
            ("GET", "/apis/foo/v1/x", 404),
            ("GET", "/api/v1/namespaces/a/pods/x/foo", 404),
            ("GET", "/api/v1/namespaces/a/configmaps/x/status", 404),
            ("GET", "/api/v1/pods/x", 404),
            ("PUT", "/api/v1/namespaces/a/pods", 405),
            ("POST", "/api/v1/configmaps", 405),
            ("DELETE", "/api/v1/namespaces", 405),
            ("DELETE", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405),
            ("POST", "/api/v1/namespaces/a/pods/x/status", 405),
            ("PUT", "/api/v1/namespaces/a/pods/x/log", 405),
        ] {
            assert_eq!(ask(method, path), Err(code), "{method} {path}");
        }
    }
}
