//! From an object to its series.

use super::names::{kind_name, label_name, legal};
use super::protobuf::{bytes, double, int64};
use crate::backfill::cut::{Cutter, Fate, Unreadable};
use crate::backfill::kind::Kind;
use crate::backfill::sinks::open::Naming;
use jobwright_engine::Clock;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Writes series of the objects of a kind.
pub(crate) struct Series {
    kind: String,
    part: Part,
    /// The API group, where the name of the kind does not suffice.
    group: Option<String>,
    /// `cloudzero_pod_labels`
    labels: String,
    annotations: String,
    is_legal: bool,
    clock: Clock,
    /// An object without what is secret.
    line: Vec<u8>,
    message: Vec<u8>,
}

/// What the label is called that holds the name of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Namespace,
    Node,
    Pod,
    Workload,
}

impl Part {
    /// Only kinds of the core are what their names say: those of others may be in namespaces.
    fn of(kind: &Kind) -> Self {
        match kind.kind.as_str() {
            _ if !kind.group.is_empty() => Self::Workload,
            "Namespace" => Self::Namespace,
            "Node" => Self::Node,
            "Pod" => Self::Pod,
            _ => Self::Workload,
        }
    }
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    labels: Option<Map<'a>>,
    #[serde(borrow, default)]
    annotations: Option<Map<'a>>,
}

type Map<'a> = BTreeMap<Cow<'a, str>, Cow<'a, str>>;

impl Series {
    pub(crate) fn new(kind: &Kind, naming: &Naming, is_ambiguous: bool, clock: Clock) -> Self {
        let name = kind_name(&kind.kind);
        let metric = |what: &str| legal(&format!("{}_{name}_{what}", naming.prefix));
        Self {
            labels: metric("labels"),
            annotations: metric("annotations"),
            kind: name,
            part: Part::of(kind),
            group: is_ambiguous.then(|| kind.group.clone()),
            is_legal: naming.is_legal,
            clock,
            line: Vec::new(),
            message: Vec::new(),
        }
    }

    /// Writes the series of an object, if somebody wants it.
    pub(crate) fn write(
        &mut self,
        cutter: &mut Cutter<'_>,
        object: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Fate, Unreadable> {
        self.line.clear();
        if cutter.cut(object, &mut self.line)? == Fate::Skipped {
            return Ok(Fate::Skipped);
        }
        let line = std::mem::take(&mut self.line);
        let read: Object<'_> = serde_json::from_slice(&line).map_err(|_| Unreadable)?;
        let metadata = read.metadata;
        let now = self.clock.now().as_millisecond();
        let marks = [(&self.labels, &metadata.labels, true), (&self.annotations, &metadata.annotations, false)];
        for (metric, marks, always) in marks {
            let marks = marks.as_ref();
            if !always && marks.is_none_or(BTreeMap::is_empty) {
                continue;
            }
            let labels = self.name_labels(metric, &metadata, marks);
            self.message.clear();
            write_series(&labels, now, &mut self.message);
            bytes(1, &self.message, out);
        }
        drop(metadata);
        self.line = line;
        Ok(Fate::Written)
    }

    /// The labels of a series, in order and each once. What says nothing is left out, as the protocol wants it.
    fn name_labels(&self, metric: &str, metadata: &Metadata<'_>, marks: Option<&Map<'_>>) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::new();
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                labels.insert(name.to_owned(), value.to_owned());
            }
        };
        add("__name__", metric);
        add("resource_type", &self.kind);
        add("resource_group", self.group.as_deref().unwrap_or_default());
        match self.part {
            Part::Namespace => add("namespace", &metadata.name),
            Part::Node => add("node", &metadata.name),
            Part::Pod | Part::Workload => {
                add(if self.part == Part::Pod { "pod" } else { "workload" }, &metadata.name);
                add("namespace", &metadata.namespace);
            }
        }
        let mut taken = BTreeSet::new();
        for (key, value) in marks.into_iter().flatten() {
            add(&label_name(key, self.is_legal, &mut taken), value);
        }
        labels
    }
}

