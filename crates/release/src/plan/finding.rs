//! Errors in a file, and where they are.

use std::ops::Range;
use std::path::PathBuf;

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The bytes of the text it is about.
    pub span: Range<usize>,
    /// The error.
    pub message: String,
    /// A suggested fix.
    pub help: Option<String>,
}

impl Finding {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A file with its errors.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{} {} in `{}`", .findings.len(), if .findings.len() == 1 { "error" } else { "errors" }, .file.display())]
pub struct Findings {
    /// The file.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
    /// The errors, in the order of the text.
    pub findings: Vec<Finding>,
}

/// The most similar of some names, if one is similar at all.
pub(crate) fn similar<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let near = names.map(|other| (strsim::damerau_levenshtein(&lower, &other.to_lowercase()), other));
    near.filter(|(distance, other)| *distance <= (other.len() / 3).max(1)).min().map(|(_, other)| other)
}

/// A hint at the most similar of some names.
pub(crate) fn did_you_mean<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    similar(name, names).map(|other| format!("did you mean `{other}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found_and_others_are_not() {
        let names = || ["components", "component", "after", "on"].into_iter();
        assert_eq!(similar("componets", names()), Some("components"));
        assert_eq!(similar("Component", names()), Some("component"));
        assert_eq!(similar("om", names()), Some("on"));
        assert_eq!(similar("zebra", names()), None);
    }
}
