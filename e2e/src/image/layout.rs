//! An image as the files of an OCI layout: blobs by digest, a manifest, an index that names it.

use super::layer::{Tar, compress};
use super::{Image, USER};
use crate::error::Error;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// How the layer is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Small, for what is sent.
    Compressed,
    /// At once, for what stays on the machine.
    Plain,
}

/// The files of an OCI layout.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    files: BTreeMap<String, Vec<u8>>,
    digest: String,
    size: usize,
}

impl Layout {
    /// The digest of the manifest.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// How many bytes are pulled.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Writes the layout into a directory, which is made.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        for (path, bytes) in &self.files {
            let path = directory.join(path);
            let parent = path.parent().unwrap_or(directory);
            std::fs::create_dir_all(parent).map_err(Error::io(format!("create `{}`", parent.display())))?;
            std::fs::write(&path, bytes).map_err(Error::io(format!("write `{}`", path.display())))?;
        }
        Ok(())
    }

    /// Writes the layout as one tar, as `ctr images import` takes it.
    pub fn write_archive(&self, file: &Path) -> Result<(), Error> {
        let mut tar = Tar::new();
        for (path, bytes) in &self.files {
            tar.file(path, bytes, 0o644)?;
        }
        std::fs::write(file, tar.finish()?).map_err(Error::io(format!("write `{}`", file.display())))
    }
}

/// Makes the layout of an image.
pub(super) fn of(image: &Image, packing: Packing) -> Result<Layout, Error> {
    let tar = image.layer.tar()?;
    let identity = digest(&tar);
    let mut files = BTreeMap::new();
    let mut add = |media_type: &str, bytes: Vec<u8>| {
        let digest = digest(&bytes);
        let descriptor = json!({"mediaType": media_type, "digest": digest, "size": bytes.len()});
        files.insert(format!("blobs/{}", digest.replace(':', "/")), bytes);
        descriptor
    };
    let labels = json!({
        "org.opencontainers.image.title": image.title,
        "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
        "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
    });
    let layer = match packing {
        Packing::Compressed => add(&format!("{LAYER}+gzip"), compress(&tar)?),
        Packing::Plain => add(LAYER, tar),
    };
    let config = add(
        CONFIG,
        bytes(&json!({
            "architecture": architecture(),
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {
                "User": USER,
                "Entrypoint": image.entrypoint,
                "Env": ["PATH=/bin"],
                "WorkingDir": "/",
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [identity]},
        })),
    );
    let size = |descriptor: &Value| descriptor["size"].as_u64().and_then(|size| usize::try_from(size).ok());
    let size = size(&layer).unwrap_or_default() + size(&config).unwrap_or_default();
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer], "annotations": labels,
    });
    let mut described = add(MANIFEST, bytes(&manifest));
    let digest = described["digest"].as_str().unwrap_or_default().to_owned();
    let tag = image.name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
    // The first is of the specification, the second is what containerd calls the image by.
    described["annotations"] =
        json!({"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": image.name});
    let index = json!({"schemaVersion": 2, "manifests": [described]});
    files.insert("index.json".to_owned(), bytes(&index));
    files.insert("oci-layout".to_owned(), bytes(&json!({"imageLayoutVersion": "1.0.0"})));
    Ok(Layout { files, digest, size })
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// What OCI calls the architecture of this machine.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("tool");
        std::fs::write(&program, "#!").unwrap();
        Image::of_program("example.com/tool:1", "tool", &program).unwrap()
    }

    fn document(layout: &Layout, path: &str) -> Value {
        serde_json::from_slice(&layout.files[path]).unwrap()
    }

    #[test]
    fn the_same_files_give_the_same_image() {
        assert_eq!(image().layout(Packing::Compressed).unwrap(), image().layout(Packing::Compressed).unwrap());
    }

    #[test]
    fn every_blob_is_called_by_what_it_holds() {
        let layout = image().layout(Packing::Compressed).unwrap();
        let blobs = layout.files.iter().filter_map(|(path, bytes)| Some((path.strip_prefix("blobs/sha256/")?, bytes)));
        let blobs: Vec<_> = blobs.collect();
        assert_eq!(blobs.len(), 3);
        assert!(blobs.iter().all(|(name, bytes)| digest(bytes) == format!("sha256:{name}")));
    }

    #[test]
    fn it_is_not_run_by_root_and_has_a_name() {
        let layout = image().layout(Packing::Compressed).unwrap();
        let index = document(&layout, "index.json");
        assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], "example.com/tool:1");
        assert_eq!(index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"], "1");
        assert_eq!(index["manifests"][0]["digest"], layout.digest());
        let manifest = document(&layout, &format!("blobs/{}", layout.digest().replace(':', "/")));
        let config = manifest["config"]["digest"].as_str().unwrap().replace(':', "/");
        let config = document(&layout, &format!("blobs/{config}"));
        assert_eq!(config["config"]["User"], USER);
        assert_eq!(config["config"]["Entrypoint"], json!(["/tool"]));
    }

    #[test]
    fn the_layer_holds_the_program_after_its_directories() {
        let tar = image().layer.tar().unwrap();
        let mut archive = tar::Archive::new(tar.as_slice());
        let paths: Vec<String> =
            archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect();
        assert_eq!(paths, ["etc/", "etc/group", "etc/passwd", "tmp/", "tool"]);
    }
}
