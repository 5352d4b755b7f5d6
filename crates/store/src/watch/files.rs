//! A changing set of paths, and the thread that says which of them may have changed.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::Id;
use super::pace::{Calm, Pace, Sign};
use super::watches::Watches;
use crate::error::StoreError;

/// The name of the threads that watch, as debuggers and `top` show it.
const THREAD: &str = "milieu-watch";
/// Signals an exception when something is mounted or unmounted.
const MOUNTS: &str = "/proc/self/mountinfo";

/// Watches files, each by its path, and says which may have changed.
///
/// The handler runs in a thread that this starts, one call at a time, and gets
/// all paths whose changes became quiet at the same time. *May have changed*
/// means: since the path was added, or since the handler was last called with
/// it, and whoever reads the file in the handler has read the newest content,
/// or will be called again. The thread sleeps while nothing happens.
///
/// Dropping it ends the thread and waits for it, except in the handler itself.
/// A handler that panics ends the thread; nothing is told after that.
///
/// ```
/// use std::sync::mpsc::channel;
/// use milieu_store::watch::{Files, Pace};
///
/// # let path = std::env::temp_dir().join(format!("milieu-files-doc-{}", std::process::id()));
/// let (news, changed) = channel();
/// let files = Files::start(Pace::default(), move |turn| {
///     turn.paths().for_each(|path| news.send(path.to_owned()).unwrap());
/// })?;
/// files.add(&path)?;
///
/// std::fs::write(&path, "it was not even there before")?;
/// assert_eq!(changed.recv()?, path);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Files {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What a handler is told, and what it can ask for.
#[derive(Debug)]
pub struct Turn {
    now: Instant,
    paths: Vec<Arc<Path>>,
    troubles: Vec<(Arc<Path>, StoreError)>,
    again: Vec<(Arc<Path>, Duration)>,
}

struct Shared {
    state: Mutex<State>,
    /// Wakes the thread.
    wake: OwnedFd,
    /// The handler is to be called, even without news.
    called: AtomicBool,
    ended: AtomicBool,
}

struct State {
    watches: Watches,
    calm: Calm,
    pace: Pace,
    next_look: Option<Instant>,
}

