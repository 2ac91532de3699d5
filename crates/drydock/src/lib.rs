//! A Kubernetes cluster in memory: the API, and the lives that hang on it, on a clock of its own.
//!
//! Drydock is for those who write controllers, deployers and command-line tools and want to try them against
//! something that behaves like a cluster: in a test, in a demo, in a simulation. It serves the API with watches,
//! patches, server-side apply, schemas and the real server's error texts; pods run, Jobs finish, Deployments roll out
//! in virtual time, so that an hour takes milliseconds and is the same every time; faults happen on demand.
//!
//! ```
//! use jobwright_drydock::Drydock;
//! use k8s_openapi::api::batch::v1::Job;
//! use kube::api::{Api, PostParams};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let drydock = Drydock::new();
//! let client = kube::Client::new(drydock.clone(), "default");
//! let jobs = Api::<Job>::default_namespaced(client);
//! let job = serde_json::from_value(serde_json::json!({
//!     "metadata": {"name": "migrate"},
//!     "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
//!         {"name": "main", "image": "shop/api:1.4.0", "command": ["sh", "-c", "sleep 20; echo done"]}]}}},
//! }))?;
//! jobs.create(&PostParams::default(), &job).await?;
//!
//! tokio::time::sleep(std::time::Duration::from_secs(60)).await; // no time at all when the clock is paused
//! assert_eq!(jobs.get("migrate").await?.status.unwrap_or_default().succeeded, Some(1));
//! assert_eq!(drydock.witness().len(), 1);
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # Where things are
//!
//! A request takes one way through the house: it is routed to a verb on a resource, the verb changes the object (patches,
//! the kind's rules, admission), the store gives the change a revision and remembers it, watches and the controllers see it
//! and act as clients in turn. Nothing but the store changes state.
//!
//! | room | what is in it |
//! |---|---|
//! | `server`, `http` | [`Drydock`], its [`Builder`], requests and responses, streams, listener and TLS |
//! | `request`, `options`, `body`, `protobuf` | what is asked: path, query, body in JSON, YAML or protobuf |
//! | `cluster`, `verbs` | the state of a cluster and what each verb does to it; no input or output |
//! | `patch` | JSON, merge and strategic merge patches; server-side apply and its books |
//! | `kinds`, `schema`, `validate` | which kinds there are, how they look, what they refuse; custom resources |
//! | `store`, `selector` | objects by key, revisions, the log that watches replay; what selectors let through |
//! | `answers` | objects as tables or metadata; discovery; OpenAPI |
//! | `access`, `admission`, `bootstrap` | who may do what; what is filled in; what is there from the start |
//! | `life`, `containers` | controllers, scheduler, kubelet; what containers do, say, and that they started |
//! | `faults` | calls that go wrong on demand, around any service |
//!
//! # What it is like, and what not
//!
//! It is like Kubernetes 1.34 as far as clients can tell, and wrong where they can: the same tests run against a real
//! cluster. It stores nothing on disk, calls no webhooks, and has no network between its pods.

mod access;
mod admission;
mod answers;
mod body;
mod bootstrap;
mod clock;
mod cluster;
mod conditions;
mod containers;
mod faults;
mod field;
#[cfg(feature = "http")]
mod http;
mod kinds;
mod life;
mod object;
mod options;
mod patch;
mod protobuf;
mod quantity;
mod request;
mod schema;
mod selector;
mod server;
mod status;
mod store;
#[cfg(test)]
mod testing;
mod validate;
mod verbs;

pub use access::User;
pub use clock::Clock;
pub use containers::script::{Behaviour, Match, Script, ScriptError};
pub use containers::witness::{Ended, Started};
pub use faults::{Call, Fault, Faults, Faulty, FaultyBody, Rule, When};
#[cfg(feature = "http")]
pub use http::{Http, ServeError, Serving};
pub use kinds::{Kind, built_in as kinds};
pub use object::Object;
pub use request::Verb;
pub use server::{Body, Builder, Drydock};
pub use status::Status;
