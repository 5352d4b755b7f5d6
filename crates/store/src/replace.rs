//! Replaces a file by another text, whole or not at all.
//!
//! ```text
//!  write .APP.ini.new ─ synchronize it ─ rename it to APP.ini ─ synchronize the folder
//!  └── the old text is in force ───────┘ └── the new text is in force ────────────────┘
//! ```
//!
//! Properties kept, at whatever instant process or machine stop:
//! - the file has the old text or the new one, complete;
//! - the new text is on the disk before it is in force, and in force for good
//!   once [`Prepared::put`] or [`settle`] has returned;
//! - a file is in force only in folders that are on the disk;
//! - at most one temporary file is left over, and the next replacement removes it.
//!
//! What is found need not be on the disk yet: the writer that left it may have
//! been killed a moment ago, and the power may go a moment later. Nothing of it
//! is confirmed before it has been synchronized once more.
//!
//! It is the name that is replaced: whoever has the old file open, or another
//! hard link to it, keeps the old text. Of the old file owner, group,
//! permissions, access list and attributes are kept as far as the process may.
//!
//! The caller holds the lock, so nobody else should write the temporary file.
//! A lock file can be removed, though, and then another writer locks another
//! one. Therefore each locks its temporary file as well, from making it until it
//! is in force: of several writers one has it, and the others see that. And
//! the file is looked at once more before it is replaced: one that is not as it
//! was read, since another writer or an editor was faster, is not replaced.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::disk::{Disk, SystemDisk};
use crate::error::StoreError;
use crate::read::Content;

/// Who may use new files and folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The user alone, unless the user has let others in.
    Private,
    /// The owner alone, whoever was let in before: there are secrets.
    Owner,
    /// Everybody may read, as far as the process's mask lets them.
    Public,
}

impl Audience {
    fn folder_mode(self) -> u32 {
        match self {
            Audience::Private | Audience::Owner => 0o700,
            Audience::Public => 0o755,
        }
    }

    pub fn file_mode(self) -> u32 {
        match self {
            Audience::Private | Audience::Owner => 0o600,
            Audience::Public => 0o644,
        }
    }
}

/// A file beside the one at `path`: hidden, and named after it.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(ending);
    path.with_file_name(name)
}

/// The folder of a file.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Follows symbolic links to the file that is meant, which need not exist.
pub(crate) fn follow(path: &Path) -> Result<PathBuf, StoreError> {
    let mut target = path.to_owned();
    for _ in 0..40 {
        match std::fs::read_link(&target) {
            // A relative link counts from its own folder; an absolute one replaces the path.
            Ok(link) => target = folder(&target).join(link),
            // Neither what is no link nor what does not exist leads further.
            Err(error)
                if matches!(
                    Errno::from_io_error(&error),
                    Some(Errno::INVAL | Errno::NOENT)
                ) =>
            {
                return Ok(target);
            }
            Err(error) => return Err(StoreError::io("follow the symbolic link", &target, error)),
        }
    }
    Err(StoreError::io(
        "follow the symbolic link",
        path,
        Errno::LOOP,
    ))
}

/// Makes the folder and those above it that are missing.
pub(crate) fn make_folders(
    disk: &dyn Disk,
    path: &Path,
    audience: Audience,
) -> Result<(), StoreError> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
        .collect();
    for path in missing.into_iter().rev() {
        match disk.make_folder(path, audience.folder_mode()) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StoreError::io("make the folder", path, error)),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Replaces a file of the user's by this content, whole or not at all, and makes
/// it and its folders if they are missing. What was confirmed is on the disk.
///
/// # Errors
/// If that fails; the file then has its old content or the new one. Or if
/// another process replaces it just now.
pub fn replace_file(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let path = follow(path)?;
    let disk = &SystemDisk;
    make_folders(disk, folder(&path), Audience::Private)?;
    let old = match std::fs::metadata(&path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(StoreError::io("look at the file", &path, error)),
    };
    match Prepared::new(disk, &path, content, old.as_ref(), Audience::Private)? {
        Some(prepared) => prepared.put(),
        None => Err(StoreError::io(
            "replace the file, as another process does",
            &path,
            Errno::BUSY,
        )),
    }
}

/// Makes sure that a folder is on the disk, with all those above it.
fn settle_folders(disk: &dyn Disk, path: &Path) -> Result<(), StoreError> {
    for path in path.ancestors().filter(|path| path.file_name().is_some()) {
        match disk.synchronize_folder(folder(path)) {
            // No writer has made something in a folder that it may not open, or that cannot be
            // synchronized, as those of an automounter.
            Err(error)
                if matches!(
                    Errno::from_io_error(&error),
                    Some(Errno::ACCESS | Errno::PERM | Errno::INVAL)
                ) => {}
            done => {
                done.map_err(|error| StoreError::io("synchronize the folder", folder(path), error))?
            }
        }
    }
    Ok(())
}

