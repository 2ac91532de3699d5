//! `patch`: parts of an object change, in one of four ways.

use super::update::check_name;
use super::write::{Source, Write};
use crate::body::{self, media_type};
use crate::cluster::{Cluster, Reply};
use crate::kinds::Kind;
use crate::object::Object;
use crate::options::{FieldValidation, WriteOptions};
use crate::patch;
use crate::request::Request;
use crate::schema::{Schema, decode};
use crate::status::Status;
use crate::store::Key;
use serde_json::Value;
use std::sync::Arc;

/// The ways to patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    fn of(content_type: &str, kind: &Kind) -> Result<Self, Status> {
        match media_type(content_type) {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if kind.custom().is_none() => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            "application/strategic-merge-patch+json" => Err(Status::unsupported_media_type(&[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
            ])),
            _ => Err(Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")),
        }
    }
}

impl Cluster {
    pub(crate) fn patch(&mut self, request: &Request) -> Result<Reply, Status> {
        let kind = Arc::clone(&request.target.kind);
        let patch_type = PatchType::of(&request.body.content_type, &kind)?;
        let options = WriteOptions::read(&request.query, "PatchOptions", patch_type == PatchType::Apply)?;
        let write = Write::new(request, &options);
        let (patch, mut warnings) = read(&request.body.bytes, patch_type, options.field_validation)?;
        if patch_type == PatchType::Apply {
            return self.apply(request, &options, write, patch).map(|reply| reply.warn(warnings));
        }
        if write.subresource == Some("scale") {
            return self.patch_scale(request, &write, |schema, scale| change(patch_type, schema, scale, &patch));
        }
        let key = Key::new(request.target.storage_namespace(), request.target.object_name());
        let object = self.modify(&kind, &key, &write, Source::Patch, |_, old| {
            let mut value = Object::clone(old).into_value();
            change(patch_type, kind.schema(), &mut value, &patch)?;
            let (new, noted) = decode_patched(&kind, patch_type, value, &patch, &options)?;
            warnings.extend(noted);
            check_name(new.name(), &key.name)?;
            Ok(new)
        })?;
        Ok(Reply::object(200, &kind, object).warn(warnings))
    }
}

/// Reads a patch as it stands: what it leaves out, nulls and empty values all mean something.
fn read(bytes: &[u8], patch_type: PatchType, validation: FieldValidation) -> Result<(Value, Vec<String>), Status> {
    let refuse = |error: String| match patch_type {
        PatchType::Strategic => Status::bad_request(error),
        _ => Status::bad_request(format!("error decoding patch: {error}")),
    };
    let decoded = match patch_type {
        PatchType::Apply => {
            let refuse = |error: String| Status::bad_request(format!("error decoding YAML: {error}"));
            decode::decode(None, body::yaml(bytes).map_err(refuse)?).map_err(refuse)?
        }
        _ => decode::decode_json(None, bytes).map_err(refuse)?,
    };
    let mut strict = decoded.strict;
    if patch_type == PatchType::Json && validation != FieldValidation::Ignore {
        strict.extend(patch::json::check(&decoded.value)?);
    }
    let warnings = body::strictly(strict, validation).map_err(Status::bad_request)?;
    Ok((decoded.value, warnings))
}

fn change(patch_type: PatchType, schema: &Schema, value: &mut Value, patch: &Value) -> Result<(), Status> {
    match patch_type {
        PatchType::Json => patch::json::apply(value, patch),
        PatchType::Strategic => patch::strategic::apply(schema.root(), value, patch),
        PatchType::Merge | PatchType::Apply => patch::merge::apply(value, patch),
    }
}

/// Reads a patched object as if it had been sent, with the server's words for what is wrong with it.
fn decode_patched(
    kind: &Kind,
    patch_type: PatchType,
    value: Value,
    patch: &Value,
    options: &WriteOptions,
) -> Result<(Object, Vec<String>), Status> {
    let patched = value.clone();
    let refuse = |why: String| match patch_type {
        PatchType::Strategic => patch::unreadable_strategic(patch, &why),
        _ => patch::unreadable(&patched, &why),
    };
    let decoded = decode::decode(Some(kind.schema()), value).map_err(refuse)?;
    let warnings = body::strictly(decoded.strict, options.field_validation).map_err(refuse)?;
    let object = Object::from_value(decoded.value).map_err(|_| refuse("expected an object".to_owned()))?;
    Ok((object, warnings))
}
