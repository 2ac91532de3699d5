//! The go.mod of a module that requires another one and builds its programs as that one would.

use std::fmt::Write as _;

/// The lines of a go.mod that matter to a build.
#[derive(Debug, Default)]
pub(super) struct GoMod<'a> {
    go: &'a str,
    requires: Vec<&'a str>,
    settings: Vec<&'a str>,
    replaces: Vec<(&'a str, &'a str)>,
}

/// A go.mod of ours, and modules that only stand for others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) text: String,
    pub(super) stubs: Vec<Stub>,
}

/// An empty module in place of one that is never compiled and not published.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stub {
    pub(super) directory: String,
    pub(super) text: String,
}

impl<'a> GoMod<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let mut parsed = Self::default();
        let mut block = None;
        for line in text.lines() {
            let line = line.split("//").next().unwrap_or_default().trim();
            let (keyword, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            match block {
                Some(_) if line == ")" => block = None,
                Some(keyword) => parsed.take(keyword, line),
                None if rest == "(" => block = Some(keyword),
                None => parsed.take(keyword, rest.trim()),
            }
        }
        parsed
    }

    fn take(&mut self, keyword: &'a str, rest: &'a str) {
        match keyword {
            "go" => self.go = rest,
            "require" if !rest.is_empty() => self.requires.push(rest),
            "godebug" if !rest.is_empty() => self.settings.push(rest),
            "replace" => self.replaces.extend(rest.split_once(" => ")),
            _ => {}
        }
    }

    /// A module that requires this one, which is `module` in a version, and all that it requires. Replacements by
    /// directories cannot be followed: staged ones are published with the same minor and patch, the others are either
    /// replaced by the given lines or not needed.
    pub(super) fn requiring(&self, module: &str, version: &str, given: &[&str], staged: bool) -> Own {
        let mut text = format!("module jobwright.local/build\n\ngo {}\n\nrequire {module} v{version}\n", self.go);
        let mut stubs = Vec::new();
        for require in &self.requires {
            let _ = writeln!(text, "require {require}");
        }
        // The default is that of the main module, and a newer one than the compiler's is refused.
        for setting in &self.settings {
            let _ = writeln!(text, "godebug {setting}");
        }
        for replace in given {
            let _ = writeln!(text, "replace {replace}");
        }
        for (from, to) in &self.replaces {
            if !to.starts_with('.') {
                let _ = writeln!(text, "replace {from} => {to}");
            } else if staged && from.contains("/sample-") {
                let directory = format!("./stub/{}", from.rsplit('/').next().unwrap_or_default());
                let _ = writeln!(text, "replace {from} => {directory}");
                stubs.push(Stub { directory, text: format!("module {from}\n\ngo {}\n", self.go) });
            } else if staged {
                let published = version.split_once('.').map_or(version, |(_, rest)| rest);
                let _ = writeln!(text, "replace {from} => {from} v0.{published}");
            }
        }
        Own { text, stubs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPSTREAM: &str = "module k8s.io/kubernetes\n\ngo 1.24.0\n\ngodebug (\n\tdefault=go1.24\n)\n\n\
        require example.com/one v1.0.0\n\nrequire (\n\texample.com/two v2.0.0 // indirect\n)\n\n\
        replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tk8s.io/sample-controller => ./staging/x\n)\n\
        replace example.com/two => example.com/fork v2.0.1\n";

    #[test]
    fn staged_modules_are_taken_from_the_registry_and_samples_are_empty() {
        let own = GoMod::parse(UPSTREAM).requiring("k8s.io/kubernetes", "1.34.10", &[], true);
        let lines: Vec<&str> = own.text.lines().skip(4).collect();
        let expected = [
            "require k8s.io/kubernetes v1.34.10",
            "require example.com/one v1.0.0",
            "require example.com/two v2.0.0",
            "godebug default=go1.24",
            "replace k8s.io/api => k8s.io/api v0.34.10",
            "replace k8s.io/sample-controller => ./stub/sample-controller",
            "replace example.com/two => example.com/fork v2.0.1",
        ];
        assert_eq!(lines, expected);
        let text = "module k8s.io/sample-controller\n\ngo 1.24.0\n".to_owned();
        assert_eq!(own.stubs, [Stub { directory: "./stub/sample-controller".to_owned(), text }]);
    }

    #[test]
    fn directories_of_other_modules_are_dropped_for_what_is_given() {
        let upstream = "module m\n\ngo 1.24\n\nreplace example.com/engine => ./engine\n";
        let own =
            GoMod::parse(upstream).requiring("m", "3.0.0", &["example.com/engine => example.com/engine v1"], false);
        assert!(
            own.text.ends_with("require m v3.0.0\nreplace example.com/engine => example.com/engine v1\n"),
            "{own:?}"
        );
    }
}
