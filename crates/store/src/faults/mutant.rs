//! Disks that do not do what they are told: each makes of a commit another,
//! wrong way to write a file, which the tests have to find out.

use std::cell::{Cell, RefCell};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::recorder::Recorder;
use crate::disk::Disk;
use crate::replace::folder;

/// A way to write a file that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mutation {
    /// The new text is not synchronized.
    NoFile,
    /// No folder is synchronized.
    NoFolder,
    /// The new text is in force first and synchronized then.
    RenameFirst,
    /// The new text is written over the old one.
    InPlace,
    /// The permissions are set after the new text is synchronized.
    PermissionsLast,
    /// What another writer has left is confirmed without synchronizing it.
    TrustFiles,
    /// Folders that are there are taken to be on the disk.
    TrustFolders,
}

/// Something that is to be done to the temporary file.
enum Held {
    Synchronize(File),
    Resemble(File, PathBuf, Metadata),
}

pub(super) struct Mutant<'a> {
    recorder: &'a Recorder,
    mutation: Option<Mutation>,
    /// The folder of the file.
    folder: &'a Path,
    made_folder: Cell<bool>,
    made_file: Cell<bool>,
    /// What was to be done earlier.
    held: RefCell<Option<Held>>,
}

impl<'a> Mutant<'a> {
    pub fn new(recorder: &'a Recorder, mutation: Option<Mutation>, path: &'a Path) -> Mutant<'a> {
        Mutant {
            recorder,
            mutation,
            folder: folder(path),
            made_folder: Cell::new(false),
            made_file: Cell::new(false),
            held: RefCell::new(None),
        }
    }

    fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }
}

impl Disk for Mutant<'_> {
    fn lock(&self, file: &File) -> io::Result<()> {
        self.recorder.lock(file)
    }

    fn make_folder(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.made_folder.set(true);
        self.recorder.make_folder(path, mode)
    }

    fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
        self.made_file.set(true);
        self.recorder.create(path, mode)
    }

    fn resemble(&self, file: &File, path: &Path, old: &Metadata) -> io::Result<()> {
        if self.is(Mutation::PermissionsLast) {
            let held = Held::Resemble(file.try_clone()?, path.to_owned(), old.clone());
            self.held.replace(Some(held));
            return Ok(());
        }
        self.recorder.resemble(file, path, old)
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        self.recorder.write(file, bytes)
    }

    fn synchronize(&self, file: &File) -> io::Result<()> {
        match self.mutation {
            Some(Mutation::NoFile) => return Ok(()),
            Some(Mutation::TrustFiles) if !self.made_file.get() => return Ok(()),
            Some(Mutation::RenameFirst) => {
                self.held
                    .replace(Some(Held::Synchronize(file.try_clone()?)));
                return Ok(());
            }
            _ => {}
        }
        self.recorder.synchronize(file)?;
        match self.held.take() {
            Some(Held::Resemble(file, path, old)) => self.recorder.resemble(&file, &path, &old),
            _ => Ok(()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.is(Mutation::InPlace) && to.exists() {
            self.recorder.overwrite(to, &fs::read(from)?)?;
            return self.recorder.remove(from);
        }
        self.recorder.rename(from, to)?;
        match self.held.take() {
            Some(Held::Synchronize(file)) => self.recorder.synchronize(&file),
            _ => Ok(()),
        }
    }

    fn synchronize_folder(&self, path: &Path) -> io::Result<()> {
        match self.mutation {
            Some(Mutation::NoFolder) => Ok(()),
            Some(Mutation::TrustFiles) if !self.made_file.get() => Ok(()),
            Some(Mutation::TrustFolders) if path != self.folder && !self.made_folder.get() => {
                Ok(())
            }
            _ => self.recorder.synchronize_folder(path),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.recorder.remove(path)
    }
}
