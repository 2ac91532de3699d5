//! Helm charts as files: what they are, what they depend on, and how their versions go up together.
//!
//! A [`Tree`] is every chart below a directory. [`cascade`] says what has to change when one of them gets a new version:
//! every chart that depends on it gets one, too, over as many levels as there are. It changes nothing itself; the
//! [`Cascade`] has the new text of every file, with comments and formatting as they were.
//!
//! ```
//! use jobwright_chart::{Bump, Options, Tree, cascade};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # for (path, text) in [
//! #     ("core/Chart.yaml", "apiVersion: v2\nname: core\nversion: 1.5.1\n"),
//! #     ("agent/Chart.yaml", "apiVersion: v2\nname: agent\nversion: 2.14.0\ndependencies:\n- {name: core, version: 1.X, repository: file://../core}\n"),
//! # ] {
//! #     std::fs::create_dir_all(directory.path().join(path).parent().unwrap())?;
//! #     std::fs::write(directory.path().join(path), text)?;
//! # }
//! # let root = directory.path();
//! let tree = Tree::read(root)?;
//! let core = tree.find("core", root)?;
//! let cascade = cascade(&tree, core, Options { bump: Bump::Minor, by_name: false, now: jiff::Timestamp::UNIX_EPOCH })?;
//! let bumped: Vec<String> = cascade.charts.iter().map(|chart| format!("{} {}", chart.name, chart.new)).collect();
//! assert_eq!(bumped, ["core 1.6.0", "agent 2.15.0"]);
//! # Ok(())
//! # }
//! ```

mod capabilities;
mod cascade;
mod dependencies;
mod error;
mod metadata;
mod objects;
mod package;
mod render;
mod schema;
mod split;
mod tree;
mod values;
mod version;

pub use capabilities::Capabilities;
pub use cascade::{BumpedChart, Cascade, Options, Rewrite, cascade};
pub use error::Error;
pub use jobwright_template::{Entropy, Helm, LIMITS, Limits, Lookup, NoCluster};
pub use metadata::{Dependency, Metadata};
pub use objects::Objects;
pub use package::{LoadError, Maintainer, Package, PackageFile, PackageMetadata, Requirement};
pub use render::{Release, RenderError, RenderOptions, Rendered, Session, Shown, render};
pub use split::{Hook, Manifest, Split};
pub use tree::{Chart, ChartId, Tree};
pub use values::{Assignment, AssignmentError, UserValues, Values, ValuesError};
pub use version::{Bump, Constraint, NoConstraint, NoVersion, Version};
