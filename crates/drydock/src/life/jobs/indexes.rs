//! Sets of completion indexes, written as `0,2-5`.

use std::fmt;

/// Indexes in order, as ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<Range>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: i64,
    last: i64,
}

impl Indexes {
    /// Reads what a status or a rule says, up to a number of completions. What is no index is left out.
    pub(super) fn parse(text: &str, completions: i64) -> Self {
        let mut indexes = Self::default();
        for part in text.split(',') {
            let mut limits = part.split('-');
            let Some(first) = limits.next().and_then(|first| first.parse::<i64>().ok()) else { continue };
            let last = match limits.next() {
                None => first,
                Some(last) => match last.parse::<i64>() {
                    Ok(last) => last.min(completions.saturating_sub(1)),
                    Err(_) => continue,
                },
            };
            if first >= completions {
                break;
            }
            if first <= last {
                indexes = indexes.merge(&Self(vec![Range { first, last }]));
            }
        }
        indexes
    }

    pub(super) fn merge(&self, other: &Self) -> Self {
        let mut all: Vec<Range> = self.0.iter().chain(&other.0).copied().collect();
        all.sort_by_key(|range| range.first);
        let mut merged: Vec<Range> = Vec::with_capacity(all.len());
        for range in all {
            match merged.last_mut() {
                Some(known) if range.first <= known.last.saturating_add(1) => known.last = known.last.max(range.last),
                _ => merged.push(range),
            }
        }
        Self(merged)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many indexes there are.
    pub(super) fn total(&self) -> i64 {
        self.0.iter().fold(0, |total, range| total.saturating_add(range.last - range.first).saturating_add(1))
    }

    pub(super) fn contains(&self, index: i64) -> bool {
        let place = self.0.partition_point(|range| range.last < index);
        self.0.get(place).is_some_and(|range| range.first <= index)
    }

    /// How many indexes two sets have in common.
    pub(super) fn in_common(&self, other: &Self) -> i64 {
        let (mut one, mut two, mut common) = (0, 0, 0_i64);
        while let (Some(a), Some(b)) = (self.0.get(one), other.0.get(two)) {
            common = common.saturating_add((a.last.min(b.last) - a.first.max(b.first) + 1).max(0));
            if a.last <= b.last {
                one += 1;
            } else {
                two += 1;
            }
        }
        common
    }

    /// The first indexes below a number that are not in the set.
    pub(super) fn missing(&self, below: i64, count: usize) -> Vec<i64> {
        let mut candidate = 0;
        let mut missing = Vec::new();
        let end = Range { first: below, last: below };
        for range in self.0.iter().chain([&end]) {
            while candidate < range.first.min(below) && missing.len() < count {
                missing.push(candidate);
                candidate += 1;
            }
            candidate = candidate.max(range.last.saturating_add(1));
        }
        missing
    }
}

impl FromIterator<i64> for Indexes {
    fn from_iter<I: IntoIterator<Item = i64>>(indexes: I) -> Self {
        let all = Self(indexes.into_iter().map(|index| Range { first: index, last: index }).collect());
        Self::default().merge(&all)
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, Range { first, last }) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match last - first {
                0 => write!(formatter, "{comma}{first}")?,
                1 => write!(formatter, "{comma}{first},{last}")?,
                _ => write!(formatter, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn indexes_are_written_as_the_real_controller_writes_them() {
        let indexes: Indexes = [4, 0, 1, 7, 3, 5, 3].into_iter().collect();
        assert_eq!(indexes.to_string(), "0,1,3-5,7");
        assert_eq!(indexes.total(), 6);
        assert!(indexes.contains(4) && !indexes.contains(2) && !indexes.contains(8));
        assert_eq!(indexes.missing(9, 3), [2, 6, 8]);
        assert_eq!(indexes.missing(9, 1), [2]);
        assert_eq!(indexes.missing(2, 5), [0; 0]);
        assert_eq!(Indexes::parse("0,1,x,3-5,7-20", 10).to_string(), "0,1,3-5,7-9");
        assert_eq!(Indexes::parse("0-2", 10).in_common(&Indexes::parse("1-9", 10)), 2);
    }

    proptest! {
        #[test]
        fn any_set_is_read_as_it_was_written(set in proptest::collection::btree_set(0_i64..60, 0..40)) {
            let indexes: Indexes = set.iter().copied().collect();
            prop_assert_eq!(Indexes::parse(&indexes.to_string(), 60), indexes.clone());
            prop_assert_eq!(indexes.total(), i64::try_from(set.len()).unwrap());
            prop_assert!((0..60).all(|index| indexes.contains(index) == set.contains(&index)));
            let missing = indexes.missing(60, 100);
            prop_assert!(missing.iter().all(|index| !set.contains(index)));
            prop_assert_eq!(missing.len() + set.len(), 60);
        }

        #[test]
        fn any_text_is_read(text in "[0-9,x-]{0,30}", completions in any::<i32>()) {
            let indexes = Indexes::parse(&text, completions.into());
            prop_assert!(indexes.total() >= 0);
            let _ = (indexes.to_string(), indexes.missing(10, 10));
        }
    }
}
