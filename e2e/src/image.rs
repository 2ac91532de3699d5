//! Images made without a container engine: one layer, the same bytes from the same files, as an OCI layout.
//!
//! They run as a user of their own, need nothing writable, and say what they are in labels.

pub mod build;
mod layer;
mod layout;

use crate::error::Error;
use crate::install::debian;
use crate::outcome::Exit;
use layer::Layer;
use std::path::Path;

pub use layout::{Layout, Packing};

/// The user of every image: nobody in particular, and not root.
const USER: &str = "65532:65532";

/// What an image is.
#[derive(Debug)]
pub struct Image {
    name: String,
    title: &'static str,
    entrypoint: Vec<String>,
    layer: Layer,
}

impl Image {
    /// An image of one program without dynamic libraries.
    pub fn of_program(name: &str, title: &'static str, program: &Path) -> Result<Self, Error> {
        let mut layer = Layer::with_users();
        let file = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = std::fs::read(program).map_err(Error::io(format!("read `{}`", program.display())))?;
        layer.file(&file, bytes, 0o755);
        Ok(Self { name: name.to_owned(), title, entrypoint: vec![format!("/{file}")], layer })
    }

    /// A shell and its tools.
    pub fn busybox(name: &str) -> Result<Self, Error> {
        let layer = busybox_layer()?;
        Ok(Self { name: name.to_owned(), title: "busybox", entrypoint: Vec::new(), layer })
    }

    /// What holds the namespaces of a pod: it waits for its end, and for the ends of orphans.
    pub fn pause(name: &str) -> Result<Self, Error> {
        let script = "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait $!; done";
        let entrypoint = ["/bin/busybox", "sh", "-c", script].map(str::to_owned).to_vec();
        Ok(Self { name: name.to_owned(), title: "pause", entrypoint, layer: busybox_layer()? })
    }

    /// The image as an OCI layout.
    pub fn layout(&self, packing: Packing) -> Result<Layout, Error> {
        layout::of(self, packing)
    }
}

fn busybox_layer() -> Result<Layer, Error> {
    let path = debian::find("busybox").ok_or_else(|| Error::Tool {
        tool: "busybox".to_owned(),
        reason: "install the package busybox-static".to_owned(),
    })?;
    let bytes = std::fs::read(&path).map_err(Error::io(format!("read `{}`", path.display())))?;
    let listed = crate::command::Command::new(&path).arguments(["--list"]).run()?;
    if listed.exit != Exit::Code(0) {
        return Err(Error::Tool { tool: "busybox".to_owned(), reason: listed.stderr });
    }
    let mut layer = Layer::with_users();
    layer.file("bin/busybox", bytes, 0o755);
    for applet in listed.stdout.lines().filter(|applet| *applet != "busybox") {
        layer.link(&format!("bin/{applet}"), "busybox");
    }
    Ok(layer)
}
