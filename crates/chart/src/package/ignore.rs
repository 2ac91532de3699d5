//! `.helmignore`, with Helm's matching, which is not Git's.

/// Patterns of what is no part of a chart.
#[derive(Debug, Default)]
pub(super) struct Rules {
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    glob: String,
    is_negated: bool,
    is_for_directories: bool,
    /// Whether the whole path is matched and not only its last part.
    is_for_paths: bool,
}

impl Rules {
    /// Reads patterns; `Err` has Helm's message.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Self::default();
        for line in text.lines() {
            rules.add(line)?;
        }
        Ok(rules)
    }

    /// Hidden files among the templates.
    pub(super) fn add_defaults(&mut self) {
        self.patterns.push(Pattern {
            glob: "templates/.?*".to_owned(),
            is_negated: false,
            is_for_directories: false,
            is_for_paths: true,
        });
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let rule = line.trim();
        if rule.is_empty() || rule.starts_with('#') {
            return Ok(());
        }
        if rule.contains("**") {
            return Err("double-star (**) syntax is not supported".to_owned());
        }
        if matches(rule, "abc").is_none() {
            return Err("syntax error in pattern".to_owned());
        }
        let (is_negated, rule) = rule.strip_prefix('!').map_or((false, rule), |rule| (true, rule));
        let (is_for_directories, rule) = rule.strip_suffix('/').map_or((false, rule), |rule| (true, rule));
        let is_for_paths = rule.contains('/');
        let glob = rule.strip_prefix('/').unwrap_or(rule).to_owned();
        self.patterns.push(Pattern { glob, is_negated, is_for_directories, is_for_paths });
        Ok(())
    }

    /// Whether a path is no part of the chart.
    pub(super) fn ignores(&self, path: &str, is_directory: bool) -> bool {
        for pattern in &self.patterns {
            let target = if pattern.is_for_paths { path } else { path.rsplit('/').next().unwrap_or(path) };
            let is_match = matches(&pattern.glob, target) == Some(true);
            if pattern.is_negated {
                if (pattern.is_for_directories && !is_directory) || !is_match {
                    return true;
                }
            } else if (is_directory || !pattern.is_for_directories) && is_match {
                return true;
            }
        }
        false
    }
}

/// `filepath.Match`; `None` if the pattern is broken.
pub(crate) fn matches(pattern: &str, name: &str) -> Option<bool> {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let mut reachable = vec![false; name.len() + 1];
    reachable[0] = true;
    let mut at = 0;
    while let Some(part) = pattern.get(at) {
        let mut next = vec![false; name.len() + 1];
        let mut step = |is_match: &dyn Fn(char) -> bool| {
            for (index, character) in name.iter().enumerate() {
                next[index + 1] = reachable[index] && is_match(*character);
            }
        };
        match part {
            '*' => {
                let mut is_open = false;
                for index in 0..=name.len() {
                    is_open &= index == 0 || name[index - 1] != '/';
                    is_open |= reachable[index];
                    next[index] = is_open;
                }
            }
            '?' => step(&|character| character != '/'),
            '[' => {
                at += 1;
                let is_negated = pattern.get(at) == Some(&'^');
                at += usize::from(is_negated);
                let mut ranges = Vec::new();
                loop {
                    if pattern.get(at) == Some(&']') && !ranges.is_empty() {
                        break;
                    }
                    let from = class_character(&pattern, &mut at)?;
                    let mut to = from;
                    if pattern.get(at) == Some(&'-') {
                        at += 1;
                        to = class_character(&pattern, &mut at)?;
                    }
                    ranges.push(from..=to);
                }
                step(&|character| {
                    character != '/' && ranges.iter().any(|range| range.contains(&character)) != is_negated
                });
            }
            '\\' => {
                at += 1;
                let wanted = *pattern.get(at)?;
                step(&|character| character == wanted);
            }
            wanted => step(&|character| character == *wanted),
        }
        reachable = next;
        at += 1;
    }
    Some(reachable[name.len()])
}

fn class_character(pattern: &[char], at: &mut usize) -> Option<char> {
    let mut character = *pattern.get(*at)?;
    if matches!(character, '-' | ']') {
        return None;
    }
    if character == '\\' {
        *at += 1;
        character = *pattern.get(*at)?;
    }
    *at += 1;
    Some(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_helm() {
        let rules = Rules::parse("# comment\n*.bak\n/top.txt\ndir/\na/*.tmp\n").expect("rules");
        for (path, is_directory, expected) in [
            ("x.bak", false, true),
            ("deep/x.bak", false, true),
            ("top.txt", false, true),
            ("deep/top.txt", false, false),
            ("dir", true, true),
            ("dir", false, false),
            ("a/b.tmp", false, true),
            ("a/b/c.tmp", false, false),
            ("values.yaml", false, false),
        ] {
            assert_eq!(rules.ignores(path, is_directory), expected, "{path}");
        }
        assert!(Rules::parse("**/x").is_err());
        assert!(Rules::parse("[").is_err());
        assert_eq!(matches("[a-c]?\\*", "bx*"), Some(true));
        assert_eq!(matches("[^a]", "a"), Some(false));
    }
}