/// Makes sure that a file is on the disk as it is.
pub(crate) fn settle(disk: &dyn Disk, path: &Path) -> Result<(), StoreError> {
    let unsettled = |path: &Path, cause| StoreError::Unsettled {
        path: path.to_owned(),
        cause,
    };
    File::open(path)
        .and_then(|file| disk.synchronize(&file))
        .map_err(|cause| unsettled(path, cause))?;
    disk.synchronize_folder(folder(path))
        .map_err(|cause| unsettled(folder(path), cause))
}

/// Whether a path leads to the file that is open.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let file = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (file.dev(), file.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a file is the one that was read, as far as one can tell without
/// reading it again; nothing if there was none. Nobody gets its number as long
/// as it is open.
fn is_as_read(path: &Path, old: Option<&Content>) -> io::Result<bool> {
    let Some(old) = old else {
        return Ok(!path.try_exists()?);
    };
    let length = old.file.metadata()?.len();
    Ok(is_at(&old.file, path)? && length == old.metadata.len())
}

/// A new text for a file, on the disk beside it and not yet in force. It goes
/// when it is dropped.
pub(crate) struct Prepared<'a> {
    disk: &'a dyn Disk,
    path: &'a Path,
    temporary: PathBuf,
    /// Locked until it is in force.
    file: File,
    is_in_force: bool,
}

impl<'a> Prepared<'a> {
    /// Writes a text beside the file. `old` is the file that it is to replace,
    /// if there is one. Nothing if another writer does the same just now.
    pub fn new(
        disk: &'a dyn Disk,
        path: &'a Path,
        text: &[u8],
        old: Option<&Metadata>,
        audience: Audience,
    ) -> Result<Option<Prepared<'a>>, StoreError> {
        if old.is_none() {
            // Before the file is in force: whoever finds it may rely on its folders.
            settle_folders(disk, folder(path))?;
        }
        let mode = if old.is_some() {
            0o600
        } else {
            audience.file_mode()
        };
        let Some(mut made) = Prepared::make(disk, path, mode)? else {
            return Ok(None);
        };
        if let Some(old) = old {
            let resembled = disk.resemble(&made.file, path, old);
            let permitted = resembled.and_then(|()| match audience {
                // This takes the access control list's rights as well.
                Audience::Owner => disk.keep_others_out(&made.file),
                Audience::Private | Audience::Public => Ok(()),
            });
            let action = "set the permissions of the temporary file";
            permitted.map_err(|error| StoreError::io(action, &made.temporary, error))?;
        }
        disk.write(&mut made.file, text)
            .and_then(|()| disk.synchronize(&made.file))
            .map_err(|error| StoreError::io("write the temporary file", &made.temporary, error))?;
        Ok(Some(made))
    }

    /// Makes the temporary file and locks it.
    fn make(
        disk: &'a dyn Disk,
        path: &'a Path,
        mode: u32,
    ) -> Result<Option<Prepared<'a>>, StoreError> {
        let temporary = beside(path, ".new");
        let failed = |error| StoreError::io("make the temporary file", &temporary, error);
        let mut created = disk.create(&temporary, mode);
        if matches!(&created, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            if is_locked(&temporary) {
                return Ok(None);
            }
            // Left over from a writer that was killed.
            disk.remove(&temporary).map_err(|error| {
                StoreError::io("remove the old temporary file", &temporary, error)
            })?;
            created = disk.create(&temporary, mode);
        }
        let file = created.map_err(failed)?;
        let made = Prepared {
            disk,
            path,
            temporary: temporary.clone(),
            file,
            is_in_force: false,
        };
        match disk.lock(&made.file) {
            // Another writer may have taken it for one that was left over.
            Ok(()) => Ok(is_at(&made.file, &temporary)
                .map_err(failed)?
                .then_some(made)),
            Err(error) if is_taken(&error) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Whether it still replaces what was read and nothing else.
    pub fn is_current(&self, old: Option<&Content>) -> Result<bool, StoreError> {
        let same = is_at(&self.file, &self.temporary)
            .and_then(|is_ours| Ok(is_ours && is_as_read(self.path, old)?));
        same.map_err(|error| StoreError::io("look at the file", self.path, error))
    }

    /// Puts it in force.
    pub fn put(mut self) -> Result<(), StoreError> {
        self.disk
            .rename(&self.temporary, self.path)
            .map_err(|error| StoreError::io("replace the file", self.path, error))?;
        self.is_in_force = true;
        self.disk
            .synchronize_folder(folder(self.path))
            .map_err(|cause| StoreError::Unsettled {
                path: folder(self.path).to_owned(),
                cause,
            })
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        if !self.is_in_force && is_at(&self.file, &self.temporary).unwrap_or(false) {
            // Nothing can be done about one that stays; the next writer removes it.
            let _ = self.disk.remove(&self.temporary);
        }
    }
}

/// Whether a writer is at work at a temporary file. One that cannot be opened is
/// not: who may write here may open it, or else is somebody else who was killed.
fn is_locked(temporary: &Path) -> bool {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    let file = options.write(true).custom_flags(flags.bits() as i32);
    let locked = file.open(temporary).map(|file| SystemDisk.lock(&file));
    matches!(locked, Ok(Err(error)) if is_taken(&error))
}

/// Whether somebody else has the lock.
pub(crate) fn is_taken(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::WOULDBLOCK)
}
