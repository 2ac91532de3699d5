//! A kind that a cluster serves: where its objects are listed, and what they are called.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt;

/// A kind that a cluster serves, at one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// `apps`; empty for the core group.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `Deployment`.
    pub kind: String,
    /// `deployments`.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

/// What stays as it is in a query.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

impl Kind {
    /// `apps/v1`, `v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `deployments.apps`, `pods`: what no other kind of the cluster is called.
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Where its objects are listed: everywhere, or in a namespace.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.group) };
        let place = namespace.map(|name| format!("/namespaces/{}", encode(name))).unwrap_or_default();
        format!("{root}/{}{place}/{}", self.version, self.plural)
    }

    pub(crate) fn is_core(&self, kind: &str) -> bool {
        self.group.is_empty() && self.kind == kind
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.full_name())
    }
}

/// A text as part of an address.
pub(crate) fn encode(text: &str) -> impl fmt::Display + '_ {
    utf8_percent_encode(text, QUERY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_listed_where_its_group_is() {
        let pods = Kind {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            plural: "pods".to_owned(),
            namespaced: true,
        };
        assert_eq!(pods.path(None), "/api/v1/pods");
        assert_eq!(pods.path(Some("a b")), "/api/v1/namespaces/a%20b/pods");
        assert_eq!((pods.full_name(), pods.api_version()), ("pods".to_owned(), "v1".to_owned()));
        let jobs = Kind { group: "batch".to_owned(), plural: "jobs".to_owned(), ..pods };
        assert_eq!(jobs.path(None), "/apis/batch/v1/jobs");
        assert_eq!((jobs.full_name(), jobs.api_version()), ("jobs.batch".to_owned(), "batch/v1".to_owned()));
    }
}
