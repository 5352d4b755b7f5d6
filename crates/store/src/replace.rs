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
//!   once [`replace`] has returned;
//! - at most one temporary file is left over, and the next writer removes it.
//!
//! The caller holds the lock, so nobody else writes the temporary file.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::disk::Disk;
use crate::error::StoreError;

/// Who may use new files and folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The user alone.
    Private,
    /// Everybody may read, as far as the process's mask lets them.
    Public,
}

impl Audience {
    fn folder_mode(self) -> u32 {
        match self {
            Audience::Private => 0o700,
            Audience::Public => 0o755,
        }
    }

    /// The permissions of a file, or those that it will have.
    pub fn file_mode_of(self, path: &Path) -> u32 {
        std::fs::metadata(path).map_or(self.file_mode(), |file| file.permissions().mode() & 0o777)
    }

    fn file_mode(self) -> u32 {
        match self {
            Audience::Private => 0o600,
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
            Ok(()) => disk
                .synchronize_folder(folder(path))
                .map_err(|error| StoreError::io("synchronize the folder", folder(path), error))?,
        }
    }
    Ok(())
}

/// Gives the file a new text. `old` is the file that is replaced, if there is one.
pub(crate) fn replace(
    disk: &dyn Disk,
    path: &Path,
    text: &str,
    old: Option<&Metadata>,
    audience: Audience,
) -> Result<(), StoreError> {
    let temporary = beside(path, ".new");
    let failed = |action: &'static str, path: &Path, cause: io::Error| {
        // Nothing can be done about a temporary file that stays; the next writer removes it.
        let _ = disk.remove(&temporary);
        StoreError::io(action, path, cause)
    };
    match disk.remove(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(StoreError::io(
                "remove the old temporary file",
                &temporary,
                error,
            ));
        }
        _ => {}
    }
    let mode = if old.is_some() {
        0o600
    } else {
        audience.file_mode()
    };
    let mut file = disk
        .create(&temporary, mode)
        .map_err(|error| StoreError::io("make the temporary file", &temporary, error))?;
    if let Some(old) = old {
        disk.resemble(&file, old).map_err(|error| {
            failed(
                "set the permissions of the temporary file",
                &temporary,
                error,
            )
        })?;
    }
    disk.write(&mut file, text.as_bytes())
        .map_err(|error| failed("write the temporary file", &temporary, error))?;
    disk.synchronize(&file)
        .map_err(|error| failed("write the temporary file", &temporary, error))?;
    drop(file);
    disk.rename(&temporary, path)
        .map_err(|error| failed("replace the file", path, error))?;
    disk.synchronize_folder(folder(path))
        .map_err(|cause| StoreError::Unsettled {
            path: folder(path).to_owned(),
            cause,
        })
}
