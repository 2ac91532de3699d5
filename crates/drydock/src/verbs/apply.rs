//! Server-side apply: an object is made or changed so that it says what its manager says.

use super::update::check_name;
use super::write::{Source, Write};
use crate::body;
use crate::cluster::{Cluster, Reply};
use crate::kinds::Kind;
use crate::object::Object;
use crate::options::WriteOptions;
use crate::patch;
use crate::request::Request;
use crate::schema::decode;
use crate::status::Status;
use crate::store::Key;
use serde_json::Value;
use std::sync::Arc;

impl Cluster {
    pub(super) fn apply(
        &mut self,
        request: &Request,
        options: &WriteOptions,
        write: Write<'_>,
        applied: Value,
    ) -> Result<Reply, Status> {
        let applied = Object::from_value(applied).map_err(|_| Status::bad_request("expected an object"))?;
        if write.subresource == Some("scale") {
            return self.apply_scale(request, &write, &applied, options.force);
        }
        let kind = Arc::clone(&request.target.kind);
        let key = Key::new(request.target.storage_namespace(), request.target.object_name());
        let applied = named(applied, &key);
        check_name(applied.name(), &key.name)?;
        let write = Write { tracked: false, ..write };
        if self.fetch(&kind, &key).is_some() {
            let mut warnings = Vec::new();
            let object = self.modify(&kind, &key, &write, Source::Patch, |cluster, old| {
                let merged = cluster.merge_applied(&kind, &write, Some(old), &applied, options.force)?;
                let (new, noted) = decode_applied(&kind, &applied, merged, options)?;
                warnings = noted;
                Ok(new)
            })?;
            return Ok(Reply::object(200, &kind, object).warn(warnings));
        }
        if write.subresource.is_some() {
            return Err(Status::not_found(&kind, &key.name));
        }
        if !applied.uid().is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                applied.uid()
            );
            return Err(Status::conflict(&kind, &key.name, &why));
        }
        let merged = self.merge_applied(&kind, &write, None, &applied, options.force)?;
        let (object, warnings) = decode_applied(&kind, &applied, merged, options)?;
        let object = self.insert(&kind, &key.namespace, object, &write)?;
        Ok(Reply::object(201, &kind, object).warn(warnings))
    }

    fn merge_applied(
        &self,
        kind: &Kind,
        write: &Write<'_>,
        live: Option<&Arc<Object>>,
        applied: &Object,
        force: bool,
    ) -> Result<Object, Status> {
        self.with_books(kind, write, |books| {
            patch::apply::apply(books, &kind.kind, live.map(AsRef::as_ref), applied, force)
        })
    }
}

/// A configuration need not repeat what the path says.
fn named(mut applied: Object, key: &Key) -> Object {
    if applied.name().is_empty() {
        applied.set(&["metadata", "name"], &*key.name);
    }
    applied
}

fn decode_applied(
    kind: &Kind,
    applied: &Object,
    merged: Object,
    options: &WriteOptions,
) -> Result<(Object, Vec<String>), Status> {
    let refuse = |why: String| patch::apply::unreadable(applied, &why);
    let decoded = decode::decode(Some(kind.schema()), merged.into_value()).map_err(refuse)?;
    let warnings = body::strictly(decoded.strict, options.field_validation).map_err(refuse)?;
    let object = Object::from_value(decoded.value).map_err(|_| refuse("expected an object".to_owned()))?;
    Ok((object, warnings))
}
