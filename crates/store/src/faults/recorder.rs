//! A disk that works on real files and keeps the model beside them.
//!
//! Programs read the real files, so a commit runs as it does elsewhere. Nothing
//! is really synchronized: that the power goes is the model's matter.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::model::{Model, Node};
use crate::disk::{Disk, SystemDisk};

pub(super) struct Recorder {
    root: PathBuf,
    model: RefCell<Model>,
    /// From the numbers of real inodes, those in use, to the model's.
    inodes: RefCell<HashMap<u64, usize>>,
    /// The model after each operation.
    history: RefCell<Vec<Model>>,
}

impl Recorder {
    /// Everything in the folder counts as being on the disk.
    pub fn new(root: &Path) -> Recorder {
        let (model, paths) = Model::new(&look_at(root));
        let mut inodes = HashMap::new();
        for (path, inode) in paths {
            let metadata = fs::symlink_metadata(root.join(path)).unwrap();
            inodes.insert(metadata.ino(), inode);
        }
        Recorder {
            root: root.to_owned(),
            model: RefCell::new(model),
            inodes: RefCell::new(inodes),
            history: RefCell::default(),
        }
    }

    pub fn model(&self) -> Model {
        self.model.borrow().clone()
    }

    /// The model after each operation since this was asked last.
    pub fn take_history(&self) -> Vec<Model> {
        self.history.take()
    }

    /// Writes into a file that exists, which no commit does.
    pub fn overwrite(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = File::create(path)?;
        self.on_file(&file, |model, inode| {
            model.edit(inode, |content| content.bytes.clear());
        })?;
        self.write(&mut file, bytes)?;
        self.synchronize(&file)
    }

    fn on_path(&self, path: &Path, change: impl FnOnce(&mut Model, &Path)) {
        // Folders above the root are not the model's.
        if let Ok(path) = path.strip_prefix(&self.root) {
            change(&mut self.model.borrow_mut(), path);
            self.history.borrow_mut().push(self.model());
        }
    }

    fn on_file(&self, file: &File, change: impl FnOnce(&mut Model, usize)) -> io::Result<()> {
        let inode = self.inodes.borrow()[&file.metadata()?.ino()];
        change(&mut self.model.borrow_mut(), inode);
        self.history.borrow_mut().push(self.model());
        Ok(())
    }
}

impl Disk for Recorder {
    fn lock(&self, file: &File) -> io::Result<()> {
        SystemDisk.lock(file)
    }

    fn make_folder(&self, path: &Path, mode: u32) -> io::Result<()> {
        SystemDisk.make_folder(path, mode)?;
        self.on_path(path, |model, path| model.make_folder(path));
        Ok(())
    }

    fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
        let file = SystemDisk.create(path, mode)?;
        let number = file.metadata()?.ino();
        self.on_path(path, |model, path| {
            let inode = model.create(path, mode);
            self.inodes.borrow_mut().insert(number, inode);
        });
        Ok(file)
    }

    fn resemble(&self, file: &File, path: &Path, old: &Metadata) -> io::Result<()> {
        SystemDisk.resemble(file, path, old)?;
        let mode = file.metadata()?.mode() & 0o7777;
        self.on_file(file, |model, inode| {
            model.edit(inode, |content| content.mode = mode);
        })
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)?;
        self.on_file(file, |model, inode| {
            model.edit(inode, |content| content.bytes.extend_from_slice(bytes));
        })
    }

    fn synchronize(&self, file: &File) -> io::Result<()> {
        self.on_file(file, Model::synchronize)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        SystemDisk.rename(from, to)?;
        let relative = from.strip_prefix(&self.root).expect("files of the test");
        self.on_path(to, |model, to| model.rename(relative, to));
        Ok(())
    }

    fn synchronize_folder(&self, path: &Path) -> io::Result<()> {
        self.on_path(path, Model::synchronize_folder);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        SystemDisk.remove(path)?;
        self.on_path(path, Model::remove);
        Ok(())
    }
}

/// The tree at a path, without lock files, which hold nothing that matters.
pub(super) fn look_at(path: &Path) -> Node {
    let metadata = fs::symlink_metadata(path).unwrap();
    if metadata.is_symlink() {
        return Node::Link(fs::read_link(path).unwrap());
    }
    if metadata.is_file() {
        return Node::file(
            fs::read(path).unwrap(),
            metadata.permissions().mode() & 0o7777,
        );
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let node = look_at(&path.join(&name));
        (name, node)
    });
    let entries: BTreeMap<_, _> = entries
        .filter(|(name, _)| !name.ends_with(".lock"))
        .collect();
    Node::Folder(entries)
}
