//! Images for the node.

use super::place::Place;
use crate::command::{Command, Ended};
use crate::error::Error;
use crate::image::{Image, Packing};
use std::path::Path;
use std::time::Duration;

/// Gives an image to the node of a cluster.
pub fn load_image(place: &Place, image: &Image) -> Result<(), Error> {
    let archive = place.directory().join("image.tar");
    image.layout(Packing::Plain)?.write_archive(&archive)?;
    let loaded = load_archive(place, &archive);
    let _ = std::fs::remove_file(&archive);
    loaded
}

/// Gives the images of an archive (OCI or Docker) to the node of a cluster.
pub fn load_archive(place: &Place, archive: &Path) -> Result<(), Error> {
    let socket = place.containerd_socket();
    if !socket.exists() {
        let problem = "it has no containers: images are for a cluster of `up --tier full`".to_owned();
        return Err(Error::Cluster { name: place.name().to_string(), problem });
    }
    ctr(place)
        .arguments(["images", "import", "--snapshotter", "overlayfs"])
        .arguments([archive])
        .deadline(Duration::from_mins(5))
        .run()
        .and_then(Ended::successful)
        .map(|_| ())
}

/// Names of the images that the node has.
pub fn images(place: &Place) -> Result<Vec<String>, Error> {
    let listed = ctr(place).arguments(["images", "list", "--quiet"]).run().and_then(Ended::successful)?;
    Ok(listed.lines().map(str::to_owned).collect())
}

fn ctr(place: &Place) -> Command {
    let socket = place.containerd_socket();
    Command::system("ctr").arguments(["--namespace", "k8s.io", "--address"]).arguments([socket])
}
