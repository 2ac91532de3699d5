//! Tests on a real cluster: what there is to test with, a namespace for each, and what to say when one fails.
//!
//! One switch says where: the name of a cluster of `cluster up`, or the path of a kubeconfig.

mod deploy;
mod film;
mod git;
mod stage;

pub use deploy::{Deploys, Said};
pub use film::Film;
pub use git::Repository;
pub use stage::Stage;

use crate::cluster::{Deployer, Name, Place, Record, Tier, images};
use crate::error::Error;
use crate::image::build::Own;
use crate::tools::Tools;
use crate::version::HelmVersion;
use std::path::{Path, PathBuf};

/// The environment variable that is the switch.
pub const SWITCH: &str = "JOBWRIGHT_E2E";

/// A real cluster.
#[derive(Debug)]
pub struct Live {
    kubeconfig: PathBuf,
    tools: Tools,
    image: String,
    own: Option<(Place, Record)>,
}

/// What a test cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Containers that run.
    Containers,
    /// An image of ours.
    Image(Own),
    /// Any one of these deployers.
    Deployer(&'static [Deployer]),
}

impl Live {
    /// Finds the cluster that the switch names. `image` is one with `sh` that it has or can pull.
    pub fn find(switch: &str, image: &str) -> Result<Self, Error> {
        let tools = |helms| Tools::find(&Tools::directory(None)?, helms);
        if switch.contains('/') {
            let kubeconfig = Path::new(switch).to_owned();
            if !kubeconfig.is_file() {
                let reason = format!("{SWITCH} says `{switch}`, which is no file");
                return Err(Error::Tool { tool: "the kubeconfig".to_owned(), reason });
            }
            return Ok(Self { kubeconfig, tools: tools(Vec::new())?, image: image.to_owned(), own: None });
        }
        let refused = |problem: &str| Error::Cluster { name: switch.to_owned(), problem: problem.to_owned() };
        let name: Name = switch.parse().map_err(|error| refused(&format!("{error}")))?;
        let place = Place::of(&name);
        let record = Record::read(&place)?.ok_or_else(|| refused("it does not run: start it with `cluster up`"))?;
        let mut helms = Vec::new();
        if record.deployers.contains(&Deployer::Helm3) {
            helms.extend([HelmVersion::V3_17_3, HelmVersion::V3_22_0]);
        }
        if record.deployers.contains(&Deployer::Helm4) {
            helms.push(HelmVersion::V4_3_1);
        }
        let kubeconfig = place.kubeconfig();
        Ok(Self { kubeconfig, tools: tools(helms)?, image: image.to_owned(), own: Some((place, record)) })
    }

    /// Where the cluster is.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The tools.
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Whether it has a deployer.
    pub fn has(&self, deployer: Deployer) -> bool {
        self.own.as_ref().is_some_and(|(_, record)| record.deployers.contains(&deployer))
    }

    /// What it is, in a few words.
    pub fn about(&self) -> String {
        let Some((_, record)) = &self.own else { return "another's cluster".to_owned() };
        let deployers: Vec<String> = record.deployers.iter().map(ToString::to_string).collect();
        format!("Kubernetes {}, {} tier, {}", record.kubernetes, record.tier, deployers.join(", "))
    }

    /// Why a test that needs these cannot be run here; `None` if it can.
    pub fn lacks(&self, needs: &[Need]) -> Option<String> {
        needs.iter().find_map(|need| match (need, &self.own) {
            // Of another's cluster nothing is known but that it is a whole one.
            (Need::Containers, None) => None,
            (Need::Containers, Some((_, record))) => {
                (record.tier == Tier::Light).then(|| "needs containers: `cluster up --tier full`".to_owned())
            }
            (Need::Image(image), own) => {
                let loaded = own.as_ref().is_some_and(|(place, _)| {
                    images(place).is_ok_and(|images| images.iter().any(|name| name == image.image))
                });
                (!loaded).then(|| format!("needs the image {}: `cluster load {}`", image.image, image.name))
            }
            (Need::Deployer(any), _) => {
                let there = any.iter().any(|one| self.has(*one));
                let names = || any.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
                (!there).then(|| format!("needs {0}: `cluster up --with {0}`", names()))
            }
        })
    }

    /// A repository of the cluster's git server, empty.
    pub fn repository(&self, name: &str) -> Result<Repository, Error> {
        let (place, _) = self.own.as_ref().ok_or_else(|| Error::Tool {
            tool: "a git server".to_owned(),
            reason: "only clusters of `cluster up` have one".to_owned(),
        })?;
        Repository::make(place, name)
    }
}
