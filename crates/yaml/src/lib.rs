//! YAML as Go and Kubernetes read it, with the place of every value in the text.
//!
//! What `sigs.k8s.io/yaml` makes of a document (YAML 1.1 scalars: `yes` is true, `0755` is 493; merge keys; keys that
//! become strings), and for each value the bytes of the text it came from. For tools that have to say *where* something
//! is wrong, or change one value and nothing else.
//!
//! ```
//! let text = "replicas: 3\nimage: {tag: v1}\n";
//! let documents = jobwright_yaml::parse(text).unwrap();
//! let tag = documents[0].root.at(&["image", "tag"]).unwrap();
//! assert_eq!(tag.as_str(), Some("v1"));
//! assert_eq!(&text[tag.span.clone()], "v1");
//! assert_eq!(documents[0].root.to_json(), serde_json::json!({"replicas": 3, "image": {"tag": "v1"}}));
//! ```
//!
//! Limits keep documents of strangers from eating memory: on size, depth, and what aliases unfold to.

pub mod emit;
mod go;
mod loader;
mod node;
mod scalar;

pub use loader::{Error, Keys, LIMITS, Limits, parse, parse_with};
pub use node::{Comment, Document, Entry, Node, Position, Style, Value, position};
