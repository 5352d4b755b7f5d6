//! The system calls that change files, behind one trait.
//!
//! A commit goes through these and no others, in the order in which
//! [`crate::replace`] makes them, so that a test can let each one fail or be
//! the last one before the power goes.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{FlockOperation, Gid, Uid, XattrFlags};
use rustix::io::Errno;

/// What a commit does to the file system.
pub(crate) trait Disk {
    /// Locks a file against other writers, or fails at once with `EWOULDBLOCK`.
    fn lock(&self, file: &File) -> io::Result<()>;
    /// Makes a folder with these permissions.
    fn make_folder(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Makes a file that does not exist yet, with these permissions.
    fn create(&self, path: &Path, mode: u32) -> io::Result<File>;
    /// Gives a file the owner, group, permissions and attributes of the one at
    /// the path, as far as this process may, and never lets in more people.
    fn resemble(&self, file: &File, path: &Path, old: &Metadata) -> io::Result<()>;
    /// Takes the permissions of all but the owner.
    fn keep_others_out(&self, file: &File) -> io::Result<()> {
        let mode = file.metadata()?.mode() & 0o700;
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    }
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
    /// Writes bytes behind those of a file, which is made where there is none.
    fn append(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        let options = options.append(true).create(true).mode(mode);
        options.open(path)?.write_all(bytes)
    }
}

/// The operating system's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemDisk;

impl Disk for SystemDisk {
    fn lock(&self, file: &File) -> io::Result<()> {
        Ok(rustix::fs::flock(
            file,
            FlockOperation::NonBlockingLockExclusive,
        )?)
    }

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

    fn resemble(&self, file: &File, path: &Path, old: &Metadata) -> io::Result<()> {
        let made = file.metadata()?;
        let is_group_kept = (made.uid(), made.gid()) == (old.uid(), old.gid()) || {
            let owner = Some(Uid::from_raw(old.uid()));
            let group = Some(Gid::from_raw(old.gid()));
            rustix::fs::fchown(file, owner, group).is_ok()
                || rustix::fs::fchown(file, None, group).is_ok()
        };
        // The access list is in force before the permissions let anybody in.
        let list = copy_attributes(path, file, is_group_kept);
        let mode = old.mode() & 0o7777;
        let mode = match list {
            // Nobody else knows any more whom it kept out.
            AccessList::Lost => mode & 0o700,
            // Another group must not get the rights of the old one, only those of everybody.
            _ if !is_group_kept => (mode & 0o707) | (mode & 0o007) << 3,
            _ => mode,
        };
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

/// The attribute that holds the access control list.
const ACCESS: &[u8] = b"system.posix_acl_access";

/// The attribute that holds the label of SELinux.
const LABEL: &[u8] = b"security.selinux";

/// The longest list of names and the longest value that the kernel has.
const ATTRIBUTES_BYTES_MAX: usize = 1 << 16;

/// What became of the access control list when a file was copied.
enum AccessList {
    /// It is there, or there was none.
    Kept,
    Lost,
}

/// Copies the extended attributes that belong to a file and not to its content:
/// the user's, the security label, and with the group the access control list.
fn copy_attributes(from: &Path, to: &File, is_group_kept: bool) -> AccessList {
    let mut names = Vec::with_capacity(ATTRIBUTES_BYTES_MAX);
    match rustix::fs::listxattr(from, spare_capacity(&mut names)) {
        // Without attributes there are no lists.
        Ok(_) | Err(Errno::NOTSUP) => {}
        Err(_) => return AccessList::Lost,
    }
    let mut list = AccessList::Kept;
    for name in names.split(|&byte| byte == 0) {
        let is_list = name == ACCESS;
        if !is_list && name != LABEL && !name.starts_with(b"user.") {
            continue;
        }
        let mut value = Vec::with_capacity(ATTRIBUTES_BYTES_MAX);
        let is_copied = (is_group_kept || !is_list)
            && rustix::fs::getxattr(from, name, spare_capacity(&mut value)).is_ok()
            && rustix::fs::fsetxattr(to, name, &value, XattrFlags::empty()).is_ok();
        if is_list && !is_copied {
            list = AccessList::Lost;
        }
    }
    list
}
