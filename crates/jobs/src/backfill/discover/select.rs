//! Kinds by the names that people give them: `Pod`, `pods`, `po`, `deployments.apps`, `Job.v1.batch`.

use super::{Catalogue, Entry};
use crate::backfill::kind::Kind;
use std::fmt;

/// What somebody calls a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct KindName(String);

/// A name that no kind has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cluster has no kind `{name}` that can be listed{}", .similar.as_ref().map(|similar| format!("; did you mean `{similar}`?")).unwrap_or_default())]
pub struct UnknownKind {
    /// The name.
    pub name: String,
    /// What was perhaps meant.
    pub similar: Option<String>,
}

impl From<&str> for KindName {
    fn from(text: &str) -> Self {
        Self(text.trim().to_owned())
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl KindName {
    fn fits(&self, entry: &Entry) -> bool {
        let kind = &entry.kind;
        let is = |word: &str| {
            let names = [kind.plural.as_str(), kind.kind.as_str(), entry.singular.as_str()].into_iter();
            names.chain(entry.short_names.iter().map(String::as_str)).any(|name| name.eq_ignore_ascii_case(word))
        };
        if is(&self.0) {
            return entry.is_preferred;
        }
        let Some((word, rest)) = self.0.split_once('.') else { return false };
        if !is(word) {
            return false;
        }
        // `deployments.apps`, or `deployments.v1.apps` and `pods.v1`.
        let has_version = match rest.split_once('.') {
            Some((version, group)) => version == kind.version && group == kind.group,
            None => rest == kind.version && kind.group.is_empty(),
        };
        has_version || entry.is_preferred && rest == kind.group
    }
}

impl Catalogue {
    /// The kinds of these names; everything if there are none. Each once, in the cluster's order.
    pub fn choose(&self, wanted: &[KindName], unwanted: &[KindName]) -> Result<Vec<Kind>, UnknownKind> {
        let mut chosen = if wanted.is_empty() {
            self.all()
        } else {
            let named = wanted.iter().map(|name| self.find(name)).collect::<Result<Vec<_>, _>>()?;
            let mut kinds: Vec<Kind> = Vec::new();
            for entry in &self.entries {
                let is_new =
                    !kinds.iter().any(|kind| kind.group == entry.kind.group && kind.plural == entry.kind.plural);
                if is_new && named.contains(&&entry.kind) {
                    kinds.push(entry.kind.clone());
                }
            }
            kinds
        };
        for name in unwanted {
            let gone = self.find(name)?;
            chosen.retain(|kind| kind.group != gone.group || kind.plural != gone.plural);
        }
        Ok(chosen)
    }

    /// The kind of a name: the first in the cluster's order, as kubectl chooses.
    fn find(&self, name: &KindName) -> Result<&Kind, UnknownKind> {
        let found = self.entries.iter().find(|entry| name.fits(entry)).map(|entry| &entry.kind);
        found.ok_or_else(|| UnknownKind { name: name.0.clone(), similar: self.similar(name) })
    }

    fn similar(&self, name: &KindName) -> Option<String> {
        let wanted = name.0.to_ascii_lowercase();
        let known = self.entries.iter().flat_map(|entry| {
            let Entry { kind, short_names, .. } = entry;
            let names = [kind.plural.clone(), kind.kind.clone(), kind.full_name()];
            names.into_iter().chain(short_names.iter().cloned())
        });
        let scored = known.map(|name| (strsim::damerau_levenshtein(&wanted, &name.to_ascii_lowercase()), name));
        let (distance, best) = scored.min_by_key(|(distance, _)| *distance)?;
        (distance <= 1 + wanted.len() / 4).then_some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::catalogue;
    use super::*;

    fn choose(wanted: &[&str], unwanted: &[&str]) -> Result<Vec<String>, String> {
        let names = |names: &[&str]| names.iter().map(|name| KindName::from(*name)).collect::<Vec<_>>();
        let chosen = catalogue().choose(&names(wanted), &names(unwanted)).map_err(|error| error.to_string())?;
        Ok(chosen.iter().map(|kind| format!("{} {}", kind.full_name(), kind.version)).collect())
    }

    #[test]
    fn kinds_are_found_by_every_name_they_have() {
        for (name, found) in [
            ("Pod", "pods v1"),
            ("pods", "pods v1"),
            ("pod", "pods v1"),
            ("po", "pods v1"),
            ("pods.v1", "pods v1"),
            ("svc", "services v1"),
            ("Service", "services v1"),
            ("services.serving.example", "services.serving.example v1"),
            ("hpa", "horizontalpodautoscalers.autoscaling v2"),
            ("horizontalpodautoscalers.autoscaling", "horizontalpodautoscalers.autoscaling v2"),
            ("HorizontalPodAutoscaler.v1.autoscaling", "horizontalpodautoscalers.autoscaling v1"),
            ("event", "events v1"),
            ("Event.v1.events.k8s.io", "events.events.k8s.io v1"),
            ("cs", "componentstatuses v1"),
        ] {
            assert_eq!(choose(&[name], &[]).unwrap(), [found], "{name}");
        }
    }

    #[test]
    fn kinds_come_once_and_in_the_order_of_the_cluster() {
        assert_eq!(choose(&["no", "pods", "po", "Node"], &[]).unwrap(), ["pods v1", "nodes v1"]);
        assert_eq!(choose(&["hpa", "hpa.v1.autoscaling"], &[]).unwrap(), ["horizontalpodautoscalers.autoscaling v2"]);
    }

    #[test]
    fn kinds_can_be_left_out() {
        let all = choose(&[], &["ev", "services.serving.example", "Node"]).unwrap();
        assert_eq!(all, ["pods v1", "services v1", "horizontalpodautoscalers.autoscaling v2"]);
    }

    #[test]
    fn a_name_that_nothing_has_is_told_with_what_was_perhaps_meant() {
        let told = |name: &str| choose(&[name], &[]).unwrap_err();
        assert_eq!(told("pds"), "the cluster has no kind `pds` that can be listed; did you mean `pods`?");
        assert_eq!(told("tokenreviews"), "the cluster has no kind `tokenreviews` that can be listed");
        assert_eq!(told(""), "the cluster has no kind `` that can be listed");
        assert!(choose(&[], &["nothing-like-it"]).is_err());
    }
}
