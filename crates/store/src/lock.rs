//! The lock that makes writers of one file take turns.
//!
//! It is an exclusive `flock` on a file beside the one that is written, named
//! `.APP.ini.lock`. That file stays: were it removed, two processes could lock
//! two different files of the same name. The kernel gives the lock back when
//! its holder ends, however it ends, so that no lock is ever stale. Readers do
//! not lock, because files are replaced whole.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::error::StoreError;
use crate::replace::beside;

/// The time between two attempts. Holders keep the lock for some milliseconds.
const PAUSE: Duration = Duration::from_millis(1);

/// The right to write a file, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Closing it unlocks.
    _file: File,
}

impl Lock {
    /// Waits for the lock of a file, at most as long as `patience`.
    ///
    /// `mode` are the permissions of the written file: whoever may write it may
    /// lock it, and nobody else, who could keep writers out for ever.
    pub fn take(path: &Path, mode: u32, patience: Duration) -> Result<Lock, StoreError> {
        let path = beside(path, ".lock");
        let failed = |cause: Errno| StoreError::io("lock the file", &path, cause);
        let writers = mode & 0o222;
        let mode = Mode::from_raw_mode(0o600 | writers | writers << 1);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
        let mut file = File::from(rustix::fs::open(&path, flags, mode).map_err(failed)?);
        // The process's mask may have kept out the group. Only the owner can let
        // it in, and only the owner needs to.
        if rustix::fs::fstat(&file)
            .is_ok_and(|found| !Mode::from_raw_mode(found.st_mode).contains(mode))
        {
            let _ = rustix::fs::fchmod(&file, mode);
        }
        // Counted in pauses, so that a clock that is set does not matter.
        let mut waited = Duration::ZERO;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) if waited < patience => {
                    std::thread::sleep(PAUSE);
                    waited += PAUSE;
                }
                Err(Errno::WOULDBLOCK) => {
                    let holder = holder(&mut file);
                    return Err(StoreError::Locked {
                        path,
                        holder,
                        waited,
                    });
                }
                Err(error) => return Err(failed(error)),
            }
        }
        // Only said in the error above, so it does not matter whether it can be written.
        let _ = file
            .set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Lock { _file: file })
    }
}

/// The process that wrote its number into the lock file last.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim_end().parse().ok()
}
