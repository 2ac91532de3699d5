use super::write::Write;
use crate::cluster::{Cluster, Reply};
use crate::options::WriteOptions;
use crate::request::Request;
use crate::status::Status;
use serde_json::Value;
impl Cluster {
    pub(super) fn apply(&mut self, _: &Request, _: &WriteOptions, _: Write<'_>, _: Value) -> Result<Reply, Status> {
        Err(Status::unknown_method())
    }
}
