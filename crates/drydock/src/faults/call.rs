//! What a request is about, read from its method and address alone.

use crate::options::Query;
use http::{Method, Request};

/// A call of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: &'static str,
    /// `batch`, empty for the core group.
    pub group: String,
    /// `jobs`, or the whole path where it is about no resource.
    pub resource: String,
    /// Empty for the whole cluster.
    pub namespace: String,
    /// Empty for many objects.
    pub name: String,
    /// `status`, empty for the object itself.
    pub subresource: String,
}

impl Call {
    /// What a request asks for.
    pub fn of<B>(request: &Request<B>) -> Self {
        let path = request.uri().path();
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => ("", &[][..]),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() && !matches!(rest[0], "status" | "finalize") => {
                (*namespace, rest)
            }
            rest => ("", rest),
        };
        let part = |index: usize| rest.get(index).map(|text| (*text).to_owned()).unwrap_or_default();
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let one = rest.len() > 1;
        Self {
            verb: match *request.method() {
                Method::POST => "create",
                Method::PUT => "update",
                Method::PATCH => "patch",
                Method::DELETE if one => "delete",
                Method::DELETE => "deletecollection",
                _ if query.flag("watch").unwrap_or_default() => "watch",
                _ if one => "get",
                _ if rest.is_empty() => "get",
                _ => "list",
            },
            group: group.to_owned(),
            resource: if rest.is_empty() { path.to_owned() } else { part(0) },
            namespace: namespace.to_owned(),
            name: part(1),
            subresource: part(2),
        }
    }

    /// Whether the call changes anything.
    pub fn writes(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.verb, self.resource)?;
        for part in [&self.namespace, &self.name, &self.subresource].into_iter().filter(|part| !part.is_empty()) {
            write!(formatter, "/{part}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_understood_without_knowing_the_kinds() {
        for (method, path, shown) in [
            ("GET", "/api/v1/namespaces/a/pods?watch=true", "watch pods/a"),
            ("GET", "/api/v1/namespaces/a", "get namespaces/a"),
            ("PATCH", "/apis/batch/v1/namespaces/a/jobs/x/status?force=true", "patch jobs/a/x/status"),
            ("DELETE", "/apis/batch/v1/namespaces/a/jobs", "deletecollection jobs/a"),
            ("GET", "/version", "get /version"),
            ("GET", "/apis/batch/v1", "get /apis/batch/v1"),
        ] {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            assert_eq!(Call::of(&request).to_string(), shown);
        }
    }
}