/// A series with one sample: it was there then.
fn write_series(labels: &BTreeMap<String, String>, milliseconds: i64, out: &mut Vec<u8>) {
    let mut part = Vec::new();
    for (name, value) in labels {
        part.clear();
        bytes(1, name.as_bytes(), &mut part);
        bytes(2, value.as_bytes(), &mut part);
        bytes(1, &part, out);
    }
    part.clear();
    double(1, 1.0, &mut part);
    int64(2, milliseconds, &mut part);
    bytes(2, &part, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backfill::filter::Filters;
    use jiff::Timestamp;
    use proptest::prelude::*;
    use prost::Message as _;

    /// The messages of remote write, as their definition has them, read by somebody else's code.
    mod told {
        #[derive(Clone, PartialEq, prost::Message)]
        pub(super) struct WriteRequest {
            #[prost(message, repeated, tag = "1")]
            pub(super) timeseries: Vec<TimeSeries>,
        }
        #[derive(Clone, PartialEq, prost::Message)]
        pub(super) struct TimeSeries {
            #[prost(message, repeated, tag = "1")]
            pub(super) labels: Vec<Label>,
            #[prost(message, repeated, tag = "2")]
            pub(super) samples: Vec<Sample>,
        }
        #[derive(Clone, PartialEq, prost::Message)]
        pub(super) struct Label {
            #[prost(string, tag = "1")]
            pub(super) name: String,
            #[prost(string, tag = "2")]
            pub(super) value: String,
        }
        #[derive(Clone, PartialEq, prost::Message)]
        pub(super) struct Sample {
            #[prost(double, tag = "1")]
            pub(super) value: f64,
            #[prost(int64, tag = "2")]
            pub(super) timestamp: i64,
        }
    }

    fn kind(name: &str) -> Kind {
        Kind {
            group: String::new(),
            version: "v1".to_owned(),
            kind: name.to_owned(),
            plural: format!("{}s", name.to_lowercase()),
            namespaced: true,
        }
    }

    /// What a server makes of the series of these objects.
    fn told(kind: &Kind, is_legal: bool, objects: &[serde_json::Value]) -> Vec<told::TimeSeries> {
        let naming = Naming { prefix: "cloudzero".to_owned(), is_legal };
        let clock = Clock::new(|| Timestamp::from_millisecond(1_767_225_600_123).unwrap());
        let filters = Filters::default();
        let (mut series, mut cutter) = (Series::new(kind, &naming, false, clock), Cutter::new(kind, &filters, false));
        let mut out = Vec::new();
        for object in objects {
            series.write(&mut cutter, object.to_string().as_bytes(), &mut out).unwrap();
        }
        let packed = super::super::pack(&out).unwrap();
        let unpacked = snap::raw::Decoder::new().decompress_vec(&packed).unwrap();
        told::WriteRequest::decode(&unpacked[..]).unwrap().timeseries
    }

    fn show(series: &told::TimeSeries) -> String {
        let labels: Vec<String> = series.labels.iter().map(|label| format!("{}={}", label.name, label.value)).collect();
        labels.join(" ")
    }

    #[test]
    fn series_are_those_of_the_agent() {
        let metadata = |name: &str| {
            serde_json::json!({"metadata": {"name": name, "namespace": "shop", "labels": {"app.kubernetes.io/name": "web", "empty": ""},
                "annotations": {"note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}"}}})
        };
        let seen: Vec<String> = told(&kind("Pod"), true, &[metadata("web-1")]).iter().map(show).collect();
        assert_eq!(
            seen,
            [
                "__name__=cloudzero_pod_labels label_app_kubernetes_io_name=web namespace=shop pod=web-1 resource_type=pod",
                "__name__=cloudzero_pod_annotations label_note=n namespace=shop pod=web-1 resource_type=pod",
            ]
        );
        let first = |kind: &Kind, is_legal| show(&told(kind, is_legal, &[metadata("x")])[0]);
        assert_eq!(
            first(&kind("Deployment"), false),
            "__name__=cloudzero_deployment_labels label_app.kubernetes.io/name=web namespace=shop resource_type=deployment workload=x"
        );
        let bare = serde_json::json!({"metadata": {"name": "x"}});
        let only = |kind: &str| show(&told(&self::kind(kind), true, std::slice::from_ref(&bare))[0]);
        assert_eq!(only("Namespace"), "__name__=cloudzero_namespace_labels namespace=x resource_type=namespace");
        assert_eq!(only("Node"), "__name__=cloudzero_node_labels node=x resource_type=node");
        assert_eq!(
            only("StorageClass"),
            "__name__=cloudzero_storageclass_labels resource_type=storageclass workload=x"
        );
        assert_eq!(told(&kind("Node"), true, &[bare]).len(), 1, "there are no annotations");
    }

    #[test]
    fn a_sample_says_when_it_was_there() {
        let series = told(&kind("Pod"), true, &[serde_json::json!({"metadata": {"name": "a"}})]);
        assert_eq!(series[0].samples, [told::Sample { value: 1.0, timestamp: 1_767_225_600_123 }]);
    }

    proptest! {
        #[test]
        fn whatever_labels_there_are_the_series_is_legal(
            labels in prop::collection::btree_map(".{0,20}", ".{0,20}", 0..8),
            annotations in prop::collection::btree_map("[a-c./_-]{0,3}", ".{0,200}", 0..8),
        ) {
            let object = serde_json::json!({"metadata": {"name": "a", "labels": labels, "annotations": annotations}});
            for series in told(&kind("Pod"), true, &[object]) {
                let names: Vec<&str> = series.labels.iter().map(|label| label.name.as_str()).collect();
                prop_assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", names);
                for label in &series.labels {
                    prop_assert!(!label.value.is_empty());
                    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                    prop_assert!(label.name.bytes().all(is_fit) && !label.name.as_bytes()[0].is_ascii_digit());
                }
            }
        }
    }
}
