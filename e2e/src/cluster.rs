//! A real Kubernetes on this machine: one node in a network namespace of its own without a route out.
//!
//! [`up()`] installs what is missing, starts every part as a process, and writes a kubeconfig that works from outside;
//! [`down()`] ends all of it and leaves nothing behind. All that belongs to a cluster can be found from its name: the
//! directory `/var/lib/jobwright/clusters/NAME`, the namespace and the cgroup `jobwright-NAME`; so a command that was
//! killed half way needs no trace of what it did. Because no cluster sees another, all use the same addresses.

mod address;
mod argocd;
mod authority;
mod cgroup;
mod control;
mod deployer;
mod down;
mod exec;
mod flux;
pub mod forward;
mod light;
mod load;
mod name;
mod network;
mod node;
mod place;
mod process;
mod record;
pub mod serve;
mod site;
mod status;
mod toolbox;
mod up;

pub use deployer::Deployer;
pub use down::down;
pub use exec::exec;
pub use load::{images, load_archive, load_image};
pub use name::{Name, NotAName};
pub use place::Place;
pub use record::{Record, Skipped, Tier};
pub use status::status;
pub use toolbox::install;
pub use up::{Wanted, up};

/// Where deployers find a repository of the git server.
pub fn git_url(repository: &str) -> String {
    format!("http://{}:{}/git/{repository}.git", address::NODE, address::FILES_PORT)
}
