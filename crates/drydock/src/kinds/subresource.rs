//! What can be asked below an object: `/status`, `/scale`, `/log`, …

use super::Kind;
use super::table::Verbs;
use crate::request::Verb;

/// A subresource: its name, the kind it takes and gives where that is another one, and its verbs.
#[derive(Debug)]
pub(crate) struct Subresource {
    pub(crate) name: &'static str,
    /// Group, version and kind of what it takes and gives; the object's own kind where absent.
    pub(crate) other: Option<(&'static str, &'static str, &'static str)>,
    pub(crate) verbs: &'static [Verb],
}

const CHANGE: &[Verb] = &[Verb::Get, Verb::Patch, Verb::Update];

static SUBRESOURCES: &[Subresource] = &[
    Subresource { name: "approval", other: None, verbs: CHANGE },
    Subresource { name: "binding", other: Some(("", "v1", "Binding")), verbs: &[Verb::Create] },
    Subresource { name: "ephemeralcontainers", other: None, verbs: CHANGE },
    Subresource { name: "eviction", other: Some(("policy", "v1", "Eviction")), verbs: &[Verb::Create] },
    Subresource { name: "finalize", other: None, verbs: &[Verb::Update] },
    Subresource { name: "log", other: None, verbs: &[Verb::Get] },
    Subresource { name: "resize", other: None, verbs: CHANGE },
    Subresource { name: "scale", other: Some(("autoscaling", "v1", "Scale")), verbs: CHANGE },
    Subresource { name: "status", other: None, verbs: CHANGE },
    Subresource { name: "token", other: Some(("authentication.k8s.io", "v1", "TokenRequest")), verbs: &[Verb::Create] },
];

pub(crate) fn named(name: &str) -> Option<&'static Subresource> {
    SUBRESOURCES.iter().find(|subresource| subresource.name == name)
}

/// The verbs of a kind, in the order of discovery.
pub(crate) fn verbs(verbs: Verbs) -> &'static [Verb] {
    match verbs {
        Verbs::All => &[
            Verb::Create,
            Verb::Delete,
            Verb::DeleteCollection,
            Verb::Get,
            Verb::List,
            Verb::Patch,
            Verb::Update,
            Verb::Watch,
        ],
        Verbs::NoCollectionDelete => {
            &[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch]
        }
        Verbs::CreateOnly => &[Verb::Create],
        Verbs::ReadOnly => &[Verb::Get, Verb::List],
    }
}

impl Kind {
    /// Whether a verb can be used on the kind, or on one of its subresources.
    pub(crate) fn allows(&self, verb: Verb, subresource: Option<&str>) -> bool {
        match subresource {
            None => verbs(self.verbs).contains(&verb),
            Some(name) => named(name).is_some_and(|subresource| subresource.verbs.contains(&verb)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    #[test]
    fn every_subresource_of_the_table_is_known() {
        for kind in Kinds::default().all() {
            for subresource in &kind.subresources {
                assert!(named(subresource).is_some(), "{}/{subresource}", kind.plural);
            }
        }
    }
}
