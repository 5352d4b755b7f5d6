//! What streams remember, in a file across restarts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use milieu_store::{StoreError, replace_file};
use milieu_stream::{CannotRestore, NotRestored, Status, Streams};

use crate::{Error, Milieu};

/// Keeps what streams remember in a file, until this is dropped.
#[must_use = "nothing is kept when this is dropped"]
pub struct Keeping {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    streams: Streams,
    path: PathBuf,
    state: Mutex<State>,
    ended: Condvar,
    /// Held while the file is written.
    writing: Mutex<()>,
}

struct State {
    status: Status,
    is_over: bool,
}

impl Milieu {
    /// Lets operators go on after a restart where they were: what they remember
    /// is read from a file, and written there so often, in a thread of its own,
    /// and once more when the answer is dropped. Each operator gets its state
    /// when an equal flow is first subscribed to, so this comes before the
    /// subscriptions. The file is replaced whole or not at all, and is there for
    /// this program alone.
    ///
    /// # Errors
    /// If the file is there and cannot be read, or was not written so; or if the
    /// system has no thread left.
    pub fn keep_streams(
        &self,
        path: impl Into<PathBuf>,
        every: Duration,
    ) -> Result<Keeping, Error> {
        let (streams, path) = (self.streams().clone(), path.into());
        if let Some(snapshot) = read(&path)? {
            let restored = streams.restore(snapshot);
            restored.map_err(|cause| Error::Snapshot(path.clone(), cause))?;
        }
        let status = Status::Starting;
        let is_over = false;
        let shared = Arc::new(Shared {
            streams,
            path,
            state: Mutex::new(State { status, is_over }),
            ended: Condvar::new(),
            writing: Mutex::default(),
        });
        let keeper = Arc::clone(&shared);
        let thread = thread::Builder::new().name("milieu-keeper".to_owned());
        let thread = thread.spawn(move || keeper.run(every));
        Ok(Keeping {
            shared,
            thread: Some(thread.map_err(Error::System)?),
        })
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(Error::Store(StoreError::Io {
            action: "read the file",
            path: path.to_owned(),
            cause,
        })),
    }
}

impl Keeping {
    /// Writes the file now.
    ///
    /// # Errors
    /// If it cannot be written; it then is as it was. Or within a callback.
    pub fn save(&self) -> Result<(), Error> {
        self.shared.save()
    }

    /// Whether the file was written when it was tried last, and if not, why.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.state().status.clone()
    }

    /// What was in the file and no operator has got, and why. Nothing within a
    /// callback.
    #[must_use]
    pub fn not_restored(&self) -> Vec<NotRestored> {
        self.shared.streams.not_restored().unwrap_or_default()
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.ended.notify_all();
        // Within a callback the thread would wait for us.
        let is_inside = self.shared.streams.is_inside();
        if let Some(thread) = self.thread.take().filter(|_| !is_inside) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, every: Duration) {
        loop {
            let until = Instant::now().checked_add(every);
            let mut state = self.state();
            loop {
                let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
                if state.is_over || rest.is_some_and(|rest| rest.is_zero()) {
                    break;
                }
                // What is too far away to be told is waited for in parts.
                let rest = rest.unwrap_or(Duration::from_secs(3600));
                let waited = self.ended.wait_timeout(state, rest);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            let is_over = state.is_over;
            drop(state);
            // The status tells what went wrong.
            let _ = self.save();
            if is_over {
                return;
            }
        }
    }

    fn save(&self) -> Result<(), Error> {
        let inside = || Error::Snapshot(self.path.clone(), CannotRestore::Inside);
        // Whoever writes may be waiting for the callback to end.
        if self.streams.is_inside() {
            return Err(inside());
        }
        // Whoever comes later writes what is newer.
        let writing = self.writing.lock();
        let snapshot = self.streams.snapshot().ok_or_else(inside)?;
        let written = replace_file(&self.path, &snapshot);
        drop(writing);
        self.state().status = match &written {
            Ok(()) => Status::Working,
            Err(error) => Status::Failing(error.to_string().into()),
        };
        written.map_err(Error::Store)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
