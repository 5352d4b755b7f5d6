//! A store that is watched, and who is told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::ThreadId;
use std::time::Instant;

use milieu_keys::{KeySet, Namespace};

use super::changes::{Changes, Own, Queue};
use super::files::{Files, Turn};
use super::news::{FileNews, Filter, News};
use super::pace::Pace;
use super::state::{Outcome, State};
use crate::error::StoreError;
use crate::merge::{Change, Commit, Strategy};
use crate::store::Store;

/// Watches the files of a store, and tells which keys have other values.
///
/// Each reader says which keys it knows, those of the store for instance, and is
/// first told what differs from them by now: nothing that happens between
/// reading the files and watching them is missed.
///
/// Dropping it ends the thread and waits for it, except in a callback.
///
/// ```
/// use milieu_keys::{Key, Name, Namespace};
/// use milieu_store::watch::{Filter, Pace, Watch};
/// use milieu_store::{Change, Locations, Store, Strategy};
/// # let folder = std::env::temp_dir().join(format!("milieu-watch-doc-{}", std::process::id()));
/// # let home = folder.clone();
/// # let locations = Locations::from_environment(|name| (name == "XDG_CONFIG_HOME").then(|| home.clone().into()));
///
/// let store = Store::open("weather-station", &locations)?;
/// let watch = Watch::start(&store, Pace::default())?;
/// let changes = watch.changes(store.keys(), Filter::all());
///
/// // Another process, or an editor:
/// let mut other = Store::open("weather-station", &locations)?;
/// let language = Name::parse("/sw/pi/anna/language")?;
/// other.commit(Namespace::User, &[Change::set(language, "de")], Strategy::Refuse)?;
///
/// let news = changes.recv()?;
/// assert_eq!(news.changes[0].name.as_str(), "/sw/pi/anna/language");
/// assert_eq!(news.changes[0].new.as_ref().map(Key::value), Some("de"));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Watch {
    // Dropped first: once the thread has ended nobody makes news.
    files: Files,
    shared: Closing,
}

/// Keeps a callback registered. Dropping it waits until the callback, if it runs
/// at this moment, has returned; inside the callback itself it does not wait.
#[must_use = "the callback is removed when its registration is dropped"]
pub struct Registration {
    shared: Arc<Shared>,
    callback: Arc<Callback>,
}

type Run = Box<dyn FnMut(News) + Send>;

struct Callback {
    queue: Arc<Queue>,
    /// Nothing once it is removed.
    run: Mutex<Option<Run>>,
    /// In the thread that runs it, where it cannot be waited for.
    removed: AtomicBool,
}

struct Shared {
    state: Mutex<State>,
    callbacks: Mutex<Vec<Arc<Callback>>>,
    /// The thread in which callbacks run.
    thread: OnceLock<ThreadId>,
}

/// Tells all readers that there will be no more news.
struct Closing(Arc<Shared>);

