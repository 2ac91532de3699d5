//! Series of metrics by Prometheus' remote write, version 1.0: one of the labels and one of the annotations an object.

mod groups;
mod names;
mod protobuf;
mod series;

pub(crate) use groups::find_ambiguous;
pub(crate) use series::Series;

use super::address::show;
use super::http::{ATTEMPT, Post};
use super::open::Naming;
use super::{Form, Sink, SinkError};
use crate::backfill::batch::Batch;
use crate::backfill::transport::{Credentials, Transport};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Uri, header};
use jobwright_engine::{Clock, async_trait};
use serde_json::{Value, json};

/// Sends series to a server that speaks remote write.
pub struct RemoteWriteSink {
    uri: Uri,
    naming: Naming,
    post: Post,
}

const VERSION: HeaderName = HeaderName::from_static("x-prometheus-remote-write-version");

impl RemoteWriteSink {
    /// Sends series to this address.
    pub fn new(uri: Uri, naming: Naming, transport: Transport, credentials: Option<Credentials>, clock: Clock) -> Self {
        Self { uri, naming, post: Post { transport, credentials, clock, limit: ATTEMPT } }
    }
}

#[async_trait]
impl Sink for RemoteWriteSink {
    fn describe(&self) -> String {
        format!("remote-write:{}", show(&self.uri))
    }

    fn identity(&self) -> Value {
        json!([self.describe(), self.post.identity(&self.uri), self.form()])
    }

    fn form(&self) -> Form {
        Form::Series(self.naming.clone())
    }

    async fn send(&self, batch: &Batch) -> Result<(), SinkError> {
        let headers = vec![
            (header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf")),
            (header::CONTENT_ENCODING, HeaderValue::from_static("snappy")),
            (VERSION, HeaderValue::from_static("0.1.0")),
        ];
        self.post.send(&self.uri, batch, headers).await
    }
}

/// Compresses what is sent, as remote write wants it: one block, without a frame.
pub(crate) fn pack(body: &[u8]) -> std::io::Result<Bytes> {
    let packed = snap::raw::Encoder::new().compress_vec(body);
    packed.map(Bytes::from).map_err(std::io::Error::other)
}
