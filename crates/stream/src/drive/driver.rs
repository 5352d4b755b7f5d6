//! Sources in real time, in a thread.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use milieu_transfer::{Event, Span, Stream, Time};

use super::clock::{self, Clock};
use super::polled::Polled;
use super::waiting::{Ready, Waiting};
use super::wake::Wake;
use crate::runtime::{Clock as Told, SystemClock};
use crate::source::{Source, Status, Wait};

/// How soon another clock than the system's is looked at again: it may stand.
const LOOK_AGAIN_MIN: Span = Span::from_nanoseconds(1_000_000);
/// How late: it may have been set.
const LOOK_AGAIN_MAX: Span = Span::from_seconds(1);

/// A source of a driver; no two have the same, not even one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub(super) u64);

/// One thread that polls all sources.
///
/// Dropping it ends the thread and drops the sources.
pub struct Driver {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and those who call the driver share.
struct Shared {
    wake: Wake,
    state: Mutex<State>,
    /// That no source is fresh any more.
    looked: Condvar,
}

#[derive(Default)]
struct State {
    next: u64,
    commands: Vec<Command>,
    statuses: HashMap<SourceId, Status>,
    /// Those that have not been polled yet.
    fresh: BTreeSet<SourceId>,
    /// Why no source is polled any more.
    over: Option<&'static str>,
}

enum Command {
    Add(SourceId, Polled),
    Remove(SourceId),
    Stop,
}

impl Driver {
    /// Starts the thread. What sources publish goes to the callback, as does
    /// how they are, whenever that has changed; it runs in the thread and
    /// should be quick, because it keeps all sources waiting.
    ///
    /// # Errors
    /// If the system has no descriptors or no thread left.
    pub fn start(
        callback: impl FnMut(SourceId, Vec<Event>, Option<Status>) + Send + 'static,
    ) -> io::Result<Driver> {
        Driver::start_by(Arc::new(SystemClock), callback)
    }

    /// As [`start`](Driver::start), by another clock than the system's. How that goes
    /// nobody knows: it is looked at again after what seems to be left by it, and
    /// each second.
    ///
    /// # Errors
    /// As there.
    pub fn start_by(
        by: Arc<dyn Told>,
        callback: impl FnMut(SourceId, Vec<Event>, Option<Status>) + Send + 'static,
    ) -> io::Result<Driver> {
        let clock = Clock::new()?;
        let wake = Wake::new()?;
        let waiting = Waiting::new(&wake, &clock)?;
        let shared = Arc::new(Shared {
            wake,
            state: Mutex::default(),
            looked: Condvar::new(),
        });
        let mut polling = Polling {
            shared: Arc::clone(&shared),
            by,
            clock,
            waiting,
            sources: HashMap::new(),
            due: BTreeSet::new(),
            callback: Box::new(callback),
        };
        let thread = thread::Builder::new().name("milieu-sources".to_owned());
        let thread = thread.spawn(move || polling.run_and_tell())?;
        Ok(Driver {
            shared,
            thread: Some(thread),
        })
    }

    /// Adds a source; it is polled at once.
    pub fn add(&self, stream: Stream, source: impl Source + 'static) -> SourceId {
        let source = Polled::new(stream, Box::new(source));
        let mut state = self.shared.state();
        state.next += 1;
        let id = SourceId(state.next);
        let status = match state.over {
            None => {
                state.fresh.insert(id);
                Status::Starting
            }
            Some(reason) => Status::Failing(reason.into()),
        };
        state.statuses.insert(id, status);
        state.commands.push(Command::Add(id, source));
        drop(state);
        self.shared.wake.wake();
        id
    }

    /// Takes a source out, and drops it in the thread. The callback may still
    /// be told what it was saying when this was called.
    pub fn remove(&self, id: SourceId) {
        let mut state = self.shared.state();
        state.statuses.remove(&id);
        state.commands.push(Command::Remove(id));
        drop(state);
        self.shared.looked_at(id);
        self.shared.wake.wake();
    }

    /// How a source is, also after it has ended; nothing once it was removed.
    #[must_use]
    pub fn status(&self, id: SourceId) -> Option<Status> {
        self.shared.state().statuses.get(&id).cloned()
    }

