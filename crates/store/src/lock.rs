//! The lock that makes writers of one file take turns.
//!
//! It is an exclusive `flock` on a file beside the one that is written, named
//! `.APP.ini.lock`. That file stays: were it removed, two processes could lock
//! two different files of the same name. Should somebody remove it, the
//! temporary files of [`crate::replace`] keep the two apart. The kernel gives the lock back when
//! its holder ends, however it ends, so that no lock is ever stale. Readers do
//! not lock, because files are replaced whole.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, Gid, Mode, OFlags, Uid};
use rustix::io::{Errno, retry_on_intr};

use crate::disk::Disk;
use crate::error::StoreError;
use crate::replace::{beside, is_at};

/// The time between two attempts. Holders keep the lock for some milliseconds.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);

/// The right to write a file, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Waits for the lock of a file, at most as long as `patience`.
    ///
    /// `mode` are the permissions that the written file will have if there is
    /// none yet. Whoever may write it may lock it, and nobody else, who could
    /// keep writers out for ever.
    pub fn take(
        disk: &dyn Disk,
        path: &Path,
        mode: u32,
        patience: Duration,
    ) -> Result<Lock, StoreError> {
        let written = std::fs::metadata(path).ok();
        let path = beside(path, ".lock");
        let failed = |cause: io::Error| StoreError::io("lock the file", &path, cause);
        // Counted in pauses, so that a clock that is set does not matter.
        let mut waited = Duration::ZERO;
        let mut file = open(&path, written.as_ref(), mode).map_err(failed)?;
        loop {
            match disk.lock(&file) {
                Ok(()) if is_at(&file, &path).map_err(failed)? => break,
                // Somebody removed the lock file, and the next writer has made or will make another.
                Ok(()) => file = open(&path, written.as_ref(), mode).map_err(failed)?,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) => {}
                    Some(Errno::WOULDBLOCK) if waited < patience => {
                        std::thread::sleep(PAUSE);
                        waited += PAUSE;
                    }
                    Some(Errno::WOULDBLOCK) => {
                        return Err(StoreError::Locked {
                            holder: holder(&mut file),
                            path,
                            waited,
                        });
                    }
                    _ => return Err(failed(error)),
                },
            }
        }
        // Only said in the error above, so it does not matter whether it can be
        // written. What is right already costs the disk nothing.
        if holder(&mut file) != Some(std::process::id()) && is_ours_alone(&file) {
            let _ = file
                .set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| writeln!(file, "{}", std::process::id()));
        }
        Ok(Lock { file })
    }
}

impl Drop for Lock {
    /// Closing the file would not do: a process that was forked meanwhile has it open as well.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// Opens the lock file, which is made if it is not there, for those who may write.
fn open(path: &Path, written: Option<&Metadata>, mode: u32) -> io::Result<File> {
    let mode = written.map_or(mode, Metadata::mode);
    let writers = mode & 0o222;
    let mode = Mode::from_raw_mode(0o600 | writers | writers << 1);
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let make = OFlags::CREATE | OFlags::EXCL;
    let (file, is_new) = loop {
        match retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty())) {
            Err(Errno::NOENT) => {}
            found => break (File::from(found?), false),
        }
        match retry_on_intr(|| rustix::fs::open(path, flags | make, mode)) {
            // Another writer was faster.
            Err(Errno::EXIST) => {}
            made => break (File::from(made?), true),
        }
    };
    let found = file.metadata()?;
    let owner = |of: &Metadata| (of.uid(), of.gid());
    let is_owner_same = written.is_none_or(|written| owner(written) == owner(&found));
    // Who may write may change, and the process's mask may have kept out the group. What is not
    // new and somebody else's may be anything that was moved here, and is left as it is.
    if is_new || is_owner_same && is_ours_alone(&file) {
        if let Some(written) = written.filter(|_| !is_owner_same) {
            let group = Some(Gid::from_raw(written.gid()));
            let _ = rustix::fs::fchown(&file, Some(Uid::from_raw(written.uid())), group)
                .or_else(|_| rustix::fs::fchown(&file, None, group));
        }
        if !Mode::from_raw_mode(found.mode()).contains(mode) {
            let _ = rustix::fs::fchmod(&file, mode);
        }
    }
    Ok(file)
}

/// Whether the file is one that only serves as a lock. A hard link to another
/// file, which somebody may have put there, is locked and left alone.
fn is_ours_alone(file: &File) -> bool {
    file.metadata()
        .is_ok_and(|found| found.is_file() && found.nlink() == 1)
}

/// The process that wrote its number into the lock file last.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::disk::SystemDisk;

    fn folder(test: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("milieu-lock-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }

    fn take(path: &Path, patience_ms: u64) -> Result<Lock, StoreError> {
        Lock::take(&SystemDisk, path, 0o600, Duration::from_millis(patience_ms))
    }

    #[test]
    fn a_process_forked_meanwhile_does_not_keep_the_lock() {
        let folder = folder("forked");
        let path = folder.join("a.ini");
        let lock = take(&path, 0).unwrap();
        // What a fork leaves in the child: the same open file.
        let inherited = lock.file.try_clone().unwrap();
        assert!(matches!(take(&path, 2), Err(StoreError::Locked { .. })));
        drop(lock);
        take(&path, 0).unwrap();
        drop(inherited);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn whoever_waited_for_a_lock_file_that_was_removed_takes_the_next() {
        let folder = folder("removed");
        let path = folder.join("a.ini");
        let first = take(&path, 0).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| take(&path, 60_000).unwrap());
            // However far it has come: either it waits for what is removed, or it begins after.
            std::thread::sleep(Duration::from_millis(20));
            fs::remove_file(folder.join(".a.ini.lock")).unwrap();
            drop(first);
            let _second = waiting.join().unwrap();
            assert!(matches!(take(&path, 2), Err(StoreError::Locked { .. })));
        });
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_hard_link_in_place_of_the_lock_file_is_not_written() {
        let folder = folder("hard");
        fs::write(folder.join("precious"), "precious").unwrap();
        fs::hard_link(folder.join("precious"), folder.join(".a.ini.lock")).unwrap();
        let _lock = take(&folder.join("a.ini"), 0).unwrap();
        assert_eq!(
            fs::read_to_string(folder.join("precious")).unwrap(),
            "precious"
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
