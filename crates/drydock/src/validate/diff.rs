//! Differences of two texts in the unified format, found as Python's `difflib` finds them, which is what the server's
//! Go library does.

use std::collections::HashMap;

/// Lines around a difference.
const CONTEXT: usize = 3;

/// The differences of two texts, without a header.
pub(crate) fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut text = String::new();
    for hunk in hunks(&matches(&old, &new), old.len(), new.len()) {
        text.push_str(&hunk.header());
        for part in &hunk.parts {
            if part.is_equal {
                lines(&mut text, ' ', &old[part.old.0..part.old.1]);
            } else {
                lines(&mut text, '-', &old[part.old.0..part.old.1]);
                lines(&mut text, '+', &new[part.new.0..part.new.1]);
            }
        }
    }
    text
}

fn lines(text: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        text.push(mark);
        text.push_str(line);
        text.push('\n');
    }
}

/// Equal lines: where they start in either text, and how many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    old: usize,
    new: usize,
    length: usize,
}

/// A part of either text, equal or replaced.
struct Part {
    is_equal: bool,
    old: (usize, usize),
    new: (usize, usize),
}

struct Hunk {
    parts: Vec<Part>,
}

impl Hunk {
    fn header(&self) -> String {
        let range = |part: fn(&Part) -> (usize, usize)| {
            let start = self.parts.first().map_or(0, |first| part(first).0);
            let end = self.parts.last().map_or(0, |last| part(last).1);
            match end - start {
                0 => format!("{start},0"),
                1 => format!("{}", start + 1),
                length => format!("{},{length}", start + 1),
            }
        };
        format!("@@ -{} +{} @@\n", range(|part| part.old), range(|part| part.new))
    }
}

fn matches(old: &[&str], new: &[&str]) -> Vec<Match> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(index);
    }
    // Lines that are everywhere say nothing about what belongs together.
    if new.len() >= 200 {
        places.retain(|_, indices| indices.len() <= new.len() / 100 + 1);
    }
    let mut found = Vec::new();
    let mut open = vec![(0, old.len(), 0, new.len())];
    while let Some((old_start, old_end, new_start, new_end)) = open.pop() {
        let best = longest(old, new, &places, (old_start, old_end), (new_start, new_end));
        if best.length > 0 {
            found.push(best);
            open.push((old_start, best.old, new_start, best.new));
            open.push((best.old + best.length, old_end, best.new + best.length, new_end));
        }
    }
    found.sort_unstable();
    let mut joined: Vec<Match> = Vec::new();
    for next in found {
        match joined.last_mut() {
            Some(last) if last.old + last.length == next.old && last.new + last.length == next.new => {
                last.length += next.length;
            }
            _ => joined.push(next),
        }
    }
    joined
}

/// The longest run of equal lines, the first one where several are as long.
fn longest(
    old: &[&str],
    new: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    old_range: (usize, usize),
    new_range: (usize, usize),
) -> Match {
    let mut best = Match { old: old_range.0, new: new_range.0, length: 0 };
    let mut runs: HashMap<usize, usize> = HashMap::new();
    for (index, line) in old.iter().enumerate().take(old_range.1).skip(old_range.0) {
        let mut longer = HashMap::new();
        for place in places.get(line).into_iter().flatten().copied() {
            if place < new_range.0 {
                continue;
            }
            if place >= new_range.1 {
                break;
            }
            let before = place.checked_sub(1).and_then(|before| runs.get(&before)).copied().unwrap_or_default();
            let length = before + 1;
            longer.insert(place, length);
            if length > best.length {
                best = Match { old: index + 1 - length, new: place + 1 - length, length };
            }
        }
        runs = longer;
    }
    while best.old > old_range.0 && best.new > new_range.0 && old[best.old - 1] == new[best.new - 1] {
        best = Match { old: best.old - 1, new: best.new - 1, length: best.length + 1 };
    }
    while best.old + best.length < old_range.1
        && best.new + best.length < new_range.1
        && old[best.old + best.length] == new[best.new + best.length]
    {
        best.length += 1;
    }
    best
}

/// The parts with differences, each with the lines around it.
fn hunks(matches: &[Match], old_length: usize, new_length: usize) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    let (mut old, mut new) = (0, 0);
    let end = Match { old: old_length, new: new_length, length: 0 };
    for found in matches.iter().chain(std::iter::once(&end)) {
        if found.old > old || found.new > new {
            parts.push(Part { is_equal: false, old: (old, found.old), new: (new, found.new) });
        }
        (old, new) = (found.old + found.length, found.new + found.length);
        let is_last = old == old_length && new == new_length;
        if found.length == 0 {
            continue;
        }
        let keep = found.length.min(CONTEXT);
        if parts.is_empty() {
            parts.push(equal(found, found.length - keep, found.length));
        } else if is_last || found.length > 2 * CONTEXT {
            parts.push(equal(found, 0, keep));
            hunks.push(Hunk { parts: std::mem::take(&mut parts) });
            parts.push(equal(found, found.length - keep, found.length));
        } else {
            parts.push(equal(found, 0, found.length));
        }
    }
    if parts.iter().any(|part| !part.is_equal) {
        hunks.push(Hunk { parts });
    }
    hunks
}

fn equal(found: &Match, start: usize, end: usize) -> Part {
    Part { is_equal: true, old: (found.old + start, found.old + end), new: (found.new + start, found.new + end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_shown_with_its_surroundings() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh";
        assert_eq!(unified(old, &old.replace('e', "E")), "@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n");
        assert_eq!(unified(old, old), "");
    }

    #[test]
    fn far_differences_are_apart() {
        let old: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        let mut new = old.clone();
        new[1] = "x".to_owned();
        new.remove(15);
        assert_eq!(
            unified(&old.join("\n"), &new.join("\n")),
            "@@ -1,5 +1,5 @@\n 0\n-1\n+x\n 2\n 3\n 4\n@@ -13,7 +13,6 @@\n 12\n 13\n 14\n-15\n 16\n 17\n 18\n"
        );
    }

    #[test]
    fn near_differences_are_together() {
        assert_eq!(unified("a\nb\nc\nd\ne", "A\nb\nc\nd\nE"), "@@ -1,5 +1,5 @@\n-a\n+A\n b\n c\n d\n-e\n+E\n");
    }
}