impl Files {
    /// Starts the thread, which has nothing to watch yet.
    ///
    /// # Errors
    /// When the system gives no inotify instance, no thread, or no descriptor.
    pub fn start(
        pace: Pace,
        handler: impl FnMut(&mut Turn) + Send + 'static,
    ) -> Result<Files, StoreError> {
        let failed = |action, cause| StoreError::io(action, Path::new(THREAD), cause);
        let watches = Watches::new()?;
        let sleep = Sleep {
            inotify: watches.descriptor(),
            mounts: File::open(MOUNTS).ok(),
        };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| failed("make a descriptor for the thread", error.into()))?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                watches,
                calm: Calm::new(pace),
                pace,
                next_look: None,
            }),
            wake,
            called: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name(THREAD.to_owned())
            .spawn(move || run(&of_thread, &sleep, handler))
            .map_err(|error| failed("start the thread", error))?;
        Ok(Files {
            shared,
            thread: Some(thread),
        })
    }

    /// Watches a path, which need not exist. Every change after this returns
    /// is told. A relative path counts from the folder the process is in now.
    ///
    /// # Errors
    /// When the system's limit of watches is reached. The path is not watched then.
    pub fn add(&self, path: &Path) -> Result<(), StoreError> {
        let failed = |cause| StoreError::io("watch the file", path, cause);
        let path = std::path::absolute(path).map_err(failed)?;
        let mut state = self.shared.state();
        if state.watches.id(&path).is_none() {
            state.watches.add(&path.into())?;
            drop(state);
            // It may have to be looked at.
            self.shared.wake();
        }
        Ok(())
    }

    /// Watches a path no longer. The handler may be called with it once more if
    /// it runs at this moment.
    pub fn remove(&self, path: &Path) {
        let mut state = self.shared.state();
        let path = std::path::absolute(path).unwrap_or_default();
        if let Some(id) = state.watches.id(&path) {
            state.watches.remove(id);
            state.calm.forget(id);
        }
    }

    /// Has the handler called with a watched path after this time, whether it
    /// has changed or not.
    pub fn again(&self, path: &Path, after: Duration) {
        self.shared.state().again(path, Instant::now() + after);
        self.shared.wake();
    }

    /// Has the handler called soon, whether anything has changed or not.
    pub(super) fn call(&self) {
        self.shared.called.store(true, Ordering::Release);
        self.shared.wake();
    }

    /// Whether this is the thread that watches.
    pub(super) fn is_current_thread(&self) -> bool {
        let current = std::thread::current().id();
        let thread = self.thread.as_ref();
        thread.is_some_and(|thread| thread.thread().id() == current)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        self.shared.wake();
        if !self.is_current_thread() {
            // A handler that panicked has said so already.
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}

impl Turn {
    /// The paths that may have changed.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(|path| &**path)
    }

    /// Takes out the paths that can no longer be watched well, each with the
    /// reason: it is told once. They are looked at from time to time if
    /// [`Pace::look`] says so.
    pub fn troubles(&mut self) -> impl Iterator<Item = (Arc<Path>, StoreError)> {
        self.troubles.drain(..)
    }

    /// When this turn began.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Has the handler called with this path after that time, even if nothing
    /// happens to it.
    pub fn again(&mut self, path: &Path, after: Duration) {
        self.again.push((path.into(), after));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // It fails only when it is awake already, 2^64 times over.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

impl State {
    fn again(&mut self, path: &Path, at: Instant) {
        if let Some(id) = self.watches.id(path) {
            self.calm.again(id, at);
        }
    }

    /// When there will be something to do without any event.
    fn deadline(&mut self, now: Instant) -> Option<Instant> {
        for id in self.watches.restless() {
            self.calm.again(id, now + self.pace.unfinished);
        }
        let look = self.pace.look.filter(|_| self.watches.has_blind());
        self.next_look = look.map(|look| self.next_look.unwrap_or(now + look));
        self.next_look.into_iter().chain(self.calm.deadline()).min()
    }

    /// Takes in what happened, and says what is due.
    fn turn(&mut self, now: Instant, mounted: bool) -> Turn {
        let State { watches, calm, .. } = self;
        let mut note = |id: Id, sign: Sign| calm.note(id, sign, now);
        watches.drain(&mut note);
        if mounted {
            watches.all_may_have_changed(&mut note);
        }
        if self.next_look.is_some_and(|at| at <= now) {
            self.next_look = None;
            watches.look(&mut note);
        }
        let due = calm.due(now);
        for id in &due {
            watches.calm(*id, &mut |id, sign| calm.note(id, sign, now));
        }
        let paths = due.iter().filter_map(|id| watches.path(*id));
        Turn {
            now,
            paths: paths.cloned().collect(),
            troubles: watches.troubles(),
            again: Vec::new(),
        }
    }
}

/// What the thread sleeps on besides its wake-up call.
struct Sleep {
    inotify: Arc<OwnedFd>,
    /// Nothing where `/proc` is not mounted.
    mounts: Option<File>,
}

impl Sleep {
    /// Sleeps until something happens or the deadline comes. Says whether file
    /// systems were mounted or unmounted.
    fn until(&self, deadline: Option<Instant>, now: Instant, wake: &OwnedFd) -> bool {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut descriptors = vec![
            PollFd::new(&*self.inotify, PollFlags::IN),
            PollFd::new(wake, PollFlags::IN),
        ];
        if let Some(mounts) = &self.mounts {
            descriptors.push(PollFd::new(mounts, PollFlags::PRI));
        }
        // A signal wakes as well, and then nothing has happened.
        let happened = poll(&mut descriptors, left.as_ref()).is_ok();
        if happened && descriptors[1].revents().contains(PollFlags::IN) {
            let _ = rustix::io::read(wake, &mut [0; 8]);
        }
        let mounts = descriptors.get(2);
        happened && mounts.is_some_and(|mounts| mounts.revents().contains(PollFlags::PRI))
    }
}

fn run(shared: &Shared, sleep: &Sleep, mut handler: impl FnMut(&mut Turn)) {
    loop {
        let now = Instant::now();
        let deadline = shared.state().deadline(now);
        let mounted = sleep.until(deadline, now, &shared.wake);
        if shared.ended.load(Ordering::Acquire) {
            return;
        }
        let mut turn = shared.state().turn(Instant::now(), mounted);
        let called = shared.called.swap(false, Ordering::AcqRel);
        if called || !turn.paths.is_empty() || !turn.troubles.is_empty() {
            handler(&mut turn);
        }
        let now = Instant::now();
        for (path, after) in turn.again {
            shared.state().again(&path, now + after);
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
