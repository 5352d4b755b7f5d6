//! The system calls that change files, behind one trait.
//!
//! A commit goes through these and no others, in the order in which
//! [`crate::replace`] makes them, so that a test can let each one fail or be
//! the last one before the power goes.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Gid, Uid};

/// What a commit does to the file system.
pub(crate) trait Disk {
    /// Makes a folder with these permissions.
    fn make_folder(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Makes a file that does not exist yet, with these permissions.
    fn create(&self, path: &Path, mode: u32) -> io::Result<File>;
    /// Gives a file the owner, group and permissions of another one.
    fn resemble(&self, file: &File, model: &Metadata) -> io::Result<()>;
    /// Writes all bytes.
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()>;
    /// Waits until the file's content is on the disk.
    fn synchronize(&self, file: &File) -> io::Result<()>;
    /// Gives a file the name of another one, which is gone then.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Waits until the folder's entries are on the disk.
    fn synchronize_folder(&self, path: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The operating system's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemDisk;

impl Disk for SystemDisk {
    fn make_folder(&self, path: &Path, mode: u32) -> io::Result<()> {
        std::fs::DirBuilder::new().mode(mode).create(path)
    }

    fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)
    }

    fn resemble(&self, file: &File, model: &Metadata) -> io::Result<()> {
        let mut mode = model.mode() & 0o7777;
        let made = file.metadata()?;
        if made.uid() != model.uid() || made.gid() != model.gid() {
            let owner = Some(Uid::from_raw(model.uid()));
            let group = Some(Gid::from_raw(model.gid()));
            let kept = rustix::fs::fchown(file, owner, group).is_ok()
                || rustix::fs::fchown(file, None, group).is_ok();
            if !kept {
                // Another group must not get the rights of the old one, only those of everybody.
                mode = (mode & 0o707) | (mode & 0o007) << 3;
            }
        }
        // After the change of owner, which clears bits.
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn synchronize(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn synchronize_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }
}
