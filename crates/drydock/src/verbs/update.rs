//! `update`: an object takes the place of the one that is stored.

use super::write::{Source, Write};
use crate::body;
use crate::cluster::{Cluster, Reply};
use crate::options::WriteOptions;
use crate::request::Request;
use crate::status::Status;
use crate::store::Key;
use std::sync::Arc;

impl Cluster {
    pub(crate) fn update(&mut self, request: &Request) -> Result<Reply, Status> {
        let options = WriteOptions::read(&request.query, "UpdateOptions", false)?;
        let target = &request.target;
        let kind = Arc::clone(&target.kind);
        let write = Write::new(request, &options);
        let key = Key::new(target.storage_namespace(), target.object_name());
        if write.subresource == Some("scale") {
            return self.update_scale(request, &write);
        }
        let read = body::read(&request.body, &kind, options.field_validation)?;
        check_name(read.object.name(), &key.name)?;
        let creates = kind.rules().create_on_update && write.subresource.is_none();
        if creates && self.fetch(&kind, &key).is_none() {
            let object = self.insert(&kind, &key.namespace, read.object, &write)?;
            return Ok(Reply::object(201, &kind, object).warn(read.warnings));
        }
        let object = self.modify(&kind, &key, &write, Source::Update, |_, _| Ok(read.object))?;
        Ok(Reply::object(200, &kind, object).warn(read.warnings))
    }
}

/// The object must call itself what the path says.
pub(super) fn check_name(name: &str, expected: &str) -> Result<(), Status> {
    if name.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({expected} based on URL) was undeterminable: name must be provided"
        )));
    }
    if name != expected {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({expected})"
        )));
    }
    Ok(())
}