impl Watch {
    /// Watches the files of a store from now on.
    ///
    /// A file that is not valid at this moment keeps the keys that the store
    /// read from it.
    ///
    /// # Errors
    /// When the system gives no inotify instance, no thread, or not as many
    /// watches as it takes.
    pub fn start(store: &Store, pace: Pace) -> Result<Watch, StoreError> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::of(store, pace.unfinished)),
            callbacks: Mutex::default(),
            thread: OnceLock::new(),
        });
        let of_thread = Arc::clone(&shared);
        let files = Files::start(pace, move |turn| of_thread.turn(turn))?;
        let watch = Watch {
            files,
            shared: Closing(shared),
        };
        for place in store.places() {
            watch.files.add(&place.path)?;
        }
        // Only now: what changes after this look is told by the watches.
        watch.look_at(State::all);
        Ok(watch)
    }

    /// The keys in force now.
    pub fn keys(&self) -> KeySet {
        self.shared.0.state().keys()
    }

    /// Looks at the files of a namespace at this moment: [`keys`](Watch::keys)
    /// has all that was written into them before, for instance by a commit of
    /// this process.
    pub fn look(&self, namespace: Namespace) {
        self.look_at(|state| state.of_namespace(namespace));
    }

    fn look_at(&self, files: impl FnOnce(&State) -> Vec<usize>) {
        let mut state = self.shared.0.state();
        let files = files(&state);
        let outcome = state.look(&files, Vec::new(), None, Instant::now());
        drop(state);
        self.finish(outcome);
    }

    /// Tells a reader who knows these keys what changes, as far as the filter
    /// says. The first news, if there is any, is what is different already.
    pub fn changes(&self, known: &KeySet, filter: Filter) -> Changes {
        let queue = Arc::new(Queue::new(filter));
        self.shared.0.state().add(&queue, known);
        Changes::new(queue)
    }

    /// Calls back with what changes, beginning with what differs from the known
    /// keys already.
    ///
    /// All callbacks run one after the other in the thread that watches, so a
    /// slow one delays the others; its own news becomes one meanwhile. A
    /// callback that panics is not called again, the others are.
    pub fn on_change(
        &self,
        known: &KeySet,
        filter: Filter,
        callback: impl FnMut(News) + Send + 'static,
    ) -> Registration {
        let callback = Arc::new(Callback {
            queue: Arc::new(Queue::new(filter)),
            run: Mutex::new(Some(Box::new(callback))),
            removed: AtomicBool::new(false),
        });
        let shared = &self.shared.0;
        shared.state().add(&callback.queue, known);
        shared.callbacks().push(Arc::clone(&callback));
        self.files.call();
        Registration {
            shared: Arc::clone(shared),
            callback,
        }
    }

    /// Commits, and does not tell the readers what this commit changes, since
    /// this process knows it. What others have changed they are told as ever.
    ///
    /// Until the commit is done nothing is told, and whoever asks this watch for
    /// something waits, which may be as long as the
    /// [patience](Store::with_patience) of the store.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn commit(
        &self,
        store: &mut Store,
        namespace: Namespace,
        changes: &[Change],
        strategy: Strategy,
    ) -> Result<Commit, StoreError> {
        // Nobody reads the files between the commit and the look that knows
        // whose it is. Even a commit that fails may have written some of them.
        let mut state = self.shared.0.state();
        let commit = store.commit(namespace, changes, strategy);
        let own = Own::new(namespace, changes);
        let files = state.of_namespace(namespace);
        let outcome = state.look(&files, Vec::new(), Some(&own), Instant::now());
        drop(state);
        self.finish(outcome);
        commit
    }

    fn finish(&self, outcome: Outcome) {
        outcome.wakers.into_iter().for_each(Waker::wake);
        for (path, after) in outcome.again {
            self.files.again(&path, after);
        }
        // Callbacks may have got news as well.
        self.files.call();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn callbacks(&self) -> MutexGuard<'_, Vec<Arc<Callback>>> {
        let callbacks = self.callbacks.lock();
        callbacks.unwrap_or_else(PoisonError::into_inner)
    }

    /// Some files may have changed.
    fn turn(&self, turn: &mut Turn) {
        self.thread.get_or_init(|| std::thread::current().id());
        let troubles = turn.troubles().map(|(path, error)| FileNews::Unwatched {
            path: path.to_path_buf(),
            error: Arc::new(error),
        });
        let troubles = troubles.collect();
        let outcome = {
            let mut state = self.state();
            let files = state.at(turn.paths());
            state.look(&files, troubles, None, turn.now())
        };
        outcome.wakers.into_iter().for_each(Waker::wake);
        for (path, after) in outcome.again {
            turn.again(&path, after);
        }
        self.call_back();
    }

    /// Runs the callbacks that have news.
    fn call_back(&self) {
        let callbacks = self.callbacks().clone();
        for callback in callbacks {
            if let Ok(news) = callback.queue.take() {
                callback.run(news);
            }
        }
    }

    fn is_current_thread(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }
}

impl Callback {
    fn run(&self, news: News) {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(callback) = run.as_mut().filter(|_| !self.is_removed()) else {
            return;
        };
        // What a callback that panicked has left behind is not looked at again.
        let outcome = catch_unwind(AssertUnwindSafe(|| callback(news)));
        let is_over = outcome.is_err() || self.is_removed();
        // Dropping it is the program's code again, and so is what it panicked with.
        let gone = if is_over { run.take() } else { None };
        drop(run);
        let _ = catch_unwind(AssertUnwindSafe(|| drop((gone, outcome))));
    }

    fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let is_other = |other: &Arc<Callback>| !Arc::ptr_eq(other, &self.callback);
        self.shared.callbacks().retain(is_other);
        if self.shared.is_current_thread() {
            // A callback that runs is dropped when it has returned.
            self.callback.removed.store(true, Ordering::Release);
        } else {
            let run = self.callback.run.lock();
            let gone = run.unwrap_or_else(PoisonError::into_inner).take();
            drop(gone);
        }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let readers: Vec<Arc<Queue>> = self.0.state().readers().collect();
        let wakers: Vec<Waker> = readers.iter().filter_map(|reader| reader.close()).collect();
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl std::fmt::Debug for Closing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.state().paths()).finish()
    }
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let filter = self.callback.queue.filter();
        f.debug_struct("Registration")
            .field("filter", filter)
            .finish_non_exhaustive()
    }
}
