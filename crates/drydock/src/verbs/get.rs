//! `get`: one object.

use crate::cluster::{Cluster, Reply};
use crate::request::Request;
use crate::status::Status;
use crate::store::Key;

impl Cluster {
    pub(crate) fn get(&mut self, request: &Request) -> Result<Reply, Status> {
        let target = &request.target;
        if target.subresource.as_deref() == Some("log") {
            return self.log(request);
        }
        let key = Key::new(target.storage_namespace(), target.object_name());
        self.wait_for_version(request.query.text("resourceVersion"))?;
        let object = self.fetch(&target.kind, &key).ok_or_else(|| Status::not_found(&target.kind, &key.name))?;
        match target.subresource.as_deref() {
            Some("scale") => super::scale::get_scale(&target.kind, &object),
            _ => Ok(Reply::object(200, &target.kind, object)),
        }
    }

    /// A version that is not there yet cannot be read.
    fn wait_for_version(&self, version: &str) -> Result<(), Status> {
        let version = parse_version(version).map_err(|why| Status::new(500, "", why))?;
        let current = self.store.revision();
        if version > current { Err(Status::too_large_version(version, current)) } else { Ok(()) }
    }
}

/// A resourceVersion as a number; absent is zero.
pub(crate) fn parse_version(version: &str) -> Result<u64, String> {
    if version.is_empty() {
        return Ok(0);
    }
    version.parse().map_err(|_| {
        format!("resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: invalid syntax")
    })
}
