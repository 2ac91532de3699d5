//! `create`: a new object, or a question.

use super::write::Write;
use crate::access;
use crate::body;
use crate::cluster::{Cluster, Reply};
use crate::kinds::Kind;
use crate::kinds::table::Verbs;
use crate::object::Object;
use crate::options::WriteOptions;
use crate::request::Request;
use crate::status::Status;
use std::sync::Arc;

/// How often a generated name that is taken is generated again.
const GENERATE_ATTEMPTS: usize = 8;

impl Cluster {
    pub(crate) fn create(&mut self, request: &Request) -> Result<Reply, Status> {
        let options = WriteOptions::read(&request.query, "CreateOptions", false)?;
        let kind = Arc::clone(&request.target.kind);
        match request.target.subresource.as_deref() {
            Some("binding") => return self.bind(request),
            Some("eviction") => return self.evict(request),
            Some("token") => return self.request_token(request),
            _ => {}
        }
        let read = body::read(&request.body, &kind, options.field_validation)?;
        if kind.verbs == Verbs::CreateOnly {
            return self.answer_question(request, &kind, read.object);
        }
        let namespace = request.target.storage_namespace();
        let write = Write::new(request, &options);
        let object = self.insert_generated(&kind, namespace, read.object, &write)?;
        Ok(Reply::object(201, &kind, object).warn(read.warnings))
    }

    /// Takes a new object in; where a generated name is taken, generates another one.
    fn insert_generated(
        &mut self,
        kind: &Arc<Kind>,
        namespace: &str,
        object: Object,
        write: &Write<'_>,
    ) -> Result<Arc<Object>, Status> {
        let generated = object.name().is_empty() && !object.text(&["metadata", "generateName"]).is_empty();
        for _ in 1..GENERATE_ATTEMPTS {
            match self.insert(kind, namespace, object.clone(), write) {
                Err(status) if generated && status.reason == "AlreadyExists" => {}
                result => return result,
            }
        }
        self.insert(kind, namespace, object, write)
    }

    fn answer_question(&mut self, request: &Request, kind: &Arc<Kind>, question: Object) -> Result<Reply, Status> {
        if kind.kind == "Binding" {
            return self.bind(request);
        }
        let valid = |token: &str| self.tokens.get(token).filter(|token| token.is_valid(self.now));
        let answer = access::review(&self.store, &request.user, question, valid);
        let answer = answer.ok_or_else(|| Status::method_not_allowed(kind, "create"))?;
        Ok(Reply::other(201, answer.into_value()))
    }
}
