//! `list`: many objects, whole or in pages that all show the same moment.

use super::get::parse_version;
use crate::cluster::{Answer, Cluster, List, Reply};
use crate::kinds::Kind;
use crate::object::Object;
use crate::options::{ListOptions, Match};
use crate::request::Request;
use crate::schema::syntax;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::Status;
use crate::store::Key;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{DecodeError, Engine as _};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which objects are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Filter {
    pub(crate) fn new(request: &Request, options: &ListOptions) -> Result<Self, Status> {
        let kind = &request.target.kind;
        let mut fields = options.field_selector.clone();
        // A name in the path of a watch selects that object.
        if let Some(name) = &request.target.name {
            fields = format!("metadata.name={name}{}{fields}", if fields.is_empty() { "" } else { "," });
        }
        Ok(Self {
            namespace: request.target.namespace.clone(),
            labels: LabelSelector::parse(&options.label_selector).map_err(Status::bad_request)?,
            fields: FieldSelector::parse(&fields, kind).map_err(Status::bad_request)?,
        })
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| object.namespace() == namespace)
            && self.labels.matches(object.at(&["metadata", "labels"]))
            && self.fields.matches(object)
    }

    fn selects(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }
}

/// How tokens are written. As in Go, the last bits may be anything.
const TOKEN: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));
const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// Where a list goes on, and at which moment.
#[derive(Serialize, Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

const TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list \
     without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing \
     with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the \
     first chunk was returned and now may show up in the list.";

impl Token {
    fn new(revision: i64, last: &Object) -> Self {
        let start = match last.namespace() {
            "" => format!("{}\0", last.name()),
            namespace => format!("{namespace}/{}\0", last.name()),
        };
        Self { v: TOKEN_VERSION.to_owned(), rv: revision, start }
    }

    fn write(&self) -> String {
        TOKEN.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn read(text: &str) -> Result<Self, Status> {
        let refuse =
            |why: String| Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let json = TOKEN.decode(text.trim_end_matches('=')).map_err(|error| {
            let offset = match error {
                DecodeError::InvalidByte(offset, _) | DecodeError::InvalidLastSymbol(offset, _) => offset,
                DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => text.len(),
            };
            refuse(format!("illegal base64 data at input byte {offset}"))
        })?;
        if let Some(error) = syntax::error(&json) {
            return Err(refuse(error));
        }
        let token: Self = serde_json::from_slice(&json).map_err(|error| refuse(error.to_string()))?;
        match (token.v.as_str(), token.rv) {
            (TOKEN_VERSION, 0) => {
                Err(refuse(format!("incorrect encoded start resourceVersion (version {TOKEN_VERSION})")))
            }
            (TOKEN_VERSION, _) => Ok(token),
            (version, _) => Err(refuse(format!("server does not recognize this encoded version {version}"))),
        }
    }

    fn key(&self) -> Key {
        let start = self.start.trim_end_matches('\0');
        let (namespace, name) = start.split_once('/').unwrap_or(("", start));
        Key::new(namespace, name)
    }
}

impl Cluster {
    pub(crate) fn list(&mut self, request: &Request) -> Result<Reply, Status> {
        let options = ListOptions::read(&request.query, false)?;
        let filter = Filter::new(request, &options)?;
        let list = self.select(&request.target.kind, &filter, &options)?;
        Ok(Reply { answer: Answer::List(list), warnings: Vec::new() })
    }

    /// The objects that a list shows.
    pub(crate) fn select(&self, kind: &Arc<Kind>, filter: &Filter, options: &ListOptions) -> Result<List, Status> {
        let current = self.store.revision();
        let token = match options.continue_token.as_str() {
            "" => None,
            text => Some(Token::read(text)?),
        };
        let asked = parse_version(&options.resource_version)
            .map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
        if asked > current {
            return Err(Status::too_large_version(asked, current));
        }
        // A token of an inconsistent list has no moment of its own: it goes on with what is there now.
        let revision = match &token {
            Some(token) => u64::try_from(token.rv).ok().filter(|revision| *revision > 0).unwrap_or(current),
            None if options.version_match == Some(Match::Exact) => asked,
            None => current,
        };
        let after = token.as_ref().map(Token::key);
        let Some(snapshot) = self.store.at(&kind.storage, revision) else {
            return Err(self.too_old(token, revision, kind));
        };
        let mut items = Vec::new();
        let mut candidates =
            snapshot.list(filter.namespace.as_deref(), after.as_ref()).map(|object| kind.served(&object));
        let limit = options.limit.unwrap_or(usize::MAX);
        let mut more = None;
        for object in candidates.by_ref().filter(|object| filter.matches(object)) {
            if items.len() == limit {
                more = items.last();
                break;
            }
            items.push(object);
        }
        let continue_token = more.map(|last: &Arc<Object>| {
            let revision = token.as_ref().map_or(i64::try_from(revision).unwrap_or(i64::MAX), |token| token.rv);
            Token::new(revision, last).write()
        });
        let remaining = (continue_token.is_some() && !filter.selects()).then(|| candidates.count() + 1);
        Ok(List { kind: Arc::clone(kind), items, revision, continue_token, remaining })
    }

    fn too_old(&self, token: Option<Token>, revision: u64, kind: &Kind) -> Status {
        match token {
            Some(token) => Status::expired(TOO_OLD).with_continue(Token { rv: -1, ..token }.write()),
            None => Status::too_old(revision, self.store.oldest(&kind.storage)),
        }
    }
}
