//! `patch`: parts of an object change, in one of four ways.

use super::update::check_name;
use super::write::{Source, Write};
use crate::body::{self, media_type};
use crate::cluster::{Cluster, Reply};
use crate::field::{FieldError, Path, aggregate};
use crate::kinds::Kind;
use crate::object::Object;
use crate::options::WriteOptions;
use crate::patch;
use crate::request::Request;
use crate::schema::decode;
use crate::status::Status;
use crate::store::Key;
use serde_json::{Value, json};
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
        let patch = parse(&request.body.bytes, patch_type)?;
        if patch_type == PatchType::Apply {
            return self.apply(request, &options, write, patch);
        }
        if write.subresource == Some("scale") {
            return self.change_scale(request, &write, |scale| {
                let mut value = scale.into_value();
                change(patch_type, None, &mut value, &patch)?;
                Object::from_value(value).map_err(|_| Status::bad_request("a Scale is an object"))
            });
        }
        let key = Key::new(request.target.storage_namespace(), request.target.object_name());
        let mut warnings = Vec::new();
        let object = self.modify(&kind, &key, &write, Source::Patch, |_, old| {
            let mut value = Object::clone(old).into_value();
            change(patch_type, Some(&kind), &mut value, &patch)?;
            let (new, noted) = decode_patched(&kind, value, &options)?;
            warnings = noted;
            check_name(new.name(), &key.name)?;
            Ok(new)
        })?;
        Ok(Reply::object(200, &kind, object).warn(warnings))
    }
}

fn parse(bytes: &[u8], patch_type: PatchType) -> Result<Value, Status> {
    match patch_type {
        PatchType::Apply => {
            body::yaml(bytes).map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))
        }
        PatchType::Strategic => {
            serde_json::from_slice(bytes).map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))
        }
        PatchType::Json | PatchType::Merge => {
            serde_json::from_slice(bytes).map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))
        }
    }
}

fn change(patch_type: PatchType, kind: Option<&Kind>, value: &mut Value, patch: &Value) -> Result<(), Status> {
    match patch_type {
        PatchType::Json => patch::json::apply(value, patch)?,
        PatchType::Strategic => match kind {
            Some(kind) => patch::strategic::apply(kind.schema().root(), value, patch)?,
            None => patch::merge::apply(value, patch),
        },
        PatchType::Merge | PatchType::Apply => patch::merge::apply(value, patch),
    }
    Ok(())
}

/// Reads a patched object as if it had been sent, with the server's words for what is wrong with it.
fn decode_patched(kind: &Kind, value: Value, options: &WriteOptions) -> Result<(Object, Vec<String>), Status> {
    let shown = value.to_string();
    let refuse = |why: String| {
        let error = FieldError::invalid(&Path::new("patch"), shown.clone(), why);
        let cause = json!({"reason": error.reason.cause(), "message": error.body(), "field": error.field});
        Status::new(422, "Invalid", format!(" \"\" is invalid: {}", aggregate(&[error]))).with_causes(vec![cause])
    };
    let decoded = decode::decode(Some(kind.schema()), value).map_err(&refuse)?;
    let warnings = body::strictly(decoded.strict, options.field_validation).map_err(&refuse)?;
    let object = Object::from_value(decoded.value).map_err(|_| refuse("expected an object".to_owned()))?;
    Ok((object, warnings))
}
