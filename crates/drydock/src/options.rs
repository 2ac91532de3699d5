//! Query parameters, read as the API server reads them.

use crate::field::{FieldError, Path};
use crate::status::Status;
use percent_encoding::percent_decode_str;
use serde_json::json;
use std::collections::BTreeMap;

/// The decoded parameters of a query string. The first value of each counts, but for `dryRun`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            parameters.entry(decode(name)).or_default().push(decode(value));
        }
        Self(parameters)
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(|values| values.first()).map_or("", String::as_str)
    }

    fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// A flag, which is absent, `false` or `0`, or else true.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let value = self.0.get(name)?.first()?;
        Some(!matches!(value.to_lowercase().as_str(), "false" | "0"))
    }

    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Status> {
        match self.text(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|error: std::num::ParseIntError| {
                let why = match error.kind() {
                    std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
                    _ => "invalid syntax",
                };
                Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
            }),
        }
    }
}

fn decode(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// How strictly unknown and doubled fields are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// What comes with a write.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_manager: String,
    pub(crate) field_validation: FieldValidation,
    /// Server-side apply takes fields from others.
    pub(crate) force: bool,
}

impl WriteOptions {
    /// Reads the options of a create (`CreateOptions`), update or patch.
    pub(crate) fn read(query: &Query, options: &str, apply: bool) -> Result<Self, Status> {
        let mut errors = Vec::new();
        let force = query.flag("force");
        if options == "PatchOptions" {
            if !apply && force == Some(true) {
                errors.push(FieldError::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
            }
            if apply && query.text("fieldManager").is_empty() {
                errors.push(FieldError::required(&Path::new("fieldManager"), "is required for apply patch"));
            }
        }
        let field_manager = query.text("fieldManager");
        check_manager(field_manager, &mut errors);
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        let field_validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(&Path::new("fieldValidation"), other, &supported));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(Status::invalid_options(options, &errors));
        }
        Ok(Self {
            dry_run,
            field_manager: field_manager.to_owned(),
            field_validation,
            force: force.unwrap_or_default(),
        })
    }
}

fn check_manager(manager: &str, errors: &mut Vec<FieldError>) {
    let path = Path::new("fieldManager");
    if manager.len() > 128 {
        errors.push(FieldError::too_long(&path, 128));
    }
    for (index, character) in manager.chars().enumerate() {
        if character.is_control() {
            errors.push(FieldError::invalid(
                &path,
                manager,
                format!("invalid character {character:?} (at position {index})"),
            ));
        }
    }
}

pub(crate) fn dry_run(values: &[String], errors: &mut Vec<FieldError>) -> bool {
    if values.iter().any(|value| value != "All") {
        errors.push(FieldError::not_supported(&Path::new("dryRun"), json!(values), &["All"]));
    }
    !values.is_empty()
}

/// How a resourceVersion is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Exact,
    NotOlderThan,
}

/// What comes with a list or watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) limit: Option<usize>,
    pub(crate) continue_token: String,
    pub(crate) resource_version: String,
    pub(crate) version_match: Option<Match>,
    pub(crate) bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<u64>,
}

impl ListOptions {
    pub(crate) fn read(query: &Query, watch: bool) -> Result<Self, Status> {
        let options = Self {
            label_selector: query.text("labelSelector").to_owned(),
            field_selector: query.text("fieldSelector").to_owned(),
            limit: query.integer("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0),
            continue_token: query.text("continue").to_owned(),
            resource_version: query.text("resourceVersion").to_owned(),
            version_match: match query.text("resourceVersionMatch") {
                "Exact" => Some(Match::Exact),
                "NotOlderThan" => Some(Match::NotOlderThan),
                _ => None,
            },
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or_default(),
            send_initial_events: query.flag("sendInitialEvents"),
            timeout_seconds: query.integer("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok()),
        };
        let errors = options.check(query.text("resourceVersionMatch"), watch);
        if errors.is_empty() { Ok(options) } else { Err(Status::invalid_options("ListOptions", &errors)) }
    }

    fn check(&self, version_match: &str, watch: bool) -> Vec<FieldError> {
        let path = Path::new("resourceVersionMatch");
        let forbidden = |detail: &str| vec![FieldError::forbidden(&path, detail)];
        if watch {
            return match (self.send_initial_events, version_match) {
                (None, "") | (Some(_), "NotOlderThan") => Vec::new(),
                (None, _) => {
                    forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
                }
                (Some(_), _) => forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
            };
        }
        if self.send_initial_events.is_some() {
            let path = Path::new("sendInitialEvents");
            return vec![FieldError::forbidden(&path, "sendInitialEvents is forbidden for list")];
        }
        if version_match.is_empty() {
            return Vec::new();
        }
        if self.resource_version.is_empty() {
            return forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !self.continue_token.is_empty() {
            return forbidden("resourceVersionMatch is forbidden when continue is provided");
        }
        match self.version_match {
            None => vec![FieldError::not_supported(&path, version_match, &["Exact", "NotOlderThan", ""])],
            Some(Match::Exact) if self.resource_version == "0" => {
                forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
            }
            Some(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(query: &str) -> Result<ListOptions, String> {
        ListOptions::read(&Query::parse(query), query.contains("watch=1")).map_err(|status| status.message)
    }

    #[test]
    fn parameters_are_decoded() {
        let options = list("labelSelector=a%20in+(b%2Cc)&limit=5&limit=9").unwrap();
        assert_eq!(options.label_selector, "a in (b,c)");
        assert_eq!(options.limit, Some(5));
        assert_eq!(list("limit=-1").unwrap().limit, None);
        assert_eq!(list("limit=x").unwrap_err(), "strconv.ParseInt: parsing \"x\": invalid syntax");
    }

    #[test]
    fn options_that_do_not_fit_together_are_refused() {
        let prefix = "ListOptions.meta.k8s.io \"\" is invalid: ";
        for (query, refusal) in [
            (
                "resourceVersionMatch=Exact",
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            (
                "resourceVersionMatch=Foo&resourceVersion=1",
                "resourceVersionMatch: Unsupported value: \"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
            ),
            (
                "watch=1&resourceVersionMatch=NotOlderThan",
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ),
            (
                "watch=1&sendInitialEvents=true",
                "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ),
            ("sendInitialEvents=true", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
        ] {
            assert_eq!(list(query).unwrap_err(), format!("{prefix}{refusal}"));
        }
    }

    #[test]
    fn write_options_are_checked() {
        let read = |query: &str| WriteOptions::read(&Query::parse(query), "CreateOptions", false);
        assert!(read("dryRun=All&dryRun=All").unwrap().dry_run);
        assert_eq!(
            read("dryRun=x").unwrap_err().message,
            r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All""#
        );
        let apply = WriteOptions::read(&Query::default(), "PatchOptions", true).unwrap_err();
        assert_eq!(
            apply.message,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
        );
    }
}
