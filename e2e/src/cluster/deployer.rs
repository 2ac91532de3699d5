//! The deployers that a cluster can have, and what each needs.

use crate::install::debian::{self, Program};
use crate::install::{Tool, catalogue};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A deployer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Deployer {
    /// Helm 3.17.3 and the newest Helm 3
    Helm3,
    /// The newest Helm 4
    Helm4,
    /// Flux: source-, helm- and kustomize-controller
    Flux,
    /// The newest Argo CD 3
    Argocd,
    /// The last Argo CD 2, instead of 3
    Argocd2,
}

impl Deployer {
    /// The tools it consists of.
    pub(super) fn tools(self) -> Vec<Tool> {
        match self {
            Self::Helm3 => vec![catalogue::HELM_3_17_3, catalogue::HELM_3_22_0],
            Self::Helm4 => vec![catalogue::HELM_4_3_1],
            Self::Flux => {
                vec![catalogue::SOURCE_CONTROLLER, catalogue::HELM_CONTROLLER, catalogue::KUSTOMIZE_CONTROLLER]
            }
            Self::Argocd => vec![catalogue::ARGO_CD_3, catalogue::KUSTOMIZE, catalogue::HELM_3_22_0],
            Self::Argocd2 => vec![catalogue::ARGO_CD_2, catalogue::KUSTOMIZE, catalogue::HELM_3_22_0],
        }
    }

    /// The programs of the system it needs.
    pub(super) fn programs(self) -> &'static [Program] {
        match self {
            Self::Argocd | Self::Argocd2 => debian::ARGO_CD,
            Self::Helm3 | Self::Helm4 | Self::Flux => &[],
        }
    }
}

impl fmt::Display for Deployer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Helm3 => "helm3",
            Self::Helm4 => "helm4",
            Self::Flux => "flux",
            Self::Argocd => "argocd",
            Self::Argocd2 => "argocd2",
        })
    }
}
