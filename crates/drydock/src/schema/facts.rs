//! What the OpenAPI schemas of the built-in types do not say: `fields.txt`, read once.

use std::collections::HashMap;
use std::sync::LazyLock;

/// How a field behaves on the wire and under patches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldFacts {
    /// The field's number in the protobuf encoding, 0 where it has none.
    pub(crate) number: u32,
    /// A pointer: zero is a value and is kept.
    pub(crate) pointer: bool,
    /// Written even when empty.
    pub(crate) keep_empty: bool,
    /// How server-side apply sees the list.
    pub(crate) list: Option<ListFacts>,
    /// Owned as a whole by server-side apply.
    pub(crate) atomic: bool,
    /// How strategic merge patch treats the field.
    pub(crate) merge: Merge,
}

/// A list that server-side apply merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListFacts {
    Set,
    Map(Vec<&'static str>),
}

/// How strategic merge patch treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Merge {
    /// Lists are merged, by this key where they hold objects.
    pub(crate) by: Option<&'static str>,
    /// `$retainKeys` is honoured.
    pub(crate) retain_keys: bool,
    /// Objects are replaced as a whole.
    pub(crate) replace: bool,
}

/// One line of the table.
#[derive(Debug, Default)]
pub(crate) struct TypeFacts {
    pub(crate) atomic: bool,
    pub(crate) fields: Vec<(&'static str, FieldFacts)>,
    /// Types whose fields stand inline, with the number of the message that holds them.
    pub(crate) embedded: Vec<(&'static str, u32)>,
}

impl TypeFacts {
    /// The facts of a field, its own or of an embedded type.
    pub(crate) fn field(&'static self, name: &str) -> Option<&'static FieldFacts> {
        let own = self.fields.iter().find(|(field, _)| *field == name).map(|(_, facts)| facts);
        own.or_else(|| self.embedded.iter().find_map(|(embedded, _)| type_named(embedded)?.field(name)))
    }
}

static TABLE: LazyLock<HashMap<&'static str, TypeFacts>> = LazyLock::new(|| {
    include_str!("fields.txt").lines().filter(|line| !line.starts_with('#')).filter_map(parse_line).collect()
});

/// The facts of a type, by the last three parts of its definition's name: `batch.v1.JobSpec`.
pub(crate) fn type_named(name: &str) -> Option<&'static TypeFacts> {
    TABLE.get(name)
}

fn parse_line(line: &'static str) -> Option<(&'static str, TypeFacts)> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let (name, atomic) = name.strip_suffix("@atomic").map_or((name, false), |name| (name, true));
    let mut facts = TypeFacts { atomic, ..TypeFacts::default() };
    for word in words {
        let (field, rest) = word.split_once('=')?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, marks) = rest.split_at(digits);
        let number = number.parse().unwrap_or_default();
        match field.strip_prefix('+') {
            Some(embedded) => facts.embedded.push((embedded, number)),
            None => facts.fields.push((field, FieldFacts { number, ..parse_marks(marks) })),
        }
    }
    Some((name, facts))
}

fn parse_marks(marks: &'static str) -> FieldFacts {
    let mut facts = FieldFacts::default();
    let mut rest = marks;
    while let Some(mark) = rest.chars().next() {
        rest = &rest[mark.len_utf8()..];
        match mark {
            '?' => facts.pointer = true,
            '!' => facts.keep_empty = true,
            '&' => facts.merge.retain_keys = true,
            '=' => facts.merge.replace = true,
            '{' => {
                let (keys, after) = rest.split_once('}').unwrap_or((rest, ""));
                facts.list =
                    Some(if keys.is_empty() { ListFacts::Set } else { ListFacts::Map(keys.split(',').collect()) });
                rest = after;
            }
            '~' => {
                let end = rest.find(['&', '=', '@']).unwrap_or(rest.len());
                facts.merge.by = Some(&rest[..end]);
                rest = &rest[end..];
            }
            '@' => {
                facts.atomic = rest.starts_with("atomic");
                rest = rest.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            }
            _ => {}
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(type_name: &str, field: &str) -> &'static FieldFacts {
        type_named(type_name).unwrap().field(field).unwrap()
    }

    #[test]
    fn every_line_is_understood() {
        let lines = include_str!("fields.txt").lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(TABLE.len(), lines);
    }

    #[test]
    fn marks_are_read() {
        assert_eq!(
            fact("batch.v1.JobSpec", "backoffLimit"),
            &FieldFacts { number: 7, pointer: true, ..FieldFacts::default() }
        );
        let volumes = fact("core.v1.PodSpec", "volumes");
        assert_eq!(volumes.list, Some(ListFacts::Map(vec!["name"])));
        assert_eq!(volumes.merge, Merge { by: Some("name"), retain_keys: true, replace: false });
        let ports = fact("core.v1.Container", "ports");
        assert_eq!(ports.list, Some(ListFacts::Map(vec!["containerPort", "protocol"])));
        assert_eq!(ports.merge.by, Some("containerPort"));
        assert_eq!(fact("meta.v1.ObjectMeta", "finalizers").list, Some(ListFacts::Set));
        assert!(fact("policy.v1.PodDisruptionBudgetSpec", "selector").merge.replace);
        assert!(fact("core.v1.PodSpec", "nodeSelector").atomic);
        assert!(type_named("meta.v1.LabelSelector").unwrap().atomic);
    }

    #[test]
    fn embedded_types_lend_their_fields() {
        assert_eq!(fact("core.v1.Volume", "configMap").number, 19);
        assert_eq!(fact("core.v1.SecretKeySelector", "name").number, 1);
    }
}
