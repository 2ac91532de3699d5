//! The one layer of an image: files in order, without times, owned by root.

use crate::error::Error;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::io::Write as _;

/// Files by path.
#[derive(Debug, Default)]
pub(super) struct Layer {
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug)]
enum Entry {
    Directory { mode: u32 },
    File { bytes: Vec<u8>, mode: u32 },
    Link { to: String },
}

impl Layer {
    /// A layer that knows root and the user that images run as, and has a place for what a volume puts there.
    pub(super) fn with_users() -> Self {
        let mut layer = Self::default();
        layer.entries.insert("tmp".to_owned(), Entry::Directory { mode: 0o1777 });
        let passwd = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n";
        layer.file("etc/passwd", passwd.into(), 0o644);
        layer.file("etc/group", "root:x:0:\nnonroot:x:65532:\n".into(), 0o644);
        layer
    }

    pub(super) fn file(&mut self, path: &str, bytes: Vec<u8>, mode: u32) {
        self.add(path, Entry::File { bytes, mode });
    }

    pub(super) fn link(&mut self, path: &str, to: &str) {
        self.add(path, Entry::Link { to: to.to_owned() });
    }

    fn add(&mut self, path: &str, entry: Entry) {
        for (end, _) in path.match_indices('/') {
            let parent = path.get(..end).unwrap_or_default().to_owned();
            self.entries.entry(parent).or_insert(Entry::Directory { mode: 0o755 });
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// The layer as a tar.
    pub(super) fn tar(&self) -> Result<Vec<u8>, Error> {
        let mut tar = Tar::new();
        for (path, entry) in &self.entries {
            match entry {
                Entry::Directory { mode } => tar.directory(path, *mode)?,
                Entry::File { bytes, mode } => tar.file(path, bytes, *mode)?,
                Entry::Link { to } => tar.link(path, to)?,
            }
        }
        tar.finish()
    }
}

/// Compresses without a time or a name, so that the same bytes always give the same bytes.
pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(Error::io("compress a layer"))
}

/// A tar without anything of the machine that makes it.
pub(super) struct Tar(tar::Builder<Vec<u8>>);

impl Tar {
    pub(super) fn new() -> Self {
        Self(tar::Builder::new(Vec::new()))
    }

    pub(super) fn directory(&mut self, path: &str, mode: u32) -> Result<(), Error> {
        let mut header = header(tar::EntryType::Directory, 0, mode);
        self.0.append_data(&mut header, format!("{path}/"), std::io::empty()).map_err(adding(path))
    }

    pub(super) fn file(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), Error> {
        let mut header = header(tar::EntryType::Regular, bytes.len() as u64, mode);
        self.0.append_data(&mut header, path, bytes).map_err(adding(path))
    }

    pub(super) fn link(&mut self, path: &str, to: &str) -> Result<(), Error> {
        let mut header = header(tar::EntryType::Symlink, 0, 0o777);
        self.0.append_link(&mut header, path, to).map_err(adding(path))
    }

    pub(super) fn finish(self) -> Result<Vec<u8>, Error> {
        self.0.into_inner().map_err(Error::io("finish a tar"))
    }
}

fn adding(path: &str) -> impl FnOnce(std::io::Error) -> Error {
    Error::io(format!("add `{path}` to a tar"))
}

fn header(kind: tar::EntryType, size: u64, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}