    /// Waits until every source has been polled and what it had to say at once
    /// has gone to the callback, but no longer than this. Whether that is so.
    #[must_use]
    pub fn has_looked(&self, limit: Duration) -> bool {
        let Shared { looked, .. } = &*self.shared;
        let waited =
            looked.wait_timeout_while(self.shared.state(), limit, |state| !state.fresh.is_empty());
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Ends the thread, after what it is doing, and drops the sources.
    ///
    /// # Errors
    /// What the callback panicked with, if it did.
    pub fn stop(mut self) -> thread::Result<()> {
        self.end()
    }

    /// Ends the thread as [`stop`](Driver::stop) does, and does not wait for
    /// it: for whoever the thread may be waiting for.
    pub fn leave(&mut self) {
        let thread = self.thread.take();
        self.shared.state().commands.push(Command::Stop);
        self.shared.wake.wake();
        drop(thread);
    }

    fn end(&mut self) -> thread::Result<()> {
        self.shared.state().commands.push(Command::Stop);
        self.shared.wake.wake();
        match self.thread.take() {
            // The callback owned the driver, and drops it: the thread is here.
            Some(thread) if thread.thread().id() == thread::current().id() => Ok(()),
            Some(thread) => thread.join(),
            None => Ok(()),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl Shared {
    fn looked_at(&self, id: SourceId) {
        self.state().fresh.remove(&id);
        self.looked.notify_all();
    }

    /// No panic can leave the state half done: nothing foreign runs under it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Callback = Box<dyn FnMut(SourceId, Vec<Event>, Option<Status>) + Send>;

/// What the thread works with.
struct Polling {
    shared: Arc<Shared>,
    /// What time it is for sources.
    by: Arc<dyn Told>,
    clock: Clock,
    waiting: Waiting,
    sources: HashMap<SourceId, Polled>,
    due: BTreeSet<(Time, SourceId)>,
    callback: Callback,
}

impl Polling {
    fn run_and_tell(&mut self) {
        let (reason, panic) = match catch_unwind(AssertUnwindSafe(|| self.run())) {
            Ok(Ok(())) => ("its driver was stopped", None),
            Ok(Err(_)) => ("its driver cannot wait any more: epoll has failed", None),
            Err(panic) => (
                "its driver has ended: the callback that takes events panicked",
                Some(panic),
            ),
        };
        let mut state = self.shared.state();
        state.over = Some(reason);
        state.fresh.clear();
        let commands = std::mem::take(&mut state.commands);
        for status in state.statuses.values_mut() {
            if *status != Status::Ended {
                *status = Status::Failing(reason.into());
            }
        }
        drop(state);
        self.shared.looked.notify_all();
        drop(commands);
        self.sources.clear();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn run(&mut self) -> io::Result<()> {
        loop {
            if self.obey() {
                return Ok(());
            }
            // Each has one turn, also if it asks for the past again.
            let past = ..=(self.by.now(), SourceId(u64::MAX));
            let ids: Vec<SourceId> = self.due.range(past).map(|(_, id)| *id).collect();
            for id in ids {
                self.poll(id);
            }
            let due = self.due.first().map_or(Time::MAX, |(due, _)| *due);
            if self.clock.arm(self.in_system_time(due))? {
                self.poll_all();
                continue;
            }
            for ready in self.waiting.wait()? {
                match ready {
                    Ready::Woken => self.shared.wake.clear(),
                    Ready::Source(id) => self.poll(SourceId(id)),
                    Ready::Clock => {
                        if self.clock.read() {
                            self.poll_all();
                        }
                    }
                }
            }
        }
    }

    /// When to look at the clock again, by that of the system.
    fn in_system_time(&self, due: Time) -> Time {
        if due == Time::MAX || self.by.is_of_system() {
            return due;
        }
        clock::now() + (due - self.by.now()).clamp(LOOK_AGAIN_MIN, LOOK_AGAIN_MAX)
    }

    /// Does what was asked for. True: the thread is to end.
    fn obey(&mut self) -> bool {
        let commands = std::mem::take(&mut self.shared.state().commands);
        for command in commands {
            match command {
                Command::Add(id, source) => {
                    self.sources.insert(id, source);
                    self.poll(id);
                    self.shared.looked_at(id);
                }
                Command::Remove(id) => {
                    if let Some(source) = self.sources.remove(&id) {
                        self.forget_due(id, &source);
                    }
                }
                Command::Stop => return true,
            }
        }
        false
    }

    fn poll_all(&mut self) {
        let ids: Vec<SourceId> = self.sources.keys().copied().collect();
        for id in ids {
            self.poll(id);
        }
    }

    fn poll(&mut self, id: SourceId) {
        let Some(source) = self.sources.get_mut(&id) else {
            return;
        };
        let before = source.due();
        let mut events = Vec::new();
        source.poll(self.by.now(), &mut events);
        watch(&self.waiting, id, source);
        let after = source.due();
        if before != after {
            if let Some(before) = before {
                self.due.remove(&(before, id));
            }
            if let Some(after) = after {
                self.due.insert((after, id));
            }
        }
        let status = source.news();
        if let Some(status) = &status {
            if let Some(known) = self.shared.state().statuses.get_mut(&id) {
                known.clone_from(status);
            }
        }
        if source.wait.is_none() {
            self.sources.remove(&id);
        }
        if !events.is_empty() || status.is_some() {
            (self.callback)(id, events, status);
        }
    }

    fn forget_due(&mut self, id: SourceId, source: &Polled) {
        if let Some(due) = source.due() {
            self.due.remove(&(due, id));
        }
    }
}

/// Waits for the descriptor of a source, if it has one.
fn watch(waiting: &Waiting, id: SourceId, source: &mut Polled) {
    let Some(wait) = source.wait else {
        return;
    };
    let watched = source
        .descriptor()
        .map(|descriptor| waiting.once(id.0, descriptor));
    match (watched, wait) {
        (Some(Ok(())), _) | (None, Wait::Until(_)) => {}
        (Some(Err(error)), _) => source.fail(&format!(
            "the descriptor of the source cannot be waited for, so that it is polled no more: {error}"
        )),
        (None, _) => source.fail(
            "the source waits for a descriptor and has none, so that it is polled no more",
        ),
    }
}
