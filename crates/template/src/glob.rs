//! Patterns of paths, as gobwas/glob matches them with `/` as the separator: `*`, `**`, `?`, `[a-z]`, `{a,b}`.

/// A pattern.
pub(crate) struct Glob {
    /// Alternatives of `{…}` are expanded.
    alternatives: Vec<Vec<Part>>,
}

#[derive(Clone, Debug)]
enum Part {
    Literal(char),
    /// Any one character but `/`.
    Any,
    /// Any characters but `/`.
    Run,
    /// Any characters.
    Everything,
    /// One of these characters, or none of them.
    Class(Vec<(char, char)>, bool),
}

/// Alternatives beyond this number are not tried.
const ALTERNATIVES: usize = 4096;

impl Glob {
    /// Reads a pattern. One that is broken matches everything, as in Helm.
    pub(crate) fn new(pattern: &str) -> Self {
        let characters: Vec<char> = pattern.chars().collect();
        let mut at = 0;
        let alternatives = sequence(&characters, &mut at, 0).filter(|_| at == characters.len());
        Self { alternatives: alternatives.unwrap_or_else(|| vec![vec![Part::Everything]]) }
    }

    /// Whether a path matches.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let path: Vec<char> = path.chars().collect();
        self.alternatives.iter().any(|parts| fits(parts, &path))
    }
}

/// Reads up to the end, or to what ends an alternative.
fn sequence(pattern: &[char], at: &mut usize, depth: usize) -> Option<Vec<Vec<Part>>> {
    if depth > 20 {
        return None;
    }
    let mut found: Vec<Vec<Part>> = vec![Vec::new()];
    while let Some(character) = pattern.get(*at) {
        let part = match character {
            ',' | '}' if depth > 0 => return Some(found),
            '\\' => {
                *at += 1;
                Part::Literal(*pattern.get(*at)?)
            }
            '*' if pattern.get(*at + 1) == Some(&'*') => {
                *at += 1;
                Part::Everything
            }
            '*' => Part::Run,
            '?' => Part::Any,
            '[' => class(pattern, at)?,
            '{' => {
                let mut choices = Vec::new();
                loop {
                    *at += 1;
                    choices.extend(sequence(pattern, at, depth + 1)?);
                    match pattern.get(*at)? {
                        ',' => {}
                        _ => break,
                    }
                }
                if found.len() * choices.len() > ALTERNATIVES {
                    return None;
                }
                found = found
                    .iter()
                    .flat_map(|before| choices.iter().map(|after| [before.clone(), after.clone()].concat()))
                    .collect();
                *at += 1;
                continue;
            }
            '}' => return None,
            other => Part::Literal(*other),
        };
        for parts in &mut found {
            parts.push(part.clone());
        }
        *at += 1;
    }
    (depth == 0).then_some(found)
}

fn class(pattern: &[char], at: &mut usize) -> Option<Part> {
    *at += 1;
    let is_negated = pattern.get(*at) == Some(&'!');
    if is_negated {
        *at += 1;
    }
    let mut ranges = Vec::new();
    loop {
        let mut from = *pattern.get(*at)?;
        if from == ']' {
            return (!ranges.is_empty()).then_some(Part::Class(ranges, is_negated));
        }
        if from == '\\' {
            *at += 1;
            from = *pattern.get(*at)?;
        }
        let is_range = pattern.get(*at + 1) == Some(&'-') && pattern.get(*at + 2).is_some_and(|to| *to != ']');
        let to = if is_range { pattern[*at + 2] } else { from };
        if to < from {
            return None;
        }
        ranges.push((from, to));
        *at += if is_range { 3 } else { 1 };
    }
}

/// Whether parts match a path; runs are extended only where what follows does not match, so it takes no longer than the
/// product of both lengths.
fn fits(parts: &[Part], path: &[char]) -> bool {
    let mut reachable = vec![false; path.len() + 1];
    reachable[0] = true;
    for part in parts {
        let mut next = vec![false; path.len() + 1];
        match part {
            Part::Run | Part::Everything => {
                let crosses = matches!(part, Part::Everything);
                let mut is_open = false;
                for at in 0..=path.len() {
                    if at > 0 && path[at - 1] == '/' && !crosses {
                        is_open = false;
                    }
                    is_open |= reachable[at];
                    next[at] = is_open;
                }
            }
            _ => {
                for (at, character) in path.iter().enumerate() {
                    let is_match = match part {
                        Part::Literal(wanted) => wanted == character,
                        Part::Any => *character != '/',
                        Part::Class(ranges, is_negated) => {
                            ranges.iter().any(|(from, to)| (from..=to).contains(&character)) != *is_negated
                        }
                        Part::Run | Part::Everything => false,
                    };
                    next[at + 1] = reachable[at] && is_match;
                }
            }
        }
        reachable = next;
    }
    reachable[path.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_as_gobwas_matches_them() {
        for (pattern, path, expected) in [
            ("*.txt", "a.txt", true),
            ("*.txt", "a/b.txt", false),
            ("**.txt", "a/b.txt", true),
            ("files/*", "files/a", true),
            ("files/**", "files/a/b", true),
            ("{a,b}/?.[xy]", "b/1.x", true),
            ("{a,b}/?.[!xy]", "b/1.x", false),
            ("a{,b}c", "ac", true),
            ("a[a-c]", "ab", true),
            (r"\*", "*", true),
            ("[", "anything/at all", true),
            ("**/x", "x", false),
            ("", "", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(path), expected, "{pattern} {path}");
        }
    }
}
